//! Volume binding: volumes that claims have, and volumes for claims that wait for their pod's node.
//!
//! A placement decides which volume a waiting claim gets. Until the claim shows it, that decision is kept in
//! `Plans`, so that no second claim gets the same volume and no second pod of the claim goes elsewhere.

use super::capacity::Room;
use super::score::{Fill, Shape};
use super::{State, claims_of, class_name, reaches, state};
use crate::explain::FitReason;
use crate::ids::{NodeId, Sym, TaskId};
use crate::model::Model;
use crate::model::delta::Delta;
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::core::{PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeClaimRef};
use volcano_api::quantity::Quantity;

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const STORAGE: &str = "storage";
const NOT_ENOUGH_STORAGE: &str = "node(s) did not have enough free storage";
const MISSING_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// A claim by namespace and name.
pub type ClaimKey = (Sym, Box<str>);

/// How a waiting claim is served on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// By this volume, which is there.
    Volume(Box<str>),
    /// By one that its class's driver makes for the node.
    Made,
}

/// What placements have decided for claims that do not show it yet.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Plans {
    by_claim: BTreeMap<ClaimKey, Plan>,
}

#[derive(Clone, Debug)]
struct Plan {
    node: NodeId,
    source: Source,
    // Tasks that rely on it, with their UIDs: an id may be given to another pod.
    users: Vec<(TaskId, Box<str>)>,
}

impl Plans {
    /// Drops what has come about or has been given up since the last cycle.
    pub(in super::super) fn refresh(&mut self, m: &Model) {
        self.by_claim.retain(|key, plan| {
            let node = plan.node;
            plan.users.retain(|user| relies(m, user, node));
            waits(m, key) && !plan.users.is_empty()
        });
    }

    /// Writes what holds on into the objects: a volume is set aside for its claim, a claim names the node that its
    /// volume is to be made for. Executors write the same before they bind a pod.
    pub(in super::super) fn show(&self, m: &Model, object: &mut Delta) {
        let holds =
            |key: &ClaimKey, plan: &Plan| waits(m, key) && plan.users.iter().any(|u| relies(m, u, plan.node));
        match object {
            Delta::Claim(claim) if !self.by_claim.is_empty() => {
                let Some(namespace) = m.strings.get(&claim.metadata.namespace) else {
                    return;
                };
                let key = (namespace, claim.metadata.name.as_str().into());
                let plan = self.by_claim.get(&key).filter(|plan| holds(&key, plan));
                if let Some(plan) = plan.filter(|plan| plan.source == Source::Made) {
                    let node = m.text(m.nodes[plan.node].name).to_owned();
                    claim.metadata.annotations.insert(SELECTED_NODE.to_owned(), node);
                }
            }
            Delta::Volume(volume) => {
                let name = volume.metadata.name.as_str();
                let gives = |plan: &Plan| matches!(&plan.source, Source::Volume(given) if **given == *name);
                let plan = self.by_claim.iter().find(|(_, plan)| gives(plan));
                if let Some((key, _)) = plan.filter(|(key, plan)| holds(key, plan))
                    && let Some(claim) = m.cluster.claims.get(key)
                {
                    volume.spec.claim_ref = Some(VolumeClaimRef {
                        namespace: claim.metadata.namespace.clone(),
                        name: claim.metadata.name.clone(),
                        uid: claim.metadata.uid.clone(),
                    });
                }
            }
            _ => {}
        }
    }

    /// A task got its node.
    pub(in super::super) fn place(&mut self, m: &Model, task: TaskId) {
        if m.class_of(task).claims.is_empty() {
            return;
        }
        let Some(node) = m.task(task).node else { return };
        let Some(served) = Binding::of(m, task, self).and_then(|binding| binding.serve(m, node).ok()) else {
            return;
        };
        for (key, source) in served {
            let plan = self.by_claim.entry(key).or_insert_with(|| Plan {
                node,
                source,
                users: Vec::new(),
            });
            plan.users.push((task, m.task(task).uid.clone()));
        }
    }

    /// How each waiting claim of a placed task is to be served: what is to be written before the task is bound.
    pub(in super::super) fn sources(&self, m: &Model, task: TaskId) -> Vec<(ClaimKey, Source)> {
        let keys = claims_of(m, task).map(|(name, _, _)| (m.task(task).namespace, name));
        keys.filter_map(|key| {
            let source = self.by_claim.get(&key)?.source.clone();
            Some((key, source))
        })
        .collect()
    }

    /// A task lost its node.
    pub(in super::super) fn unplace(&mut self, m: &Model, task: TaskId) {
        if m.class_of(task).claims.is_empty() || self.by_claim.is_empty() {
            return;
        }
        for (name, _, _) in claims_of(m, task) {
            let key = (m.task(task).namespace, name);
            if let Some(plan) = self.by_claim.get_mut(&key) {
                plan.users.retain(|(user, _)| *user != task);
                if plan.users.is_empty() {
                    self.by_claim.remove(&key);
                }
            }
        }
    }
}

/// The claim still waits for its pod's node.
fn waits(m: &Model, key: &ClaimKey) -> bool {
    let claim = m.cluster.claims.get(key);
    claim.is_some_and(|claim| matches!(state(m, claim), State::Delayed(_)))
}

/// The task is still where the plan put it.
fn relies(m: &Model, (task, uid): &(TaskId, Box<str>), node: NodeId) -> bool {
    let still = m.tasks.get(task.index()).filter(|t| t.live && t.uid == *uid);
    still.is_some_and(|t| t.node == Some(node) && t.status.is_charged())
}

struct Waiting<'a> {
    key: ClaimKey,
    claim: &'a PersistentVolumeClaim,
    class: &'a StorageClass,
    plan: Option<&'a Plan>,
    // Volumes that could serve it from some node, smallest first; only the one that was set aside for it, if any.
    volumes: Vec<&'a PersistentVolume>,
    // Where its driver has free storage for it; `None` when the driver does not tell.
    room: Option<Room<'a>>,
}

/// The claims of one task.
pub(in super::super) struct Binding<'a> {
    bound: Vec<Option<&'a PersistentVolume>>,
    waiting: Vec<Waiting<'a>>,
    taken: BTreeSet<&'a str>,
}

fn size(claim: &PersistentVolumeClaim) -> Quantity {
    claim
        .spec
        .resources
        .requests
        .get(STORAGE)
        .copied()
        .unwrap_or_default()
}

fn capacity(volume: &PersistentVolume) -> Quantity {
    volume.spec.capacity.get(STORAGE).copied().unwrap_or_default()
}

impl<'a> Binding<'a> {
    /// `None` when no claim limits where the task may go.
    pub(in super::super) fn of(m: &'a Model, task: TaskId, plans: &'a Plans) -> Option<Self> {
        let mut binding = Binding {
            bound: Vec::new(),
            waiting: Vec::new(),
            taken: BTreeSet::new(),
        };
        for (name, _, claim) in claims_of(m, task) {
            let Some(claim) = claim else { continue };
            let key = (m.task(task).namespace, name);
            match state(m, claim) {
                State::Bound(volume) if volume.is_none_or(|v| v.spec.node_affinity.is_some()) => {
                    binding.bound.push(volume);
                }
                State::Delayed(class) => {
                    let plan = plans.by_claim.get(&key);
                    let volumes = if plan.is_none() {
                        volumes_for(m, claim)
                    } else {
                        Vec::new()
                    };
                    binding.waiting.push(Waiting {
                        key,
                        claim,
                        class,
                        plan,
                        volumes,
                        room: Room::of(m, class, size(claim)),
                    });
                }
                State::Bound(_) | State::Immediate => {}
            }
        }
        if binding.bound.is_empty() && binding.waiting.is_empty() {
            return None;
        }
        // Small claims choose first, so that a large volume is left for a large claim.
        binding
            .waiting
            .sort_by(|a, b| size(a.claim).cmp(&size(b.claim)).then_with(|| a.key.cmp(&b.key)));
        binding
            .taken
            .extend(plans.by_claim.values().filter_map(|plan| match &plan.source {
                Source::Volume(name) => Some(&**name),
                Source::Made => None,
            }));
        Some(binding)
    }

    pub(in super::super) fn filter(&self, m: &Model, node: NodeId) -> Option<FitReason> {
        for volume in &self.bound {
            match volume {
                None => return Some(FitReason::Other(MISSING_VOLUME.into())),
                Some(volume) if !reaches(m, volume, node) => return Some(FitReason::VolumeNodeAffinity),
                Some(_) => {}
            }
        }
        if self.waiting.is_empty() {
            return None;
        }
        self.serve(m, node).err()
    }

    /// How well what would serve the waiting claims suits them, of 100: the mean over their classes. Volumes that are
    /// there count alone, by their sizes; without any, what is made counts by the free storage of its place.
    pub(in super::super) fn score(&self, m: &'a Model, node: NodeId, shape: &Shape) -> i64 {
        let Ok(served) = self.serve(m, node) else {
            return 0;
        };
        let (mut there, mut made) = (Fill::default(), Fill::default());
        for (waiting, (_, source)) in self.waiting.iter().zip(served) {
            let (class, asked) = (waiting.class.metadata.name.as_str(), size(waiting.claim));
            match source {
                Source::Volume(name) => {
                    if let Some(volume) = m.cluster.volumes.get(&name) {
                        there.add_volume(class, asked, capacity(volume));
                    }
                }
                Source::Made => {
                    let place = waiting.room.as_ref().and_then(|room| room.place(m, node));
                    if let Some(place) = place {
                        made.add_storage(class, asked, &place.object);
                    }
                }
            }
        }
        shape.mean(if there.is_empty() { &made } else { &there })
    }

    /// How the waiting claims are served on a node, or why one cannot be.
    fn serve(&self, m: &'a Model, node: NodeId) -> Result<Vec<(ClaimKey, Source)>, FitReason> {
        let mut taken = self.taken.clone();
        let mut served = Vec::new();
        for waiting in &self.waiting {
            let source = waiting.serve(m, node, &taken)?;
            if let Source::Volume(name) = &source
                && let Some((name, _)) = m.cluster.volumes.get_key_value(name)
            {
                taken.insert(name);
            }
            served.push((waiting.key.clone(), source));
        }
        Ok(served)
    }
}

/// The volumes that could serve a claim from some node, smallest first.
fn volumes_for<'a>(m: &'a Model, claim: &PersistentVolumeClaim) -> Vec<&'a PersistentVolume> {
    let usable = || m.cluster.volumes.values().filter(|volume| fits(claim, volume));
    if let Some(reserved) = usable().find(|volume| is_reserved(claim, volume)) {
        return vec![reserved];
    }
    let mut free: Vec<_> = usable().filter(|volume| is_free(claim, volume)).collect();
    free.sort_by_key(|volume| capacity(volume)); // Stable: equal ones stay in the order of their names.
    free
}

fn fits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let is_block = |mode: &Option<String>| mode.as_deref() == Some("Block");
    volume.spec.storage_class_name == class_name(claim)
        && size(claim) <= capacity(volume)
        && is_block(&volume.spec.volume_mode) == is_block(&claim.spec.volume_mode)
        && volume.metadata.deletion_timestamp.is_none()
}

/// The volume was set aside for this claim.
fn is_reserved(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let meta = &claim.metadata;
    volume.spec.claim_ref.as_ref().is_some_and(|reserved| {
        reserved.name == meta.name
            && reserved.namespace == meta.namespace
            && (reserved.uid.is_empty() || reserved.uid == meta.uid)
    })
}

fn is_free(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    volume.spec.claim_ref.is_none()
        && volume.status.phase == "Available"
        && claim
            .spec
            .selector
            .as_ref()
            .is_none_or(|s| s.matches(&volume.metadata.labels))
        && claim
            .spec
            .access_modes
            .iter()
            .all(|mode| volume.spec.access_modes.contains(mode))
}

impl Waiting<'_> {
    fn serve(&self, m: &Model, node: NodeId, taken: &BTreeSet<&str>) -> Result<Source, FitReason> {
        if let Some(plan) = self.plan {
            let fits = match &plan.source {
                Source::Volume(name) => m.cluster.volumes.get(name).is_some_and(|v| reaches(m, v, node)),
                Source::Made => plan.node == node,
            };
            return fits.then(|| plan.source.clone()).ok_or(FitReason::VolumeBind);
        }
        if let Some(selected) = self.claim.metadata.annotations.get(SELECTED_NODE) {
            // A volume is being made already, and for that node: what is free there may lack it by now.
            let is_there = selected == m.text(m.nodes[node].name) && self.can_be_made(m, node);
            return is_there.then_some(Source::Made).ok_or(FitReason::VolumeBind);
        }
        let usable =
            |v: &&&PersistentVolume| !taken.contains(v.metadata.name.as_str()) && reaches(m, v, node);
        match self.volumes.iter().find(usable) {
            Some(volume) => Ok(Source::Volume(volume.metadata.name.as_str().into())),
            None => self.make(m, node),
        }
    }

    fn make(&self, m: &Model, node: NodeId) -> Result<Source, FitReason> {
        if !self.can_be_made(m, node) {
            return Err(FitReason::VolumeBind);
        }
        match &self.room {
            Some(room) if room.place(m, node).is_none() => Err(FitReason::Other(NOT_ENOUGH_STORAGE.into())),
            _ => Ok(Source::Made),
        }
    }

    /// The class's driver can make a volume for the node.
    fn can_be_made(&self, m: &Model, node: NodeId) -> bool {
        let class = self.class;
        let within = |key: &str, values: &[String]| {
            super::node_label(m, node, key).is_some_and(|value| values.iter().any(|v| v == value))
        };
        !class.provisioner.is_empty()
            && class.provisioner != NO_PROVISIONER
            && (class.allowed_topologies.is_empty()
                || class.allowed_topologies.iter().any(|term| {
                    let labels = &term.match_label_expressions;
                    !labels.is_empty() && labels.iter().all(|l| within(&l.key, &l.values))
                }))
    }
}
