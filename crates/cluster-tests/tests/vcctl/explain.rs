//! `vcctl job explain` in twelve situations: the first reason is the one that a person would give, and the change that is
//! suggested first does start the job. And `vcctl plan`, which says the same before a Job is there.

use serde_json::{Value, json};
use volcano_cluster_tests::acts::{done, until};
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::controllers::Controllers;
use volcano_cluster_tests::jobs::{BATCH, Kubelets, job, with};
use volcano_cluster_tests::process::{output, volcano};
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, Node, Progress, check};

const SCHEDULING: &str = "scheduling.volcano.sh/v1beta1";
/// How the scheduler decides: no more than the situations need.
const PLAIN: &str = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
                     - plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]\n";

/// A cluster in which the whole system is at work.
struct Act {
    stage: Stage,
    conf: String,
    _scheduler: Scheduler,
    _controllers: Controllers,
    _kubelets: Kubelets,
}

/// A task of pods with so many CPUs each.
fn task(name: &str, replicas: usize, cpu: &str) -> Value {
    json!({"name": name, "replicas": replicas, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}]}}})
}

fn node(name: &str, cpu: &str) -> Node {
    Node::new(name).cpu(cpu).memory("64Gi")
}

impl Act {
    async fn begin(conf: &str, nodes: &[Node]) -> Act {
        let stage = done(Stage::set().await);
        for node in nodes {
            stage.add_node(node).await;
        }
        let path = done(stage.file("scheduler.conf", conf));
        let flag = format!("--scheduler-conf={}", path.display());
        let scheduler = done(stage.scheduler(&[&flag]));
        let controllers = done(stage.controllers(&[]));
        let kubelets = Kubelets::start(&stage.client, &stage.namespace);
        Act {
            stage,
            conf: flag,
            _scheduler: scheduler,
            _controllers: controllers,
            _kubelets: kubelets,
        }
    }

    async fn queue(&self, name: &str, spec: &Value) {
        done(objects::create_queue(&self.stage.client, name, 1, spec).await);
    }

    /// Submits a Job that runs.
    async fn runs(&self, name: &str, queue: &str, replicas: usize, cpu: &str) {
        self.submit(name, queue, replicas, cpu).await;
        self.stage.wait_running(name, replicas).await;
    }

    async fn submit(&self, name: &str, queue: &str, replicas: usize, cpu: &str) {
        let spec = json!({"queue": queue, "tasks": [task("w", replicas, cpu)]});
        self.stage.submit(name, &spec).await;
    }

    /// What `vcctl` says of the Job, once it is seen to wait for that reason and says the same to people and to programs:
    /// until then something still changes.
    async fn explained(&self, reason: &str) -> Value {
        let what = format!("train waits: {reason}");
        until(&what, || async {
            let told: Value = serde_json::from_str(&self.explain(&["-o", "json"])?)?;
            let is_it = told["state"] == "waiting" && told["reasons"][0]["reason"] == reason;
            let (text, first) = (self.explain(&[])?, &told["suggestions"][0]["text"]);
            let is_settled = first.as_str().is_some_and(|first| text.contains(first));
            Ok(match is_it && is_settled {
                true => Progress::Done(told),
                false => Progress::Waiting(format!("{told:#}\n{text}")),
            })
        })
        .await
    }

    fn explain(&self, more: &[&str]) -> anyhow::Result<String> {
        let kubeconfig = cluster().kubeconfig_path().display().to_string();
        let words = ["vcctl", "job", "explain", "train", "-n", &self.stage.namespace];
        volcano(&[&words[..], &["--kubeconfig", &kubeconfig, &self.conf], more].concat())
    }

    /// The Job waits for a reason; the first change that is suggested is of that sort, and with it the Job starts with so
    /// many pods.
    async fn starts_with(&self, reason: &str, change: &str, pods: usize) {
        let told = self.explained(reason).await;
        let suggestion = &told["suggestions"][0];
        assert_eq!(suggestion["what"]["change"], change, "{told:#}");
        assert!(
            self.stage
                .pods_of("train")
                .await
                .iter()
                .all(|pod| pod["spec"]["nodeName"].is_null())
        );
        for change in suggestion["changes"].as_array().unwrap() {
            self.make(change).await;
        }
        until(&format!("{pods} pods of train have a node"), || async {
            let pods_now = self.stage.pods_of("train").await;
            let placed = pods_now
                .iter()
                .filter(|pod| pod["spec"]["nodeName"].is_string())
                .count();
            Ok(check(placed >= pods, || {
                format!("{placed} of {}: {told:#}", pods_now.len())
            }))
        })
        .await;
    }

    /// Makes a change as the suggestion says.
    async fn make(&self, change: &Value) {
        let text = |field: &str| change[field].as_str().unwrap_or_default();
        let plural = match text("kind") {
            "ResourceQuota" => "resourcequotas",
            "Queue" => "queues",
            "Job" => "jobs",
            other => panic!("{other}: {change}"),
        };
        let path = objects::path(text("apiVersion"), text("namespace"), plural, text("name"));
        let (client, patch) = (&self.stage.client, &change["patch"]);
        match text("how") {
            "patch" => drop(done(objects::merge_patch(client, &path, patch).await)),
            "patchStatus" => done(objects::merge_patch_status(client, &path, &patch["status"]).await),
            "resume" => {
                let job = self.stage.get(&path).await;
                let target = json!({"apiVersion": text("apiVersion"), "kind": "Job", "name": text("name"),
                    "uid": job["metadata"]["uid"]});
                self.stage.command("train-resume-", "ResumeJob", &target).await;
            }
            "recreate" => {
                let old = self.stage.get(&path).await;
                done(objects::delete(client, &path).await);
                until("the old Job and its pods are gone", || async {
                    let job = objects::try_get(client, &path).await?;
                    let pods = self.stage.pods_of("train").await.len();
                    Ok(check(job.is_none() && pods == 0, || format!("{pods} pods")))
                })
                .await;
                let mut new = json!({"apiVersion": BATCH, "kind": "Job",
                    "metadata": {"name": "train"}, "spec": old["spec"]});
                merge(&mut new, patch);
                self.stage.create(&self.stage.job_path(""), &new).await;
            }
            other => panic!("{other}: {change}"),
        }
    }
}

/// A JSON merge patch.
fn merge(value: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, change) in fields {
        match change {
            Value::Null => drop(value.as_object_mut().unwrap().remove(name)),
            change => merge(&mut value[name], change),
        }
    }
}

#[tokio::test]
async fn a_closed_queue() {
    let act = Act::begin(PLAIN, &[node("n1", "8")]).await;
    act.queue("q", &json!({})).await;
    let path = objects::path(SCHEDULING, "", "queues", "q");
    let uid = act
        .stage
        .wait(&path, "it is open", |queue| queue["status"]["state"] == "Open")
        .await;
    let target =
        json!({"apiVersion": SCHEDULING, "kind": "Queue", "name": "q", "uid": uid["metadata"]["uid"]});
    act.stage.command("q-close-", "CloseQueue", &target).await;
    act.stage
        .wait(&path, "it is closed", |queue| {
            queue["status"]["state"] == "Closed"
        })
        .await;
    act.submit("train", "q", 2, "1").await;
    act.starts_with("queueNotOpen", "openQueue", 2).await;
}

#[tokio::test]
async fn a_queue_over_its_capability() {
    let act = Act::begin(PLAIN, &[node("n1", "8")]).await;
    act.queue("q", &json!({"capability": {"cpu": "3"}})).await;
    act.runs("busy", "q", 1, "2").await;
    act.submit("train", "q", 4, "1").await;
    act.starts_with("queueFull", "raiseCapability", 4).await;
}

#[tokio::test]
async fn a_queue_over_what_it_deserves() {
    let act = Act::begin(PLAIN, &[node("n1", "8")]).await;
    act.queue("mine", &json!({})).await;
    act.queue("theirs", &json!({})).await;
    act.runs("other", "theirs", 1, "3").await;
    act.runs("busy", "mine", 1, "4").await;
    act.submit("large", "theirs", 2, "2").await;
    act.stage.wait_job("large", "Pending").await;
    act.submit("train", "mine", 1, "1").await;
    act.starts_with("queueFull", "raiseWeight", 1).await;
}

#[tokio::test]
async fn a_gang_that_is_too_large() {
    let act = Act::begin(PLAIN, &[node("n1", "4"), node("n2", "4")]).await;
    act.submit("train", "default", 10, "1").await;
    act.starts_with("gangTooLarge", "lowerMinimum", 8).await;
}

#[tokio::test]
async fn no_node_with_the_selector() {
    let act = Act::begin(PLAIN, &[node("n1", "4"), node("n2", "4")]).await;
    let mut task = task("w", 1, "1");
    task["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    act.stage
        .submit("train", &json!({"queue": "default", "tasks": [task]}))
        .await;
    act.starts_with("noNode", "dropConstraint", 1).await;
}

#[tokio::test]
async fn taints() {
    let tainted = |name| node(name, "4").taint("gpu", "yes", "NoSchedule");
    let act = Act::begin(PLAIN, &[tainted("n1"), tainted("n2")]).await;
    act.submit("train", "default", 2, "1").await;
    act.starts_with("noNode", "tolerate", 2).await;
}

#[tokio::test]
async fn fragmentation() {
    let act = Act::begin(PLAIN, &[node("n1", "4"), node("n2", "4")]).await;
    act.runs("busy", "default", 2, "2").await;
    let nodes: Vec<_> = act
        .stage
        .pods_of("busy")
        .await
        .iter()
        .map(|pod| pod["spec"]["nodeName"].clone())
        .collect();
    assert_ne!(nodes[0], nodes[1], "the pods are spread");
    act.submit("train", "default", 1, "3").await;
    act.starts_with("fragmented", "smallerRequest", 1).await;
}

#[tokio::test]
async fn waiting_for_another_role() {
    let act = Act::begin(PLAIN, &[node("n1", "4")]).await;
    let worker = with(
        task("worker", 2, "1"),
        &json!({"dependsOn": {"name": ["master"]}}),
    );
    let tasks = json!([with(task("master", 1, "1"), &json!({"minAvailable": 1})), worker]);
    act.stage
        .submit(
            "train",
            &json!({"queue": "default", "minAvailable": 3, "tasks": tasks}),
        )
        .await;
    act.starts_with("dependsOn", "lowerMinimum", 3).await;
}

#[tokio::test]
async fn a_quota_of_the_namespace() {
    let act = Act::begin(PLAIN, &[node("n1", "8")]).await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "2"}}});
    act.stage
        .create(&act.stage.path("v1", "resourcequotas", ""), &quota)
        .await;
    let path = act.stage.path("v1", "resourcequotas", "small");
    act.stage
        .wait(&path, "it counts", |quota| quota["status"]["hard"]["pods"] == "2")
        .await;
    act.submit("train", "default", 4, "1").await;
    act.starts_with("quota", "raiseQuota", 4).await;
}

#[tokio::test]
async fn a_priority_that_is_too_low() {
    let conf = PLAIN.replace("allocate", "allocate, preempt");
    let act = Act::begin(&conf, &[node("n1", "4")]).await;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "explain-high"}, "value": 100});
    let classes = objects::path("scheduling.k8s.io/v1", "", "priorityclasses", "");
    act.stage.create(&classes, &class).await;
    let spec = json!({"queue": "default", "minAvailable": 1, "tasks": [task("w", 2, "2")]});
    act.stage.submit("busy", &spec).await;
    act.stage.wait_running("busy", 2).await;
    act.submit("train", "default", 1, "2").await;
    act.starts_with("short", "raisePriority", 1).await;
    done(
        objects::delete(
            &act.stage.client,
            &objects::path("scheduling.k8s.io/v1", "", "priorityclasses", "explain-high"),
        )
        .await,
    );
}

/// The first one is admitted, and no node has room for it; what it was promised is kept from those that come after it.
#[tokio::test]
async fn a_job_of_higher_priority_that_goes_first() {
    let conf = PLAIN.replace("{name: predicates}", "{name: overcommit}, {name: predicates}");
    let act = Act::begin(&conf, &[node("n1", "4"), node("n2", "4")]).await;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "explain-first"}, "value": 100});
    let classes = |name: &str| objects::path("scheduling.k8s.io/v1", "", "priorityclasses", name);
    act.stage.create(&classes(""), &class).await;
    act.runs("busy", "default", 2, "2").await;
    let first =
        json!({"queue": "default", "priorityClassName": "explain-first", "tasks": [task("w", 1, "3")]});
    let first = act.stage.submit("first", &first).await;
    let group = format!("first-{}", first["metadata"]["uid"].as_str().unwrap());
    act.stage
        .wait(&act.stage.group_path(&group), "it is admitted", |group| {
            group["status"]["phase"] == "Inqueue"
        })
        .await;
    act.submit("train", "default", 3, "1").await;
    let told = act.explained("behind").await;
    let ahead = &told["reasons"][0]["ahead"][0];
    let named = format!("{}/first", act.stage.namespace);
    assert_eq!(ahead["job"], named.as_str(), "{told:#}");
    assert_eq!(ahead["priority"], 100, "{told:#}");
    act.starts_with("behind", "lowerMinimum", 2).await;
    done(objects::delete(&act.stage.client, &classes("explain-first")).await);
}

#[tokio::test]
async fn a_job_that_was_aborted() {
    let act = Act::begin(PLAIN, &[node("n1", "4")]).await;
    act.runs("train", "default", 2, "1").await;
    let job = act.stage.get(&act.stage.job_path("train")).await;
    let target = json!({"apiVersion": BATCH, "kind": "Job", "name": "train", "uid": job["metadata"]["uid"]});
    act.stage.command("train-abort-", "AbortJob", &target).await;
    act.stage.wait_job("train", "Aborted").await;
    act.stage.wait_pods("train", &[]).await;
    act.starts_with("suspended", "resume", 2).await;
}

#[tokio::test]
async fn a_plan_says_where_a_job_would_start_and_writes_nothing() {
    let act = Act::begin(PLAIN, &[node("n1", "4")]).await;
    let stage = &act.stage;
    let kubeconfig = cluster().kubeconfig_path().display().to_string();
    let plan = |name: &str, replicas: usize| {
        let spec = json!({"queue": "default", "tasks": [task("w", replicas, "1")]});
        let manifest = job(name, &spec).to_string();
        let file = done(stage.file(&format!("{name}.yaml"), &manifest))
            .display()
            .to_string();
        let words = [
            "vcctl",
            "plan",
            "-f",
            &file,
            "-n",
            &stage.namespace,
            "--kubeconfig",
            &kubeconfig,
            &act.conf,
        ];
        done(output(&words))
    };
    let fits = plan("fits", 3);
    assert_eq!(fits.status.code(), Some(0));
    let text = String::from_utf8_lossy(&fits.stdout).into_owned();
    assert!(
        text.contains("starts by itself in the next cycles: 3 pods on n1 x3"),
        "{text}"
    );
    let large = plan("large", 5);
    assert_eq!(large.status.code(), Some(6));
    let text = String::from_utf8_lossy(&large.stdout).into_owned();
    assert!(text.contains("the gang is too large for the cluster"), "{text}");
    let jobs = done(objects::list(&stage.client, &stage.job_path("")).await);
    assert!(jobs.is_empty(), "{jobs:?}");
}
