//! What is free for pods of a class, and where.

use super::reason::{Reason, Room};
use volcano_engine::ids::{DimId, NodeId};
use volcano_engine::model::Model;
use volcano_engine::model::class::Class;
use volcano_engine::model::node::Block;
use volcano_engine::resource::PODS;

/// What is free on the nodes that pods of a class may use.
pub(super) struct Space<'a> {
    m: &'a Model,
    class: &'a Class,
    nodes: Vec<NodeId>,
}

impl<'a> Space<'a> {
    /// The nodes that selector, taints and cordons leave.
    pub fn of(m: &'a Model, class: &'a Class) -> Self {
        let nodes = m.nodes.ids().filter(|&id| is_usable(m, class, id)).collect();
        Space { m, class, nodes }
    }

    /// How many nodes there are that could hold a pod if they were empty.
    pub fn large_enough(&self) -> usize {
        let has = |&&id: &&NodeId| holds(self.m, self.class, id);
        self.nodes.iter().filter(has).count()
    }

    /// How many pods of the class fit now, `most` at the most.
    pub fn fits(&self, most: u32) -> u32 {
        let mut fits = 0_i64;
        for &id in &self.nodes {
            let of_node = self
                .request()
                .map(|(dim, value)| self.free(id, dim).max(0) / value);
            fits = fits.saturating_add(of_node.min().unwrap_or(i64::from(most)));
        }
        u32::try_from(fits).unwrap_or(u32::MAX).min(most)
    }

    /// Why `minimum` pods of the class do not fit.
    pub fn why(&self, role: String, minimum: u32) -> Reason {
        let fits = self.fits(minimum);
        let all: Vec<(DimId, Room)> = self
            .request()
            .filter(|&(dim, _)| dim != PODS || self.is_short(PODS, minimum))
            .map(|(dim, value)| (dim, self.room(dim, value, minimum)))
            .collect();
        let pick = |wanted: &dyn Fn(&Room) -> bool| -> Vec<Room> {
            let picked = all.iter().filter(|(_, room)| wanted(room));
            picked.map(|(_, room)| room.clone()).collect()
        };
        let room = pick(&|room| room.request > room.largest_node);
        if !room.is_empty() {
            return Reason::PodTooLarge { role, room };
        }
        let room = pick(&|room| room.needed > room.capacity);
        if !room.is_empty() {
            return Reason::GangTooLarge {
                role,
                minimum,
                fits,
                room,
            };
        }
        let room = pick(&|room| room.needed > room.free);
        if !room.is_empty() {
            return Reason::Short {
                role,
                minimum,
                fits,
                room,
            };
        }
        let room = pick(&|room| room.request > room.largest_free);
        let room = if room.is_empty() { pick(&|_| true) } else { room };
        Reason::Fragmented {
            role,
            minimum,
            fits,
            room,
        }
    }

    fn request(&self) -> impl Iterator<Item = (DimId, i64)> + '_ {
        self.class.request.iter().filter(|&(_, value)| value > 0)
    }

    fn free(&self, id: NodeId, dim: DimId) -> i64 {
        free(self.m, id, dim)
    }

    fn is_short(&self, dim: DimId, minimum: u32) -> bool {
        let free = self.sum(|id| self.free(id, dim).max(0));
        free < i64::from(minimum)
    }

    fn sum(&self, of: impl Fn(NodeId) -> i64) -> i64 {
        self.nodes
            .iter()
            .fold(0, |sum: i64, &id| sum.saturating_add(of(id)))
    }

    fn room(&self, dim: DimId, request: i64, minimum: u32) -> Room {
        let quantity = |value| self.m.dims.quantity(dim, value);
        let has = |id| self.m.nodes.amount(id, Block::Allocatable, dim);
        let most = |of: &dyn Fn(NodeId) -> i64| self.nodes.iter().map(|&id| of(id)).max().unwrap_or(0);
        Room {
            resource: self.m.dims.name(dim).to_owned(),
            request: quantity(request),
            needed: quantity(request.saturating_mul(i64::from(minimum))),
            free: quantity(self.sum(|id| self.free(id, dim).max(0))),
            largest_free: quantity(most(&|id| self.free(id, dim)).max(0)),
            capacity: quantity(self.sum(has)),
            largest_node: quantity(most(&has)),
        }
    }
}

/// What is free on a node. Pods are counted apart from amounts.
fn free(m: &Model, id: NodeId, dim: DimId) -> i64 {
    if dim == PODS {
        return m.nodes.amount(id, Block::Allocatable, PODS) - m.nodes.tally(id).pods;
    }
    m.nodes.idle(id, dim)
}

/// Whether a node could hold a pod of the class if it were empty.
pub(super) fn holds(m: &Model, class: &Class, id: NodeId) -> bool {
    class
        .request
        .iter()
        .all(|(dim, value)| value <= m.nodes.amount(id, Block::Allocatable, dim))
}

/// Whether selector, taints and cordons let pods of the class onto a node.
pub(super) fn is_usable(m: &Model, class: &Class, id: NodeId) -> bool {
    let node = &m.nodes[id];
    !node.unschedulable
        && !m.nodes.tally(id).elsewhere
        && class.selector.matches(&m.strings, node.name, &node.labels)
        && class.tolerates_hard(&node.taints)
}
