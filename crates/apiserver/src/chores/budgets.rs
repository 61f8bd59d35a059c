//! Budgets of disruptions: how many pods may be taken away.

use crate::resources::Nature;
use crate::selector::LabelSelector;
use crate::server::Server;
use crate::verbs::{Call, Caller};
use serde_json::Value;

/// What a budget comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Pods that it covers.
    pub expected: i64,
    /// Those of them that are well.
    pub healthy: i64,
    /// Those that have to be.
    pub desired: i64,
    /// Those that may be taken away.
    pub allowed: i64,
}

/// Whether a budget is about a pod.
pub fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = &budget["spec"]["selector"];
    selector.is_object() && LabelSelector::of(selector).matches_value(pod)
}

/// Whether a pod says that it is ready.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|one| one["type"] == "Ready")
        .any(|one| one["status"] == "True")
}

/// Counts for a budget.
pub fn count(budget: &Value, pods: &[Value]) -> Count {
    let ended = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let covered: Vec<&Value> = pods
        .iter()
        .filter(|pod| covers(budget, pod) && !ended(pod))
        .collect();
    let expected = i64::try_from(covered.len()).unwrap_or(i64::MAX);
    let is_well = |pod: &&&Value| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null();
    let healthy = i64::try_from(covered.iter().filter(is_well).count()).unwrap_or(i64::MAX);
    let spec = &budget["spec"];
    let desired = if spec["maxUnavailable"].is_null() {
        scaled(&spec["minAvailable"], expected)
    } else {
        (expected - scaled(&spec["maxUnavailable"], expected)).max(0)
    };
    Count {
        expected,
        healthy,
        desired,
        allowed: (healthy - desired).max(0),
    }
}

/// A number, or a share of all, rounded up.
fn scaled(amount: &Value, all: i64) -> i64 {
    match amount {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            (percent * all + 99) / 100
        }
        number => number.as_i64().unwrap_or_default(),
    }
}

impl Server {
    pub(super) async fn count_budgets(&self, namespace: &str) {
        let budgets = self.all(Nature::Budget, namespace);
        if budgets.is_empty() {
            return;
        }
        let caller = Caller {
            user: "system:serviceaccount:kube-system:disruption-controller".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
        };
        let registry = self.registry();
        let resource = registry.of_nature(Nature::Budget);
        let pods: Vec<Value> = self
            .all(Nature::Pod, namespace)
            .iter()
            .map(|pod| pod.value())
            .collect();
        for budget in budgets {
            let value = budget.value();
            let count = count(&value, &pods);
            let mut call = Call::own(resource, namespace, budget.name(), &caller);
            call.subresource = "status";
            let written = self.modify(&call, |old| {
                let mut new = old.clone();
                let status = &mut new["status"];
                status["expectedPods"] = count.expected.into();
                status["currentHealthy"] = count.healthy.into();
                status["desiredHealthy"] = count.desired.into();
                status["disruptionsAllowed"] = count.allowed.into();
                status["observedGeneration"] = old["metadata"]["generation"].clone();
                Ok(new)
            });
            // A budget that is gone meanwhile has no status to keep.
            let _ = written.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods(healthy: usize, others: usize) -> Vec<Value> {
        let pod = |status: &str| {
            json!({"metadata": {"labels": {"a": "1"}}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": status}]}})
        };
        (0..healthy)
            .map(|_| pod("True"))
            .chain((0..others).map(|_| pod("False")))
            .collect()
    }

    #[test]
    fn budgets_are_counted_as_kubernetes_counts() {
        for (spec, healthy, others, desired, allowed) in [
            (json!({"minAvailable": 2}), 3, 0, 2, 1),
            (json!({"minAvailable": "50%"}), 3, 0, 2, 1),
            (json!({"maxUnavailable": 1}), 3, 0, 2, 1),
            (json!({"maxUnavailable": 1}), 2, 1, 2, 0),
            (json!({"maxUnavailable": "100%"}), 2, 0, 0, 2),
        ] {
            let mut budget = json!({"spec": spec});
            budget["spec"]["selector"] = json!({"matchLabels": {"a": "1"}});
            let found = count(&budget, &pods(healthy, others));
            assert_eq!((found.desired, found.allowed), (desired, allowed), "{budget}");
        }
        assert!(
            !covers(&json!({"spec": {}}), &pods(1, 0)[0]),
            "without a selector it covers nothing"
        );
    }
}
