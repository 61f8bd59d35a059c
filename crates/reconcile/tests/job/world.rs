//! A small world for one Job: objects as the API server keeps them, and what the scheduler, the nodes and users do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use volcano_api::batch::Job;
use volcano_api::bus::Command;
use volcano_api::core::Pod;
use volcano_api::names::{Kind, kinds};
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::time::{GoDuration, Time};
use volcano_reconcile::job::{Memory, Observed, reconcile};
use volcano_reconcile::plugins;
use volcano_reconcile::write::{Plan, Target, Write};

/// Looks that a settled Job takes at the most.
const MOST_LOOKS: usize = 50;

pub struct World {
    pub job: Value,
    pub pods: BTreeMap<String, Value>,
    pub group: Option<Value>,
    pub claims: BTreeMap<String, Value>,
    pub commands: BTreeMap<String, Value>,
    /// Objects of plugins, `Kind/name`.
    pub others: BTreeMap<String, (Kind, Value)>,
    pub queue: Option<Value>,
    pub priorities: BTreeMap<String, i32>,
    pub memory: Memory,
    pub now: Time,
    /// Every event, `Reason: message`.
    pub events: Vec<String>,
    /// Every phase that was written, without repetitions.
    pub phases: Vec<String>,
    /// Every pod that was made: name, version, attempt.
    pub made: Vec<(String, String, String)>,
    /// Writes of the status.
    pub status_writes: usize,
    /// When the controller wants to look again.
    pub again_at: Option<Time>,
    pub is_exhausted: bool,
    counter: i64,
}

/// A job of the spec, as a user would have stored it: defaults are filled in.
pub fn job(spec: Value) -> Value {
    let mut spec = spec;
    let fields = spec.as_object_mut().expect("a spec is an object");
    fields.entry("queue").or_insert(json!("default"));
    fields.entry("schedulerName").or_insert(json!("volcano"));
    fields.entry("maxRetry").or_insert(json!(3));
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns", "uid": "job-uid", "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
    })
}

/// A task of pods with one container.
pub fn task(name: &str, replicas: i32) -> Value {
    json!({"name": name, "replicas": replicas, "minAvailable": replicas,
        "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}})
}

/// The value with further fields.
pub fn with(mut value: Value, fields: Value) -> Value {
    merge(&mut value, &fields);
    value
}

/// A gang of two pods, with further fields of the spec.
pub fn two_pods(fields: Value) -> Value {
    with(
        job(json!({"minAvailable": 2, "tasks": [task("t", 2)]})),
        json!({"spec": fields}),
    )
}

impl World {
    pub fn new(job: Value) -> Self {
        World {
            job,
            pods: BTreeMap::new(),
            group: None,
            claims: BTreeMap::new(),
            commands: BTreeMap::new(),
            others: BTreeMap::new(),
            queue: Some(json!({"metadata": {"name": "default"}})),
            priorities: BTreeMap::new(),
            memory: Memory::default(),
            now: Time::parse("2026-01-01T00:00:10Z").expect("a time"),
            events: Vec::new(),
            phases: Vec::new(),
            made: Vec::new(),
            status_writes: 0,
            again_at: None,
            is_exhausted: false,
            counter: 1,
        }
    }

    /// A job whose pods have all started.
    pub fn running(job: Value) -> Self {
        let mut world = World::new(job);
        world.settle();
        world.admit();
        world.start_all();
        world.settle();
        world.phases.clear();
        world.events.clear();
        world
    }

    fn next_id(&mut self) -> i64 {
        self.counter += 1;
        self.counter
    }

    /// What the controller decides now.
    pub fn look(&mut self) -> Plan {
        let (job, pods) = (self.job.clone(), self.pods.clone());
        self.look_at(&job, &pods)
    }

    /// The newest version of anything.
    pub fn version(&self) -> i64 {
        self.counter
    }

    /// What the controller decides on a Job and pods as it sees them.
    pub fn look_at(&mut self, job: &Value, pods: &BTreeMap<String, Value>) -> Plan {
        let job: Job = read(job);
        let pods: Vec<Pod> = pods.values().map(read).collect();
        let commands: Vec<Command> = self.commands.values().map(read).collect();
        let group: Option<PodGroup> = self.group.as_ref().map(read);
        let queue: Option<Queue> = self.queue.as_ref().map(read);
        let claims: BTreeSet<String> = self.claims.keys().cloned().collect();
        let mut plugin_objects = plugins::Observed::default();
        self.others
            .values()
            .for_each(|(kind, object)| plugin_objects.insert(*kind, object));
        let observed = Observed {
            job: &job,
            pods: &pods.iter().collect::<Vec<_>>(),
            pod_group: group.as_ref(),
            queue: queue.as_ref(),
            claims: &claims,
            plugin_objects: &plugin_objects,
            commands: &commands.iter().collect::<Vec<_>>(),
            priorities: &self.priorities,
            is_exhausted: self.is_exhausted,
        };
        let plan = reconcile(&observed, &mut self.memory, self.now);
        self.again_at = plan.again_at;
        plan
    }

    /// Looks and writes until nothing is left to write.
    pub fn settle(&mut self) {
        for _ in 0..MOST_LOOKS {
            let plan = self.look();
            if plan.steps.is_empty() {
                return;
            }
            for write in plan.steps.iter().flatten() {
                self.apply(write)
                    .unwrap_or_else(|error| panic!("{write:?}: {error}"));
            }
        }
        let plan = self.look();
        panic!("the job does not settle: {:?}\n{plan:?}", self.phases);
    }

    /// Lets time pass, to where the controller wants to look again or beyond, and settles.
    pub fn wait(&mut self, seconds: i64) {
        let until = self.now.saturating_add(GoDuration::from_seconds(seconds));
        self.settle();
        while let Some(at) = self.again_at.filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    /// The process dies and another one takes over.
    pub fn crash(&mut self) {
        self.memory = Memory::default();
    }

    // What the API server does.

    pub fn apply(&mut self, write: &Write) -> Result<(), String> {
        match write {
            Write::Create { target, body, .. } => self.create(target, body),
            Write::Patch {
                target,
                patch,
                status,
                resource_version,
            } => self.patch(target, patch, *status, resource_version.as_deref()),
            Write::Delete { target, .. } => {
                self.delete(target);
                Ok(())
            }
            Write::Event(event) => {
                assert_eq!(event.about.name, "j");
                self.events.push(format!("{}: {}", event.reason, event.message));
                Ok(())
            }
        }
    }

    fn create(&mut self, target: &Target, body: &Value) -> Result<(), String> {
        let id = self.next_id();
        let mut object = body.clone();
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("uid-{id:08}"));
        metadata["resourceVersion"] = json!(id.to_string());
        metadata["creationTimestamp"] = json!(self.now);
        let name = target.name.clone();
        let annotation = |key: &str| {
            body["metadata"]["annotations"][key]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        match target.kind {
            kinds::POD => {
                if let Some(there) = self.pods.get(&name) {
                    let owner = |pod: &Value| pod["metadata"]["ownerReferences"][0]["uid"].clone();
                    return if owner(there) == owner(&object) {
                        Ok(())
                    } else {
                        Err("taken".into())
                    };
                }
                self.made.push((
                    name.clone(),
                    annotation("volcano.sh/job-version"),
                    annotation("volcano.sh/job-retry-count"),
                ));
                object["status"] = json!({"phase": "Pending"});
                self.pods.insert(name, object);
            }
            kinds::POD_GROUP => {
                self.group.get_or_insert(object);
            }
            kinds::PERSISTENT_VOLUME_CLAIM => {
                self.claims.entry(name).or_insert(object);
            }
            other => {
                self.others
                    .entry(format!("{}/{name}", other.kind))
                    .or_insert((other, object));
            }
        }
        Ok(())
    }

    fn patch(
        &mut self,
        target: &Target,
        patch: &Value,
        status: bool,
        version: Option<&str>,
    ) -> Result<(), String> {
        let id = self.next_id();
        let object = match target.kind {
            kinds::JOB => &mut self.job,
            kinds::POD_GROUP => self.group.as_mut().ok_or("no such group")?,
            kinds::POD => match self.pods.get_mut(&target.name) {
                Some(pod) => pod,
                None => return Ok(()),
            },
            other => {
                let key = format!("{}/{}", other.kind, target.name);
                &mut self.others.get_mut(&key).ok_or("no such object")?.1
            }
        };
        if version.is_some_and(|version| object["metadata"]["resourceVersion"] != version) {
            return Err("conflict".into());
        }
        assert_eq!(
            patch.get("status").is_some(),
            status,
            "the status has an address of its own: {patch}"
        );
        let before = object["status"]["state"]["phase"].clone();
        merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(id.to_string());
        if status {
            self.status_writes += 1;
            if before != self.phase().as_str() {
                self.phases.push(self.phase());
            }
        }
        Ok(())
    }

    fn delete(&mut self, target: &Target) {
        let is_meant =
            |object: &Value| target.uid.is_empty() || object["metadata"]["uid"] == target.uid.as_str();
        match target.kind {
            kinds::POD if self.pods.get(&target.name).is_some_and(is_meant) => self.delete_pod(&target.name),
            kinds::POD_GROUP if self.group.as_ref().is_some_and(is_meant) => self.group = None,
            kinds::COMMAND if self.commands.get(&target.name).is_some_and(is_meant) => {
                self.commands.remove(&target.name);
            }
            other => {
                self.others.remove(&format!("{}/{}", other.kind, target.name));
            }
        }
    }

    /// A pod that runs has time to end; any other is gone at once.
    pub fn delete_pod(&mut self, name: &str) {
        let end = self.now.saturating_add(GoDuration::from_seconds(30));
        let version = self.next_id().to_string();
        let Some(pod) = self.pods.get_mut(name) else {
            return;
        };
        if pod["status"]["phase"] == "Running" {
            let metadata = pod["metadata"].as_object_mut().expect("metadata");
            metadata.entry("deletionTimestamp").or_insert(json!(end));
            metadata.insert("resourceVersion".to_owned(), json!(version));
        } else {
            self.pods.remove(name);
        }
    }

    // What others do.

    /// The scheduler lets the pods be made.
    pub fn admit(&mut self) {
        self.group_phase("Inqueue");
        self.settle();
    }

    pub fn group_phase(&mut self, phase: &str) {
        let group = self.group.as_mut().expect("there is a group");
        group["status"] = json!({"phase": phase});
    }

    /// The node says how a pod is.
    pub fn report(&mut self, pod: &str, status: Value) {
        let version = self.next_id().to_string();
        let pod = self.pods.get_mut(pod).unwrap_or_else(|| panic!("no pod {pod}"));
        merge(&mut pod["status"], &status);
        pod["metadata"]["resourceVersion"] = json!(version);
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, name: &str) {
        self.next_id();
        self.pods.remove(name);
    }

    pub fn start(&mut self, pod: &str) {
        self.report(
            pod,
            json!({"phase": "Running", "containerStatuses": [{"name": "main", "ready": true}]}),
        );
    }

    pub fn start_all(&mut self) {
        let waiting = self
            .pods
            .iter()
            .filter(|(_, pod)| pod["status"]["phase"] == "Pending");
        let names: Vec<_> = waiting.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.start(name));
    }

    pub fn succeed(&mut self, pod: &str) {
        self.end(pod, "Succeeded", 0);
    }

    pub fn fail(&mut self, pod: &str, code: i32) {
        self.end(pod, "Failed", code);
    }

    fn end(&mut self, pod: &str, phase: &str, code: i32) {
        let end = json!({"terminated": {"exitCode": code, "finishedAt": self.now}});
        self.report(
            pod,
            json!({"phase": phase, "containerStatuses": [{"name": "main", "state": end}]}),
        );
    }

    /// Pods that are to go are gone.
    pub fn reap(&mut self) {
        self.pods
            .retain(|_, pod| pod["metadata"].get("deletionTimestamp").is_none());
    }

    /// A user gives a Command.
    pub fn command(&mut self, action: &str) -> String {
        let id = self.next_id();
        let name = format!("j-{}-{id}", action.to_lowercase());
        self.commands.insert(
            name.clone(),
            json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{id:08}"),
                    "creationTimestamp": self.now},
                "action": action,
                "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "job-uid"}}),
        );
        name
    }

    /// A user changes the spec.
    pub fn edit(&mut self, spec: Value) {
        let id = self.next_id();
        merge(
            &mut self.job,
            &json!({"spec": spec, "metadata": {"resourceVersion": id.to_string()}}),
        );
    }

    // What is there.

    pub fn phase(&self) -> String {
        self.job["status"]["state"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn count(&self, counter: &str) -> i64 {
        self.job["status"][counter].as_i64().unwrap_or(0)
    }

    /// `name phase`, with `-` before those that are leaving.
    pub fn shown_pods(&self) -> Vec<String> {
        let shown = |(name, pod): (&String, &Value)| {
            let leaving = if pod["metadata"].get("deletionTimestamp").is_some() {
                "-"
            } else {
                ""
            };
            format!(
                "{leaving}{name} {}",
                pod["status"]["phase"].as_str().unwrap_or_default()
            )
        };
        self.pods.iter().map(shown).collect()
    }

    /// A counter in pod's annotations.
    pub fn annotation(&self, pod: &str, key: &str) -> String {
        self.pods[pod]["metadata"]["annotations"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// Applies a JSON merge patch.
pub fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let object = value.as_object_mut().expect("it was made an object above");
    for (key, change) in fields {
        if change.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key).or_insert(Value::Null), change);
        }
    }
}
