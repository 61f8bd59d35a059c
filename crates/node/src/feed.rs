//! A list that goes on as a watch, and begins anew when it breaks.

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// Waits after a failure.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A watch is asked for so many seconds.
const WATCH_SECONDS: u32 = 290;

/// What became of a kind.
pub(crate) enum Change<K> {
    /// All there is.
    All(Vec<K>),
    Set(K),
    Gone(K),
}

/// Tells every change, for as long as it is polled.
pub(crate) async fn follow<K>(api: Api<K>, fields: Option<String>, mut told: impl FnMut(Change<K>))
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut wait = FIRST_WAIT;
    loop {
        match round(&api, fields.as_deref(), &mut told).await {
            Ok(()) => wait = FIRST_WAIT,
            Err(error) => {
                tracing::warn!(%error, "watch broke, trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

/// A list, and watches from it for as long as they go on from one another.
async fn round<K>(
    api: &Api<K>,
    fields: Option<&str>,
    told: &mut impl FnMut(Change<K>),
) -> Result<(), kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let list = ListParams {
        field_selector: fields.map(str::to_owned),
        ..ListParams::default()
    };
    let found = api.list(&list).await?;
    let mut version = found.metadata.resource_version.clone().unwrap_or_default();
    told(Change::All(found.items));
    loop {
        let mut watch = WatchParams::default().timeout(WATCH_SECONDS);
        watch.field_selector = fields.map(str::to_owned);
        let mut events = Box::pin(api.watch(&watch, &version).await?);
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    version = object.resource_version().unwrap_or(version);
                    told(Change::Set(object));
                }
                WatchEvent::Deleted(object) => {
                    version = object.resource_version().unwrap_or(version);
                    told(Change::Gone(object));
                }
                WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                WatchEvent::Error(status) => {
                    // Too old most often: what was missed is in the next list.
                    tracing::debug!(reason = status.reason, "watch ended");
                    return Ok(());
                }
            }
        }
    }
}
