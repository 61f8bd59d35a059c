//! HTTPS: certificates and keys, read and checked.

use super::{ServeError, TlsFiles};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{CipherSuite, RootCertStore, ServerConfig, SupportedCipherSuite};

/// A larger file is no certificate.
const LARGEST: u64 = 1 << 20;

/// The suites of TLS 1.2 that servers offer: those that Volcano's do. Scanners that its users run know them.
const TLS12: [CipherSuite; 3] = [
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
];

/// A certificate with its key and the authority, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The authority that client certificates are checked against.
    pub ca: Vec<u8>,
    /// The server's certificate, with those between it and the authority.
    pub cert: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pem(..)") // The key must not get into a log.
    }
}

/// One of the three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The authority.
    Ca,
    /// The server's certificate.
    Cert,
    /// Its key.
    Key,
}

/// What is wrong with a part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part:?}: {problem}")]
pub struct BadPem {
    /// The part.
    pub part: Part,
    /// What is wrong with it.
    pub problem: String,
}

/// Reads the files.
pub(crate) fn read(files: &TlsFiles) -> Result<Pem, ServeError> {
    let content = |part: Part| {
        let (_, file) = named(files, part);
        let read = || -> std::io::Result<Vec<u8>> {
            if std::fs::metadata(file)?.len() > LARGEST {
                return Err(std::io::Error::other("too large for a certificate or key"));
            }
            std::fs::read(file)
        };
        read().map_err(|error| wrong(files, part, error.to_string()))
    };
    Ok(Pem {
        ca: content(Part::Ca)?,
        cert: content(Part::Cert)?,
        key: content(Part::Key)?,
    })
}

/// What a server needs, from files.
pub(crate) fn from_files(files: &TlsFiles, pem: &Pem) -> Result<Arc<ServerConfig>, ServeError> {
    config(pem).map_err(|bad| wrong(files, bad.part, bad.problem))
}

/// What a server needs. TLS 1.2 or newer; client certificates are checked if given.
pub(crate) fn config(pem: &Pem) -> Result<Arc<ServerConfig>, BadPem> {
    let bad = |part: Part, problem: String| BadPem { part, problem };
    let roots = Arc::new(roots(&pem.ca)?);
    let clients = WebPkiClientVerifier::builder_with_provider(roots, provider())
        .allow_unauthenticated()
        .build()
        .map_err(|error| bad(Part::Ca, error.to_string()))?;
    let chain = certificates(&pem.cert, Part::Cert)?;
    let key = PrivateKeyDer::from_pem_slice(&pem.key).map_err(|error| bad(Part::Key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(serving())
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(Part::Cert, error.to_string()))?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(|error| bad(Part::Cert, error.to_string()))?;
    Ok(Arc::new(config))
}

/// The cryptography that servers use.
fn serving() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    let is_offered = |suite: &SupportedCipherSuite| suite.tls13().is_some() || TLS12.contains(&suite.suite());
    provider.cipher_suites.retain(is_offered);
    Arc::new(provider)
}

/// The cryptography that is used.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Authorities to trust.
pub(crate) fn roots(ca: &[u8]) -> Result<RootCertStore, BadPem> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca, Part::Ca)? {
        roots.add(certificate).map_err(|error| BadPem {
            part: Part::Ca,
            problem: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// The certificates in a text, at least one.
pub(crate) fn certificates(pem: &[u8], part: Part) -> Result<Vec<CertificateDer<'static>>, BadPem> {
    let bad = |problem: String| BadPem { part, problem };
    let list = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(error.to_string()))?;
    if list.is_empty() {
        return Err(bad("no certificate in it".to_owned()));
    }
    Ok(list)
}

fn named(files: &TlsFiles, part: Part) -> (&'static str, &Path) {
    match part {
        Part::Ca => ("--ca-cert-file", &files.ca),
        Part::Cert => ("--tls-cert-file", &files.cert),
        Part::Key => ("--tls-private-key-file", &files.key),
    }
}

fn wrong(files: &TlsFiles, part: Part, problem: String) -> ServeError {
    let (flag, file) = named(files, part);
    ServeError::Certificate {
        flag,
        file: file.display().to_string(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_tls_1_2_three_suites_are_offered_and_of_1_3_all() {
        let offered = serving().cipher_suites.clone();
        let (new, old): (Vec<&SupportedCipherSuite>, Vec<_>) =
            offered.iter().partition(|suite| suite.tls13().is_some());
        assert_eq!((old.len(), new.len()), (TLS12.len(), 3), "{offered:?}");
    }
}
