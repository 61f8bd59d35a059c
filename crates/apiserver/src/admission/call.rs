//! How a webhook is reached: a handler in this process, or HTTPS.

use crate::resources::Nature;
use crate::server::{Server, locked};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Largest answer of a webhook.
const LARGEST_ANSWER: usize = 10 << 20;
/// Open connections that are kept for one webhook.
const KEPT_CONNECTIONS: usize = 8;

/// Answers admission reviews in this process.
pub trait WebhookHandler: Send + Sync {
    /// Answers the review that is sent to a path.
    fn review(&self, path: String, body: Bytes) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Handlers by namespace and name of their Service.
pub type InProcess = FxHashMap<(String, String), Arc<dyn WebhookHandler>>;

/// Where a webhook is.
#[derive(Debug)]
pub struct Client {
    target: Target,
    authority: Vec<u8>,
}

#[derive(Debug)]
enum Target {
    Url(String),
    Service {
        namespace: String,
        name: String,
        path: String,
        port: u64,
    },
}

impl Client {
    pub(super) fn read(config: &Value) -> Client {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let target = match config["url"].as_str() {
            Some(url) => Target::Url(url.to_owned()),
            None => Target::Service {
                namespace: text(&config["service"]["namespace"]),
                name: text(&config["service"]["name"]),
                path: text(&config["service"]["path"]),
                port: config["service"]["port"].as_u64().unwrap_or(443),
            },
        };
        let authority = BASE64.decode(text(&config["caBundle"])).unwrap_or_default();
        Client { target, authority }
    }
}

type Connections = FxHashMap<(String, Vec<u8>), Vec<SendRequest<Full<Bytes>>>>;

/// Ways to webhooks.
#[derive(Default)]
pub struct Reach {
    /// Those in this process.
    pub in_process: RwLock<InProcess>,
    connections: Mutex<Connections>,
}

impl Reach {
    /// Sends a review and reads the answer.
    pub(super) async fn ask(&self, server: &Server, client: &Client, body: Bytes) -> Result<Bytes, String> {
        match &client.target {
            Target::Url(url) => {
                let uri: Uri = url.parse().map_err(|_| format!("{url:?} is not an address"))?;
                let host = uri
                    .host()
                    .ok_or_else(|| format!("{url:?} has no host"))?
                    .to_owned();
                let address = format!("{host}:{}", uri.port_u16().unwrap_or(443));
                let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
                self.post(&address, &host, &path, &client.authority, body).await
            }
            Target::Service {
                namespace,
                name,
                path,
                port,
            } => {
                if let Some(handler) = self.handler(namespace, name) {
                    return handler.review(path.clone(), body).await;
                }
                let address = endpoint(server, namespace, name, *port)
                    .ok_or_else(|| format!("no endpoints available for service {namespace}/{name}"))?;
                let host = format!("{name}.{namespace}.svc");
                self.post(&address, &host, path, &client.authority, body).await
            }
        }
    }

    fn handler(&self, namespace: &str, name: &str) -> Option<Arc<dyn WebhookHandler>> {
        let handlers = self.in_process.read().unwrap_or_else(PoisonError::into_inner);
        handlers.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    async fn post(
        &self,
        address: &str,
        host: &str,
        path: &str,
        authority: &[u8],
        body: Bytes,
    ) -> Result<Bytes, String> {
        let key = (address.to_owned(), authority.to_vec());
        let kept = locked(&self.connections).get_mut(&key).and_then(Vec::pop);
        let mut connection = match kept.filter(|kept| !kept.is_closed()) {
            Some(kept) => kept,
            None => connect(address, host, authority).await?,
        };
        let request = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        connection.ready().await.map_err(|error| error.to_string())?;
        let answer = connection
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = answer.status();
        let bytes = Limited::new(answer.into_body(), LARGEST_ANSWER)
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        let bytes = bytes.to_bytes();
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&bytes).trim().chars().take(300).collect();
            return Err(format!("the server answered {status}: {said}"));
        }
        let mut connections = locked(&self.connections);
        let kept = connections.entry(key).or_default();
        if kept.len() < KEPT_CONNECTIONS {
            kept.push(connection);
        }
        Ok(bytes)
    }
}

async fn connect(address: &str, host: &str, authority: &[u8]) -> Result<SendRequest<Full<Bytes>>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("caBundle: {error}"))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| format!("dial tcp {address}: {error}"))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| error.to_string())?;
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(sender)
}

/// The first address behind a Service.
fn endpoint(server: &Server, namespace: &str, name: &str, port: u64) -> Option<String> {
    let registry = server.registry();
    let key = format!("{namespace}/{name}");
    let service = server
        .get(registry.of_nature(Nature::Service).table, &key)?
        .value();
    let endpoints = server
        .get(registry.of_nature(Nature::Endpoints).table, &key)?
        .value();
    let wanted = service["spec"]["ports"]
        .as_array()?
        .iter()
        .find(|one| one["port"] == port)?
        .clone();
    let subset = &endpoints["subsets"][0];
    let address = subset["addresses"][0]["ip"].as_str()?;
    let target = subset["ports"]
        .as_array()?
        .iter()
        .find(|one| one["name"] == wanted["name"])?;
    Some(format!("{address}:{}", target["port"].as_u64()?))
}
