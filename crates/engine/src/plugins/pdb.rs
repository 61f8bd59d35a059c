//! pdb: PodDisruptionBudgets hold for the evictions of this scheduler too.
//!
//! ```text
//! left = status.disruptionsAllowed - pods that are being evicted and are not in status.disruptedPods
//! ```
//!
//! A victim is deleted, which no budget can refuse: nothing but this plugin keeps them. A pod that is being evicted
//! counts until it has gone. The budget's own count follows some time after the pod was deleted, and the next cycle
//! does not wait for it; counting both for a while only delays evictions.

use crate::config::PluginConf;
use crate::ids::{JobId, Sym, TaskId};
use crate::model::Model;
use crate::model::cluster::Budget;
use crate::model::status::Status;
use crate::plugin::{EvictionKind, Plugin, Point};
use std::cell::OnceCell;
use std::collections::BTreeMap;

type BudgetKey = (Sym, Box<str>);

/// How many pods of each budget are being evicted.
type Used = BTreeMap<BudgetKey, i64>;

#[derive(Default)]
struct Pdb {
    // Counted when it is first asked for in a cycle: most cycles evict nobody.
    used: OnceCell<Used>,
}

/// Builds the plugin.
pub fn build(_conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Pdb::default())
}

/// The budgets that an eviction of a pod counts against.
fn budgets_of(m: &Model, task: TaskId) -> impl Iterator<Item = (&BudgetKey, &Budget)> {
    let task = m.task(task);
    let from = (task.namespace, Box::default());
    m.cluster
        .budgets
        .range(from..)
        .take_while(|((namespace, _), _)| *namespace == task.namespace)
        .filter(|(_, budget)| {
            budget.pods.matches(&task.labels)
                && !budget.object.status.disrupted_pods.contains_key(&*task.name)
        })
}

/// Its eviction was decided, in this cycle or before, and it has not gone.
fn is_being_evicted(m: &Model, task: TaskId) -> bool {
    let task = m.task(task);
    task.status == Status::Releasing && (task.evicted_now || task.evicting)
}

fn count(used: &mut Used, m: &Model, task: TaskId, by: i64) {
    for (key, _) in budgets_of(m, task) {
        *used.entry(key.clone()).or_default() += by;
    }
}

impl Pdb {
    fn used(&self, m: &Model) -> &Used {
        self.used.get_or_init(|| {
            let mut used = Used::new();
            for task in m.task_ids().filter(|&task| is_being_evicted(m, task)) {
                count(&mut used, m, task, 1);
            }
            used
        })
    }

    /// The candidates that may go together; who is refused uses up nothing.
    fn within_budgets(&self, m: &Model, candidates: &[TaskId]) -> Vec<TaskId> {
        if m.cluster.budgets.is_empty() {
            return candidates.to_vec();
        }
        let used = self.used(m);
        let mut left: BTreeMap<&BudgetKey, i64> = BTreeMap::new();
        let mut may_go = |task: TaskId| {
            let has_room = budgets_of(m, task).all(|(key, budget)| {
                let allowed = || i64::from(budget.object.status.disruptions_allowed);
                let used = || used.get(key).copied().unwrap_or_default();
                *left.entry(key).or_insert_with(|| allowed() - used()) > 0
            });
            if has_room {
                budgets_of(m, task).for_each(|(key, _)| *left.entry(key).or_default() -= 1);
            }
            has_room
        };
        candidates.iter().copied().filter(|&task| may_go(task)).collect()
    }
}

impl Plugin for Pdb {
    fn name(&self) -> &'static str {
        "pdb"
    }

    fn points(&self) -> &'static [Point] {
        &[
            Point::Preemptable,
            Point::Reclaimable,
            Point::UnifiedEvictable,
            Point::VictimTasks,
            Point::Events,
        ]
    }

    fn open(&mut self, _m: &Model, _now: i64) {
        self.used.take();
    }

    fn preemptable(&self, m: &Model, _preemptor: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        Some(self.within_budgets(m, candidates))
    }

    fn reclaimable(&self, m: &Model, _reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        Some(self.within_budgets(m, candidates))
    }

    fn unified_evictable(
        &self,
        m: &Model,
        _kind: EvictionKind,
        _evictor: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        Some(self.within_budgets(m, candidates))
    }

    fn victim_tasks(&self, m: &Model, proposed: &[TaskId]) -> Vec<TaskId> {
        self.within_budgets(m, proposed)
    }

    /// An eviction that is undone leaves its victim as it was, on its node; a placement is never Bound or Running yet.
    fn on_allocate(&mut self, m: &Model, task: TaskId) {
        if let Some(used) = self.used.get_mut()
            && matches!(m.task(task).status, Status::Bound | Status::Running)
        {
            count(used, m, task, -1);
        }
    }

    fn on_deallocate(&mut self, m: &Model, task: TaskId) {
        if let Some(used) = self.used.get_mut()
            && is_being_evicted(m, task)
        {
            count(used, m, task, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::delta::Delta;
    use crate::plugins::fixture::{Fixture, conf};
    use serde_json::{Value, json};

    fn budget(f: &mut Fixture, name: &str, spec: Value, status: Value) {
        let metadata = json!({"name": name, "namespace": "ns"});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        let object = serde_json::from_value(object).expect("a good budget");
        f.m.apply(Delta::DisruptionBudget(Box::new(object)));
    }

    /// Pods that run on node `n`: two of `app: web`, one of `app: db`, one without labels.
    fn pods(f: &mut Fixture) -> [TaskId; 4] {
        f.node("n", json!({"cpu": "8", "pods": "10"}));
        f.group("j", json!({"spec": {"minMember": 1}}));
        let web = json!({"app": "web"});
        let labels = [
            ("w0", web.clone()),
            ("w1", web),
            ("d", json!({"app": "db"})),
            ("x", json!({})),
        ];
        labels.map(|(name, labels)| {
            let overlay = json!({"metadata": {"labels": labels}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}});
            f.pod(name, "j", json!({"cpu": "1"}), overlay)
        })
    }

    #[test]
    fn those_that_are_kept_use_a_budget_up_and_those_that_are_refused_do_not() {
        let mut f = Fixture::new();
        let [w0, w1, d, x] = pods(&mut f);
        let web = json!({"selector": {"matchLabels": {"app": "web"}}});
        let any_app = json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}});
        budget(&mut f, "any", any_app, json!({"disruptionsAllowed": 1}));
        budget(&mut f, "web", web, json!({"disruptionsAllowed": 0}));
        let p = f.open(build(&conf("pdb", json!({}))), 0);
        let (m, all) = (&f.m, [w0, w1, d, x]);
        assert_eq!(p.preemptable(m, x, &all), Some(vec![d, x]));
        assert_eq!(p.reclaimable(m, x, &all), Some(vec![d, x]));
        assert_eq!(p.victim_tasks(m, &all), [d, x]);
        let unified = p.unified_evictable(m, EvictionKind::Preempt, f.job_id("j"), &all);
        assert_eq!(unified, Some(vec![d, x]));
        assert_eq!(p.preemptable(m, x, &[w0]), Some(vec![]), "refused, not abstained");
    }

    #[test]
    fn an_empty_selector_chooses_every_pod_of_the_namespace_and_a_missing_one_none() {
        let mut f = Fixture::new();
        let all = pods(&mut f);
        budget(&mut f, "b", json!({}), json!({"disruptionsAllowed": 0}));
        let p = f.open(build(&conf("pdb", json!({}))), 0);
        assert_eq!(p.preemptable(&f.m, all[0], &all), Some(all.to_vec()));
        budget(
            &mut f,
            "b",
            json!({"selector": {}}),
            json!({"disruptionsAllowed": 1}),
        );
        assert_eq!(p.preemptable(&f.m, all[0], &all), Some(vec![all[0]]));
    }

    #[test]
    fn a_pod_whose_disruption_was_granted_is_not_counted_again() {
        let mut f = Fixture::new();
        let [w0, w1, ..] = pods(&mut f);
        let web = json!({"selector": {"matchLabels": {"app": "web"}}});
        let status = json!({"disruptionsAllowed": 0, "disruptedPods": {"w0": "2026-01-01T00:00:00Z"}});
        budget(&mut f, "web", web, status);
        let p = f.open(build(&conf("pdb", json!({}))), 0);
        assert_eq!(p.preemptable(&f.m, w0, &[w0, w1]), Some(vec![w0]));
    }
}
