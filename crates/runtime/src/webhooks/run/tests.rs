use super::super::authority;
use super::super::options::SecretName;
use super::*;
use crate::logging;
use crate::serve::tls;
use crate::testing::{Say, Server};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::SystemTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

const SECRET: &str = "GET /api/v1/namespaces/n/secrets/x";

fn name() -> SecretName {
    SecretName {
        namespace: "n".to_owned(),
        name: "x".to_owned(),
        service: "s".to_owned(),
    }
}

fn options(healthz_address: &str) -> Options {
    Options {
        client: crate::client::Options::default(),
        enabled: Vec::new(),
        listen_address: "127.0.0.1".to_owned(),
        port: 0,
        tls: None,
        secret: Some(name()),
        rules: volcano_admission::Options::default(),
        admission_conf: None,
        healthz_address: Some(healthz_address.to_owned()),
        graceful_shutdown: Duration::ZERO,
        logging: logging::Settings {
            verbosity: 0,
            skip_headers: false,
        },
        unused: Vec::new(),
    }
}

/// Takes any certificate, as probes do.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        tls::provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A client that trusts an authority, or any without one.
fn trusting(authority: Option<&[u8]>) -> TlsConnector {
    let builder = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match authority {
        Some(ca) => builder.with_root_certificates(tls::roots(ca).unwrap()),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody)),
    };
    TlsConnector::from(Arc::new(builder.with_no_client_auth()))
}

/// The answer, once there is one.
async fn ask(client: &TlsConnector, address: &str, path: &str) -> Option<String> {
    let stream = TcpStream::connect(address).await.ok()?;
    let host = name().host().try_into().unwrap();
    let mut stream = client.connect(host, stream).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// Asks until the answer has a text in it. The answer.
async fn answered(client: &TlsConnector, address: &str, path: &str, text: &str) -> String {
    loop {
        match ask(client, address, path).await {
            Some(answer) if answer.contains(text) => return answer,
            _ => tokio::task::yield_now().await,
        }
    }
}

/// Starts with a Secret of which the API server says this, and asks meanwhile.
async fn while_starting(says: Vec<Say>, address: &str, asking: impl Future<Output = ()>) {
    let server = Server::default().says(SECRET, says);
    let client = server.start().await;
    let source = Source::Secret(client.clone(), name());
    let options = options(address);
    let (_end, ending) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tokio::select! {
        outcome = start(&options, client, source, &mut tasks, ending) => panic!("it started: {:?}", outcome.err()),
        asked = tokio::time::timeout(Duration::from_secs(60), asking) => asked.expect("answers"),
    }
}

async fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn probes_are_answered_while_the_secret_cannot_be_read() {
    let address = free_address().await;
    let asking = async {
        let anybody = trusting(None);
        let ready = answered(&anybody, &address, "/readyz", "Secret n/x: ").await;
        assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
        assert!(
            ready.contains("not listed yet: certificate (Secret n/x: "),
            "{ready}"
        );
        answered(&anybody, &address, "/healthz", "HTTP/1.1 200 OK").await;
    };
    while_starting(vec![Say::Status(403, Value::Null)], &address, asking).await;
}

#[tokio::test]
async fn the_certificate_of_the_secret_is_served_once_it_is_there() {
    let address = free_address().await;
    let made = authority::make(&name(), SystemTime::now()).unwrap();
    let data = json!({
        "ca.crt": STANDARD.encode(&made.ca),
        "tls.crt": STANDARD.encode(&made.cert),
        "tls.key": STANDARD.encode(&made.key),
    });
    let secret = json!({"metadata": {"resourceVersion": "1"}, "data": data});
    let asking = async {
        answered(&trusting(None), &address, "/readyz", "certificate").await;
        let ready = answered(&trusting(Some(&made.ca)), &address, "/readyz", "").await;
        assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
        assert!(!ready.contains("certificate"), "{ready}");
    };
    let says = vec![Say::Status(403, Value::Null), Say::Status(200, secret)];
    while_starting(says, &address, asking).await;
}
