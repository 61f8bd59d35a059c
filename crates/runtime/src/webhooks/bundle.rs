//! Keeps the authority of the certificate in the webhook configurations: the API server trusts nobody else.
//!
//! ```text
//! GET ─> is the authority in every caBundle? ──no──> PUT with it in front ──409──> GET
//!                 └─yes─> watch the configuration until it changes
//! ```
//!
//! Replicas do not change to a new certificate at the same moment. What was in a bundle before stays behind the new
//! authority for a while, so that the API server trusts both; after that it goes.

use crate::client::{CallError, Client, Resource};
use crate::serve::tls::{self, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{error, info};
use volcano_admission::webhooks::Webhook;

/// How often a configuration that is not there is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// After a watch that could not be opened.
const WATCH_AGAIN: Duration = Duration::from_secs(5);
/// How long the server keeps a watch open.
const WATCH_SECONDS: u32 = 290;
/// How long the authority before is trusted, too. A kubelet takes about a minute to bring a Secret to all replicas.
const HANDOVER: Duration = Duration::from_secs(600);
/// Authorities besides our own that are kept meanwhile.
const MOST_OTHERS: usize = 2;

/// An authority as PEM.
pub type Authority = Arc<[u8]>;

/// The tasks that keep the configurations.
pub struct Bundles {
    authority: watch::Sender<Authority>,
    installed: Vec<(&'static Webhook, watch::Receiver<Option<Authority>>)>,
}

impl Bundles {
    /// Starts to put an authority into the configurations of webhooks.
    pub fn start(
        client: &Client,
        webhooks: &[&'static Webhook],
        authority: Authority,
        tasks: &mut JoinSet<()>,
    ) -> Bundles {
        let (authority, wanted) = watch::channel(authority);
        let installed = webhooks.iter().map(|&webhook| {
            let (told, installed) = watch::channel(None);
            tasks.spawn(keep(client.clone(), webhook, wanted.clone(), told));
            (webhook, installed)
        });
        let installed = installed.collect();
        Bundles { authority, installed }
    }

    /// Puts another authority in front.
    pub fn change(&self, authority: Authority) {
        self.authority.send_replace(authority);
    }

    /// Waits until the authority is in all configurations; those that it is not in when the time is up.
    pub async fn wait(&mut self, limit: Duration) -> Vec<&'static Webhook> {
        let authority = self.authority.borrow().clone();
        let is_in = |installed: &Option<Authority>| installed.as_ref() == Some(&authority);
        let all = async {
            for (_, installed) in &mut self.installed {
                // An error means that the task is gone, and with it the process.
                let _ = installed.wait_for(is_in).await;
            }
        };
        let _ = timeout(limit, all).await;
        let missing = self
            .installed
            .iter()
            .filter(|(_, installed)| !is_in(&installed.borrow()));
        missing.map(|(webhook, _)| *webhook).collect()
    }
}

/// Keeps one configuration until the authorities end.
async fn keep(
    client: Client,
    webhook: &'static Webhook,
    mut wanted: watch::Receiver<Authority>,
    told: watch::Sender<Option<Authority>>,
) {
    let path = resource(webhook).object("", &webhook.configuration_name());
    let mut alone = false;
    let mut trouble = String::new();
    loop {
        let authority = wanted.borrow_and_update().clone();
        let state = match install(&client, &path, &authority, alone).await {
            Ok(state) => state,
            Err(error) => {
                let line = format!("{}: {error}", webhook.configuration_name());
                if line != trouble && !error.is_conflict() {
                    error!("the webhook configuration has no authority yet: {line}");
                    trouble = line;
                }
                sleep(LOOK_AGAIN).await;
                continue;
            }
        };
        trouble.clear();
        if state.written {
            info!(
                configuration = webhook.configuration_name(),
                "wrote the authority into the webhook configuration"
            );
        }
        told.send_replace(Some(authority));
        let handover = async {
            if !state.others {
                std::future::pending::<()>().await;
            }
            sleep(HANDOVER).await;
        };
        alone = tokio::select! {
            () = changed(&client, webhook, &state.version) => false,
            () = handover => true,
            changed = wanted.changed() => match changed {
                Ok(()) => false,
                Err(_) => return,
            },
        };
    }
}

/// How a configuration is.
struct State {
    version: String,
    written: bool,
    /// Other authorities are trusted, too.
    others: bool,
}

async fn install(client: &Client, path: &str, authority: &[u8], alone: bool) -> Result<State, CallError> {
    let mut object: Value = client.get(path).await?;
    let (mut changed, mut others) = (false, false);
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        let config = &mut webhook["clientConfig"];
        let bundle = config["caBundle"]
            .as_str()
            .and_then(|text| STANDARD.decode(text).ok());
        let bundle = Bundle::new(&bundle.unwrap_or_default(), authority);
        others |= bundle.others && !alone;
        if !bundle.complete || (alone && bundle.others) {
            let text = if alone { authority.to_vec() } else { bundle.text };
            config["caBundle"] = STANDARD.encode(text).into();
            changed = true;
        }
    }
    if changed {
        let answer = client.put(path, object.to_string().into_bytes()).await?;
        object = serde_json::from_slice(&answer).map_err(|error| CallError::Unreadable(error.to_string()))?;
    }
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    Ok(State {
        version: version.to_owned(),
        written: changed,
        others,
    })
}

/// Waits until a configuration is no longer of this version.
async fn changed(client: &Client, webhook: &Webhook, version: &str) {
    let path = format!(
        "{}?watch=true&fieldSelector=metadata.name%3D{}&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}",
        resource(webhook).all(),
        webhook.configuration_name(),
    );
    match client.stream(&path, None).await {
        // An event, or the end of the watch: either way it is time to look.
        Ok(mut frames) => drop(frames.next().await),
        Err(_) => sleep(WATCH_AGAIN).await,
    }
}

fn resource(webhook: &Webhook) -> Resource {
    let plural = if webhook.mutating {
        "mutatingwebhookconfigurations"
    } else {
        "validatingwebhookconfigurations"
    };
    Resource::new("admissionregistration.k8s.io", "v1", plural)
}

/// What a `caBundle` is to be.
#[derive(Debug, PartialEq, Eq)]
struct Bundle {
    /// The authority is in it already.
    complete: bool,
    /// So are others.
    others: bool,
    /// The authority, then what else there is of authorities, up to a limit.
    text: Vec<u8>,
}

impl Bundle {
    fn new(current: &[u8], authority: &[u8]) -> Bundle {
        let list = |pem: &[u8]| tls::certificates(pem, Part::Ca).unwrap_or_default();
        let (ours, there) = (list(authority), list(current));
        let complete = ours.iter().all(|certificate| there.contains(certificate));
        let others: Vec<_> = there.iter().filter(|other| !ours.contains(other)).collect();
        let mut text = authority.to_vec();
        for other in others.iter().take(MOST_OTHERS) {
            if !text.ends_with(b"\n") {
                text.push(b'\n');
            }
            text.extend(pem(other).bytes());
        }
        Bundle {
            complete,
            others: !others.is_empty(),
            text,
        }
    }
}

/// A certificate in the form of RFC 7468.
fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().copied().map(char::from));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::super::SecretName;
    use super::super::authority::make;
    use super::*;
    use std::time::SystemTime;

    fn authority() -> Vec<u8> {
        let of = SecretName {
            namespace: "n".to_owned(),
            name: "x".to_owned(),
            service: "s".to_owned(),
        };
        make(&of, SystemTime::now()).unwrap().ca
    }

    #[test]
    fn the_authority_is_put_in_front_of_those_before() {
        let (new, old) = (authority(), authority());
        for nothing in [&b""[..], b"Cg==", b"not a certificate"] {
            let bundle = Bundle::new(nothing, &new);
            assert!(!bundle.complete && !bundle.others);
            assert_eq!(bundle.text, new, "what is no certificate is dropped");
        }
        assert!(Bundle::new(&new, &new).complete);
        let both = Bundle::new(&old, &new);
        assert!(!both.complete && both.others);
        assert!(both.text.starts_with(&new));
        for of in [&new, &old] {
            let bundle = Bundle::new(&both.text, of);
            assert!(
                bundle.complete && bundle.others,
                "replicas do not undo each other's work"
            );
        }
        let mut many = both.text;
        for _ in 0..5 {
            many = Bundle::new(&many, &authority()).text;
        }
        let kept = tls::certificates(&many, Part::Ca).unwrap().len();
        assert_eq!(kept, 1 + MOST_OTHERS);
    }
}
