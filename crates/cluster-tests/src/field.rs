//! Real nodes for a test: a namespace of its own, manifests as users write them, and what becomes of the pods.
//!
//! Whatever does not go as told stops the test and shows what there was instead.

#![allow(
    clippy::missing_panics_doc,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;
use volcano_testcluster::images::Image;
use volcano_testcluster::objects::{self, Progress, check};
use volcano_testcluster::{Cluster, Options};

use crate::acts::done;
use crate::install::NAMESPACE;
use crate::jobs::BATCH;
use crate::process::{BINARY, volcano};

/// How many nodes there are.
pub const NODES: usize = 2;
/// How long what a test waits for may take. Containers start in a second, on a machine that has nothing else to do.
pub const PATIENCE: Duration = Duration::from_secs(120);

static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let options = Options {
        nodes: NODES,
        images: vec![Image::Busybox],
        ..Options::default()
    };
    let started = Cluster::start(options).and_then(|cluster| {
        cluster.install_crds(&volcano_api::crd::all())?;
        Ok(cluster)
    });
    started.expect("without nodes there is nothing to test")
});

/// The cluster of this test binary, with [`NODES`] real nodes and the CRDs; the first who asks starts it.
pub fn cluster() -> &'static Cluster {
    &CLUSTER
}

/// The programs of the system, as Deployments.
const DEPLOYMENTS: [&str; 3] = ["volcano-admission", "volcano-controllers", "volcano-scheduler"];

/// Installs the whole system from its manifests, in pods of an image of the binary that is tested, once for all tests.
async fn install() {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let install = || async {
        let applied = tokio::task::spawn_blocking(|| -> anyhow::Result<()> {
            let cluster = cluster();
            cluster.load_image(&Image::Volcano(PathBuf::from(&*BINARY)))?;
            let manifests = volcano(&[
                "manifests",
                "--image-tag=test",
                "--image-pull-policy=IfNotPresent",
            ])?;
            cluster.kubectl_reading(&["apply", "--filename", "-"], &manifests)?;
            Ok(())
        });
        done(done(applied.await.map_err(Into::into)));
        let client = done(cluster().client());
        for name in DEPLOYMENTS {
            let path = objects::path("apps/v1", NAMESPACE, "deployments", name);
            let what = format!("{name} runs");
            let ready = objects::wait_until(&what, PATIENCE, || async {
                let status = objects::get(&client, &path).await?["status"].clone();
                let pods = objects::pods(&client, NAMESPACE).await?;
                let shown = || {
                    format!(
                        "{status} {:?}",
                        pods.iter().map(|pod| &pod["status"]).collect::<Vec<_>>()
                    )
                };
                Ok(check(status["readyReplicas"] == 1, shown))
            });
            done(ready.await);
        }
    };
    INSTALLED.get_or_init(install).await;
}

/// A namespace on real nodes.
pub struct Field {
    /// Who the test acts as.
    pub client: kube::Client,
    /// The test's namespace.
    pub namespace: String,
}

impl Field {
    /// A new namespace, in which pods can be made: their account is there.
    pub async fn new() -> Field {
        // It may have to be started, which blocks.
        let cluster = done(tokio::task::spawn_blocking(cluster).await.map_err(Into::into));
        let client = done(cluster.client());
        let namespace = done(objects::unique_namespace(&client, "field").await);
        let field = Field { client, namespace };
        let account = objects::path("v1", &field.namespace, "serviceaccounts", "default");
        field.wait(&account, "it is there", |_| true).await;
        field
    }

    /// The same, with the whole system installed and at work.
    pub async fn with_volcano() -> Field {
        let field = Field::new().await;
        install().await;
        field
    }

    /// Path of a Job.
    pub fn job_path(&self, name: &str) -> String {
        objects::path(BATCH, &self.namespace, "jobs", name)
    }

    /// Waits for the phase of a Job.
    pub async fn wait_job(&self, name: &str, phase: &str) -> Value {
        let what = format!("its phase is {phase}");
        self.wait(&self.job_path(name), &what, |job| {
            job["status"]["state"]["phase"] == phase
        })
        .await
    }

    /// Waits until a Job is in one of the phases that it ends in, and is in this one.
    pub async fn wait_end(&self, name: &str, phase: &str) -> Value {
        let ends = ["Completed", "Failed", "Terminated", "Aborted"];
        let job = self
            .wait(&self.job_path(name), "it has ended", |job| {
                ends.iter().any(|end| job["status"]["state"]["phase"] == *end)
            })
            .await;
        assert_eq!(job["status"]["state"]["phase"], phase, "{}", job["status"]);
        job
    }

    /// Waits until there are exactly these pods of a Job, each as `name phase`, those that are leaving left out.
    pub async fn wait_pods(&self, job: &str, expected: &[&str]) {
        let what = format!("the pods of {job} are {expected:?}");
        let waited = objects::wait_until(&what, PATIENCE, || async {
            let pods = objects::pods(&self.client, &self.namespace).await?;
            let mut shown: Vec<String> = pods
                .iter()
                .filter(|pod| pod["metadata"]["labels"]["volcano.sh/job-name"] == job)
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
                .map(|pod| {
                    format!(
                        "{} {}",
                        objects::name_of(pod),
                        pod["status"]["phase"].as_str().unwrap_or("")
                    )
                })
                .collect();
            shown.sort();
            Ok(check(shown == expected, || format!("{shown:?}")))
        });
        done(waited.await);
    }

    /// Gives an order to a Job.
    pub async fn order(&self, job: &str, action: &str) {
        let uid = done(objects::get(&self.client, &self.job_path(job)).await)["metadata"]["uid"].clone();
        let command = json!({
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
            "metadata": {"generateName": format!("{job}-"), "namespace": self.namespace},
            "action": action,
            "target": {"apiVersion": BATCH, "kind": "Job", "name": job, "uid": uid},
        });
        let path = objects::path("bus.volcano.sh/v1alpha1", &self.namespace, "commands", "");
        done(objects::create(&self.client, &path, &command).await);
    }

    /// `kubectl` in the test's namespace; what it prints.
    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_reading(arguments, "").await
    }

    async fn kubectl_reading(&self, arguments: &[&str], input: &str) -> String {
        let words = ["--namespace", &self.namespace]
            .into_iter()
            .chain(arguments.iter().copied());
        let words: Vec<String> = words.map(str::to_owned).collect();
        let input = input.to_owned();
        let run = tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            cluster().kubectl_reading(&words, &input)
        });
        done(done(run.await.map_err(Into::into)))
    }

    /// Applies manifests, as users do.
    pub async fn apply(&self, manifests: &str) {
        self.kubectl_reading(&["apply", "--filename", "-"], manifests)
            .await;
    }

    /// Path of a pod of the test's namespace; of all without a name.
    pub fn pod_path(&self, name: &str) -> String {
        objects::path("v1", &self.namespace, "pods", name)
    }

    /// Waits until an object is as it should be.
    pub async fn wait(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let what = format!("{path}: {what}");
        let waited = objects::wait_until(&what, PATIENCE, || async {
            let object = objects::get(&self.client, path).await?;
            Ok(match holds(&object) {
                true => Progress::Done(object),
                false => Progress::Waiting(object["status"].to_string()),
            })
        });
        done(waited.await)
    }

    /// Waits until an object is gone.
    pub async fn wait_gone(&self, path: &str) {
        let what = format!("{path} is gone");
        let waited = objects::wait_until(&what, PATIENCE, || async {
            let there = objects::try_get(&self.client, path).await?;
            Ok(check(there.is_none(), || format!("{there:?}")))
        });
        done(waited.await);
    }

    /// Waits for the phase of a pod.
    pub async fn wait_pod(&self, name: &str, phase: &str) -> Value {
        let what = format!("its phase is {phase}");
        self.wait(&self.pod_path(name), &what, |pod| pod["status"]["phase"] == phase)
            .await
    }

    /// What the first container of a pod printed, read through the API server.
    pub async fn log(&self, pod: &str) -> String {
        self.kubectl(&["logs", pod]).await
    }
}

/// With what the first container of a pod ended.
pub fn exit_code(pod: &Value) -> Option<i64> {
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64()
}
