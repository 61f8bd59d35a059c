//! What a write sets off: garbage goes, namespaces end, endpoints follow pods, budgets are counted, events expire, pods go
//! with their node.
//!
//! One task does it all, in the order of the writes. Every chore looks at what is there now, so that doing one twice,
//! or after a restart, does no harm. One that fails is done again later.

pub mod budgets;
mod endpoints;
pub mod events;
mod garbage;
mod namespaces;
pub mod orphans;

use crate::fault::Fault;
use crate::server::Server;
use crate::store::TableId;
use futures::FutureExt as _;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, error, warn};

/// Chores that are taken up together, at most.
const BATCH: usize = 1024;

/// Rest after counting endpoints, as a multiple of the time that it took.
const REST: u32 = 8;
/// Rest, at most.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Wait before a chore that failed is done again; doubled with every failure.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// That wait, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chore {
    /// An object: its owners are gone, or it waits for what it owns.
    Look(TableId, Box<str>),
    /// A namespace.
    Namespace(Box<str>),
    /// Services and budgets of a namespace.
    Endpoints(Box<str>),
    /// An Event that goes at a time, if this is its version still.
    Expire(Instant, Box<str>, u64),
    /// A node that is gone: its pods go at a time, if it has not come back.
    Orphans(Instant, Box<str>),
}

/// Chores that are not to be done yet.
#[derive(Default)]
struct Later {
    waiting: BTreeSet<(Instant, Chore)>,
    failures: FxHashMap<Chore, u32>,
}

impl Later {
    fn put(&mut self, due: Instant, chore: Chore) {
        self.waiting.insert((due, chore));
    }

    /// When the next one is due.
    fn next(&self) -> Option<Instant> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// Takes those that are due.
    fn take(&mut self, batch: &mut Vec<Chore>) {
        let now = Instant::now();
        while let Some((due, chore)) = self.waiting.pop_first() {
            if due > now {
                self.waiting.insert((due, chore));
                return;
            }
            batch.push(chore);
        }
    }

    /// A chore has been tried: what failed comes again, since nobody else may ever touch the object.
    fn tried(&mut self, chore: Chore, outcome: Result<(), Fault>) {
        let Err(fault) = outcome else {
            self.failures.remove(&chore);
            return;
        };
        let failures = self.failures.entry(chore.clone()).or_default();
        let wait = FIRST_WAIT
            .saturating_mul(1 << (*failures).min(16))
            .min(LONGEST_WAIT);
        match failures {
            0 => warn!(?chore, fault = fault.message, "a chore failed and is tried again"),
            _ => debug!(?chore, fault = fault.message, "a chore failed again"),
        }
        *failures = failures.saturating_add(1);
        self.put(Instant::now() + wait, chore);
    }
}

/// Does chores until the server is gone.
pub async fn run(server: Arc<Server>, mut to_do: mpsc::UnboundedReceiver<Chore>) {
    let mut stopping = server.stopping.subscribe();
    let (mut batch, mut later) = (Vec::new(), Later::default());
    // Endpoints of a large namespace are much work, and pods change in bursts: they are counted again only after a rest
    // of a few times the last effort.
    let (mut namespaces, mut rested) = (BTreeSet::new(), Instant::now());
    loop {
        tokio::select! {
            count = to_do.recv_many(&mut batch, BATCH) => if count == 0 { return },
            () = tokio::time::sleep_until(rested), if !namespaces.is_empty() => {}
            () = tokio::time::sleep_until(later.next().unwrap_or(rested)), if later.next().is_some() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        later.take(&mut batch);
        let mut done = FxHashSet::default();
        for chore in batch.drain(..) {
            if !done.insert(chore.clone()) {
                continue;
            }
            let outcome = match &chore {
                Chore::Look(table, key) => careful(server.look_at(*table, key)).await,
                Chore::Namespace(name) => careful(server.look_at_namespace(name)).await,
                Chore::Endpoints(namespace) => {
                    namespaces.insert(namespace.clone());
                    Ok(())
                }
                Chore::Expire(due, ..) | Chore::Orphans(due, _) if *due > Instant::now() => {
                    later.put(*due, chore);
                    continue;
                }
                Chore::Expire(_, key, revision) => {
                    server.expire(key, *revision);
                    Ok(())
                }
                Chore::Orphans(_, node) => careful(server.remove_orphans(node)).await,
            };
            later.tried(chore, outcome);
        }
        if !namespaces.is_empty() && Instant::now() >= rested {
            let began = Instant::now();
            for namespace in std::mem::take(&mut namespaces) {
                // The next change of a pod counts again.
                let _ = careful(server.follow_pods(&namespace).map(Ok)).await;
                let _ = careful(server.count_budgets(&namespace).map(Ok)).await;
            }
            rested = Instant::now() + (began.elapsed() * REST).min(LONGEST_REST);
        }
    }
}

/// One chore that ends in a panic does not end the others.
async fn careful(chore: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    AssertUnwindSafe(chore).catch_unwind().await.unwrap_or_else(|_| {
        error!("a chore ended in a panic");
        Err(Fault::internal("a panic"))
    })
}

/// What is gone meanwhile needs nothing more.
fn unless_gone(outcome: Result<(), Fault>) -> Result<(), Fault> {
    match outcome {
        Err(fault) if fault.reason == "NotFound" => Ok(()),
        outcome => outcome,
    }
}
