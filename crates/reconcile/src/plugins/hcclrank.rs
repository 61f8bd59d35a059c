//! hcclrank: the rank of a pod for the Ascend runtime, as an annotation.

use serde_json::{Map, Value};
use volcano_api::names::annotations::HCCL_RANK_INDEX;
use volcano_api::names::job_plugins::RANK;

use super::edit::{Containers, each, object, text};
use super::flags::{Arguments, Flag};
use super::{Place, Plugin, PluginError, task};

const MASTER: &str = "master";
const WORKER: &str = "worker";

pub const FLAGS: &[Flag] = &[Flag::text(MASTER), Flag::text(WORKER)];

struct HcclRank {
    master: String,
    worker: String,
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    Box::new(HcclRank {
        master: arguments.text(MASTER, MASTER),
        worker: arguments.text(WORKER, WORKER),
    })
}

impl Plugin for HcclRank {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        let rank = rank_variable(pod).or_else(|| self.rank(at));
        let annotations = object(object(pod, "metadata"), "annotations");
        if let Some(rank) = rank.filter(|_| text(annotations, HCCL_RANK_INDEX).is_empty()) {
            annotations.insert(HCCL_RANK_INDEX.to_owned(), rank.into());
        }
        Ok(())
    }
}

impl HcclRank {
    /// The rank by task and index: masters come first.
    fn rank(&self, at: &Place<'_>) -> Option<String> {
        let index = i64::from(at.index);
        let rank = if at.task.name == self.master {
            index
        } else if at.task.name == self.worker {
            let masters = task(at.job, &self.master).map_or(0, |master| i64::from(master.replicas));
            masters.saturating_add(index)
        } else {
            return None;
        };
        Some(rank.to_string())
    }
}

/// The rank that pytorch, or the user, gave the first container that has one.
fn rank_variable(pod: &mut Map<String, Value>) -> Option<String> {
    let mut rank = None;
    each(pod, Containers::Normal, |container| {
        let variables = container
            .get("env")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let values = variables
            .filter(|variable| variable["name"] == RANK)
            .filter_map(|variable| variable["value"].as_str())
            .filter(|value| !value.is_empty());
        rank = rank.take().or_else(|| values.map(str::to_owned).next());
    });
    rank
}
