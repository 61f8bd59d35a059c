//! What was decided about pods and no object shows.
//!
//! It is beside the objects of a snapshot rather than in annotations of theirs: what an annotation says, a user could
//! say, too.

use crate::model::Model;
use serde::{Deserialize, Serialize};

/// Pods, as `namespace/name`, of which more was decided than their objects show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Underway {
    /// Could not be bound where they were placed: their gangs have a first claim.
    pub bind_failed: Vec<String>,
    /// Their queue-allocation gate is being removed.
    pub gates_opened: Vec<String>,
}

impl Underway {
    pub(super) fn of(m: &Model) -> Self {
        let keys = |which: fn(&crate::model::task::Task) -> bool| {
            let ids = m.task_ids().filter(|&id| which(m.task(id)));
            let mut keys: Vec<String> = ids.map(|id| m.task_key(id)).collect();
            keys.sort_unstable();
            keys
        };
        Underway {
            bind_failed: keys(|task| task.bind_failed),
            gates_opened: keys(|task| task.gate_opened),
        }
    }
}

impl Model {
    /// Takes in what was decided when a snapshot was taken, after its objects. Pods that are not there are passed over.
    pub(crate) fn resume(&mut self, underway: &Underway) {
        let find = |m: &Model, key: &String| {
            let (namespace, name) = key.split_once('/')?;
            m.find_task(namespace, name)
        };
        for key in &underway.bind_failed {
            if let Some(id) = find(self, key) {
                self.tasks[id.index()].bind_failed = true;
            }
        }
        let gated: Vec<_> = underway
            .gates_opened
            .iter()
            .filter_map(|key| find(self, key))
            .filter(|&id| self.task(id).waits_for_queue())
            .collect();
        gated.into_iter().for_each(|id| self.open_gate(id));
    }
}
