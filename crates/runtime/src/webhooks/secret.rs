//! The Secret that the replicas share the certificate through.
//!
//! ```text
//! GET ──404──> POST ──409──> GET: another replica was faster
//!  └──── expires, or not for this Service ──> PATCH at that version ──409──> GET
//! ```

use super::authority::{self, RENEW_BEFORE};
use super::options::SecretName;
use crate::client::{CallError, Client, Patch, Resource};
use crate::serve::tls::Pem;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::SystemTime;
use thiserror::Error;
use tracing::{info, warn};

const SECRETS: Resource = Resource::new("", "v1", "secrets");
/// Keys in the Secret.
const CA: &str = "ca.crt";
const CERT: &str = "tls.crt";
const KEY: &str = "tls.key";
/// How often others may be faster.
const RACES: usize = 10;

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The API server says no, or nothing.
    #[error("Secret {secret}: {source}")]
    Call {
        /// The Secret.
        secret: String,
        /// What was said.
        source: CallError,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Others kept writing it.
    #[error("Secret {0}: others keep changing it")]
    Contended(String),
}

/// The certificate in the Secret; made, or made anew, if there is none that holds.
pub(super) async fn obtain(client: &Client, of: &SecretName) -> Result<Pem, SecretError> {
    for _ in 0..RACES {
        let written = match read(client, of).await? {
            None => create(client, of).await?,
            Some((pem, version)) => match usable(pem, of) {
                Ok(pem) => return Ok(pem),
                Err(why) => {
                    warn!(secret = of.name, why, "the certificate has to be replaced");
                    replace(client, of, Some(&version)).await?
                }
            },
        };
        if let Some(pem) = written {
            info!(secret = of.name, "made a certificate");
            return Ok(pem);
        }
    }
    Err(SecretError::Contended(of.name.clone()))
}

/// Puts a new certificate into the Secret, whatever is in it.
///
/// # Errors
/// When the API server refuses it.
pub async fn rotate(client: &Client, of: &SecretName) -> Result<(), SecretError> {
    for _ in 0..RACES {
        let written = match read(client, of).await? {
            None => create(client, of).await?,
            Some(_) => replace(client, of, None).await?,
        };
        if written.is_some() {
            return Ok(());
        }
    }
    Err(SecretError::Contended(of.name.clone()))
}

fn usable(pem: Option<Pem>, of: &SecretName) -> Result<Pem, String> {
    let pem = pem.ok_or_else(|| format!("{CA}, {CERT} or {KEY} is missing"))?;
    authority::check(&pem, of, SystemTime::now() + RENEW_BEFORE)?;
    Ok(pem)
}

/// What is in the Secret, if it is there, and its version.
async fn read(client: &Client, of: &SecretName) -> Result<Option<(Option<Pem>, String)>, SecretError> {
    match client
        .get::<Value>(&SECRETS.object(&of.namespace, &of.name))
        .await
    {
        Ok(secret) => {
            let version = secret["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            Ok(Some((pem(&secret), version.to_owned())))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(source) => Err(call(of, source)),
    }
}

fn pem(secret: &Value) -> Option<Pem> {
    let part = |key: &str| STANDARD.decode(secret["data"][key].as_str()?).ok();
    Some(Pem {
        ca: part(CA)?,
        cert: part(CERT)?,
        key: part(KEY)?,
    })
}

fn data(pem: &Pem) -> Value {
    json!({CA: STANDARD.encode(&pem.ca), CERT: STANDARD.encode(&pem.cert), KEY: STANDARD.encode(&pem.key)})
}

/// `None` when somebody else was faster.
async fn create(client: &Client, of: &SecretName) -> Result<Option<Pem>, SecretError> {
    let pem = authority::make(of, SystemTime::now())?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": of.name, "namespace": of.namespace},
        "type": "Opaque",
        "data": data(&pem),
    });
    let path = SECRETS.within(&of.namespace);
    match client.post(&path, secret.to_string().into_bytes()).await {
        Ok(_) => Ok(Some(pem)),
        Err(error) if error.is_conflict() => Ok(None),
        Err(source) => Err(call(of, source)),
    }
}

/// `None` when somebody else was faster, or the Secret is gone.
async fn replace(
    client: &Client,
    of: &SecretName,
    version: Option<&str>,
) -> Result<Option<Pem>, SecretError> {
    let pem = authority::make(of, SystemTime::now())?;
    let mut patch = json!({"data": data(&pem)});
    if let Some(version) = version {
        patch["metadata"] = json!({"resourceVersion": version});
    }
    let path = SECRETS.object(&of.namespace, &of.name);
    let body = patch.to_string().into_bytes();
    match client.patch(&path, Patch::Merge, body).await {
        Ok(_) => Ok(Some(pem)),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
        Err(source) => Err(call(of, source)),
    }
}

fn call(of: &SecretName, source: CallError) -> SecretError {
    SecretError::Call {
        secret: format!("{}/{}", of.namespace, of.name),
        source,
    }
}
