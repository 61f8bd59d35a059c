//! HTTPS for the health endpoint.

use super::{ServeError, TlsFiles};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Reads the certificates. TLS 1.2 or newer; client certificates are checked if given.
pub(super) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let wrong = |flag: &'static str, file: &Path, problem: String| ServeError::Certificate {
        flag,
        file: file.display().to_string(),
        problem,
    };
    let read = |flag: &'static str, file: &Path| -> Result<Vec<CertificateDer<'static>>, ServeError> {
        let list = CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(flag, file, error.to_string()))?;
        if list.is_empty() {
            return Err(wrong(flag, file, "no certificate in it".to_owned()));
        }
        Ok(list)
    };
    let (ca_flag, cert_flag, key_flag) = ("--ca-cert-file", "--tls-cert-file", "--tls-private-key-file");
    let mut roots = RootCertStore::empty();
    for certificate in read(ca_flag, &files.ca)? {
        let added = roots.add(certificate);
        added.map_err(|error| wrong(ca_flag, &files.ca, error.to_string()))?;
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(|error| wrong(ca_flag, &files.ca, error.to_string()))?;
    let chain = read(cert_flag, &files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong(key_flag, &files.key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(cert_flag, &files.cert, error.to_string()))?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(|error| wrong(cert_flag, &files.cert, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
