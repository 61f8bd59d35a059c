//! What queues use, deserve and may use, as gauges that come and go with their queues.

use super::build::{gauge_vec, set};
use super::names;
use prometheus::{GaugeVec, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use volcano_engine::figures::{Amounts, QueueFigures, UNLIMITED};

/// The kinds of amounts, in the order of [`amounts`].
const KINDS: [&str; 6] = [
    "allocated",
    "request",
    "deserved",
    "capacity",
    "real_capacity",
    "inqueue",
];

fn amounts(of: &QueueFigures) -> [Option<&Amounts>; KINDS.len()] {
    [
        Some(&of.allocated),
        Some(&of.request),
        of.deserved.as_ref(),
        of.capacity.as_ref(),
        of.real_capacity.as_ref(),
        of.inqueue.as_ref(),
    ]
}

/// The gauges of all queues.
pub(super) struct Queues {
    families: Vec<Family>,
    share: GaugeVec,
    weight: GaugeVec,
    overused: GaugeVec,
    /// The scalars that were seen of a queue, per kind of amount.
    seen: Mutex<BTreeMap<String, [BTreeSet<String>; KINDS.len()]>>,
}

/// The gauges of one kind of amount.
struct Family {
    cpu: GaugeVec,
    memory: GaugeVec,
    scalars: GaugeVec,
}

impl Queues {
    pub fn new(registry: &Registry) -> Self {
        let queue = &["queue_name"];
        Queues {
            families: KINDS.iter().map(|kind| Family::new(registry, kind)).collect(),
            share: gauge_vec(registry, names::QUEUE_SHARE, "Share of a queue", queue),
            weight: gauge_vec(registry, names::QUEUE_WEIGHT, "Weight of a queue", queue),
            overused: gauge_vec(
                registry,
                names::QUEUE_OVERUSED,
                "Whether a queue uses more than it should",
                queue,
            ),
            seen: Mutex::default(),
        }
    }

    /// What is `None` has no series.
    pub fn set(&self, of: &QueueFigures) {
        let name = &*of.queue;
        set(&self.share, &[name], of.share);
        set(&self.weight, &[name], Some(f64::from(of.weight)));
        set(&self.overused, &[name], of.overused.map(f64::from));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(name.to_owned()).or_default();
        for ((family, amounts), scalars) in self.families.iter().zip(amounts(of)).zip(seen) {
            match amounts {
                Some(amounts) => family.set(name, amounts, scalars),
                None => family.forget(name, std::mem::take(scalars)),
            }
        }
    }

    pub fn forget(&self, name: &str) {
        for gauge in [&self.share, &self.weight, &self.overused] {
            set(gauge, &[name], None);
        }
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = all.remove(name).unwrap_or_default();
        for (family, scalars) in self.families.iter().zip(seen) {
            family.forget(name, scalars);
        }
    }
}

impl Family {
    fn new(registry: &Registry, kind: &str) -> Self {
        let [cpu, memory, scalars] = names::AMOUNT_SUFFIXES.map(|suffix| {
            let name = format!("{}{kind}_{suffix}", names::QUEUE_PREFIX);
            let labels: &[&str] = if suffix == "scalar_resources" {
                &["queue_name", "resource"]
            } else {
                &["queue_name"]
            };
            let help = format!("{} of a queue: {kind}", suffix.replace('_', " "));
            gauge_vec(registry, &name, &help, labels)
        });
        Family { cpu, memory, scalars }
    }

    /// Scalars that are not named any more are 0: a series that stops looks like a scheduler that stopped.
    fn set(&self, queue: &str, amounts: &Amounts, seen: &mut BTreeSet<String>) {
        let mut gone: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
        let (mut cpu, mut memory) = (0.0, 0.0);
        let mut fresh = Vec::new();
        for (resource, amount) in amounts {
            let value = value(*amount);
            match &**resource {
                "cpu" => cpu = value,
                "memory" => memory = value,
                scalar => {
                    if !gone.remove(scalar) {
                        fresh.push(scalar.to_owned());
                    }
                    set(&self.scalars, &[queue, scalar], Some(value));
                }
            }
        }
        set(&self.cpu, &[queue], Some(cpu));
        set(&self.memory, &[queue], Some(memory));
        for scalar in gone {
            set(&self.scalars, &[queue, scalar], Some(0.0));
        }
        seen.extend(fresh);
    }

    fn forget(&self, queue: &str, seen: BTreeSet<String>) {
        set(&self.cpu, &[queue], None);
        set(&self.memory, &[queue], None);
        for scalar in seen {
            set(&self.scalars, &[queue, &scalar], None);
        }
    }
}

fn value(amount: i64) -> f64 {
    if amount == UNLIMITED {
        f64::INFINITY
    } else {
        amount as f64
    }
}
