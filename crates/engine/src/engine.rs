//! The engine: the model, the configured plugins, and the cycle.

use crate::actions;
use crate::close;
use crate::config::SchedulerConf;
use crate::dispatch::{Plugins, Unavailable};
use crate::effect::{Cycle, Effect, Step};
use crate::export::{self, Snapshot, Underway};
use crate::figures::{self, QueueFigures};
use crate::ids::{JobId, TaskId};
use crate::model::delta::Delta;
use crate::model::features::Features;
use crate::model::kind::Kind;
use crate::model::{Model, SchedulerNames};
use crate::placer::Placer;
use crate::plugins::predicates::volumes::binding::{ClaimKey, Source};
use crate::session::Session;
use volcano_api::time::Time;

/// A scheduler without a cluster: changes go in, decisions come out.
pub struct Engine {
    model: Model,
    plugins: Plugins,
    placer: Placer,
    conf: SchedulerConf,
}

impl Engine {
    /// An engine for an empty cluster. What the configuration names and the engine does not have is returned: the
    /// caller decides whether to go on without it.
    pub fn new(
        conf: SchedulerConf,
        names: SchedulerNames,
        default_queue: &str,
    ) -> (Engine, Vec<Unavailable>) {
        let (plugins, missing) = Plugins::build(&conf);
        let model = Model::new(names, default_queue);
        (
            Engine {
                model,
                plugins,
                placer: Placer::default(),
                conf,
            },
            missing,
        )
    }

    /// The same with flags and feature gates; before anything is applied.
    #[must_use]
    pub fn with_features(mut self, features: Features) -> Engine {
        self.model.features = features;
        self
    }

    /// A copy that goes its own way: for trying out what would come of a change. Cost: that of copying the model.
    #[must_use]
    pub fn fork(&self) -> Engine {
        let (plugins, _) = Plugins::build(&self.conf);
        Engine {
            model: self.model.clone(),
            plugins,
            placer: Placer::default(),
            conf: self.conf.clone(),
        }
    }

    /// Takes a change of the cluster in.
    pub fn apply(&mut self, delta: Delta) {
        self.model.apply(delta);
    }

    /// Takes in what was decided when a snapshot was taken and its objects do not show; after the objects.
    pub fn resume(&mut self, underway: &Underway) {
        self.model.resume(underway);
    }

    /// Swaps the configuration. The cluster stays.
    pub fn reconfigure(&mut self, conf: SchedulerConf) -> Vec<Unavailable> {
        let (plugins, missing) = Plugins::build(&conf);
        self.plugins = plugins;
        self.placer.clear();
        self.conf = conf;
        self.model.news = true;
        missing
    }

    /// Something came in since the last cycle that could change a decision or a status. Heartbeats of nodes do not, nor
    /// do the engine's own decisions when they come back as written.
    pub fn news(&self) -> bool {
        self.model.news
    }

    /// The numbers of all queues as of the last cycle, by name. Cost: the number of queues.
    pub fn queue_figures(&self) -> Vec<QueueFigures> {
        figures::queues(&self.model, &self.plugins)
    }

    /// The fair share of a job; `None` unless drf is configured.
    pub fn job_share(&self, job: JobId) -> Option<f64> {
        self.plugins.job_share(&self.model, job)
    }

    /// The job's gang is whole as the configured plugins see it: its size, its roles and its sub-groups.
    pub fn is_job_ready(&self, job: JobId) -> bool {
        self.plugins.job_ready(&self.model, job)
    }

    /// The cluster.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How each waiting claim of a task that was just placed is to be served: what is to be written before it is bound.
    pub fn claim_sources(&self, task: TaskId) -> Vec<(ClaimKey, Source)> {
        if self.model.class_of(task).claims.is_empty() {
            return Vec::new();
        }
        self.plugins.claim_sources(&self.model, task)
    }

    /// Namespace (empty for a kind without one) and name of every object of a kind that the engine knows, sorted. What
    /// a new list of the kind lacks is gone: [`Delta::gone`].
    pub fn names(&self, kind: Kind) -> Vec<(String, String)> {
        self.model.names(kind)
    }

    /// The cluster as the engine believes it to be, as objects: see [`export`](crate::export).
    pub fn objects(&self) -> impl Iterator<Item = Delta> + '_ {
        export::objects(&self.model).map(|mut object| {
            self.plugins.show(&self.model, &mut object);
            object
        })
    }

    /// A snapshot to replay the cycle at `now` from; `conf` is the text of the engine's configuration.
    pub fn snapshot<'a>(&'a self, conf: &'a str, now: Time) -> Snapshot<'a> {
        Snapshot::new(self, conf, now)
    }

    /// Runs one cycle: opens the plugins, runs the configured actions in order, reports. `probe` is told of each
    /// step as it ends, for those who have a clock.
    pub fn cycle(&mut self, now: Time, probe: &mut dyn FnMut(Step<'_>)) -> Cycle {
        let Engine {
            model,
            plugins,
            placer,
            conf,
        } = self;
        model.news = false;
        let changed = model.refresh_changed_jobs();
        let Model { nodes, strings, .. } = model;
        nodes.refresh_ranks(|name| strings.shared(name));
        model.refresh_hyper_nodes();
        plugins.open(model, now.unix_micros(), probe);
        probe(Step::Open);
        let admits = conf.actions.iter().any(|action| action == "enqueue");
        let mut ssn = Session::new(model, plugins, placer, admits);
        for action in &conf.actions {
            actions::run(&mut ssn, action, conf);
            probe(Step::Action(action));
        }
        let gang = conf.plugin("gang").is_some();
        close::report(&mut ssn, &changed, gang, now);
        let pipelined = ssn
            .pipelined()
            .into_iter()
            .map(|(task, node, _)| (task, node))
            .collect();
        ssn.close();
        let mut effects = std::mem::take(&mut ssn.effects);
        let reports = std::mem::take(&mut ssn.reports);
        let figures = std::mem::take(&mut ssn.figures);
        drop(ssn);
        close::queue_status(model, &mut effects);
        effects.extend(model.shard_status().map(Effect::ShardStatus));
        let evicted = effects.iter().filter_map(|effect| match effect {
            Effect::Evict { task, .. } => Some(*task),
            _ => None,
        });
        model.end_cycle(evicted);
        placer.trim(model);
        probe(Step::Close);
        Cycle {
            effects,
            pipelined,
            reports,
            figures,
            invalid_queues: plugins.invalid_queues(model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalog;
    use crate::effect::Effect;
    use serde_json::json;

    fn conf(text: &str) -> SchedulerConf {
        SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).unwrap()
    }

    fn binds(cycle: &Cycle) -> usize {
        cycle
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Bind { .. }))
            .count()
    }

    #[test]
    fn a_new_configuration_holds_from_the_next_cycle_and_the_cluster_stays() {
        let (mut engine, missing) = Engine::new(conf("actions: enqueue"), SchedulerNames::Any, "default");
        assert_eq!(missing, []);
        let objects = [
            Delta::Queue(serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap()),
            Delta::Node(
                serde_json::from_value(json!({
                    "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}
                }))
                .unwrap(),
            ),
            Delta::PodGroup(
                serde_json::from_value(json!({"metadata": {"name": "g", "namespace": "ns"}})).unwrap(),
            ),
            Delta::Pod(
                serde_json::from_value(json!({
                    "metadata": {
                        "name": "p", "namespace": "ns",
                        "annotations": {"scheduling.k8s.io/group-name": "g"},
                    },
                    "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
                }))
                .unwrap(),
            ),
        ];
        objects.into_iter().for_each(|object| engine.apply(object));
        assert_eq!(
            binds(&engine.cycle(Time::EPOCH, &mut |_| {})),
            0,
            "nothing places"
        );
        let text = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: tdm}]}]";
        let missing = engine.reconfigure(conf(text));
        assert_eq!(
            missing,
            [Unavailable("tdm".to_owned())],
            "what the engine lacks is named"
        );
        let mut steps = Vec::new();
        let cycle = engine.cycle(Time::EPOCH, &mut |step| steps.push(format!("{step:?}")));
        assert_eq!(binds(&cycle), 1);
        let expected = [
            r#"Plugin("gang")"#,
            "Open",
            r#"Action("enqueue")"#,
            r#"Action("allocate")"#,
            "Close",
        ];
        assert_eq!(steps, expected);
    }
    /// The statuses and the messages of the warnings that a cycle has for groups.
    fn told(engine: &mut Engine, seconds: i64) -> (Vec<&'static str>, Vec<String>) {
        let cycle = engine.cycle(Time::from_unix_seconds(seconds), &mut |_| {});
        let phase = |effect: &Effect| match effect {
            Effect::GroupStatus { phase, .. } => Some(phase.name()),
            _ => None,
        };
        let warning = |effect: &Effect| match effect {
            Effect::GroupEvent {
                warning: true,
                message,
                ..
            } => Some(message.clone()),
            _ => None,
        };
        let effects = &cycle.effects;
        (
            effects.iter().filter_map(phase).collect(),
            effects.iter().filter_map(warning).collect(),
        )
    }

    fn group(name: &str) -> Delta {
        let group = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"minMember": 3, "minResources": {"cpu": "100"}},
        });
        Delta::PodGroup(serde_json::from_value(group).unwrap())
    }

    fn full() -> Engine {
        let text = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: overcommit}]}]";
        let (mut engine, _) = Engine::new(conf(text), SchedulerNames::Any, "default");
        let queue = json!({"metadata": {"name": "default"}});
        engine.apply(Delta::Queue(serde_json::from_value(queue).unwrap()));
        engine
    }

    #[test]
    fn a_group_without_a_phase_that_is_not_admitted_is_pending_and_its_users_are_told_again() {
        let mut engine = full();
        engine.apply(group("g"));
        let message = "0/0 tasks in gang unschedulable: pod group is not ready, 3 minAvailable. \
            Origin reason is: resource in cluster is overused: overused cpu"
            .to_owned();
        assert_eq!(told(&mut engine, 100), (vec!["Pending"], vec![message.clone()]));
        assert_eq!(told(&mut engine, 129), (vec![], vec![]), "nothing is new");
        assert_eq!(told(&mut engine, 130), (vec![], vec![message]), "it still waits");
        assert_eq!(told(&mut engine, 131), (vec![], vec![]), "it was told");
    }

    #[test]
    fn a_job_without_its_master_is_not_ready_however_many_workers_it_has() {
        let text = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}]}]";
        let (mut engine, _) = Engine::new(conf(text), SchedulerNames::Any, "default");
        let queue = json!({"metadata": {"name": "default"}});
        engine.apply(Delta::Queue(serde_json::from_value(queue).unwrap()));
        let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "5", "pods": "10"}}});
        engine.apply(Delta::Node(serde_json::from_value(node).unwrap()));
        let group = json!({
            "metadata": {"name": "g", "namespace": "ns", "uid": "g"},
            "spec": {"minMember": 3, "minTaskMember": {"master": 1, "worker": 2}},
        });
        engine.apply(Delta::PodGroup(serde_json::from_value(group).unwrap()));
        for (name, role) in [
            ("m", "master"),
            ("w0", "worker"),
            ("w1", "worker"),
            ("w2", "worker"),
            ("w3", "worker"),
        ] {
            let annotations = json!({"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": role});
            let pod = json!({
                "metadata": {"name": name, "namespace": "ns", "uid": name, "annotations": annotations},
                "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
            });
            engine.apply(Delta::Pod(serde_json::from_value(pod).unwrap()));
        }
        engine.cycle(Time::EPOCH, &mut |_| {});
        let job = engine.model().find_job("ns", "g").unwrap();
        assert!(engine.is_job_ready(job), "all five are being bound");
        engine.apply(Delta::PodGone {
            namespace: "ns".to_owned(),
            name: "m".to_owned(),
        });
        assert!(engine.model().job(job).is_ready(), "there are enough of them");
        assert!(!engine.is_job_ready(job));
    }

    #[test]
    fn of_many_that_wait_a_few_are_told_of_again_in_each_cycle() {
        let mut engine = full();
        (0..20).for_each(|at| engine.apply(group(&format!("g{at}"))));
        assert_eq!(told(&mut engine, 100).1.len(), 20);
        let again: Vec<usize> = (200..204).map(|at| told(&mut engine, at).1.len()).collect();
        assert_eq!(again, [8, 8, 4, 0]);
    }
}
