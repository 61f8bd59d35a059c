//! Volumes: names, and what is behind them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::types::Volume;
use crate::field::{Errors, Path};
use crate::syntax;

/// What can be behind a volume, in the order in which Kubernetes looks.
const KINDS: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];
const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The volumes of a pod that have no fault, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Volume>;

/// Checks the volumes of a pod.
pub(super) fn check<'a>(volumes: &'a [Volume], at: &Path, errors: &mut Errors) -> Volumes<'a> {
    let mut good = Volumes::new();
    for (index, volume) in volumes.iter().enumerate() {
        let place = at.index(index);
        let before = errors.count();
        check_source(&volume.sources, &place, errors);
        let name = place.child("name");
        if volume.name.is_empty() {
            errors.required(&name, "");
        } else {
            errors.invalid_each(&name, &volume.name, &syntax::dns_label(&volume.name));
        }
        if good.contains_key(volume.name.as_str()) {
            errors.duplicate(&name, &volume.name);
        }
        if errors.count() == before {
            good.insert(&volume.name, volume);
        }
    }
    good
}

/// Checks what is behind a volume. Nothing at all is an empty directory.
fn check_source(sources: &Map<String, Value>, at: &Path, errors: &mut Errors) {
    let mut found = false;
    for (kind, source) in KINDS.iter().filter_map(|kind| Some((kind, sources.get(*kind)?))) {
        let place = at.child(kind);
        if found {
            errors.forbidden(&place, "may not specify more than 1 volume type");
        } else {
            found = true;
            check_members(kind, source, &place, errors);
        }
    }
}

fn check_members(kind: &str, source: &Value, at: &Path, errors: &mut Errors) {
    let text = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
    let needed: &[&str] = match kind {
        "hostPath" => &["path"],
        "secret" => &["secretName"],
        "nfs" => &["server", "path"],
        "persistentVolumeClaim" => &["claimName"],
        "configMap" => &["name"],
        _ => &[],
    };
    for name in needed.iter().filter(|name| text(name).is_empty()) {
        errors.required(&at.child(name), "");
    }
    let path = text("path");
    if kind == "hostPath" && !path.is_empty() {
        check_no_backsteps(path, &at.child("path"), errors);
        if !HOST_PATH_TYPES.contains(&text("type")) {
            errors.not_supported(&at.child("type"), text("type"), &HOST_PATH_TYPES);
        }
    }
    if kind == "nfs" && !path.starts_with('/') {
        errors.invalid(&at.child("path"), path, "must be an absolute path");
    }
    if ["secret", "configMap"].contains(&kind)
        && let Some(mode) = source.get("defaultMode").and_then(Value::as_i64)
        && !(0..=0o777).contains(&mode)
    {
        let rule = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.invalid(&at.child("defaultMode"), mode, rule);
    }
}

/// Whether a volume is a claim, which alone can be used as a device.
pub(super) fn is_claim(volume: &Volume) -> bool {
    ["persistentVolumeClaim", "ephemeral"]
        .iter()
        .any(|kind| volume.sources.contains_key(*kind))
}

/// A path that leaves the directory it is in may not be used.
pub(super) fn check_no_backsteps(path: &str, at: &Path, errors: &mut Errors) {
    if has_backsteps(path) {
        errors.invalid(at, path, "must not contain '..'");
    }
}

/// Whether a path leads upwards somewhere.
pub(super) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}
