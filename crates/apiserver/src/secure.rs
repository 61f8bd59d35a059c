//! The way in from outside: the loopback address, TLS, and a token that only the owner of the kubeconfig can read.

use crate::fault::Fault;
use crate::http::{self, Body};
use crate::server::Server;
use crate::verbs::Caller;
use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use ::http::{Request, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tracing::debug;

/// Connections at once, at most.
const MOST_CONNECTIONS: usize = 1024;
/// How long a client may take for a handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rest after a connection that could not be accepted.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// Bytes of randomness in the token.
const TOKEN_BYTES: usize = 32;

struct Identity {
    authority: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Listens until the server stops; the address.
pub async fn serve(server: &Arc<Server>, caller: Caller, kubeconfig: &Path) -> Result<SocketAddr, String> {
    let identity = identity().map_err(|error| format!("making a certificate: {error}"))?;
    let token = token()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    write_kubeconfig(kubeconfig, address, &identity.authority, &token)
        .map_err(|error| format!("writing {}: {error}", kubeconfig.display()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)
        .map_err(|error| error.to_string())?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let doorman = Arc::new(Doorman {
        server: server.clone(),
        caller,
        expected: format!("Bearer {token}"),
    });
    tokio::spawn(accept(listener, acceptor, doorman));
    Ok(address)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, doorman: Arc<Doorman>) {
    let seats = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut stopping = doorman.server.stopping.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        let Ok((stream, _)) = accepted else {
            // Without a free file descriptor every try fails at once.
            tokio::time::sleep(AFTER_FAILURE).await;
            continue;
        };
        // One too many is turned away at once rather than kept waiting.
        let Ok(seat) = seats.clone().try_acquire_owned() else {
            continue;
        };
        let (acceptor, doorman) = (acceptor.clone(), doorman.clone());
        tokio::spawn(async move {
            connection(stream, &acceptor, &doorman).await;
            drop(seat);
        });
    }
}

async fn connection(stream: TcpStream, acceptor: &TlsAcceptor, doorman: &Arc<Doorman>) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await else {
        return;
    };
    let service = service_fn(|request| {
        let doorman = doorman.clone();
        async move { Ok::<_, Infallible>(doorman.answer(request).await) }
    });
    let mut stopping = doorman.server.stopping.subscribe();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let serving = http.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = serving => if let Err(error) = served { debug!(%error, "a connection broke off") },
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

/// Lets in whoever has the token.
struct Doorman {
    server: Arc<Server>,
    caller: Caller,
    expected: String,
}

impl Doorman {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let given = request
            .headers()
            .get(AUTHORIZATION)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        if !same(given, self.expected.as_bytes()) {
            let fault = Fault::new(401, "Unauthorized", "Unauthorized");
            let body = Full::new(Bytes::from(fault.status().to_string())).boxed_unsync();
            let mut answer = Response::new(body);
            *answer.status_mut() = ::http::StatusCode::UNAUTHORIZED;
            answer
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            return answer;
        }
        http::handle(&self.server, &self.caller, request).await
    }
}

/// Compares in a time that does not tell where they differ.
fn same(given: &[u8], expected: &[u8]) -> bool {
    given.len() == expected.len()
        && given
            .iter()
            .zip(expected)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}

fn token() -> Result<String, String> {
    // UUIDs of version 4 come from the randomness of the system; two of them hold more of it than a key needs.
    let mut token = String::with_capacity(TOKEN_BYTES * 2);
    for _ in 0..TOKEN_BYTES / 16 {
        let _ = write!(token, "{}", uuid::Uuid::new_v4().simple());
    }
    Ok(token)
}

fn identity() -> Result<Identity, rcgen::Error> {
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "volcano local authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    params
        .distinguished_name
        .push(DnType::CommonName, "volcano local API server");
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Identity {
        authority: authority.pem(),
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
    })
}

/// Writes the kubeconfig so that only its owner can read it, from the first moment on.
fn write_kubeconfig(path: &Path, address: SocketAddr, authority: &str, token: &str) -> std::io::Result<()> {
    let authority = BASE64.encode(authority);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: volcano\nclusters:\n- name: volcano\n  cluster:\n    server: \
         https://{address}\n    certificate-authority-data: {authority}\ncontexts:\n- name: volcano\n  context:\n    cluster: \
         volcano\n    user: admin\nusers:\n- name: admin\n  user:\n    token: {token}\n"
    );
    let mut new = path.as_os_str().to_owned();
    // A name that nobody can have taken: a file that is there already could be somebody else's.
    new.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let new = Path::new(&new);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(new)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| std::fs::rename(new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(new);
    }
    written
}
