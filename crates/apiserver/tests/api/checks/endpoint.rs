//! A webhook server, as users run them: HTTPS with a certificate of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

/// Where the server is, and whom to trust.
pub struct Endpoint {
    address: String,
    authority: String,
}

impl Endpoint {
    /// Starts it.
    pub async fn start() -> Endpoint {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let http = hyper::server::conn::http1::Builder::new();
                        let _ = http
                            .serve_connection(TokioIo::new(stream), service_fn(answer))
                            .await;
                    }
                });
            }
        });
        let authority = BASE64.encode(certificate.pem());
        Endpoint { address, authority }
    }

    /// How the API server is to call it.
    pub fn client(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.authority})
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let mut answer = Response::new(Full::new(Bytes::new()));
    if path == "/fail" {
        *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        return Ok(answer);
    }
    let mut response = judge(&path, &review["request"]);
    response["uid"] = review["request"]["uid"].clone();
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    *answer.body_mut() = Full::new(Bytes::from(review.to_string()));
    answer
        .headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    Ok(answer)
}

fn judge(path: &str, request: &Value) -> Value {
    let object = &request["object"];
    match path {
        "/mutate" => {
            let user = request["userInfo"]["username"].as_str().unwrap_or_default();
            let patch = json!([
                {"op": "add", "path": "/data", "value": {"operation": request["operation"], "user": if user.is_empty() { "no" } else { "yes" }}},
                {"op": "add", "path": "/nonsense", "value": 1},
            ]);
            json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64.encode(patch.to_string())})
        }
        "/judge" if object["metadata"]["labels"]["bad"] == "yes" => {
            json!({"allowed": false, "status": {"message": "it is bad", "code": 422, "reason": "Invalid"}})
        }
        "/judge" if object["metadata"]["labels"]["bad"] == "mute" => json!({"allowed": false}),
        "/judge"
            if request["operation"] == "UPDATE"
                && request["oldObject"]["metadata"]["labels"]["fixed"]
                    != object["metadata"]["labels"]["fixed"] =>
        {
            json!({"allowed": false, "status": {"message": "fixed is fixed"}})
        }
        "/judge"
            if request["operation"] == "DELETE"
                && request["oldObject"]["metadata"]["labels"]["keep"] == "yes" =>
        {
            json!({"allowed": false, "status": {"message": format!("{} stays", request["name"].as_str().unwrap_or_default())}})
        }
        _ => json!({"allowed": true, "warnings": ["mind this"]}),
    }
}
