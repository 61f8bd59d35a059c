//! Runs a scenario: an engine, and an API server of a few lines around it that carries decisions out between cycles.

use super::conf;
use super::objects::{self, Event, Names, Object, moment};
use super::outcome::{Line, PodName};
use super::text::{Problem, Scenario, Show};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::meta::ConditionStatus;
use volcano_api::scheduling::PodGroupCondition;
use volcano_engine::effect::Nomination;
use volcano_engine::ids::{DimId, JobId, NodeId, QueueId, TaskId};
use volcano_engine::model::delta::Delta;
use volcano_engine::model::job::Phase;
use volcano_engine::model::{Model, SchedulerNames};
use volcano_engine::resource::Resource;
use volcano_engine::{Cycle, Effect, Engine};

/// Runs a scenario. The lines of each of its cycles come back.
///
/// # Errors
/// Lines of the scenario that cannot be read.
pub fn run(scenario: &Scenario) -> Result<Vec<Vec<Line>>, Vec<Problem>> {
    let problem = |line: usize, message: String| vec![Problem { line, message }];
    let conf = conf::read(&scenario.conf.1).map_err(|message| problem(scenario.conf.0, message))?;
    let mut names = Names::default();
    let events = objects::read(&scenario.inputs, &mut names)?;
    let (engine, missing) = Engine::new(conf, SchedulerNames::Only(vec!["volcano".to_owned()]), "default");
    if let Some(missing) = missing.first() {
        return Err(problem(
            scenario.conf.0,
            format!("this engine has no {}", missing.0),
        ));
    }
    let mut world = World {
        engine,
        names,
        pods: BTreeMap::new(),
        groups: BTreeMap::new(),
        queues: BTreeMap::new(),
        failing: BTreeSet::new(),
        leaving: BTreeSet::new(),
    };
    let mut outcome = Vec::new();
    for cycle in 1..=scenario.cycles {
        for (_, event) in events.iter().filter(|(at, _)| *at == cycle) {
            world
                .take(event)
                .map_err(|message| problem(scenario.line, message))?;
        }
        let phases = world.phases();
        let now = moment(scenario.now + cycle as i64 - 1);
        let decided = world.engine.cycle(now, &mut |_| {});
        outcome.push(world.lines(&decided, &phases, scenario.show));
        let next = events
            .iter()
            .filter(|(at, _)| *at == cycle + 1)
            .map(|(_, event)| event);
        (world.failing, world.leaving) = (BTreeSet::new(), BTreeSet::new());
        for event in next {
            match event {
                Event::Leaves(pod) => drop(world.leaving.insert(pod.clone())),
                event => world.failing.extend(failing_pod(event)),
            }
        }
        world
            .carry_out(&decided)
            .map_err(|message| problem(scenario.line, message))?;
    }
    Ok(outcome)
}

struct World {
    engine: Engine,
    names: Names,
    pods: BTreeMap<(String, String), Object>,
    groups: BTreeMap<(String, String), Object>,
    queues: BTreeMap<String, Object>,
    /// Pods whose bind or eviction fails before the next cycle.
    failing: BTreeSet<(String, String)>,
    /// Pods whose eviction takes longer than until the next cycle.
    leaving: BTreeSet<(String, String)>,
}

fn failing_pod(event: &Event) -> Option<(String, String)> {
    let Event::Other(delta) = event else { return None };
    match &**delta {
        Delta::BindFailed { namespace, name, .. } | Delta::EvictFailed { namespace, name, .. } => {
            Some((namespace.clone(), name.clone()))
        }
        _ => None,
    }
}

impl World {
    fn take(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Other(delta) => self.engine.apply((**delta).clone()),
            Event::Leaves(_) => {}
            Event::Set(object) => {
                let key = (object.namespace.clone(), object.name.clone());
                match object.kind.as_str() {
                    "Pod" => drop(self.pods.insert(key, (**object).clone())),
                    "Queue" => drop(self.queues.insert(object.name.clone(), (**object).clone())),
                    "PodGroup" => drop(self.groups.insert(key, (**object).clone())),
                    _ => {}
                }
                self.engine.apply(object.delta()?);
            }
        }
        Ok(())
    }

    fn model(&self) -> &Model {
        self.engine.model()
    }

    fn task_key(&self, task: TaskId) -> (String, String) {
        let task = self.model().task(task);
        (
            self.model().text(task.namespace).to_owned(),
            task.name.to_string(),
        )
    }

    fn job_key(&self, job: JobId) -> (String, String) {
        let job = self.model().job(job);
        (
            self.model().text(job.namespace).to_owned(),
            self.model().text(job.name).to_owned(),
        )
    }

    fn node_name(&self, node: NodeId) -> String {
        self.model().text(self.model().nodes[node].name).to_owned()
    }

    /// The place of a pod in the scenario, and how the scenario names it.
    fn pod_name(&self, task: TaskId) -> (usize, PodName) {
        let key = self.model().task_key(task);
        let at = self.names.pods.iter().position(|(known, _, _)| *known == key);
        match at.map(|at| (at, &self.names.pods[at])) {
            Some((at, (_, group, name))) => (
                at,
                PodName {
                    group: group.clone(),
                    name: name.clone(),
                },
            ),
            None => (
                usize::MAX,
                PodName {
                    group: String::new(),
                    name: key,
                },
            ),
        }
    }

    fn phases(&self) -> BTreeMap<JobId, Phase> {
        let jobs = self.model().jobs_by_name();
        jobs.into_iter()
            .map(|job| (job, self.model().job(job).phase()))
            .collect()
    }

    // ---- the outcome as lines

    fn lines(&self, cycle: &Cycle, phases: &BTreeMap<JobId, Phase>, show: Show) -> Vec<Line> {
        let mut lines = self.evictions(cycle);
        let bound: Vec<(TaskId, NodeId)> = cycle
            .effects
            .iter()
            .flat_map(|effect| match effect {
                Effect::Bind { binds, .. } => binds.clone(),
                _ => Vec::new(),
            })
            .collect();
        lines.extend(self.places(&bound, "->"));
        lines.extend(self.places(&cycle.pipelined, "~>"));
        let mut jobs = self.model().jobs_by_name();
        jobs.sort_by_key(|&job| {
            let name = self.job_key(job).1;
            self.names.groups.iter().position(|(known, _)| *known == name)
        });
        for &job in &jobs {
            self.job_lines(cycle, job, phases, show, &mut lines);
        }
        if show.pods {
            lines.extend(self.pod_conditions(cycle));
        }
        if show.queues {
            lines.extend(self.queues(cycle));
        }
        lines
    }

    fn job_lines(
        &self,
        cycle: &Cycle,
        job: JobId,
        phases: &BTreeMap<JobId, Phase>,
        show: Show,
        lines: &mut Vec<Line>,
    ) {
        let name = self.job_key(job).1;
        let phase = self.model().job(job).phase();
        let mut say = |text: String| lines.push(Line::Text(format!("{name}: {text}")));
        if phases.get(&job) != Some(&phase) {
            say(phase.name().to_owned());
        }
        for effect in &cycle.effects {
            match effect {
                Effect::GroupStatus {
                    job: of, conditions, ..
                } if *of == job && show.conditions => {
                    conditions.iter().map(condition_text).for_each(&mut say);
                }
                Effect::GroupEvent {
                    job: of,
                    warning,
                    reason,
                    message,
                } if *of == job && show.events => {
                    let kind = if *warning { "Warning" } else { "Normal" };
                    say(format!("event {kind} {reason}: {message}"));
                }
                _ => {}
            }
        }
        let Some(report) = cycle.reports.get(&job).filter(|_| show.reasons) else {
            return;
        };
        if let Some(reason) = &report.admission {
            say(format!("not admitted: {}", reason.text(self.model())));
        }
        if let Some(invalid) = &report.invalid {
            say(format!("invalid: {}: {}", invalid.reason, invalid.message));
        }
        if let Some(reason) = &report.queue_full {
            say(format!("queue full: {}", reason.text(self.model())));
        }
    }

    fn evictions(&self, cycle: &Cycle) -> Vec<Line> {
        let mut plans: Vec<(TaskId, &'static str, Vec<TaskId>)> = Vec::new();
        for effect in &cycle.effects {
            let Effect::Evict {
                task,
                kind,
                preemptor,
            } = effect
            else {
                continue;
            };
            let verb = kind.name();
            match plans
                .iter_mut()
                .find(|plan| plan.0 == *preemptor && plan.1 == verb)
            {
                Some((_, _, victims)) => victims.push(*task),
                None => plans.push((*preemptor, verb, vec![*task])),
            }
        }
        plans.sort_by_key(|plan| self.pod_name(plan.0).0);
        let line = |(preemptor, verb, victims): (TaskId, &'static str, Vec<TaskId>)| {
            let mut victims: Vec<_> = victims.into_iter().map(|victim| self.pod_name(victim)).collect();
            victims.sort();
            let victims = victims.into_iter().map(|(_, name)| name).collect();
            Line::Evictions {
                verb,
                victims,
                preemptor: self.pod_name(preemptor).1,
            }
        };
        plans.into_iter().map(line).collect()
    }

    fn places(&self, placed: &[(TaskId, NodeId)], arrow: &'static str) -> Vec<Line> {
        let mut placed: Vec<_> = placed
            .iter()
            .map(|&(task, node)| (self.pod_name(task), self.node_name(node)))
            .collect();
        placed.sort();
        let mut by_group: Vec<(String, Vec<(String, String)>)> = Vec::new();
        for ((_, pod), node) in placed {
            match by_group.iter_mut().find(|(group, _)| *group == pod.group) {
                Some((_, places)) => places.push((pod.name, node)),
                None => by_group.push((pod.group, vec![(pod.name, node)])),
            }
        }
        by_group
            .into_iter()
            .map(|(group, places)| Line::Places { group, arrow, places })
            .collect()
    }

    fn pod_conditions(&self, cycle: &Cycle) -> Vec<Line> {
        let mut said: Vec<(PodName, String)> = Vec::new();
        let mut conditions: Vec<_> = cycle
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::PodCondition {
                    task,
                    reason,
                    message,
                    nominated,
                } => {
                    let nominated = match nominated {
                        Nomination::Keep => String::new(),
                        Nomination::Set(node) => format!(" (nominated {})", self.node_name(*node)),
                        Nomination::Clear => " (no longer nominated)".to_owned(),
                    };
                    Some((self.pod_name(*task), format!("{reason}{nominated}: {message}")))
                }
                _ => None,
            })
            .collect();
        conditions.sort();
        for ((_, pod), text) in conditions {
            match said
                .iter_mut()
                .find(|(known, same)| known.group == pod.group && *same == text)
            {
                Some((known, _)) => known.name = format!("{} {}", known.name, pod.name),
                None => said.push((pod, text)),
            }
        }
        said.into_iter()
            .map(|(pods, text)| Line::Text(format!("{pods}: {text}")))
            .collect()
    }

    fn queues(&self, cycle: &Cycle) -> Vec<Line> {
        let model = self.model();
        let mut lines = Vec::new();
        for effect in &cycle.effects {
            let Effect::QueueStatus {
                queue,
                allocated,
                removed,
            } = effect
            else {
                continue;
            };
            let amounts = model.dims.quantities(allocated);
            let amounts = amounts.iter().map(|(name, amount)| format!("{name}={amount}"));
            let removed = removed
                .iter()
                .map(|&dim| format!("no more {}", model.dims.name(dim)));
            let amounts: Vec<String> = amounts.chain(removed).collect();
            lines.push(format!(
                "queue {}: {}",
                model.text(model.queue(*queue).name),
                amounts.join(", ")
            ));
        }
        for (queue, why) in &cycle.invalid_queues {
            lines.push(format!(
                "queue {} is invalid: {why}",
                model.text(model.queue(*queue).name)
            ));
        }
        lines.sort();
        lines.into_iter().map(Line::Text).collect()
    }

    // ---- what an executor and an API server would do

    fn carry_out(&mut self, cycle: &Cycle) -> Result<(), String> {
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { binds, .. } => {
                    for &(task, node) in binds {
                        if self.failing.contains(&self.task_key(task)) {
                            continue;
                        }
                        let node = self.node_name(node);
                        self.write_pod(task, |pod| {
                            pod["spec"]["nodeName"] = json!(node);
                            pod["status"]["phase"] = json!("Running");
                        })?;
                    }
                }
                Effect::Evict { task, .. } => {
                    let key = self.task_key(*task);
                    if self.failing.contains(&key) {
                        continue;
                    }
                    if self.leaving.contains(&key) {
                        let time = json!(moment(0).to_string());
                        self.write_pod(*task, |pod| pod["metadata"]["deletionTimestamp"] = time)?;
                        continue;
                    }
                    self.pods.remove(&key);
                    let (namespace, name) = key;
                    self.engine.apply(Delta::PodGone { namespace, name });
                }
                Effect::PodCondition {
                    task,
                    reason,
                    message,
                    nominated,
                } => {
                    let nominated = match nominated {
                        Nomination::Keep => None,
                        Nomination::Set(node) => Some(json!(self.node_name(*node))),
                        Nomination::Clear => Some(json!("")),
                    };
                    self.write_pod(*task, |pod| {
                        let condition =
                            json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": &**message});
                        pod["status"]["conditions"] = json!([condition]);
                        if let Some(node) = nominated {
                            pod["status"]["nominatedNodeName"] = node;
                        }
                    })?;
                }
                Effect::GroupStatus {
                    job,
                    phase,
                    conditions,
                    counters,
                } => {
                    let Some(group) = self.groups.get_mut(&self.job_key(*job)) else {
                        continue;
                    };
                    group.value["status"] = group_status(*phase, conditions, *counters);
                    let delta = group.delta()?;
                    self.engine.apply(delta);
                }
                Effect::QueueStatus {
                    queue,
                    allocated,
                    removed,
                } => self.write_queue(*queue, allocated, removed)?,
                Effect::OpenGate { task } => {
                    self.write_pod(*task, |pod| pod["spec"]["schedulingGates"] = json!([]))?;
                }
                Effect::ShardStatus(_) | Effect::GroupEvent { .. } => {}
            }
        }
        Ok(())
    }

    /// A merge patch of `status.allocated`.
    fn write_queue(&mut self, queue: QueueId, allocated: &Resource, removed: &[DimId]) -> Result<(), String> {
        let model = self.engine.model();
        let name = model.text(model.queue(queue).name).to_owned();
        let written = model.dims.quantities(allocated);
        let removed: Vec<&str> = removed.iter().map(|&dim| model.dims.name(dim)).collect();
        let Some(object) = self.queues.get_mut(&name) else {
            return Ok(());
        };
        let status = &mut object.value["status"]["allocated"];
        for (name, amount) in &written {
            status[name] = json!(amount.to_string());
        }
        if let Some(map) = status.as_object_mut() {
            removed.iter().for_each(|name| drop(map.remove(*name)));
        }
        let delta = object.delta()?;
        self.engine.apply(delta);
        Ok(())
    }

    fn write_pod(&mut self, task: TaskId, change: impl FnOnce(&mut Value)) -> Result<(), String> {
        if let Some(pod) = self.pods.get_mut(&self.task_key(task)) {
            change(&mut pod.value);
            let delta = pod.delta()?;
            self.engine.apply(delta);
        }
        Ok(())
    }
}

fn condition_text(condition: &PodGroupCondition) -> String {
    let PodGroupCondition {
        r#type,
        status,
        message,
        ..
    } = condition;
    match (status, message.is_empty()) {
        (ConditionStatus::True, true) => r#type.clone(),
        (ConditionStatus::True, false) => format!("{type}: {message}"),
        _ => format!("no longer {type}"),
    }
}

fn group_status(phase: Phase, conditions: &[PodGroupCondition], counters: [u32; 3]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|c| json!({"type": c.r#type, "status": c.status, "reason": c.reason, "message": c.message}))
        .collect();
    let [running, succeeded, failed] = counters;
    json!({
        "phase": phase.name(),
        "conditions": conditions,
        "running": running,
        "succeeded": succeeded,
        "failed": failed,
    })
}
