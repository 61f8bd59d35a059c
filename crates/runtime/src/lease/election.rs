//! The election as a value: what was seen and when, in; what to write, out. No clock, no network.
//!
//! ```text
//!             the lease is free, or was left alone for its duration, and our write was taken
//!           ┌─────────────────────────────────────────────────────────────────────────────────┐
//!      Standby                                                                             Leading ─┐ renewed
//!           └─────────────────────────────────────────────────────────────────────────────────┘ <───┘
//!             the lease names another, or was not renewed before the deadline
//! ```
//!
//! Clocks of machines differ, so times in the lease are never compared with this machine's: a candidate counts from
//! when it saw the lease change itself.

use super::Leadership;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::time::{MicroTime, Time};

/// What a Lease says. Times are kept as they were written: they are compared, not counted with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Who holds it; empty for nobody.
    pub holder: String,
    pub duration_seconds: u32,
    pub acquire_time: Option<String>,
    pub renew_time: Option<String>,
    pub transitions: u32,
}

impl Record {
    /// What the `spec` of a Lease says. What cannot be read is absent.
    pub fn of(lease: &Value) -> Self {
        let spec = &lease["spec"];
        let text = |key: &str| spec[key].as_str().map(str::to_owned);
        let number = |key: &str| {
            let number = spec[key].as_u64().unwrap_or_default();
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        Record {
            holder: text("holderIdentity").unwrap_or_default(),
            duration_seconds: number("leaseDurationSeconds"),
            acquire_time: text("acquireTime"),
            renew_time: text("renewTime"),
            transitions: number("leaseTransitions"),
        }
    }

    /// Writes it into a Lease; what else is there stays.
    pub fn write(&self, lease: &mut Value) {
        let spec = &mut lease["spec"];
        if !spec.is_object() {
            *spec = json!({});
        }
        spec["holderIdentity"] = json!(self.holder);
        spec["leaseDurationSeconds"] = json!(self.duration_seconds);
        spec["acquireTime"] = json!(self.acquire_time);
        spec["renewTime"] = json!(self.renew_time);
        spec["leaseTransitions"] = json!(self.transitions);
    }
}

/// What to do about the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is none: make one.
    Create(Record),
    /// It is ours, or free for us: write this, unless somebody else writes first.
    Update(Record),
    /// It is another's.
    Wait,
}

/// One candidate's view of the election.
#[derive(Clone, Debug)]
pub(super) struct Election {
    identity: String,
    lease_duration: Duration,
    renew_deadline: Duration,
    /// What the lease said last, and since when it has said so.
    seen: Option<(Record, Instant)>,
    /// Leading: when the last renewal that was taken had been sent.
    renewed: Option<Instant>,
    /// How often this candidate began to lead.
    terms: u64,
}

impl Election {
    pub fn new(identity: &str, lease_duration: Duration, renew_deadline: Duration) -> Self {
        Election {
            identity: identity.to_owned(),
            lease_duration,
            renew_deadline,
            seen: None,
            renewed: None,
            terms: 0,
        }
    }

    /// The lease was read: what now? A leader that reads another's name leads no longer.
    pub fn decide(&mut self, found: Option<Record>, now: Instant, wall: Time) -> Step {
        let Some(record) = found else {
            return Step::Create(self.record(None, wall));
        };
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != record) {
            self.seen = Some((record.clone(), now));
        }
        let since = self.seen.as_ref().map_or(now, |(_, since)| *since);
        if record.holder == self.identity {
            return Step::Update(self.record(Some(&record), wall));
        }
        self.renewed = None;
        let alone = Duration::from_secs(record.duration_seconds.into());
        if record.holder.is_empty() || now >= since + alone {
            Step::Update(self.record(Some(&record), wall))
        } else {
            Step::Wait
        }
    }

    /// While leading: what to write to go on, if the lease is as it was left.
    pub fn renewal(&self, wall: Time) -> Option<Record> {
        self.renewed?;
        let (record, _) = self.seen.as_ref()?;
        Some(self.record(Some(record), wall))
    }

    /// A write that was sent then was taken: this candidate leads.
    pub fn written(&mut self, record: Record, sent: Instant, now: Instant) {
        if self.renewed.is_none() {
            self.terms += 1;
        }
        self.seen = Some((record, now));
        self.renewed = Some(sent);
    }

    /// Until when this candidate leads if it does not renew.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.renewed? + self.renew_deadline)
    }

    /// When the lease that was read last becomes free, if nobody renews it.
    pub fn free_at(&self) -> Option<Instant> {
        let (record, since) = self.seen.as_ref()?;
        Some(*since + Duration::from_secs(record.duration_seconds.into()))
    }

    /// Whether a leader has had no renewal for too long; it leads no longer then.
    pub fn expire(&mut self, now: Instant) -> bool {
        let expired = self.deadline().is_some_and(|deadline| now >= deadline);
        if expired {
            self.renewed = None;
        }
        expired
    }

    /// What to write to give the lease back, if it is ours.
    pub fn release(&mut self, found: &Record, wall: Time) -> Option<Record> {
        self.renewed = None;
        let ours = found.holder == self.identity;
        ours.then(|| Record {
            holder: String::new(),
            duration_seconds: 1,
            acquire_time: Some(MicroTime(wall).to_string()),
            renew_time: Some(MicroTime(wall).to_string()),
            transitions: found.transitions,
        })
    }

    pub fn leadership(&self) -> Leadership {
        let record = self.seen.as_ref().map(|(record, _)| record);
        if self.renewed.is_some() {
            return Leadership::Leading {
                transitions: record.map_or(0, |record| record.transitions),
                term: self.terms,
            };
        }
        let holder = record.map(|record| record.holder.as_str());
        Leadership::Standby {
            holder: holder.filter(|holder| !holder.is_empty()).map(str::to_owned),
        }
    }

    /// The lease with this candidate as its holder.
    fn record(&self, before: Option<&Record>, wall: Time) -> Record {
        let ours = before.filter(|before| before.holder == self.identity);
        let acquired = ours.and_then(|before| before.acquire_time.clone());
        let changes_hands = u32::from(ours.is_none());
        let wall = MicroTime(wall).to_string();
        Record {
            holder: self.identity.clone(),
            duration_seconds: u32::try_from(self.lease_duration.as_secs()).unwrap_or(u32::MAX),
            acquire_time: acquired.or_else(|| Some(wall.clone())),
            transitions: before.map_or(0, |before| before.transitions.saturating_add(changes_hands)),
            renew_time: Some(wall),
        }
    }

    #[cfg(test)]
    pub fn seen_record(&self) -> Option<Record> {
        self.seen.as_ref().map(|(record, _)| record.clone())
    }
}
