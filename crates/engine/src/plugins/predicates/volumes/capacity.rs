//! Free storage: where a CSI driver that tells how much it has can make a volume.

use crate::ids::{NodeId, Sym};
use crate::model::Model;
use crate::model::cluster::StorageCapacity;
use std::collections::BTreeMap;
use volcano_api::core::StorageClass;
use volcano_api::quantity::Quantity;

/// The places where a volume of some size can be made.
pub(super) struct Room<'a> {
    // By a label that their nodes must have: drivers of local disks have a place per node, and each node is asked.
    by_label: BTreeMap<(Sym, Sym), Vec<&'a StorageCapacity>>,
    others: Vec<&'a StorageCapacity>,
}

impl<'a> Room<'a> {
    /// `None` when the class's driver does not tell, or nothing is asked of it: then it has room everywhere.
    pub(super) fn of(m: &'a Model, class: &StorageClass, size: Quantity) -> Option<Self> {
        let driver = m.cluster.csi_drivers.get(class.provisioner.as_str())?;
        if !driver.spec.storage_capacity || size == Quantity::default() {
            return None;
        }
        let mut room = Room {
            by_label: BTreeMap::new(),
            others: Vec::new(),
        };
        let holds = |place: &&StorageCapacity| {
            let limit = place.object.maximum_volume_size.or(place.object.capacity);
            place.object.storage_class_name == class.metadata.name && limit.is_some_and(|limit| limit >= size)
        };
        for place in m.cluster.storage_capacities.values().filter(holds) {
            match place.nodes.needed() {
                Some((key, values)) => {
                    for &value in values {
                        room.by_label.entry((key, value)).or_default().push(place);
                    }
                }
                None => room.others.push(place),
            }
        }
        Some(room)
    }

    /// A place whose volumes can be reached from the node.
    pub(super) fn place(&self, m: &Model, node: NodeId) -> Option<&'a StorageCapacity> {
        let labels = &m.nodes[node].labels;
        let near = labels
            .iter()
            .filter_map(|label| self.by_label.get(label))
            .flatten();
        let mut places = near.chain(&self.others).copied();
        places.find(|place| place.nodes.matches(labels))
    }
}
