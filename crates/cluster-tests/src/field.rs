//! Real nodes for a test: a namespace of its own, manifests as users write them, and what becomes of the pods.
//!
//! Whatever does not go as told stops the test and shows what there was instead.

#![allow(
    clippy::missing_panics_doc,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use volcano_testcluster::images::Image;
use volcano_testcluster::objects::{self, Progress, check};
use volcano_testcluster::{Cluster, Options};

use crate::acts::done;

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
