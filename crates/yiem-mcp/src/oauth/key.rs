//! Private keys by which a client says who it is, and the statements that they sign (RFC 7523).
//!
//! Knows: PEM, which signatures a key can make, JSON Web Tokens. Does not know: servers, clocks, HTTP.

use crate::error::McpError;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, RsaEncoding, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The private key of a client that is registered with its public key (`private_key_jwt`, RFC 7523).
///
/// It signs a short statement for each token; the key itself is never sent, and never shown. What it signs with
/// is decided by the key, and by what the authorization server says that it takes:
///
/// | key | signatures, the first that the server takes |
/// | --- | --- |
/// | EC on P-256 | ES256 |
/// | EC on P-384 | ES384 |
/// | Ed25519 | EdDSA |
/// | RSA, 2,048 to 4,096 bits | RS256, PS256, RS384, PS384, RS512, PS512 |
#[derive(Clone)]
pub struct ClientKey {
    pair: Arc<Pair>,
    id: Option<String>,
}

enum Pair {
    Ec(Box<EcdsaKeyPair>, Signature),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

/// A way to sign, by its name in tokens and in what servers say of themselves (RFC 7518).
type Signature = &'static str;

/// The curves, each with its signature and how PKCS #8 names it: `SEQUENCE { ecPublicKey, curve }`.
const CURVES: [(&EcdsaSigningAlgorithm, Signature, &[u8]); 2] = [
    (
        &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        "ES256",
        b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
    ),
    (
        &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        "ES384",
        b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22",
    ),
];

/// What an RSA key can sign with; the first is what every server takes.
const RSA: [(Signature, &'static dyn RsaEncoding); 6] = [
    ("RS256", &signature::RSA_PKCS1_SHA256),
    ("PS256", &signature::RSA_PSS_SHA256),
    ("RS384", &signature::RSA_PKCS1_SHA384),
    ("PS384", &signature::RSA_PSS_SHA384),
    ("RS512", &signature::RSA_PKCS1_SHA512),
    ("PS512", &signature::RSA_PSS_SHA512),
];

impl ClientKey {
    /// Reads a private key in PEM: PKCS #8 (`PRIVATE KEY`), SEC 1 (`EC PRIVATE KEY`) or PKCS #1
    /// (`RSA PRIVATE KEY`). Line ends may be written as `\n`, as variables of the environment hold them.
    ///
    /// # Errors
    /// [`McpErrorKind::Config`](crate::McpErrorKind::Config): it is no private key, is encrypted, or of a kind
    /// that nothing here signs with. No text of it stands in the error.
    pub fn from_pem(pem: &str) -> Result<Self, McpError> {
        let pem = if pem.trim_end().contains('\n') {
            Cow::Borrowed(pem)
        } else {
            Cow::Owned(pem.replace("\\r", "").replace("\\n", "\n"))
        };
        // Its own errors may hold a line of the key.
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| McpError::config(no_key(&pem)))?;
        let pair = match &key {
            PrivateKeyDer::Pkcs8(key) => pkcs8(key.secret_pkcs8_der()),
            PrivateKeyDer::Sec1(key) => ec(|curve| in_pkcs8(key.secret_sec1_der(), curve).into()),
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der())
                .map(|key| Pair::Rsa(Box::new(key)))
                .map_err(|error| error.to_string()),
            _ => Err(String::new()),
        };
        let pair = pair.map_err(|why| McpError::config(unusable(&why)))?;
        Ok(Self {
            pair: Arc::new(pair),
            id: None,
        })
    }

    /// The id (`kid`) under which the server knows the public key. Default: none, which is enough where one key
    /// is registered.
    #[must_use]
    pub fn key_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// What it can sign with, the first being the most usual.
    fn signatures(&self) -> impl Iterator<Item = Signature> {
        let (one, many) = match *self.pair {
            Pair::Ec(_, name) => (Some(name), None),
            Pair::Ed25519(_) => (Some("EdDSA"), None),
            Pair::Rsa(_) => (None, Some(RSA)),
        };
        let many = many.into_iter().flatten().map(|(name, _)| name);
        one.into_iter().chain(many)
    }

    /// The first of its signatures that a server takes, which may not have said what it takes.
    pub(super) fn signature(&self, taken: Option<&[&str]>) -> Result<Signature, McpError> {
        let suits = |name: &Signature| taken.is_none_or(|taken| taken.contains(name));
        self.signatures().find(suits).ok_or_else(|| {
            let own: Vec<_> = self.signatures().collect();
            super::unauthorized(&format!(
                "the authorization server takes no signature of this client's key: it takes {}, the key makes {}; \
                 register a key of another kind",
                taken.unwrap_or_default().join(", "),
                own.join(", ")
            ))
        })
    }

    /// A signed token of these claims (RFC 7515, compact).
    pub(super) fn token(&self, signature: Signature, claims: &Value) -> Result<String, McpError> {
        let mut header = json!({"alg": signature, "typ": "JWT"});
        if let Some(id) = &self.id {
            header["kid"] = id.as_str().into();
        }
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let mut token = format!("{}.{}", part(&header), part(claims));
        let signed = self
            .sign(signature, token.as_bytes())
            .map_err(|_| super::unauthorized("this machine gave no random numbers to sign with"))?;
        token.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(signed, &mut token);
        Ok(token)
    }

    fn sign(&self, name: Signature, text: &[u8]) -> Result<Vec<u8>, ring::error::Unspecified> {
        let random = SystemRandom::new();
        match &*self.pair {
            Pair::Ec(key, _) => Ok(key.sign(&random, text)?.as_ref().to_vec()),
            Pair::Ed25519(key) => Ok(key.sign(text).as_ref().to_vec()),
            Pair::Rsa(key) => {
                let encoding = RSA.iter().find(|(other, _)| *other == name);
                let (_, encoding) = encoding.ok_or(ring::error::Unspecified)?;
                let mut signed = vec![0; key.public().modulus_len()];
                key.sign(*encoding, &random, text, &mut signed)?;
                Ok(signed)
            }
        }
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey")
            .field("signature", &self.signatures().next())
            .field("key_id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A key of any kind, or why it is none: empty where it is simply of another kind.
fn pkcs8(der: &[u8]) -> Result<Pair, String> {
    let rsa = || {
        RsaKeyPair::from_pkcs8(der)
            .map(|key| Pair::Rsa(Box::new(key)))
            .map_err(|error| error.to_string())
    };
    let ed25519 = || {
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
            .map(Pair::Ed25519)
            .map_err(|error| error.to_string())
    };
    ec(|_| der.into())
        .or_else(|why| rsa().or_else(|other| ed25519().map_err(|last| telling([why, other, last]))))
}

/// A key on one of the curves; `der` gives it as PKCS #8 that names the curve.
fn ec<'a>(der: impl Fn(&[u8]) -> Cow<'a, [u8]>) -> Result<Pair, String> {
    let random = SystemRandom::new();
    let mut reasons = CURVES.map(|_| String::new());
    for ((curve, name, in_words), reason) in CURVES.into_iter().zip(&mut reasons) {
        match EcdsaKeyPair::from_pkcs8(curve, &der(in_words), &random) {
            Ok(key) => return Ok(Pair::Ec(Box::new(key), name)),
            Err(error) => *reason = error.to_string(),
        }
    }
    Err(telling(reasons))
}

/// The reason that says more than that the key is of another kind.
fn telling(reasons: impl IntoIterator<Item = String>) -> String {
    let says = |reason: &String| !reason.is_empty() && reason != "WrongAlgorithm";
    reasons.into_iter().find(says).unwrap_or_default()
}

/// A key in SEC 1's form as PKCS #8: version 0, the curve, the key as octets (RFC 5958).
fn in_pkcs8(sec1: &[u8], curve: &[u8]) -> Vec<u8> {
    let key = tagged(0x04, sec1);
    let version: &[u8] = &[0x02, 0x01, 0x00];
    tagged(0x30, &[version, curve, &key].concat())
}

/// One DER value.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let bytes = content.len().to_be_bytes();
    let size: &[u8] = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let mut der = vec![tag];
    if content.len() < 0x80 {
        der.push(content.len() as u8);
    } else {
        der.push(0x80 | size.len() as u8);
        der.extend_from_slice(size);
    }
    der.extend_from_slice(content);
    der
}

/// Why a text holds no key that can be read.
fn no_key(pem: &str) -> &'static str {
    let holds = |label: &str| pem.contains(label);
    if holds("ENCRYPTED") {
        "the client's private key is encrypted; write it out without a password first \
         (`openssl pkey -in KEY -out PLAIN`)"
    } else if holds("BEGIN OPENSSH") {
        "the client's private key is in OpenSSH's own form; write it as PEM first \
         (`ssh-keygen -p -m PKCS8 -f KEY`)"
    } else if holds("PRIVATE KEY") {
        "the client's private key is broken: between its BEGIN and END lines stands no whole base64"
    } else if holds("PUBLIC KEY") || holds("CERTIFICATE") {
        "this is the public part of a key; a client signs with the private one"
    } else {
        "this is no private key in PEM: no line `-----BEGIN PRIVATE KEY-----`"
    }
}

/// Why a key that was read is none to sign with.
fn unusable(why: &str) -> String {
    let why = match why {
        "" => "it is neither an EC key on P-256 or P-384, nor Ed25519, nor RSA",
        "TooSmall" | "TooLarge" => "an RSA key has to have 2,048 to 4,096 bits",
        "InvalidEncoding" | "PublicKeyIsMissing" => {
            "its content is broken, or its public part is missing \
             (`openssl pkey -in KEY -out WHOLE` adds it)"
        }
        other => other,
    };
    format!("the client's private key cannot be used: {why}")
}

#[cfg(test)]
mod tests;
