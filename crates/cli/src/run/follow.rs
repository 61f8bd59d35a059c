//! One Job or pod, followed to its end; what changes is sent.

use crate::api::{Api, Scope};
use crate::commands::job::wait::{self, End, Watched};
use crate::commands::pod::status::PodItem;
use crate::failure::Failure;
use crate::live::{Change, Live};
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use volcano_api::names::kinds;

/// What has changed of the one at this place.
pub enum Update {
    /// How it is.
    State {
        /// Its place.
        at: usize,
        /// In words.
        text: String,
        /// Whether it, or a part of it, has not started.
        waits: bool,
        /// Whether a pod of it has a node and is not over.
        is_live: bool,
    },
    /// A pod of it.
    Pod {
        /// Its place.
        at: usize,
        /// The pod.
        pod: Box<PodItem>,
    },
    /// It is over.
    End {
        /// Its place.
        at: usize,
        /// How.
        end: End,
    },
    /// It cannot be followed.
    Broken(Failure),
}

/// What is followed.
pub enum Target {
    /// A Job, as it is stored.
    Job(Value),
    /// A pod: namespace, name and identity.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
    },
}

/// Follows it. Nobody may listen any more, which is no concern here: the task is about to end then.
pub async fn follow(api: Api, at: usize, target: Target, updates: Sender<Update>) {
    let end = match target {
        Target::Job(job) => follow_job(&api, at, &job, &updates).await,
        Target::Pod { namespace, name, uid } => {
            Ok(follow_pod(&api, at, &namespace, &name, &uid, &updates).await)
        }
    };
    let last = match end {
        Ok(end) => Update::End { at, end },
        Err(failure) => Update::Broken(failure),
    };
    let _ = updates.send(last).await;
}

async fn follow_job(api: &Api, at: usize, job: &Value, updates: &Sender<Update>) -> Result<End, Failure> {
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut watched = Watched::new(job);
    let follow = async {
        wait::follow(api, &mut watched, |watched, pod| {
            if let Some(pod) = pod {
                let pod = Box::new(pod.clone());
                let _ = sender.send(Update::Pod { at, pod });
            }
            let _ = sender.send(Update::State {
                at,
                text: watched.snapshot().to_string(),
                waits: watched.waits() || watched.lacks_nodes(),
                is_live: watched.is_live(),
            });
        })
        .await
    };
    tokio::pin!(follow);
    let end = loop {
        tokio::select! {
            end = &mut follow => break end?,
            Some(update) = told.recv() => drop(updates.send(update).await),
        }
    };
    while let Ok(update) = told.try_recv() {
        let _ = updates.send(update).await;
    }
    // The end of the Job may be known before the ends of its pods.
    let text = |field: &str| job["metadata"][field].as_str().unwrap_or_default();
    let pods: Vec<PodItem> = api
        .list(wait::pods_of(text("namespace"), text("name")))
        .await
        .unwrap_or_default();
    for pod in pods {
        let pod = Box::new(pod);
        let _ = updates.send(Update::Pod { at, pod }).await;
    }
    Ok(end)
}

async fn follow_pod(
    api: &Api,
    at: usize,
    namespace: &str,
    name: &str,
    uid: &str,
    updates: &Sender<Update>,
) -> End {
    let scope = Scope::new(kinds::POD, namespace).with_fields(&format!("metadata.name={name}"));
    let mut pods = Live::<PodItem>::new(api, scope);
    loop {
        match pods.next().await {
            Change::Applied(pod) if pod.metadata.uid == uid => {
                let text = format!("pod {name}: {}", pod.status());
                let (waits, is_live) = (pod.spec.node_name.is_empty(), pod.is_on_node());
                let end = pod.is_over().then(|| End::Phase(pod.status.phase.clone()));
                let pod = Box::new(pod);
                let _ = updates.send(Update::Pod { at, pod }).await;
                let state = Update::State {
                    at,
                    text,
                    waits,
                    is_live,
                };
                let _ = updates.send(state).await;
                if let Some(end) = end {
                    return end;
                }
            }
            Change::Applied(_) | Change::Gone(_) => return End::Deleted,
            Change::Listed | Change::Trouble(_) => {}
        }
    }
}
