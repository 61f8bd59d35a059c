//! How many volumes of a CSI driver a node can attach. Distinct volumes count: pods that share one share its place. Some
//! drivers' volumes do not count: those of local disks, and those that the scheduler is told to ignore.

use super::{State, claims_of, class_name, state};
use crate::explain::FitReason;
use crate::ids::{NodeId, TaskId};
use crate::model::Model;
use std::collections::BTreeSet;
use volcano_api::core::StorageClass;
use volcano_api::names::CSI_DRIVER_PARAMETER;

/// A volume of a driver, by the driver's own name for it; one that is still to be made has the name of its claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attachment<'a> {
    driver: &'a str,
    volume: Volume<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Volume<'a> {
    Handle(&'a str),
    Claim(&'a str, Box<str>),
}

fn attachments(m: &Model, task: TaskId) -> impl Iterator<Item = Attachment<'_>> {
    let counts = |attachment: &Attachment<'_>| m.features.counts_attachments_of(attachment.driver);
    let all = claims_of(m, task).filter_map(move |(name, _, claim)| {
        let claim = claim?;
        let class = m.cluster.storage_classes.get(class_name(claim));
        match state(m, claim) {
            State::Bound(Some(volume)) => {
                let csi = volume.spec.csi.as_ref()?;
                Some(Attachment {
                    driver: &csi.driver,
                    volume: Volume::Handle(&csi.volume_handle),
                })
            }
            State::Bound(None) | State::Delayed(_) | State::Immediate => {
                let namespace = m.text(m.task(task).namespace);
                Some(Attachment {
                    driver: driver_of(class?),
                    volume: Volume::Claim(namespace, name),
                })
            }
        }
    });
    all.filter(counts)
}

/// The driver of volumes that a class makes.
fn driver_of(class: &StorageClass) -> &str {
    let named = class.parameters.get(CSI_DRIVER_PARAMETER);
    named.unwrap_or(&class.provisioner)
}

/// The attachments that one task needs.
pub(in super::super) struct Limits<'a>(BTreeSet<Attachment<'a>>);

impl<'a> Limits<'a> {
    /// `None` when it needs none, or when no node has a limit.
    pub(in super::super) fn of(m: &'a Model, task: TaskId) -> Option<Self> {
        if m.cluster.csi_nodes.is_empty() {
            return None;
        }
        let needed: BTreeSet<_> = attachments(m, task).collect();
        (!needed.is_empty()).then_some(Limits(needed))
    }

    pub(in super::super) fn filter(&self, m: &Model, node: NodeId) -> Option<FitReason> {
        let info = m.cluster.csi_nodes.get(&m.nodes[node].name)?;
        let limit = |driver: &str| {
            let found = info.spec.drivers.iter().find(|d| d.name == driver)?;
            usize::try_from(found.allocatable.as_ref()?.count?).ok()
        };
        if self.0.iter().all(|a| limit(a.driver).is_none()) {
            return None;
        }
        let mut attached = BTreeSet::new();
        for &task in &m.nodes[node].tasks {
            if !m.task(task).evicted_now && !m.class_of(task).claims.is_empty() {
                attached.extend(attachments(m, task));
            }
        }
        let added: Vec<_> = self.0.difference(&attached).collect();
        let exceeds = |driver: &str| {
            let of_driver = |a: &&Attachment<'_>| a.driver == driver;
            let total = attached.iter().filter(of_driver).count()
                + added.iter().filter(|a| a.driver == driver).count();
            limit(driver).is_some_and(|limit| total > limit)
        };
        added
            .iter()
            .any(|a| exceeds(a.driver))
            .then_some(FitReason::VolumeLimit)
    }
}
