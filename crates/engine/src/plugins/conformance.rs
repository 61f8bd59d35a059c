//! conformance: pods that the cluster itself needs are never evicted.
//!
//! Critical is a pod of the classes `system-cluster-critical` and `system-node-critical`, and every pod of
//! `kube-system`. The model marks them as they come in (`Task::critical`).

use crate::config::PluginConf;
use crate::ids::{JobId, TaskId};
use crate::model::Model;
use crate::plugin::{EvictionKind, Plugin, Point};

struct Conformance;

/// Builds the plugin.
pub fn build(_conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Conformance)
}

fn not_critical(m: &Model, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
    Some(
        candidates
            .iter()
            .copied()
            .filter(|&task| !m.task(task).critical)
            .collect(),
    )
}

impl Plugin for Conformance {
    fn name(&self) -> &'static str {
        "conformance"
    }

    fn points(&self) -> &'static [Point] {
        &[Point::Preemptable, Point::Reclaimable, Point::UnifiedEvictable]
    }

    fn preemptable(&self, m: &Model, _preemptor: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        not_critical(m, candidates)
    }

    fn reclaimable(&self, m: &Model, _reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        not_critical(m, candidates)
    }

    fn unified_evictable(
        &self,
        m: &Model,
        _kind: EvictionKind,
        _evictor: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        not_critical(m, candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::fixture::{Fixture, conf};
    use serde_json::json;

    #[test]
    fn critical_pods_are_dropped_from_every_list_of_victims() {
        let mut f = Fixture::new();
        f.group("j", json!({"spec": {"minMember": 1}}));
        let pod = |f: &mut Fixture, name: &str, overlay| f.pod(name, "j", json!({"cpu": "1"}), overlay);
        let plain = pod(&mut f, "plain", json!({"spec": {"priorityClassName": "high"}}));
        let cluster = pod(
            &mut f,
            "cluster",
            json!({"spec": {"priorityClassName": "system-cluster-critical"}}),
        );
        let node = pod(
            &mut f,
            "node",
            json!({"spec": {"priorityClassName": "system-node-critical"}}),
        );
        let system = pod(
            &mut f,
            "system",
            json!({"metadata": {"namespace": "kube-system"}}),
        );
        let other = pod(&mut f, "other", json!({}));
        let (p, m, job) = (build(&conf("conformance", json!({}))), &f.m, f.job_id("j"));
        let all = [plain, cluster, node, system, other];
        let kept = Some(vec![plain, other]);
        assert_eq!(p.preemptable(m, plain, &all), kept);
        assert_eq!(p.reclaimable(m, plain, &all), kept);
        assert_eq!(p.unified_evictable(m, EvictionKind::Reclaim, job, &all), kept);
        assert_eq!(
            p.preemptable(m, plain, &[system]),
            Some(vec![]),
            "refused, not abstained"
        );
    }
}
