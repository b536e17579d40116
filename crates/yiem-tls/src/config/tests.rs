use super::*;

#[test]
fn all_clients_share_one_provider() {
    assert!(Arc::ptr_eq(
        client_config().crypto_provider(),
        client_config().crypto_provider()
    ));
}

#[test]
fn a_root_that_is_no_certificate_is_told() {
    let error = client_config_with([b"not a certificate".to_vec()]).unwrap_err();
    assert!(error.contains("CA certificate"), "{error}");
}

#[test]
fn a_text_without_a_certificate_and_one_with_a_bad_one_are_told() {
    for (pem, expected) in [
        ("", "no certificate"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "no certificate",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate 1 cannot be read",
        ),
        (
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "certificate 1 cannot be read",
        ),
    ] {
        let error = certificates_of(pem.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{pem}: {error}");
    }
}

#[test]
fn installing_the_provider_twice_is_fine() {
    install_default_provider();
    install_default_provider();
    assert!(rustls::crypto::CryptoProvider::get_default().is_some());
}

#[test]
fn a_certificate_that_no_root_vouches_for_is_refused() {
    use rustls::client::danger::ServerCertVerifier;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = LazyVerifier::new(provider);
    assert!(!verifier.supported_verify_schemes().is_empty());
    let refused = verifier.verify_server_cert(
        &b"not a certificate".to_vec().into(),
        &[],
        &"localhost".try_into().unwrap(),
        &[],
        rustls::pki_types::UnixTime::now(),
    );
    assert!(refused.is_err());
}
