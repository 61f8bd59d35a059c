//! Changes of what the pods of a task ask for. A Job does not live through them: it is written anew.

use super::super::change::{Change, How};
use super::super::reason::Reason;
use super::super::room::holds;
use super::{Search, What};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::resources::{CPU, LIMITS_PREFIX, MEMORY, REQUESTS_PREFIX};
use volcano_api::quantity::{Format, Quantity};
use volcano_engine::ids::{NodeId, TaskId};
use volcano_engine::model::class::Class;
use volcano_engine::model::kind::Kind;
use volcano_engine::model::node::TaintEffect;
use volcano_engine::model::status::Status;

/// Taints, nodes and the like that are tried one by one.
const MOST_TRIED: usize = 4;
/// Steps into which a request is divided.
const STEPS: i64 = 128;
/// Taints with this prefix say that a node is not well; nobody should tolerate them for the sake of room.
const CONDITIONS: &str = "node.kubernetes.io/";
/// Required rules of a pod: the way to each, and what it is called.
const RULES: [(&[&str], &str, &str); 4] = [
    (
        &["affinity", "nodeAffinity"],
        "requiredDuringSchedulingIgnoredDuringExecution",
        "the required node affinity",
    ),
    (
        &["affinity", "podAffinity"],
        "requiredDuringSchedulingIgnoredDuringExecution",
        "the required pod affinity",
    ),
    (
        &["affinity", "podAntiAffinity"],
        "requiredDuringSchedulingIgnoredDuringExecution",
        "the required pod anti-affinity",
    ),
    (
        &[],
        "topologySpreadConstraints",
        "the topology spread constraints",
    ),
];

impl Search<'_> {
    /// A task of the engine that stands for those that do not fit.
    fn sample(&self) -> Option<TaskId> {
        let m = self.trial.engine.model();
        let id = self.trial.id()?;
        let report = self.trial.cycle.reports.get(&id);
        let origin = report.and_then(|report| report.origin);
        let pending = || {
            m.job(id)
                .tasks
                .iter()
                .copied()
                .find(|&task| m.task(task).status == Status::Pending)
        };
        origin.or_else(pending)
    }

    /// A cordoned node that has room.
    pub(super) fn uncordon(&mut self) {
        if !self.has_ruled_out() {
            return;
        }
        let m = self.trial.engine.model();
        let Some(class) = self.sample().map(|task| m.class_of(task)) else {
            return;
        };
        let is_fit = |&id: &NodeId| {
            let node = &m.nodes[id];
            node.unschedulable
                && holds(m, class, id)
                && class.selector.matches(&m.strings, node.name, &node.labels)
        };
        let names: Vec<String> = m
            .nodes
            .ids()
            .filter(is_fit)
            .take(MOST_TRIED)
            .map(|id| m.text(m.nodes[id].name).to_owned())
            .collect();
        for node in names {
            let change = Change::of_core(Kind::Node, "", &node, json!({"spec": {"unschedulable": null}}));
            let text = format!("uncordon node {node} (kubectl uncordon {node})");
            if self.offer(What::Uncordon { node }, text, vec![change]) {
                return;
            }
        }
    }

    /// Taints of nodes that could hold its pods.
    pub(super) fn tolerate(&mut self) {
        if !self.has_ruled_out() {
            return;
        }
        let Some(job) = &self.world.subject.job else {
            return;
        };
        let Some((at, task)) = self.task() else { return };
        let name = task.name.clone();
        let m = self.trial.engine.model();
        let Some(class) = self.sample().map(|task| m.class_of(task)) else {
            return;
        };
        let mut sets: BTreeMap<BTreeSet<(String, String, &str)>, usize> = BTreeMap::new();
        for id in m.nodes.ids().filter(|&id| holds(m, class, id)) {
            let set = self.untolerated(class, id);
            if !set.is_empty() && !set.iter().any(|(key, ..)| key.starts_with(CONDITIONS)) {
                *sets.entry(set).or_default() += 1;
            }
        }
        let mut sets: Vec<_> = sets.into_iter().collect();
        sets.sort_by_key(|(set, nodes)| (set.len(), usize::MAX - nodes));
        for (set, nodes) in sets.into_iter().take(MOST_TRIED) {
            let added = set.iter().map(|(key, value, effect)| match value.as_str() {
                "" => json!({"key": key, "operator": "Exists", "effect": effect}),
                value => json!({"key": key, "operator": "Equal", "value": value, "effect": effect}),
            });
            let added: Vec<Value> = added.collect();
            let patch = edited(job, at, |spec| {
                let list = spec.entry("tolerations").or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    list.extend(added);
                }
            });
            let taints: Vec<String> = set
                .iter()
                .map(|(key, value, effect)| format!("{key}={value}:{effect}"))
                .collect();
            let text = format!(
                "let task {name} tolerate the taint {} of {}",
                taints.join(", "),
                crate::cluster::counted(nodes, "node", "nodes")
            );
            let what = What::Tolerate {
                task: name.clone(),
                taints,
            };
            if self.offer(what, text, vec![Change::of_job(job, How::Recreate, patch)]) {
                return;
            }
        }
    }

    fn untolerated(&self, class: &Class, id: NodeId) -> BTreeSet<(String, String, &'static str)> {
        let m = self.trial.engine.model();
        let node = &m.nodes[id];
        if !class.selector.matches(&m.strings, node.name, &node.labels) {
            return BTreeSet::new();
        }
        let hard = node
            .taints
            .iter()
            .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
        hard.filter(|taint| {
            !class
                .tolerations
                .iter()
                .any(|toleration| toleration.tolerates(taint))
        })
        .map(|taint| {
            (
                m.text(taint.key).to_owned(),
                m.text(taint.value).to_owned(),
                taint.effect.name(),
            )
        })
        .collect()
    }

    /// Rules about nodes and other pods: each alone, and all of the node selector.
    pub(super) fn drop_constraints(&mut self) {
        if !self.has_ruled_out() {
            return;
        }
        let Some(job) = &self.world.subject.job else {
            return;
        };
        let Some((at, task)) = self.task() else { return };
        let name = task.name.clone();
        let spec = task.template.spec().cloned().unwrap_or_default();
        let selector = spec
            .get("nodeSelector")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let mut found = false;
        for (key, value) in selector.iter().take(MOST_TRIED) {
            let constraint = format!("{key}={}", value.as_str().unwrap_or_default());
            let patch = edited(job, at, |spec| {
                if let Some(selector) = spec.get_mut("nodeSelector").and_then(Value::as_object_mut) {
                    selector.remove(key);
                }
            });
            let text = format!("drop {constraint} from the node selector of task {name}");
            let what = What::DropConstraint {
                task: name.clone(),
                constraint,
            };
            found |= self.offer(what, text, vec![Change::of_job(job, How::Recreate, patch)]);
        }
        if !found && selector.len() > 1 {
            let patch = edited(job, at, |spec| {
                spec.remove("nodeSelector");
            });
            let constraint = "nodeSelector".to_owned();
            let text = format!("drop the node selector of task {name}");
            let what = What::DropConstraint {
                task: name.clone(),
                constraint,
            };
            self.offer(what, text, vec![Change::of_job(job, How::Recreate, patch)]);
        }
        for (way, field, called) in RULES {
            let holder = way.iter().try_fold(&spec, |at, step| at.get(*step)?.as_object());
            if holder.is_none_or(|holder| !holder.contains_key(field)) {
                continue;
            }
            let patch = edited(job, at, |spec| {
                let holder = way
                    .iter()
                    .try_fold(spec, |at, step| at.get_mut(*step)?.as_object_mut());
                if let Some(holder) = holder {
                    holder.remove(field);
                }
            });
            let text = format!("drop {called} of task {name}");
            let what = What::DropConstraint {
                task: name.clone(),
                constraint: called.to_owned(),
            };
            self.offer(what, text, vec![Change::of_job(job, How::Recreate, patch)]);
        }
    }

    /// The largest request that starts, of each resource that is short.
    pub(super) fn smaller_requests(&mut self) {
        if !self.is_about_amounts() {
            return;
        }
        let Some(job) = &self.world.subject.job else {
            return;
        };
        let Some((at, task)) = self.task() else { return };
        let name = task.name.clone();
        for resource in self.short_resources() {
            let Some((container, from)) = largest_request(task, &resource) else {
                continue;
            };
            let (unit, count) = units(&resource, from);
            let step = (count / STEPS).max(1);
            let size = |steps: i64| unit.saturating_mul(steps * step);
            let with = |steps: i64| {
                let patch = edited(job, at, |spec| {
                    set_request(spec, container, &resource, size(steps))
                });
                vec![Change::of_job(job, How::Recreate, patch)]
            };
            let Some((steps, trial)) = self.largest(1, (count - 1) / step, with) else {
                continue;
            };
            let to = size(steps);
            let text = format!("ask for {to} instead of {from} {resource} for each pod of task {name}");
            let what = What::SmallerRequest {
                task: name.clone(),
                resource: resource.clone(),
                from,
                to,
            };
            self.keep(what, text, with(steps), trial.evicted);
        }
    }

    fn short_resources(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for reason in self.reasons {
            match reason {
                Reason::Quota { short, .. }
                | Reason::QueueFull { short, .. }
                | Reason::Overcommitted { short } => {
                    names.extend(short.iter().map(|amount| amount.resource.as_str()));
                }
                Reason::GangTooLarge { room, .. }
                | Reason::PodTooLarge { room, .. }
                | Reason::Short { room, .. }
                | Reason::Fragmented { room, .. } => {
                    names.extend(room.iter().map(|room| room.resource.as_str()))
                }
                _ => {}
            }
        }
        let bare = names.into_iter().map(|name| {
            let name = name.strip_prefix(REQUESTS_PREFIX).unwrap_or(name);
            name.strip_prefix(LIMITS_PREFIX).unwrap_or(name).to_owned()
        });
        bare.collect()
    }

    /// A dependency between tasks, if nothing smaller was found.
    pub(super) fn drop_dependency(&mut self) {
        let task = self.reasons.iter().find_map(|reason| match reason {
            Reason::DependsOn { task, .. } => Some(task.clone()),
            _ => None,
        });
        let Some(task) = task else { return };
        let Some(job) = &self.world.subject.job else {
            return;
        };
        let mut tasks = job.spec.tasks.clone();
        tasks
            .iter_mut()
            .filter(|known| known.name == task)
            .for_each(|known| known.depends_on = None);
        let change = Change::of_job(job, How::Recreate, json!({"spec": {"tasks": tasks}}));
        let text = format!("drop dependsOn of task {task}, so that all start together");
        self.offer(What::DropDependency { task }, text, vec![change]);
    }
}

/// The patch for another pod spec of a task.
fn edited(job: &Job, at: usize, edit: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut tasks = job.spec.tasks.clone();
    if let Some(spec) = tasks[at]
        .template
        .0
        .get_mut("spec")
        .and_then(Value::as_object_mut)
    {
        edit(spec);
    }
    json!({"spec": {"tasks": tasks}})
}

/// The container that asks for the most of a resource, and how much that is.
fn largest_request(task: &TaskSpec, resource: &str) -> Option<(usize, Quantity)> {
    let containers = task.template.spec()?.get("containers")?.as_array()?;
    let amount = |container: &Value, list: &str| {
        let value = container.get("resources")?.get(list)?.get(resource)?;
        serde_json::from_value::<Quantity>(value.clone()).ok()
    };
    let asked = |container: &Value| amount(container, "requests").or_else(|| amount(container, "limits"));
    let all = containers
        .iter()
        .enumerate()
        .filter_map(|(at, container)| Some((at, asked(container)?)));
    all.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
}

/// The unit in which a request is made smaller, and how many of it there are.
fn units(resource: &str, amount: Quantity) -> (Quantity, i64) {
    match resource {
        CPU => (
            Quantity::from_milli(10, Format::DecimalSi),
            amount.milli_value() / 10,
        ),
        MEMORY => (
            Quantity::from_value(1 << 20, Format::BinarySi),
            amount.value() >> 20,
        ),
        _ => (Quantity::from_value(1, Format::DecimalSi), amount.value()),
    }
}

/// Sets a request; for devices the limit as well, which has to be the same.
fn set_request(spec: &mut Map<String, Value>, container: usize, resource: &str, amount: Quantity) {
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let container = containers
        .and_then(|list| list.get_mut(container))
        .and_then(Value::as_object_mut);
    let Some(container) = container else { return };
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    let Some(resources) = resources.as_object_mut() else {
        return;
    };
    let mut lists = vec!["requests"];
    if resource.contains('/') {
        lists.push("limits");
    }
    for list in lists {
        let list = resources.entry(list).or_insert_with(|| json!({}));
        if let Some(list) = list.as_object_mut() {
            list.insert(resource.to_owned(), json!(amount));
        }
    }
}
