//! Requests over TLS, as the API server makes them.

use anyhow::Context as _;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Connects to a port as to a host of this name, whose certificate these authorities have signed.
///
/// # Errors
/// When nobody listens there, or when it is somebody else.
pub async fn connect(port: u16, host: &str, authorities: &[u8]) -> anyhow::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let host = ServerName::try_from(host.to_owned())?;
    Ok(TlsConnector::from(Arc::new(config)).connect(host, stream).await?)
}

/// Sends a request and reads the answer to its end. Its status and body.
///
/// # Errors
/// When the connection breaks off.
pub async fn ask(
    stream: &mut TlsStream<TcpStream>,
    head: &str,
    body: &[u8],
) -> anyhow::Result<(u16, String)> {
    let head = format!(
        "{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    // A server that has heard enough answers before it has read all.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await; // It need not say goodbye.
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.context("an answer has a status")?, body.to_owned()))
}
