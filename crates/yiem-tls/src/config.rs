//! How the configuration is made, and that it is made once.
//!
//! Knows: rustls, ring and the machine's roots. Does not know: who connects where.

mod lazy;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};

use lazy::LazyVerifier;

/// The configuration for clients. The machine's roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
/// honoured) are read at the first handshake, once for the process: a program that speaks plain
/// HTTP alone never reads them.
///
/// A machine without roots gives a configuration that trusts nobody: connections fail then, and say so.
#[must_use]
pub fn client_config() -> ClientConfig {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .expect("ring speaks TLS 1.2 and 1.3")
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(LazyVerifier::new(provider)))
                .with_no_client_auth()
        })
        .clone()
}

/// The configuration for clients that trust these roots besides the machine's, each a certificate in DER.
///
/// # Errors
/// A certificate cannot be read; the text says why.
pub fn client_config_with(
    extra_roots: impl IntoIterator<Item = Vec<u8>>,
) -> Result<ClientConfig, String> {
    let mut roots = system_roots();
    for root in extra_roots {
        roots
            .add(root.into())
            .map_err(|error| format!("a CA certificate cannot be read: {error}"))?;
    }
    Ok(with_roots(roots))
}

/// The certificates in a PEM text, such as a CA file, each in DER.
///
/// # Errors
/// There is none in it, or one that cannot be read; the text says which.
pub fn certificates_of(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate
            .map_err(|error| format!("certificate {} cannot be read: {error}", found.len() + 1))?;
        RootCertStore::empty()
            .add(certificate.clone())
            .map_err(|error| format!("certificate {} cannot be read: {error}", found.len() + 1))?;
        found.push(certificate.to_vec());
    }
    if found.is_empty() {
        return Err("there is no certificate in the text".to_owned());
    }
    Ok(found)
}

/// Makes ring the cryptography of this process for libraries that ask rustls for a default and take no
/// configuration. Calling it again, or after another was set, changes nothing.
pub fn install_default_provider() {
    // An error says that one is set already, which is all that is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn system_roots() -> RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS
        .get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        })
        .clone()
}

fn with_roots(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[cfg(test)]
mod tests;
