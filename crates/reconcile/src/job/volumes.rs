//! The claims of a Job: how they are named, which are made and which have to be there.

use serde_json::{Value, json};
use volcano_api::batch::{Job, JobStatus, VolumeSpec};

use volcano_api::names::{controlled, kinds};

use super::status::to_value;
use crate::write::{Target, Write, controller};

/// What a Job's volumes need.
#[derive(Debug, PartialEq)]
pub enum Claims {
    /// These writes, in order; nothing when all is there.
    Need(Vec<Vec<Write>>),
    /// A claim that the Job names and does not make is not there. The words say which.
    Missing(String),
}

/// What the volumes need, given which claims there are.
pub fn claims(job: &Job, exists: &dyn Fn(&str) -> bool) -> Claims {
    let names = names(job);
    let mut makes = Vec::new();
    for (volume, name) in job.spec.volumes.iter().zip(&names) {
        match &volume.volume_claim {
            _ if exists(name) => {}
            Some(_) => makes.push(claim(job, volume, name)),
            None if volume.volume_claim_name.is_empty() => {}
            None => {
                return Claims::Missing(format!(
                    "pvc {name} is not found, the job will be in the Pending state until the PVC is created"
                ));
            }
        }
    }
    let is_named = job
        .spec
        .volumes
        .iter()
        .all(|volume| !volume.volume_claim_name.is_empty());
    let naming = if is_named {
        vec![]
    } else {
        vec![naming(job, &names)]
    };
    Claims::Need(vec![naming, makes])
}

/// The claim of each volume. A volume without one gets a name that is its own for good, so that a claim is never made
/// twice, whenever the name is written down.
pub fn names(job: &Job) -> Vec<String> {
    let name = |(at, volume): (usize, &VolumeSpec)| {
        if volume.volume_claim_name.is_empty() {
            let draw = draw(&[&job.metadata.uid, "claim", &at.to_string()]);
            format!("{}-pvc-{draw}", job.metadata.name)
        } else {
            volume.volume_claim_name.clone()
        }
    };
    job.spec.volumes.iter().enumerate().map(name).collect()
}

/// Notes the claims in the status.
pub fn note(job: &Job, status: &mut JobStatus) {
    for name in names(job) {
        let key = format!("{}{name}", controlled::VOLUME_PREFIX);
        status.controlled_resources.insert(key, name);
    }
}

/// Twelve letters and digits that look drawn and follow from the words alone.
pub fn draw(words: &[&str]) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    // FNV-1a, with a last round of mixing so that similar words do not look alike.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 29;
    (0..12)
        .map(|_| {
            let letter = LETTERS[(hash % 36) as usize];
            hash /= 36;
            char::from(letter)
        })
        .collect()
}

fn claim(job: &Job, volume: &VolumeSpec, name: &str) -> Write {
    let kind = kinds::PERSISTENT_VOLUME_CLAIM;
    let namespace = &job.metadata.namespace;
    Write::Create {
        target: Target::named(kind, namespace, name),
        body: json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {"name": name, "namespace": namespace, "ownerReferences": [controller(job)]},
            "spec": to_value(&volume.volume_claim),
        }),
        fill: None,
    }
}

/// Writes the names of claims into the spec, where users look for them.
fn naming(job: &Job, names: &[String]) -> Write {
    let mut volumes = job.spec.volumes.clone();
    for (volume, name) in volumes.iter_mut().zip(names) {
        volume.volume_claim_name.clone_from(name);
    }
    Write::Patch {
        target: Target::of(job),
        patch: json!({"spec": {"volumes": to_value(&volumes)}}),
        status: false,
        resource_version: None,
    }
}

/// Mounts the claims in every container of a pod: the volumes, and a mount for each. A claim is mounted once.
pub fn mounts(job: &Job, pod: &str) -> Vec<(Value, Value)> {
    let mut mounted = Vec::new();
    let mut mounts = Vec::new();
    for (at, (volume, claim)) in job.spec.volumes.iter().zip(names(job)).enumerate() {
        if mounted.contains(&claim) {
            continue;
        }
        let draw = draw(&[&job.metadata.uid, pod, &at.to_string()]);
        let name = format!("{}-{draw}", job.metadata.name);
        let source = json!({"name": name, "persistentVolumeClaim": {"claimName": claim}});
        mounts.push((source, json!({"name": name, "mountPath": volume.mount_path})));
        mounted.push(claim);
    }
    mounts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn job(volumes: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "j", "namespace": "ns", "uid": "u1"},
            "spec": {"volumes": volumes},
        }))
        .expect("readable")
    }

    fn claims_of(job: &Job, existing: &[&str]) -> Claims {
        claims(job, &|name| existing.contains(&name))
    }

    #[test]
    fn a_claim_that_is_to_be_made_is_named_for_good_and_then_made() {
        let volumes = json!([{"mountPath": "/data", "volumeClaim": {"storageClassName": "fast"}}]);
        let job = job(volumes);
        let name = names(&job).remove(0);
        let again = names(&job).remove(0);
        assert_eq!(name.len(), "j-pvc-".len() + 12);
        assert_eq!(again, name, "the name follows from the job alone");
        let Claims::Need(steps) = claims_of(&job, &[]) else {
            panic!("the claim can be made");
        };
        let [naming, making] = &steps[..] else {
            panic!("two steps: {steps:?}");
        };
        let [Write::Patch { patch, .. }] = &naming[..] else {
            panic!("the name is written down: {naming:?}");
        };
        let named = json!({"mountPath": "/data", "volumeClaimName": name,
            "volumeClaim": {"storageClassName": "fast"}});
        assert_eq!(*patch, json!({"spec": {"volumes": [named]}}));
        let [Write::Create { body, .. }] = &making[..] else {
            panic!("the claim is made: {making:?}");
        };
        let owner = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u1",
            "controller": true, "blockOwnerDeletion": true});
        let expected = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"storageClassName": "fast"},
            "metadata": {"name": name, "namespace": "ns", "ownerReferences": [owner]}});
        assert_eq!(*body, expected);
    }

    #[test]
    fn a_claim_that_is_named_is_made_or_has_to_be_there() {
        let own = json!([{"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {}}]);
        let foreign = json!([{"mountPath": "/a", "volumeClaimName": "c"}]);
        let nothing = Claims::Need(vec![vec![], vec![]]);
        assert_eq!(claims_of(&job(own.clone()), &["c"]), nothing);
        assert_eq!(claims_of(&job(foreign.clone()), &["c"]), nothing);
        let Claims::Need(steps) = claims_of(&job(own), &[]) else {
            panic!("the job makes it");
        };
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(
            claims_of(&job(foreign), &[]),
            Claims::Missing(
                "pvc c is not found, the job will be in the Pending state until the PVC is created".into()
            )
        );
    }

    #[test]
    fn a_claim_is_mounted_once() {
        let volumes = json!([
            {"mountPath": "/a", "volumeClaimName": "c"},
            {"mountPath": "/b", "volumeClaimName": "d"},
            {"mountPath": "/c", "volumeClaimName": "c"},
        ]);
        let job = job(volumes);
        let paths: Vec<_> = mounts(&job, "j-t-0")
            .into_iter()
            .map(|(_, mount)| mount["mountPath"].clone())
            .collect();
        assert_eq!(paths, ["/a", "/b"]);
        assert_ne!(
            mounts(&job, "j-t-0"),
            mounts(&job, "j-t-1"),
            "each pod has names of its own"
        );
    }

    #[test]
    fn drawn_words_differ() {
        let drawn: BTreeSet<_> = (0..10_000).map(|at| draw(&["job", &at.to_string()])).collect();
        assert_eq!(drawn.len(), 10_000);
        assert!(drawn.iter().all(|word| word.len() == 12));
        let words_are_apart = draw(&["a", "bc"]) != draw(&["ab", "c"]);
        assert!(words_are_apart);
    }
}
