//! PodGroup statuses that are on their way to the API server.
//!
//! A status is decided, written a little later, and seen in the watch later still. Until then every other change of
//! the group arrives with the old status; taken at its word it would undo the decision and make it again, with one
//! more write each time. So the decided status is laid over what arrives, until the version that the write made is
//! seen or passed.

use crate::writes::order::JobKey;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use volcano_api::scheduling::{PodGroup, PodGroupStatus};

#[derive(Debug)]
struct Pending {
    uid: Arc<str>,
    sequence: u64,
    status: PodGroupStatus,
    /// The version that the write made, once it is done.
    written: Option<u64>,
}

/// Statuses by group.
#[derive(Debug, Default)]
pub struct Statuses {
    pending: FxHashMap<JobKey, Pending>,
    decided: u64,
}

impl Statuses {
    /// A status was decided. Returns its number, which its write is known by.
    pub fn decided(&mut self, job: JobKey, uid: Arc<str>, status: PodGroupStatus) -> u64 {
        self.decided += 1;
        let pending = Pending {
            uid,
            sequence: self.decided,
            status,
            written: None,
        };
        self.pending.insert(job, pending);
        self.decided
    }

    /// A status was written, or the group is gone. A status that was decided meanwhile is still on its way.
    pub fn written(&mut self, job: &str, sequence: u64, version: Option<&str>) {
        let Some(pending) = self.pending.get_mut(job).filter(|p| p.sequence == sequence) else {
            return;
        };
        match version.map(str::parse) {
            Some(Ok(version)) => pending.written = Some(version),
            // Gone, or a version that is no number and cannot be compared: take what comes at its word.
            _ => {
                self.pending.remove(job);
            }
        }
    }

    /// Lays the decided status over a group that arrives.
    pub fn overlay(&mut self, group: &mut PodGroup) {
        if self.pending.is_empty() {
            return;
        }
        let meta = &group.metadata;
        let key = format!("{}/{}", meta.namespace, meta.name);
        let Some(pending) = self.pending.get(key.as_str()) else {
            return;
        };
        let seen = meta.resource_version.parse::<u64>().ok();
        let caught_up = pending
            .written
            .is_some_and(|written| seen.is_none_or(|seen| seen >= written));
        if *pending.uid != *meta.uid || caught_up {
            self.pending.remove(key.as_str());
            return;
        }
        group.status = pending.status.clone();
    }

    /// A group is gone.
    pub fn gone(&mut self, namespace: &str, name: &str) {
        if !self.pending.is_empty() {
            self.pending.remove(format!("{namespace}/{name}").as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volcano_api::scheduling::PodGroupPhase;

    fn group(version: &str, phase: PodGroupPhase) -> PodGroup {
        let mut group = PodGroup::default();
        group.metadata.namespace = "ns".to_owned();
        group.metadata.name = "g".to_owned();
        group.metadata.uid = "u".to_owned();
        group.metadata.resource_version = version.to_owned();
        group.status.phase = phase;
        group
    }

    fn seen(statuses: &mut Statuses, version: &str, phase: PodGroupPhase) -> PodGroupPhase {
        let mut group = group(version, phase);
        statuses.overlay(&mut group);
        group.status.phase
    }

    fn inqueue() -> PodGroupStatus {
        group("", PodGroupPhase::Inqueue).status
    }

    #[test]
    fn a_decided_status_holds_until_its_write_is_seen() {
        use PodGroupPhase::{Inqueue, Pending, Running};
        let mut statuses = Statuses::default();
        assert_eq!(seen(&mut statuses, "1", Pending), Pending);
        let decided = statuses.decided("ns/g".into(), "u".into(), inqueue());
        assert_eq!(seen(&mut statuses, "2", Pending), Inqueue, "not written yet");
        statuses.written("ns/g", decided, Some("4"));
        assert_eq!(seen(&mut statuses, "3", Pending), Inqueue, "older than the write");
        assert_eq!(seen(&mut statuses, "4", Inqueue), Inqueue);
        assert_eq!(seen(&mut statuses, "5", Running), Running, "others may write too");
    }

    #[test]
    fn a_newer_decision_outlives_the_write_of_an_older_one() {
        use PodGroupPhase::{Inqueue, Pending};
        let mut statuses = Statuses::default();
        let older = statuses.decided("ns/g".into(), "u".into(), inqueue());
        statuses.decided("ns/g".into(), "u".into(), inqueue());
        statuses.written("ns/g", older, Some("4"));
        assert_eq!(seen(&mut statuses, "4", Pending), Inqueue);
    }

    #[test]
    fn a_group_that_went_away_or_came_anew_is_taken_at_its_word() {
        use PodGroupPhase::Pending;
        let mut statuses = Statuses::default();
        statuses.decided("ns/g".into(), "other".into(), inqueue());
        assert_eq!(seen(&mut statuses, "9", Pending), Pending, "another incarnation");
        let decided = statuses.decided("ns/g".into(), "u".into(), inqueue());
        statuses.written("ns/g", decided, None);
        assert_eq!(seen(&mut statuses, "9", Pending), Pending, "gone");
        statuses.decided("ns/g".into(), "u".into(), inqueue());
        statuses.gone("ns", "g");
        assert_eq!(seen(&mut statuses, "9", Pending), Pending);
    }
}
