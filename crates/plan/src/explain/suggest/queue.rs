//! Changes of queues and quotas.

use super::super::change::{Change, How};
use super::super::find::{kept_by, queue_full};
use super::super::reason::{Amount, QueueLimit, Reason};
use super::super::world::Trial;
use super::{Search, What};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use volcano_api::quantity::Quantity;
use volcano_api::scheduling::{Queue, QueueState};
use volcano_engine::model::kind::Kind;

/// The largest weight that is tried.
const MOST_WEIGHT: i64 = 1 << 16;
/// Rounds of raising one limit after the other.
const ROUNDS: usize = 4;

impl Search<'_> {
    /// A queue that is not open; a parent that is closed first, since its children follow it.
    pub(super) fn open_queue(&mut self) {
        let closed = self.reasons.iter().find_map(|reason| match reason {
            Reason::QueueNotOpen { queue, .. } => Some(queue.clone()),
            _ => None,
        });
        let Some(mut name) = closed else { return };
        let is_open = |queue: &Queue| matches!(queue.status.state, QueueState::Open | QueueState::Unset);
        let cluster = self.world.cluster;
        for _ in 0..cluster.queues().count() {
            let parent = cluster
                .queue(&name)
                .and_then(|queue| cluster.queue(&queue.spec.parent));
            match parent.filter(|parent| !is_open(parent)) {
                Some(parent) => name.clone_from(&parent.metadata.name),
                None => break,
            }
        }
        let patch = json!({"status": {"state": QueueState::Open}});
        let change = Change::of_queue(&name, How::PatchStatus, patch);
        let text = format!("open queue {name} (vcctl queue operate --action open --name {name})");
        self.offer(What::OpenQueue { queue: name }, text, vec![change]);
    }

    /// Quotas that keep pods from being made, raised to what the gang needs.
    pub(super) fn raise_quota(&mut self) {
        let mut raised: BTreeMap<String, BTreeMap<String, Quantity>> = BTreeMap::new();
        let mut said: Vec<Amount> = self.collect_quotas(self.trial, &mut raised);
        let namespace = self.namespace();
        for _ in 0..ROUNDS {
            let Some(first) = raised.keys().next().cloned() else {
                return;
            };
            let changes: Vec<Change> = raised
                .iter()
                .map(|(quota, hard)| {
                    let patch = json!({"spec": {"hard": hard}});
                    Change::of_core(Kind::ResourceQuota, &namespace, quota, patch)
                })
                .collect();
            let Some(trial) = self.world.with(&changes) else {
                return;
            };
            if trial.started {
                let names: Vec<&str> = raised.keys().map(String::as_str).collect();
                let text = format!("raise ResourceQuota {} to {}", names.join(", "), limits(&said));
                self.keep(What::RaiseQuota { quota: first }, text, changes, trial.evicted);
                return;
            }
            let more = self.collect_quotas(&trial, &mut raised);
            if more.is_empty() {
                return;
            }
            said.retain(|amount| more.iter().all(|other| other.resource != amount.resource));
            said.extend(more);
        }
    }

    fn collect_quotas(
        &self,
        trial: &Trial,
        raised: &mut BTreeMap<String, BTreeMap<String, Quantity>>,
    ) -> Vec<Amount> {
        let Some(id) = trial.id() else { return Vec::new() };
        let minimum = trial.engine.model().job(id).min_available();
        let quotas: Vec<String> = trial
            .withheld
            .iter()
            .filter_map(|withheld| withheld.quota().map(str::to_owned))
            .collect();
        let mut all = Vec::new();
        for quota in quotas {
            let short = trial.quotas.lacks(&quota, &kept_by(trial, &quota, minimum));
            for amount in &short {
                let hard = raised.entry(quota.clone()).or_default();
                hard.insert(amount.resource.clone(), amount.needed);
            }
            all.extend(short);
        }
        all
    }

    fn namespace(&self) -> String {
        let subject = &self.world.subject;
        let of_job = subject.job.as_ref().map(|job| &job.metadata.namespace);
        let of_group = subject.group.as_ref().map(|group| &group.metadata.namespace);
        of_job.or(of_group).cloned().unwrap_or_default()
    }

    /// Queues whose capability is in the way, raised to what the gang needs: its own, and those above it.
    pub(super) fn raise_capability(&mut self) {
        let mut raised: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        let mut said: Vec<Amount> = Vec::new();
        let mut reason = self.full(QueueLimit::Capability);
        for _ in 0..ROUNDS {
            let Some((queue, short)) = reason else { return };
            let capability = raised.entry(queue.clone()).or_default();
            for amount in &short {
                capability.insert(amount.resource.clone(), json!(amount.needed));
            }
            said.retain(|amount| short.iter().all(|other| other.resource != amount.resource));
            said.extend(short);
            let changes: Vec<Change> = raised
                .iter()
                .map(|(queue, capability)| {
                    Change::of_queue(queue, How::Patch, json!({"spec": {"capability": capability}}))
                })
                .collect();
            let Some(trial) = self.world.with(&changes) else {
                return;
            };
            if trial.started {
                let names: Vec<&str> = raised.keys().map(String::as_str).collect();
                let text = format!(
                    "raise the capability of queue {} to {}",
                    names.join(", "),
                    limits(&said)
                );
                self.keep(What::RaiseCapability { queue }, text, changes, trial.evicted);
                return;
            }
            reason = match queue_full(&trial) {
                Some(Reason::QueueFull {
                    queue,
                    limit: QueueLimit::Capability,
                    short,
                }) => Some((queue, short)),
                _ => None,
            };
        }
    }

    /// What the queue deserves: by its weight, or by `spec.deserved` where the plugin capacity divides the cluster.
    pub(super) fn raise_deserved(&mut self) {
        let Some((name, short)) = self.full(QueueLimit::Deserved) else {
            return;
        };
        let Some(queue) = self.world.cluster.queue(&name) else {
            return;
        };
        if self.world.has_plugin("capacity") {
            let deserved: Map<String, Value> = short
                .iter()
                .map(|amount| (amount.resource.clone(), json!(amount.needed)))
                .collect();
            let change = Change::of_queue(&name, How::Patch, json!({"spec": {"deserved": deserved}}));
            let text = format!("raise what queue {name} deserves to {}", limits(&short));
            self.offer(What::RaiseDeserved { queue: name }, text, vec![change]);
            return;
        }
        let from = queue.spec.weight.max(1);
        let with = |weight: i64| {
            vec![Change::of_queue(
                &name,
                How::Patch,
                json!({"spec": {"weight": weight}}),
            )]
        };
        let mut high = i64::from(from) * 2;
        while self.starts(&with(high)).is_none() {
            if high >= MOST_WEIGHT {
                return;
            }
            high *= 4;
        }
        let mut low = i64::from(from) + 1;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.starts(&with(middle)) {
                Some(_) => high = middle,
                None => low = middle + 1,
            }
        }
        let to = i32::try_from(high).unwrap_or(i32::MAX);
        let text = format!("raise the weight of queue {name} from {from} to {to}");
        let what = What::RaiseWeight {
            queue: name.clone(),
            from,
            to,
        };
        self.offer(what, text, with(high));
    }

    /// The queue that is full by a limit, and what is short.
    fn full(&self, wanted: QueueLimit) -> Option<(String, Vec<Amount>)> {
        self.reasons.iter().find_map(|reason| match reason {
            Reason::QueueFull { queue, limit, short } if *limit == wanted => {
                Some((queue.clone(), short.clone()))
            }
            _ => None,
        })
    }
}

/// `12 cpu, 4Gi memory`.
fn limits(amounts: &[Amount]) -> String {
    let parts: Vec<String> = amounts
        .iter()
        .map(|amount| format!("{} {} (from {})", amount.needed, amount.resource, amount.limit))
        .collect();
    parts.join(", ")
}
