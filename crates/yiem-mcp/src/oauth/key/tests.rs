use super::*;
use crate::error::McpErrorKind;
use ring::signature::{KeyPair as _, UnparsedPublicKey, VerificationAlgorithm};

macro_rules! pem {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/keys/", $name))
    };
}

/// Every form of a key that can be used, with what it signs with.
const KEYS: [(&str, &str, &[&str]); 7] = [
    ("p256", pem!("p256.pem"), &["ES256"]),
    ("p256 SEC 1", pem!("p256.sec1.pem"), &["ES256"]),
    ("p384", pem!("p384.pem"), &["ES384"]),
    ("p384 SEC 1", pem!("p384.sec1.pem"), &["ES384"]),
    ("ed25519", pem!("ed25519.pem"), &["EdDSA"]),
    (
        "rsa",
        pem!("rsa.pem"),
        &["RS256", "PS256", "RS384", "PS384", "RS512", "PS512"],
    ),
    (
        "rsa PKCS #1",
        pem!("rsa.pkcs1.pem"),
        &["RS256", "PS256", "RS384", "PS384", "RS512", "PS512"],
    ),
];

fn read(token: &str) -> (Value, Value, Vec<u8>, usize) {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signed] = parts[..] else {
        panic!("not three parts: {token}");
    };
    let bytes = |part: &str| {
        BASE64_URL_SAFE_NO_PAD
            .decode(part)
            .expect("base64 for addresses")
    };
    let json = |part: &str| serde_json::from_slice(&bytes(part)).expect("JSON");
    (
        json(header),
        json(claims),
        bytes(signed),
        header.len() + 1 + claims.len(),
    )
}

fn verified(key: &ClientKey, name: &str, text: &[u8], signed: &[u8]) -> bool {
    let algorithm: &dyn VerificationAlgorithm = match name {
        "ES256" => &signature::ECDSA_P256_SHA256_FIXED,
        "ES384" => &signature::ECDSA_P384_SHA384_FIXED,
        "EdDSA" => &signature::ED25519,
        "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
        "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
        "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
        other => panic!("{other}"),
    };
    let public = match &*key.pair {
        Pair::Ec(key, _) => key.public_key().as_ref().to_vec(),
        Pair::Ed25519(key) => key.public_key().as_ref().to_vec(),
        Pair::Rsa(key) => key.public_key().as_ref().to_vec(),
    };
    UnparsedPublicKey::new(algorithm, public)
        .verify(text, signed)
        .is_ok()
}

#[test]
fn a_key_in_each_form_signs_with_what_it_says() {
    for (what, pem, names) in KEYS {
        let key = ClientKey::from_pem(pem).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(key.signatures().collect::<Vec<_>>(), names, "{what}");
        assert_eq!(key.signature(None).unwrap(), names[0], "{what}");
        for name in key.signatures().collect::<Vec<_>>() {
            let token = key.token(name, &json!({"iss": "ä"})).unwrap();
            let (header, claims, signed, end) = read(&token);
            assert_eq!(header, json!({"alg": name, "typ": "JWT"}));
            assert_eq!(claims, json!({"iss": "ä"}));
            let text = token.as_bytes();
            assert!(verified(&key, name, &text[..end], &signed), "{what} {name}");
            assert!(
                !verified(&key, name, &text[1..end], &signed),
                "{what} {name}"
            );
        }
    }
}

#[test]
fn a_token_is_what_another_program_makes_of_the_same_key() {
    // The signatures are of OpenSSL 3.
    let rsa = ClientKey::from_pem(pem!("rsa.pem")).unwrap().key_id("k1");
    let ed25519 = ClientKey::from_pem(pem!("ed25519.pem")).unwrap();
    let claims = json!({"iss": "agent"});
    assert_eq!(
        rsa.token("RS256", &claims).unwrap(),
        concat!(
            "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0.",
            "eyJpc3MiOiJhZ2VudCJ9.",
            "NZWL-jxbGkk4MrK-8lzpdi3oxnXv-J2BVAPU-8h3hN7nOrRRkXFed2TdXpbRLCWqC-tfL9Nzq-WIDmI7",
            "WkAfXSsUSraaQVKT5QBPoeQSrxGtzpFYMAVKaP7n3PzToVw-fZMOU7CJW1R_eGJ7ncM21dHDBQfumN1E",
            "6UdyXKMvi7Uo5LbQo6hv_dmeLou77PTo_IAu82an7gDvCVhtAg7ZgX9_Abk9vCX8shUKOl9PrgtMJqqU",
            "4MY4LS7SMYvg6PSWcoe4eRjPeMNXBMUv8_qytu3uJ7TpG_0pBo-cq9Ce0VtLr1Dgpl5thLwthu0-Er59",
            "FFD8ChOyeEmEkL1mwHqbxA"
        )
    );
    assert_eq!(
        ed25519.token("EdDSA", &claims).unwrap(),
        concat!(
            "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.",
            "eyJpc3MiOiJhZ2VudCJ9.",
            "uerL-RRKjvP5gQ33Q6aBwDcw0WXcPs0S_sO1O4-pofJFvZXVQYutSxMtY1joycIdRyZZ5Pa5LZcA_ZB3",
            "HMd6Dg"
        )
    );
}

#[test]
fn a_key_in_a_variable_has_its_line_ends_written_out() {
    for (what, pem, _) in KEYS {
        for line_end in ["\\n", "\\r\\n", "\r\n"] {
            let pem = pem.replace('\n', line_end);
            assert!(ClientKey::from_pem(&pem).is_ok(), "{what} {line_end:?}");
        }
        let with_words = format!("# of the agent\n\n{pem}\nmore words\n");
        assert!(ClientKey::from_pem(&with_words).is_ok(), "{what}");
    }
}

#[test]
fn a_key_that_is_of_no_use_is_told_with_what_to_do_and_without_its_text() {
    let broken = pem!("p256.pem").replacen("MIGH", "MIGX", 1);
    let cut = &pem!("p256.pem")[..80];
    let cases = [
        (pem!("encrypted.pem"), "encrypted"),
        (pem!("public.pem"), "public part"),
        (
            pem!("p256.no-public.pem"),
            "public part is missing (`openssl pkey",
        ),
        (pem!("p521.pem"), "neither an EC key on P-256"),
        (pem!("rsa1024.pem"), "2,048 to 4,096 bits"),
        (&broken, "cannot be used"),
        (cut, "broken"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
            "ssh-keygen",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "cannot be used",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\n\u{e4}\u{e4}\n-----END PRIVATE KEY-----\n",
            "broken",
        ),
        ("secret", "no private key in PEM"),
        ("", "no private key in PEM"),
    ];
    for (pem, says) in cases {
        let error = ClientKey::from_pem(pem).expect_err(says);
        assert!(matches!(error.kind(), McpErrorKind::Config(_)), "{error:?}");
        let said = format!("{error} {error:?}");
        assert!(said.contains(says), "{says}: {said}");
        for line in pem
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("---"))
        {
            assert!(!said.contains(line), "{said}");
        }
    }
}

#[test]
fn the_first_signature_that_a_server_takes_is_used() {
    let rsa = ClientKey::from_pem(pem!("rsa.pem")).unwrap();
    for (taken, used) in [
        (&["ES256", "RS256"][..], "RS256"),
        (&["PS512", "PS256"], "PS256"),
        (&["RS512"], "RS512"),
    ] {
        assert_eq!(rsa.signature(Some(taken)).unwrap(), used);
    }
    let error = rsa
        .signature(Some(&["ES256", "HS256"]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("ES256, HS256") && error.contains("RS256, PS256"),
        "{error}"
    );
}

#[test]
fn a_key_shows_what_it_is_and_nothing_of_itself() {
    let key = ClientKey::from_pem(pem!("p256.pem")).unwrap().key_id("k1");
    assert_eq!(
        format!("{key:?}"),
        "ClientKey { signature: Some(\"ES256\"), key_id: Some(\"k1\"), .. }"
    );
    let config = crate::OAuthConfig::client_credentials_with_key("agent", key);
    let shown = format!("{config:?}");
    assert!(
        shown.contains("ES256") && !shown.contains("MIGH"),
        "{shown}"
    );
}
