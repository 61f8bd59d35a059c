//! Admission in this process: the same rules, paths and selectors as with the webhook manager, without a connection.

use bytes::Bytes;
use futures::future::BoxFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::error;
use volcano_admission::{Event, Lookups, Options, Response, request_uid, review};
use volcano_api::core::{Labels, Namespace};
use volcano_api::names::kinds::QUEUE;
use volcano_api::scheduling::Queue;
use volcano_apiserver::{Reader, WebhookHandler};
use volcano_runtime::webhooks::has_time_zone;

/// What is said when the rules themselves fail.
const FAILED: &str = "the webhook failed at this object; the log says where";

/// Answers reviews.
pub struct Admission {
    cluster: Cluster,
    options: Options,
    events: mpsc::Sender<Event>,
}

impl Admission {
    /// Rules that look things up in what is stored; events go to the channel.
    pub fn new(reader: Reader, options: Options, events: mpsc::Sender<Event>) -> Self {
        let cluster = Cluster(reader);
        Admission {
            cluster,
            options,
            events,
        }
    }

    fn judge(&self, path: &str, body: &[u8]) -> Response {
        let judged = catch_unwind(AssertUnwindSafe(|| {
            review(path, body, &self.cluster, &self.options)
        }));
        judged.unwrap_or_else(|_| {
            error!(path, "a review panicked");
            Response::broken(&request_uid(body), 500, FAILED.to_owned())
        })
    }
}

impl WebhookHandler for Admission {
    fn review(&self, path: String, body: Bytes) -> BoxFuture<'static, Result<Bytes, String>> {
        let response = self.judge(&path, &body);
        if let Some(event) = &response.event {
            // Events are the least of all: when too many wait, this one is dropped.
            let _ = self.events.try_send(event.clone());
        }
        Box::pin(std::future::ready(Ok(response.to_bytes().into())))
    }
}

/// What the rules ask for, as it is stored at this moment: what was written before a request counts for it.
struct Cluster(Reader);

impl Lookups for Cluster {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        let bytes = self.0.get(QUEUE.group, QUEUE.plural, "", name)?;
        serde_json::from_slice(&bytes).ok().map(Arc::new)
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        let all = self.0.all(QUEUE.group, QUEUE.plural).into_iter();
        all.filter_map(|bytes| serde_json::from_slice(&bytes).ok().map(Arc::new))
            .collect()
    }

    fn namespace_annotations(&self, name: &str) -> Option<Labels> {
        let bytes = self.0.get("", "namespaces", "", name)?;
        let namespace: Namespace = serde_json::from_slice(&bytes).ok()?;
        Some(namespace.metadata.annotations)
    }

    fn has_time_zone(&self, name: &str) -> bool {
        has_time_zone(name)
    }
}
