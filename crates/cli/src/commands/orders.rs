//! Commands to controllers: an object of kind Command with what it is for as its target and owner.

use crate::api::Api;
use crate::failure::Failure;
use serde_json::json;
use volcano_api::bus::Action;
use volcano_api::names::{Kind, kinds};

/// Gives an order for an object; the Command is made in `place`.
pub async fn give(
    api: &Api,
    kind: Kind,
    namespace: &str,
    name: &str,
    action: Action,
    place: &str,
) -> Result<(), Failure> {
    let object: crate::live::Whole = api.get(kind, namespace, name).await?;
    let target = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "name": name,
        "uid": object.0["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    });
    let command = json!({
        "apiVersion": kinds::COMMAND.api_version(),
        "kind": kinds::COMMAND.kind,
        "metadata": {
            "generateName": format!("{name}-{}-", action.as_str().to_lowercase()),
            "namespace": place,
            "ownerReferences": [target],
        },
        "action": action,
        "target": target,
    });
    api.create(kinds::COMMAND, place, &command).await.map(drop)
}
