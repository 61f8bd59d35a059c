//! A clean cluster for one test at a time: nodes belong to everybody, so tests take turns.

use crate::cluster;
use crate::controllers::Controllers;
use crate::scheduler::Scheduler;
use std::path::{Path, PathBuf};
use tokio::sync::{Mutex, MutexGuard};
use volcano_testcluster::objects;

static TURN: Mutex<()> = Mutex::const_new(());

/// Paths of what a test may leave behind, besides the pods and groups of its namespace.
const LEFT_BEHIND: &[&str] = &[
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
    "/apis/shard.volcano.sh/v1alpha1/nodeshards",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
];
/// Kinds whose objects make pods, or have others make them.
const MAKERS: [(&str, &str); 7] = [
    ("bus.volcano.sh/v1alpha1", "commands"),
    ("flow.volcano.sh/v1alpha1", "jobflows"),
    ("flow.volcano.sh/v1alpha1", "jobtemplates"),
    ("batch.volcano.sh/v1alpha1", "jobs"),
    ("apps/v1", "deployments"),
    ("apps/v1", "replicasets"),
    ("apps/v1", "statefulsets"),
];
const NAMESPACE_PREFIX: &str = "test-";

/// A cluster without nodes and pods, and a namespace for the test.
pub struct Stage {
    /// Who the test acts as.
    pub client: kube::Client,
    /// The test's namespace.
    pub namespace: String,
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    /// Waits for the test's turn and clears the cluster.
    ///
    /// # Errors
    /// When the API server does not do as it is told.
    pub async fn set() -> anyhow::Result<Stage> {
        let turn = TURN.lock().await;
        let client = cluster().client()?;
        clear(&client).await?;
        let namespace = objects::unique_namespace(&client, NAMESPACE_PREFIX.trim_end_matches('-')).await?;
        Ok(Stage {
            client,
            namespace,
            folder: cluster().data_directory().to_owned(),
            _turn: turn,
        })
    }

    /// A scheduler of this cluster with more flags, ready. It leads at once: nobody else campaigns.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn scheduler(&self, flags: &[&str]) -> anyhow::Result<Scheduler> {
        Scheduler::start(&cluster().kubeconfig_path(), &self.folder, flags)
    }

    /// A controller manager of this cluster with more flags, ready. It may write as fast as it can.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn controllers(&self, flags: &[&str]) -> anyhow::Result<Controllers> {
        let flags = [&["--kube-api-qps=0"], flags].concat();
        Controllers::start(&cluster().kubeconfig_path(), &self.folder, &flags)
    }

    /// A scheduler with a configuration.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn configured(&self, conf: &str) -> anyhow::Result<Scheduler> {
        let path = self.file("scheduler.conf", conf)?;
        self.scheduler(&[&format!("--scheduler-conf={}", path.display())])
    }

    /// A scheduler that connects as somebody else, not waited for.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn launch(&self, kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<Scheduler> {
        Scheduler::launch(kubeconfig, &self.folder, flags)
    }

    /// Makes a folder for the test.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(format!("{}-{name}", self.namespace));
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Writes a file into the test's folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(format!("{}-{name}", self.namespace));
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

async fn clear(client: &kube::Client) -> anyhow::Result<()> {
    for namespace in objects::list(client, "/api/v1/namespaces").await? {
        let name = objects::name_of(&namespace);
        if name.starts_with(NAMESPACE_PREFIX) {
            // Jobs before what they would make again.
            for (version, plural) in MAKERS {
                objects::delete(client, &objects::path(version, name, plural, "")).await?;
            }
            objects::delete_pods(client, name).await?;
            let groups = objects::path("scheduling.volcano.sh/v1beta1", name, "podgroups", "");
            objects::delete(client, &groups).await?;
            let claims = objects::path("v1", name, "persistentvolumeclaims", "");
            objects::delete(client, &claims).await?;
        }
    }
    for path in LEFT_BEHIND {
        objects::delete(client, path).await?;
    }
    Ok(())
}
