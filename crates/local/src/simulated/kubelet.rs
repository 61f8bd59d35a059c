//! What simulated nodes do with their pods: a state machine without I/O, to which time is an argument.
//!
//! ```text
//! bound ──> Running ──time──> Ended
//!             ^  └──time, restartPolicy──> BackingOff ──┐
//!             └─────────────────────────────────────────┘
//! deleted: after its termination time the pod is removed for good
//! ```

use super::life::Life;
use super::pod::{Pod, RestartPolicy};
use super::status::{Subject, images};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::time::Time;

/// Addresses of pods begin after this one.
const ADDRESSES: u32 = u32::from_be_bytes([10, 128, 0, 0]);
/// As many are there.
const ADDRESS_COUNT: u32 = 1 << 23;
/// The wait before the second restart; the first comes at once, and each after it waits twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// No wait is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// What failed is tried again after this long.
const AGAIN: Duration = Duration::from_secs(1);

/// Namespace and name.
pub type Key = (String, String);

/// Something to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A change of the status of a pod, in JSON.
    Status(Key, Vec<u8>),
    /// The end of a pod that was deleted: its UID.
    Remove(Key, String),
    /// Something is wrong with a pod: its UID and what.
    Warning(Key, String, String),
}

impl Write {
    /// The pod that it is about.
    pub fn key(&self) -> &Key {
        match self {
            Write::Status(key, _) | Write::Remove(key, _) | Write::Warning(key, ..) => key,
        }
    }
}

/// What a pod is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Running,
    BackingOff,
    Ended,
    Removed,
}

struct Known {
    life: Life,
    policy: RestartPolicy,
    subject: Subject,
    doing: Doing,
    /// When it is removed, once it is deleted.
    leaves: Option<Instant>,
}

impl Known {
    /// Whether its containers are started again when they end.
    fn restarts(&self) -> bool {
        match self.policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => self.life.fails(),
            RestartPolicy::Never => false,
        }
    }
}

/// The pods of all simulated nodes.
pub struct Kubelet {
    /// Addresses of the nodes.
    nodes: FxHashMap<String, Ipv4Addr>,
    pods: FxHashMap<Key, Known>,
    /// When something is to happen to a pod, in the order in which it was planned.
    due: BinaryHeap<Reverse<(Instant, u64, Key, String)>>,
    planned: u64,
    /// Writes to be tried again.
    later: VecDeque<(Instant, Write)>,
    last_address: u32,
    out: VecDeque<Write>,
    /// Pods of which a write is in `out`, under way or to be tried again, and what is to be written of them after it: the
    /// writes of a pod must not overtake each other.
    behind: FxHashMap<Key, VecDeque<Write>>,
}

impl Kubelet {
    /// Nodes without pods.
    pub fn new(nodes: FxHashMap<String, Ipv4Addr>) -> Self {
        Kubelet {
            nodes,
            pods: FxHashMap::default(),
            due: BinaryHeap::new(),
            planned: 0,
            later: VecDeque::new(),
            last_address: 0,
            out: VecDeque::new(),
            behind: FxHashMap::default(),
        }
    }

    /// A pod is new or has changed.
    pub fn take(&mut self, pod: Pod, now: Instant, wall: Time) {
        let Some(&host) = self.nodes.get(&pod.spec.node_name) else {
            return;
        };
        let key = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        let is_known = self
            .pods
            .get(&key)
            .is_some_and(|known| known.subject.uid == pod.metadata.uid);
        if !is_known {
            self.take_up(&key, &pod, host, now, wall);
        }
        if pod.metadata.deletion_timestamp.is_some() {
            self.let_go(&key, &pod, now);
        }
    }

    /// A pod is gone.
    pub fn gone(&mut self, key: &Key) {
        self.pods.remove(key);
    }

    /// Only these pods are there.
    pub fn retain(&mut self, there: &FxHashSet<Key>) {
        self.pods.retain(|key, _| there.contains(key));
    }

    /// What is to be written next. Whoever takes it says how it went: [`Kubelet::written`] or [`Kubelet::failed`].
    pub fn next(&mut self) -> Option<Write> {
        self.out.pop_front()
    }

    /// A write of a pod is done, for better or worse.
    pub fn written(&mut self, key: &Key) {
        match self.behind.get_mut(key).and_then(VecDeque::pop_front) {
            Some(next) => self.out.push_back(next),
            None => drop(self.behind.remove(key)),
        }
    }

    /// A write failed in a way that may pass.
    pub fn failed(&mut self, write: Write, now: Instant) {
        self.later.push_back((now + AGAIN, write));
    }

    fn write(&mut self, write: Write) {
        match self.behind.get_mut(write.key()) {
            Some(behind) => behind.push_back(write),
            None => {
                self.behind.insert(write.key().clone(), VecDeque::new());
                self.out.push_back(write);
            }
        }
    }

    /// When something happens by itself.
    pub fn wakes(&self) -> Option<Instant> {
        let due = self.due.peek().map(|Reverse((at, ..))| *at);
        let later = self.later.front().map(|(at, _)| *at);
        due.into_iter().chain(later).min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Instant, wall: Time) {
        while self.later.front().is_some_and(|(at, _)| *at <= now) {
            let again = self.later.pop_front().map(|(_, write)| write);
            self.out.extend(again);
        }
        while self.due.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            if let Some(Reverse((at, _, key, uid))) = self.due.pop() {
                // What happens late has happened in time: pods that start together end together.
                let late = i64::try_from(now.duration_since(at).as_micros()).unwrap_or(0);
                let wall = Time::from_unix_micros(wall.unix_micros() - late);
                self.step(key, &uid, at, now, wall);
            }
        }
    }

    /// A pod that is on one of the nodes and was not known.
    fn take_up(&mut self, key: &Key, pod: &Pod, host: Ipv4Addr, now: Instant, wall: Time) {
        let (life, wrong) = Life::of(pod);
        let uid = &pod.metadata.uid;
        for what in wrong {
            self.write(Write::Warning(key.clone(), uid.clone(), what));
        }
        let status = &pod.status;
        let known_address = status.pod_ip.parse::<Ipv4Addr>().ok();
        let first = status.container_statuses.first();
        let started = first.and_then(|first| first.state.running.as_ref()?.started_at);
        let ended = matches!(status.phase.as_str(), "Succeeded" | "Failed");
        let runs = status.phase == "Running" && started.is_some();
        let known = Known {
            policy: pod.spec.restart_policy,
            subject: Subject {
                uid: uid.clone(),
                containers: images(&pod.spec.containers),
                init_containers: images(&pod.spec.init_containers),
                host,
                address: known_address.unwrap_or_else(|| self.address()),
                taken_up: status.start_time.unwrap_or(wall),
                started: started.unwrap_or(wall),
                restarts: first.map_or(0, |first| first.restart_count),
            },
            doing: if ended { Doing::Ended } else { Doing::Running },
            leaves: None,
            life,
        };
        if let Some(address) = known_address {
            let place = u32::from(address).wrapping_sub(ADDRESSES);
            self.last_address = self
                .last_address
                .max(if place < ADDRESS_COUNT { place } else { 0 });
        }
        if !ended {
            if !runs && pod.metadata.deletion_timestamp.is_none() {
                let status = known.subject.running();
                self.write(Write::Status(key.clone(), status));
            }
            // One that ran before a restart of ours has some of its time behind it.
            let passed = wall.micros_since(known.subject.started);
            let passed = Duration::from_micros(u64::try_from(passed).unwrap_or(0));
            if let Some(runs) = known.life.runs {
                self.plan(now + runs.saturating_sub(passed), key, uid);
            }
        }
        self.pods.insert(key.clone(), known);
    }

    /// A pod was deleted: it ends within its grace period.
    fn let_go(&mut self, key: &Key, pod: &Pod, now: Instant) {
        let Some(known) = self
            .pods
            .get_mut(key)
            .filter(|known| known.doing != Doing::Removed)
        else {
            return;
        };
        let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        let leaves = now + known.life.termination.min(grace);
        if known.leaves.is_some_and(|planned| planned <= leaves) {
            return;
        }
        known.leaves = Some(leaves);
        if leaves > now {
            return self.plan(leaves, key, &pod.metadata.uid);
        }
        known.doing = Doing::Removed;
        self.write(Write::Remove(key.clone(), pod.metadata.uid.clone()));
    }

    /// Something that was planned for a pod is due.
    fn step(&mut self, key: Key, uid: &str, at: Instant, now: Instant, wall: Time) {
        let Some(known) = self.pods.get_mut(&key).filter(|known| known.subject.uid == uid) else {
            return;
        };
        if let Some(leaves) = known.leaves {
            if leaves <= now && known.doing != Doing::Removed {
                known.doing = Doing::Removed;
                self.write(Write::Remove(key, uid.to_owned()));
            }
            return;
        }
        let (status, next) = match known.doing {
            Doing::Running if known.restarts() => {
                known.doing = Doing::BackingOff;
                let status = known.subject.backing_off(&known.life, wall);
                (status, Some(at + wait(known.subject.restarts)))
            }
            Doing::Running => {
                known.doing = Doing::Ended;
                (known.subject.ended(&known.life, wall), None)
            }
            Doing::BackingOff => {
                known.doing = Doing::Running;
                known.subject.restarts += 1;
                known.subject.started = wall;
                // A pod that ends at once must not be restarted for ever in one go.
                let soonest = now + Duration::from_millis(1);
                let next = known.life.runs.map(|runs| (at + runs).max(soonest));
                (known.subject.running(), next)
            }
            Doing::Ended | Doing::Removed => return,
        };
        if let Some(next) = next {
            self.plan(next, &key, uid);
        }
        self.write(Write::Status(key, status));
    }

    fn plan(&mut self, at: Instant, key: &Key, uid: &str) {
        self.planned += 1;
        self.due
            .push(Reverse((at, self.planned, key.clone(), uid.to_owned())));
    }

    fn address(&mut self) -> Ipv4Addr {
        self.last_address = (self.last_address + 1) % ADDRESS_COUNT;
        Ipv4Addr::from(ADDRESSES + self.last_address)
    }
}

/// The wait before a restart, by how many there were.
fn wait(restarts: u32) -> Duration {
    match restarts.checked_sub(1) {
        None => Duration::ZERO,
        Some(earlier) => FIRST_WAIT.saturating_mul(1 << earlier.min(8)).min(LONGEST_WAIT),
    }
}

#[cfg(test)]
mod tests;
