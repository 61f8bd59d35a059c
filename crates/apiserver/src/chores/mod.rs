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
use rustc_hash::FxHashSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Chores that are taken up together, at most.
const BATCH: usize = 1024;

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
    loop {
        tokio::select! {
            count = to_do.recv_many(&mut batch, BATCH) => if count == 0 { return },
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        let mut done = FxHashSet::default();
        for chore in batch.drain(..) {
            if done.insert(chore.clone()) {
                server.do_chore(&chore).await;
            }
        }
    }
}

impl Server {
    async fn do_chore(&self, chore: &Chore) {
        match chore {
            Chore::Look(table, key) => self.look_at(*table, key).await,
            Chore::Namespace(name) => self.look_at_namespace(name).await,
            Chore::Endpoints(namespace) => {
                self.follow_pods(namespace).await;
                self.count_budgets(namespace).await;
            }
        }
    }
}
