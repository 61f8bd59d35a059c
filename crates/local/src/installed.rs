//! What an installation has: its namespace, its webhook configurations, and the queues that are always there.

use serde_json::{Value, json};
use volcano_admission::webhooks::{ALL, Installation};
use volcano_api::names::kinds::QUEUE;
use volcano_api::names::{SCHEDULER, queues};
use volcano_runtime::client::{CallError, Client, Patch};
use volcano_runtime::scheduler::standing_queues;

/// The namespace of the system.
pub const NAMESPACE: &str = "volcano-system";
/// The Service that webhook configurations name; it is answered for in this process.
pub const ADMISSION_SERVICE: &str = "volcano-admission-service";

/// Makes the namespace and the webhook configurations. They are those of `volcano manifests`, with its defaults.
///
/// # Errors
/// What was refused, and why.
pub async fn install(client: &Client) -> Result<(), (String, CallError)> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    put(client, "/api/v1/namespaces", NAMESPACE, &namespace).await?;
    let installation = Installation {
        service: ADMISSION_SERVICE.to_owned(),
        namespace: NAMESPACE.to_owned(),
        namespace_expressions: Vec::new(),
        scheduler_names: vec![SCHEDULER.to_owned()],
    };
    for webhook in ALL.iter().filter(|webhook| webhook.rendered_by_default) {
        let kind = webhook.configuration_kind().to_ascii_lowercase();
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}s");
        let object = webhook.configuration(&installation);
        put(client, &path, &webhook.configuration_name(), &object).await?;
    }
    Ok(())
}

/// Makes the queues, once admission answers.
///
/// # Errors
/// What was refused, and why.
pub async fn make_queues(client: &Client) -> Result<(), (String, CallError)> {
    let path = format!("/apis/{}/{}/{}", QUEUE.group, QUEUE.version, QUEUE.plural);
    for (name, queue) in standing_queues(queues::DEFAULT) {
        match client.post(&path, queue.to_string().into_bytes()).await {
            Err(error) if !error.is_conflict() => return Err((format!("Queue {name}"), error)),
            _ => {}
        }
    }
    Ok(())
}

/// Makes an object, or brings one from an earlier start up to date.
async fn put(client: &Client, path: &str, name: &str, object: &Value) -> Result<(), (String, CallError)> {
    let body = object.to_string().into_bytes();
    let answer = match client.post(path, body.clone()).await {
        Err(error) if error.is_conflict() => {
            client.patch(&format!("{path}/{name}"), Patch::Merge, body).await
        }
        answer => answer,
    };
    let what = || format!("{} {name}", object["kind"].as_str().unwrap_or_default());
    answer.map(drop).map_err(|error| (what(), error))
}
