//! The queues that are always there: `root`, and the one of groups that name none.

use crate::backoff::Backoff;
use crate::client::{CallError, Client, Resource};
use crate::watch::kinds::Scheduling;
use crate::watch::{Object, trouble};
use serde_json::{Value, json};
use std::time::Duration;
use tracing::{error, info};
use volcano_api::names::queues;
use volcano_api::scheduling::Queue;

const QUEUES: Resource = <Queue as Object<Scheduling>>::RESOURCE;

/// Makes the queues that are missing. Goes on until they are there: the API server may still be starting, the CRDs
/// may still be missing, a webhook may not answer yet. Each new kind of trouble is told in one line.
pub async fn ensure(client: &Client, default_queue: &str, mut told: impl FnMut(&str)) {
    for (name, queue) in standing(default_queue) {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
        let mut last = String::new();
        while let Err(error) = make(client, &name, &queue).await {
            let line = match &error {
                error if error.is_forbidden() => format!(
                    "not allowed to make the queue {name}: {error}; grant get and create on queues to the scheduler's ClusterRole"
                ),
                error => trouble(QUEUES, client.server(), error),
            };
            if line != last {
                error!("{line}");
                told(&line);
                last = line;
            }
            let wait = error.retry_after().unwrap_or_default().max(backoff.wait());
            tokio::time::sleep(wait).await;
        }
    }
}

/// Names and objects of the queues that are always there.
pub fn standing(default_queue: &str) -> [(String, Value); 2] {
    [(queues::ROOT, false), (default_queue, true)].map(|(name, reclaimable)| {
        let queue = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "reclaimable": reclaimable},
        });
        (name.to_owned(), queue)
    })
}

async fn make(client: &Client, name: &str, queue: &Value) -> Result<(), CallError> {
    match client
        .get::<serde::de::IgnoredAny>(&QUEUES.object("", name))
        .await
    {
        Err(error) if error.is_not_found() => {}
        known => return known.map(|_| ()),
    }
    match client.post(&QUEUES.all(), queue.to_string().into_bytes()).await {
        Ok(_) => {
            info!(queue = name, "made the queue");
            Ok(())
        }
        // Another replica was faster.
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}
