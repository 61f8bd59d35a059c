//! The Queue controller: looks at one queue with its parent, its Commands and its numbers.

use super::core::Look;
use super::execute::Failed;
use super::store::Store;
use rustc_hash::FxHashMap;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::bus::Action;
use volcano_api::scheduling::QueueState;
use volcano_api::time::{GoDuration, Time};
use volcano_reconcile::queue::{gave_up, is_only_numbers, write_failed};
use volcano_reconcile::write::{Event, Plan, Write};

/// Numbers alone are written at most this often: they change with every PodGroup, and nobody waits for them.
const SETTLES: Duration = Duration::from_secs(1);

/// When the numbers of each queue were written last.
#[derive(Default)]
pub struct Numbers {
    written: FxHashMap<String, Instant>,
}

impl Numbers {
    /// What is to be done for a queue.
    pub fn look(&mut self, store: &Store, name: &str, now: Time, moment: Instant) -> Look {
        let plan = store.queues().plan(name, now);
        if plan.steps.is_empty() {
            if store.queues().queue(name).is_none() {
                self.written.remove(name);
            }
            return Look::Plan(plan);
        }
        if is_only_numbers(&plan) {
            let settled = self.written.get(name).map(|at| *at + SETTLES);
            let wait = settled.map(|at| at.saturating_duration_since(moment));
            if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
                // Rounded up: a look before the time would only be repeated.
                let micros = i64::try_from(wait.as_micros() + 1).unwrap_or(i64::MAX);
                let mut later = Plan {
                    again_at: plan.again_at,
                    ..Plan::default()
                };
                later.wake(now.saturating_add(GoDuration::from_nanos(micros.saturating_mul(1_000))));
                return Look::Plan(later);
            }
        }
        self.written.insert(name.to_owned(), moment);
        Look::Plan(plan)
    }
}

/// What users are told about writes that failed: a state that could not be written.
pub fn warnings(store: &Store, name: &str, failed: &[&Failed]) -> Vec<Event> {
    let Some(queue) = store.queues().queue(name) else {
        return Vec::new();
    };
    let told = failed.iter().filter_map(|failed| {
        let Some(Write::Patch { patch, .. }) = &failed.write else {
            return None;
        };
        let to = patch["status"]["state"].as_str()?;
        Some(write_failed(queue, &QueueState::from(to), &failed.problem.text))
    });
    told.collect()
}

/// What users are told when a queue is given up, until something changes for it.
pub fn given_up(store: &Store, name: &str, failed: &[Failed]) -> Option<Event> {
    let queue = store.queues().queue(name)?;
    let order = store.queues().order(name);
    let action = order.map_or(Action::SyncQueue, |command| command.action.clone());
    let why = failed.first().map_or("", |failed| &failed.problem.text);
    Some(gave_up(queue, &action, why))
}
