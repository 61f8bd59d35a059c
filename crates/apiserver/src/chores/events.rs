//! Events: what happened is told for an hour, as with Kubernetes. Nobody deletes them, and they are many.

use crate::resources::Nature;
use crate::server::Server;
use crate::store::Expect;
use serde_json::Value;
use std::time::Duration;

/// How long an Event is kept after it was written last.
pub const KEPT: Duration = Duration::from_secs(3600);

/// How much of its hour an Event of a data file has left, by the latest time that it tells.
pub fn remaining(event: &Value, now: jiff::Timestamp) -> Duration {
    let times = [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
    ];
    let times = times.into_iter().filter_map(|time| time.as_str()?.parse().ok());
    let written: jiff::Timestamp = times.max().unwrap_or(now);
    let age = Duration::try_from(now.duration_since(written)).unwrap_or_default();
    KEPT.saturating_sub(age)
}

impl Server {
    /// Removes an Event, unless it was written again. Nobody is asked: it is not deleted, its time is over.
    pub(super) fn expire(&self, key: &str, revision: u64) {
        let registry = self.registry();
        let resource = registry.of_nature(Nature::Event);
        if let Some(event) = self
            .get(resource.table, key)
            .filter(|event| event.revision == revision)
        {
            let _ = self.remove(resource, key, Expect::At(revision), event.value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_has_an_hour_from_the_latest_time_that_it_tells() {
        let now: jiff::Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        for (event, minutes) in [
            (
                json!({"metadata": {"creationTimestamp": "2026-01-01T11:50:00Z"}}),
                50,
            ),
            (
                json!({"metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"}}),
                0,
            ),
            (
                json!({"metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"}, "lastTimestamp": "2026-01-01T11:30:00Z"}),
                30,
            ),
            (
                json!({"metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"}, "series": {"lastObservedTime": "2026-01-01T11:15:00.5Z"}}),
                15,
            ),
            (json!({"metadata": {}, "eventTime": "2027-01-01T00:00:00Z"}), 60),
            (json!({}), 60),
        ] {
            assert_eq!(remaining(&event, now).as_secs() / 60, minutes, "{event}");
        }
    }
}
