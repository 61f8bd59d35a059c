//! The webhook manager on a real API server: installed from the manifests, asked by kubectl.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod certificates;
mod installation;
mod rules;
mod server;

use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use volcano_cluster_tests::webhooks::{self, ALL, Manager};
use volcano_cluster_tests::{cluster, install};
use volcano_testcluster::{objects, ports};

/// Webhook configurations are the cluster's, so tests take turns.
static TURN: Mutex<()> = Mutex::const_new(());
static INSTALLED: OnceCell<Vec<Value>> = OnceCell::const_new();

/// An installed cluster and a namespace for one test, which has a turn.
struct Scene {
    client: kube::Client,
    namespace: String,
    folder: PathBuf,
    configurations: &'static [Value],
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// Without a webhook, and with the queues `root` and `default`.
    async fn set() -> Scene {
        let turn = TURN.lock().await;
        let client = cluster().client().unwrap();
        let configurations = INSTALLED
            .get_or_init(|| async {
                let enabled = format!("--enabled-admission={ALL}");
                install::apply(
                    "namespace,crds,scheduler,controllers,admission,users",
                    &[&enabled],
                )
                .unwrap();
                // Registered for each test at its own port, and for a while nowhere.
                let configurations = install::apply("webhooks", &[&enabled]).unwrap();
                unregister(&client, &configurations).await;
                for queue in ["root", "default"] {
                    objects::create_queue(&client, queue, 1, &json!({}))
                        .await
                        .unwrap();
                    open(&client, queue).await;
                }
                configurations
            })
            .await;
        unregister(&client, configurations).await;
        let namespace = objects::unique_namespace(&client, "admission").await.unwrap();
        let folder = cluster().data_directory().join(&namespace);
        std::fs::create_dir_all(&folder).unwrap();
        Scene {
            client,
            namespace,
            folder,
            configurations,
            _turn: turn,
        }
    }

    /// Registers a port and starts a manager there with a certificate in files, ready. The manager and its authority.
    async fn manager(&self, flags: &[String]) -> (Manager, Vec<u8>) {
        let [port] = ports::free().unwrap();
        self.register(port).await;
        let folder = self.folder.join("certificate");
        let authority = webhooks::certificate(&folder).unwrap();
        let flags = [webhooks::files(&folder), flags.to_vec()].concat();
        let mut manager = Manager::launch(port, &flags).await.unwrap();
        manager.ready(&authority).await.unwrap();
        (manager, authority)
    }

    async fn register(&self, port: u16) {
        webhooks::register(port, self.configurations).await.unwrap();
    }

    /// Applies a manifest with kubectl; what it says if it is refused.
    fn apply(&self, manifest: &Value) -> Result<(), String> {
        let path = self.folder.join("manifest.json");
        std::fs::write(&path, manifest.to_string()).unwrap();
        let file = path.display().to_string();
        let applied = cluster().kubectl(&["apply", "-n", &self.namespace, "-f", &file]);
        applied.map(drop).map_err(|error| format!("{error:#}"))
    }

    /// Asserts that a manifest is refused by a webhook with exactly this message.
    fn refused(&self, manifest: &Value, webhook: &str, message: &str) {
        let said = self.apply(manifest).unwrap_err();
        let marker = format!("admission webhook \"{webhook}\" denied the request: ");
        let (_, after) = said
            .split_once(&marker)
            .unwrap_or_else(|| panic!("{webhook}: {said}"));
        assert_eq!(after.trim_end(), message, "{webhook}");
    }

    async fn get(&self, api_version: &str, plural: &str, name: &str) -> Value {
        let cluster_wide = ["queues", "hypernodes"].contains(&plural);
        let namespace = if cluster_wide { "" } else { &self.namespace };
        let path = objects::path(api_version, namespace, plural, name);
        objects::get(&self.client, &path).await.unwrap()
    }
}

async fn unregister(client: &kube::Client, configurations: &[Value]) {
    for configuration in configurations {
        let path = webhooks::path_of(configuration);
        objects::delete(client, &path).await.unwrap();
    }
}

/// Opens a queue, as the queue controller does.
async fn open(client: &kube::Client, queue: &str) {
    let path = objects::path("scheduling.volcano.sh/v1beta1", "", "queues", queue);
    objects::merge_patch_status(client, &path, &json!({"state": "Open"}))
        .await
        .unwrap();
}

/// A Job of one task.
fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [{"replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "none"}]}}}]},
    })
}

/// A pod of a scheduler.
fn pod(name: &str, scheduler: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "none"}]},
    })
}
