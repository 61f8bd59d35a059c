//! What a write sets off: garbage goes, namespaces end, endpoints follow pods, budgets are counted.
//!
//! One task does it all, in the order of the writes. Every chore looks at what is there now, so that doing one twice,
//! or after a restart, does no harm.

pub mod budgets;
mod endpoints;
mod garbage;
mod namespaces;

use crate::server::Server;
use crate::store::TableId;
use futures::FutureExt as _;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::error;

/// Chores that are taken up together, at most.
const BATCH: usize = 1024;

/// Rest after counting endpoints, as a multiple of the time that it took.
const REST: u32 = 8;
/// Rest, at most.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Chore {
    /// An object: its owners are gone, or it waits for what it owns.
    Look(TableId, Box<str>),
    /// A namespace.
    Namespace(Box<str>),
    /// Services and budgets of a namespace.
    Endpoints(Box<str>),
}

/// Does chores until the server is gone.
pub async fn run(server: Arc<Server>, mut to_do: mpsc::UnboundedReceiver<Chore>) {
    let mut stopping = server.stopping.subscribe();
    let mut batch = Vec::new();
    // Endpoints of a large namespace are much work, and pods change in bursts: they are counted again only after a rest
    // of a few times the last effort.
    let (mut namespaces, mut rested) = (BTreeSet::new(), Instant::now());
    loop {
        tokio::select! {
            count = to_do.recv_many(&mut batch, BATCH) => if count == 0 { return },
            () = tokio::time::sleep_until(rested), if !namespaces.is_empty() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        let mut done = FxHashSet::default();
        for chore in batch.drain(..) {
            if !done.insert(chore.clone()) {
                continue;
            }
            match chore {
                Chore::Look(table, key) => careful(server.look_at(table, &key)).await,
                Chore::Namespace(name) => careful(server.look_at_namespace(&name)).await,
                Chore::Endpoints(namespace) => drop(namespaces.insert(namespace)),
            }
        }
        if !namespaces.is_empty() && Instant::now() >= rested {
            let began = Instant::now();
            for namespace in std::mem::take(&mut namespaces) {
                careful(server.follow_pods(&namespace)).await;
                careful(server.count_budgets(&namespace)).await;
            }
            rested = Instant::now() + (began.elapsed() * REST).min(LONGEST_REST);
        }
    }
}

/// One chore that ends in a panic does not end the others.
async fn careful(chore: impl Future<Output = ()>) {
    if AssertUnwindSafe(chore).catch_unwind().await.is_err() {
        error!("a chore ended in a panic; what it was about is looked at again when it changes");
    }
}
