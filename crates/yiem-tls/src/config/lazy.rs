//! The usual verification of servers, with the machine's roots read when the first one is verified.
//!
//! Knows: when to read them. Does not know: how a certificate is verified; webpki does.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::{Arc, OnceLock};

use super::system_roots;

/// Verifies as [`WebPkiServerVerifier`] does. A machine without roots trusts nobody.
#[derive(Debug)]
pub(super) struct LazyVerifier {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Arc<WebPkiServerVerifier>, String>>,
}

impl LazyVerifier {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            verifier: OnceLock::new(),
        }
    }

    fn verifier(&self) -> Result<&WebPkiServerVerifier, Error> {
        let made = self.verifier.get_or_init(|| {
            let (roots, provider) = (Arc::new(system_roots()), Arc::clone(&self.provider));
            WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| format!("this machine has no usable CA roots: {error}"))
        });
        match made {
            Ok(verifier) => Ok(verifier),
            Err(problem) => Err(Error::General(problem.clone())),
        }
    }
}

impl ServerCertVerifier for LazyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
