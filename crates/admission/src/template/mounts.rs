//! What a container mounts and what devices it uses: volumes of the pod, each at a place of its own.

use std::collections::BTreeSet;

use super::types::{Container, Device, Mount};
use super::volumes::{Volumes, check_no_backsteps, has_backsteps, is_claim};
use crate::field::{Errors, Path};

/// Checks the mounts and devices of a container.
pub(super) fn check(container: &Container, volumes: &Volumes<'_>, at: &Path, errors: &mut Errors) {
    let (mounts, devices) = (&container.volume_mounts, &container.volume_devices);
    let mounted = Used {
        names: mounts.iter().map(|mount| mount.name.as_str()).collect(),
        paths: mounts.iter().map(|mount| mount.mount_path.as_str()).collect(),
    };
    let attached = Used {
        names: devices.iter().map(|device| device.name.as_str()).collect(),
        paths: devices.iter().map(|device| device.device_path.as_str()).collect(),
    };
    check_mounts(mounts, &attached, volumes, &at.child("volumeMounts"), errors);
    check_devices(devices, &mounted, volumes, &at.child("volumeDevices"), errors);
}

/// Volumes and places that are in use in the other way.
struct Used<'a> {
    names: BTreeSet<&'a str>,
    paths: BTreeSet<&'a str>,
}

fn check_mounts(
    mounts: &[Mount],
    attached: &Used<'_>,
    volumes: &Volumes<'_>,
    at: &Path,
    errors: &mut Errors,
) {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let (name, path) = (
            &at.index(index).child("name"),
            &at.index(index).child("mountPath"),
        );
        if mount.name.is_empty() {
            errors.required(name, "");
        }
        if !volumes.contains_key(mount.name.as_str()) {
            errors.not_found(name, &mount.name);
        }
        if mount.mount_path.is_empty() {
            errors.required(path, "");
        }
        if !paths.insert(&mount.mount_path) {
            errors.invalid(path, mount.mount_path.as_str(), "must be unique");
        }
        if attached.names.contains(mount.name.as_str()) {
            errors.invalid(
                name,
                mount.name.as_str(),
                "must not already exist in volumeDevices",
            );
        }
        if attached.paths.contains(mount.mount_path.as_str()) {
            let rule = "must not already exist as a path in volumeDevices";
            errors.invalid(path, mount.mount_path.as_str(), rule);
        }
        check_part(mount, index, at, errors);
    }
}

/// Checks the part of a volume that is mounted.
fn check_part(mount: &Mount, index: usize, at: &Path, errors: &mut Errors) {
    let parts = [
        ("subPath", &mount.sub_path),
        ("subPathExpr", &mount.sub_path_expr),
    ];
    for (name, path) in parts.into_iter().filter(|(_, path)| !path.is_empty()) {
        if name == "subPathExpr" && !mount.sub_path.is_empty() {
            let rule = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&at.index(index).child(name), path.as_str(), rule);
        }
        // Kubernetes names the list here, not the entry.
        if path.starts_with('/') {
            errors.invalid(&at.child(name), path.as_str(), "must be a relative path");
        }
        check_no_backsteps(path, &at.child(name), errors);
    }
}

fn check_devices(
    devices: &[Device],
    mounted: &Used<'_>,
    volumes: &Volumes<'_>,
    at: &Path,
    errors: &mut Errors,
) {
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in devices.iter().enumerate() {
        let (name, path) = (
            &at.index(index).child("name"),
            &at.index(index).child("devicePath"),
        );
        let (named, placed) = (device.name.as_str(), device.device_path.as_str());
        if named.is_empty() {
            errors.required(name, "");
        } else if !names.insert(named) {
            errors.invalid(name, named, "must be unique");
        }
        match volumes.get(named) {
            None => errors.not_found(name, named),
            Some(volume) if is_claim(volume) => {}
            Some(_) => {
                let rule =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(name, named, rule);
            }
        }
        if placed.is_empty() {
            errors.required(path, "");
        } else if has_backsteps(placed) {
            errors.invalid(path, placed, "can not contain backsteps ('..')");
        } else if !paths.insert(placed) {
            errors.invalid(path, placed, "must be unique");
        }
        if mounted.names.contains(named) {
            errors.invalid(name, named, "must not already exist in volumeMounts");
        }
        if mounted.paths.contains(placed) {
            errors.invalid(path, placed, "must not already exist as a path in volumeMounts");
        }
    }
}
