//! Nodes: what they offer, what is in use, and which of them changed.
//!
//! The amounts of one node lie side by side (`row`), so that judging a node for a class touches one or two cache
//! lines; a column per dimension over all nodes would touch one line per dimension. Every change of a node is
//! appended to a log; a cache that remembers its position in the log refreshes only what changed since.

use crate::ids::{DimId, NodeId, Sym, TaskId};
use crate::resource::{Dims, PODS, Resource};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What a node offers and what is in use of it, each a block of one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Block {
    /// What pods may use.
    Allocatable,
    /// Requests of all tasks on it but pipelined ones.
    Used,
    /// Requests of tasks that are being deleted.
    Releasing,
    /// Requests of tasks that wait for room here.
    Pipelined,
    /// Requests of tasks evicted in the running cycle.
    Evicted,
}
const BLOCKS: usize = 5;

/// At least so many nodes come between two looks for rows that are free again.
const ROWS_BETWEEN_LOOKS: usize = 64;

/// A node, apart from its amounts.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: Sym,
    /// Labels, sorted by key.
    pub labels: Vec<(Sym, Sym)>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Images it holds with their size in bytes, sorted by name.
    pub images: Vec<(Sym, i64)>,
    /// Tasks on it, in whatever state, in no order.
    pub tasks: Vec<TaskId>,
    /// Host ports in use, with the number of pods that use each.
    pub ports: SmallVec<[(HostPort, u32); 0]>,
}

/// What judging a node reads beside its amounts, kept apart from the rest of [`Node`]: it is read for every class that
/// waits whenever the node changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Charges to the blocks of what comes and goes: while there are none, those blocks need not be read.
    moving: i32,
    /// The Node object is there; otherwise only pods that name it are known.
    pub present: bool,
    /// Pods as filters count them: on it or coming, less those evicted in this cycle.
    pub pods: i64,
    /// Several schedulers divide the nodes, and it is not this one's.
    pub elsewhere: bool,
    /// Tasks on it that were evicted in the running cycle.
    pub evicted_now: u32,
    /// Their milli-cores, pods without a request counted as 100.
    pub nonzero_cpu: i64,
    /// Their memory, pods without a request counted as 200 MiB.
    pub nonzero_memory: i64,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: Sym,
    /// Value.
    pub value: Sym,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaintEffect {
    /// They are not placed here.
    NoSchedule,
    /// They are rather placed elsewhere.
    PreferNoSchedule,
    /// They are not placed here, and those that run are evicted.
    NoExecute,
}

impl TaintEffect {
    /// The API's word for it.
    pub fn name(self) -> &'static str {
        match self {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
    }
}

/// A host port that a pod wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPort {
    /// Address, `0.0.0.0` for any.
    pub ip: Sym,
    /// Protocol.
    pub protocol: Sym,
    /// Port number.
    pub port: u32,
}

/// What the object of a node says of it, amounts apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Labels, sorted by key.
    pub labels: Vec<(Sym, Sym)>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Images with their size in bytes, sorted by name.
    pub images: Vec<(Sym, i64)>,
}

/// One entry of the change log.
#[derive(Clone, Copy, Debug)]
pub struct Change(u32);

impl Change {
    const SPEC: u32 = 1 << 31;

    /// The node that changed.
    #[inline]
    pub fn node(self) -> NodeId {
        NodeId(self.0 & !Self::SPEC)
    }

    /// Labels, taints or the like changed, not only usage.
    #[inline]
    pub fn of_spec(self) -> bool {
        self.0 & Self::SPEC != 0
    }
}

/// All nodes.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    list: Vec<Node>,
    tallies: Vec<Tally>,
    by_name: FxHashMap<Sym, NodeId>,
    /// Nobody knows these ids any more: the next nodes that come get them.
    free: Vec<NodeId>,
    /// With so many ids it is worth looking for free ones.
    crowded_at: usize,
    rows: Vec<i64>,
    dims: usize,
    totals: [Resource; 2],
    present: usize,
    rank: Vec<u32>,
    ranks_stale: bool,
    soft_tainted: usize,
    image_holders: FxHashMap<Sym, u32>,
    /// Grows whenever every cache over nodes must be rebuilt.
    pub epoch: u64,
    log: Vec<Change>,
    log_start: u64,
}

impl Nodes {
    /// Number of ids, placeholders included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// No node at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of nodes whose object exists.
    pub fn present(&self) -> usize {
        self.present
    }

    /// Ids of the nodes whose object exists.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.list.len())
            .map(NodeId::from_index)
            .filter(|&id| self.is_present(id))
    }

    /// The Node object is there.
    #[inline]
    pub fn is_present(&self, id: NodeId) -> bool {
        self.tallies[id.index()].present
    }

    /// What judging a node reads beside its amounts.
    #[inline]
    pub fn tally(&self, id: NodeId) -> &Tally {
        &self.tallies[id.index()]
    }

    /// The same, to be changed; follow with `changed`.
    pub fn tally_mut(&mut self, id: NodeId) -> &mut Tally {
        &mut self.tallies[id.index()]
    }

    /// The node of a name, present or not.
    pub fn find(&self, name: Sym) -> Option<NodeId> {
        self.by_name.get(&name).copied()
    }

    /// The node of a name, made as a placeholder on first sight.
    pub fn find_or_insert(&mut self, name: Sym) -> NodeId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let node = Node {
            name,
            labels: Vec::new(),
            taints: Vec::new(),
            unschedulable: false,
            images: Vec::new(),
            tasks: Vec::new(),
            ports: SmallVec::new(),
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.list[id.index()] = node;
                self.tallies[id.index()] = Tally::default();
                id
            }
            None => {
                self.list.push(node);
                self.tallies.push(Tally::default());
                self.rows.resize(self.list.len() * self.dims * BLOCKS, 0);
                self.rank.push(u32::MAX);
                NodeId::from_index(self.list.len() - 1)
            }
        };
        self.by_name.insert(name, id);
        self.ranks_stale = true;
        self.epoch += 1;
        id
    }

    /// So many nodes have come that [`Nodes::free_absent`] is worth its cost.
    pub fn is_crowded(&self) -> bool {
        self.free.is_empty() && self.list.len() >= self.crowded_at.max(ROWS_BETWEEN_LOOKS)
    }

    /// Frees the ids of nodes that are gone and that no task names, ended ones included: `named` are those of all tasks.
    /// Where nodes with names of their own come and go, there would be more and more ids without it. What is kept by id
    /// elsewhere ends with the node's tasks or is made anew with every epoch.
    pub fn free_absent(&mut self, named: impl Iterator<Item = NodeId>) {
        let mut kept = FixedBitSet::with_capacity(self.list.len());
        kept.extend(named.chain(self.ids()).map(NodeId::index));
        for at in kept.zeroes() {
            self.by_name.remove(&self.list[at].name);
            self.free.push(NodeId::from_index(at));
        }
        let used = self.list.len() - self.free.len();
        self.crowded_at = used + used / 4 + ROWS_BETWEEN_LOOKS;
    }

    /// Widens the rows when objects have named new resources.
    pub fn widen(&mut self, dims: &Dims) {
        let (old, new) = (self.dims, dims.len());
        if old == new {
            return;
        }
        let mut rows = vec![0; self.list.len() * new * BLOCKS];
        for block in 0..self.list.len() * BLOCKS {
            rows[block * new..block * new + old].copy_from_slice(&self.rows[block * old..(block + 1) * old]);
        }
        self.rows = rows;
        self.dims = new;
    }

    /// Makes a node present (or absent) with what it offers.
    pub fn set_present(&mut self, id: NodeId, present: bool, allocatable: &Resource) {
        let was = self.is_present(id);
        if was != present {
            self.tallies[id.index()].present = present;
            self.present = if present {
                self.present + 1
            } else {
                self.present - 1
            };
            self.ranks_stale = true;
            self.epoch += 1;
        }
        if was {
            let (offered, used) = (self.block(id, Block::Allocatable), self.block(id, Block::Used));
            self.totals[0].sub_from_sum(&offered);
            self.totals[1].sub_from_sum(&used);
        }
        let start = self.row_start(id, Block::Allocatable);
        self.rows[start..start + self.dims].fill(0);
        if present {
            for (dim, value) in allocatable.iter() {
                self.rows[start + dim.index()] = value;
            }
            let used = self.block(id, Block::Used);
            self.totals[0].add_to_sum(allocatable);
            self.totals[1].add_to_sum(&used);
        }
        self.changed(id, true);
    }

    /// The node has this description already.
    pub fn is_described(&self, id: NodeId, description: &Description) -> bool {
        let node = &self[id];
        node.labels == description.labels
            && node.taints == description.taints
            && node.unschedulable == description.unschedulable
            && node.images == description.images
    }

    /// The node offers exactly this.
    pub fn offers(&self, id: NodeId, allocatable: &Resource) -> bool {
        (0..self.dims)
            .map(DimId::from_index)
            .all(|dim| self.amount(id, Block::Allocatable, dim) == allocatable.get(dim))
    }

    /// Gives a node a new description; follow with `set_present`.
    pub fn describe(&mut self, id: NodeId, description: Description) {
        let Description {
            labels,
            taints,
            unschedulable,
            images,
        } = description;
        let soft = |taints: &[Taint]| taints.iter().any(|t| t.effect == TaintEffect::PreferNoSchedule);
        let node = &mut self.list[id.index()];
        self.soft_tainted += usize::from(soft(&taints));
        self.soft_tainted -= usize::from(soft(&node.taints));
        if node.images != images {
            for (image, _) in &node.images {
                if let Some(count) = self.image_holders.get_mut(image) {
                    *count -= 1;
                }
            }
            for &(image, _) in &images {
                *self.image_holders.entry(image).or_default() += 1;
            }
            self.epoch += 1; // How widely an image is spread is part of every node's score.
        }
        node.labels = labels;
        node.taints = taints;
        node.unschedulable = unschedulable;
        node.images = images;
    }

    /// Number of nodes with a `PreferNoSchedule` taint.
    #[inline]
    pub fn soft_tainted(&self) -> usize {
        self.soft_tainted
    }

    /// Number of nodes that hold an image.
    pub fn holders_of(&self, image: Sym) -> u32 {
        self.image_holders.get(&image).copied().unwrap_or(0)
    }

    /// The accounting of a node, to be changed; follow with `changed`.
    pub fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.list[id.index()]
    }

    #[inline]
    fn row_start(&self, id: NodeId, block: Block) -> usize {
        (id.index() * BLOCKS + block as usize) * self.dims
    }

    /// One amount of a node.
    #[inline]
    pub fn amount(&self, id: NodeId, block: Block, dim: DimId) -> i64 {
        self.rows[self.row_start(id, block) + dim.index()]
    }

    /// All amounts of one block of a node, as a vector that names what is not zero.
    pub fn block(&self, id: NodeId, block: Block) -> Resource {
        let start = self.row_start(id, block);
        let mut vector = Resource::default();
        for (dim, &value) in self.rows[start..start + self.dims].iter().enumerate() {
            if value != 0 {
                vector.set(DimId::from_index(dim), value);
            }
        }
        vector
    }

    /// Adds (`sign` 1) or takes away (-1) a request in a block.
    #[inline]
    pub fn charge(&mut self, id: NodeId, block: Block, request: &Resource, sign: i64) {
        let start = self.row_start(id, block);
        for (dim, value) in request.iter() {
            let slot = &mut self.rows[start + dim.index()];
            *slot = slot.wrapping_add(value.wrapping_mul(sign));
        }
        if block != Block::Used {
            self.tallies[id.index()].moving += sign as i32;
        } else if self.is_present(id) {
            if sign > 0 {
                self.totals[1].add_to_sum(request);
            } else {
                self.totals[1].sub_from_sum(request);
            }
        }
    }

    /// Unused now.
    #[inline]
    pub fn idle(&self, id: NodeId, dim: DimId) -> i64 {
        self.amount(id, Block::Allocatable, dim)
            .saturating_sub(self.amount(id, Block::Used, dim))
    }

    /// Unused once those that are being deleted have gone and those that wait have come.
    #[inline]
    pub fn future_idle(&self, id: NodeId, dim: DimId) -> i64 {
        if self.tallies[id.index()].moving == 0 {
            return self.idle(id, dim);
        }
        let coming = self.amount(id, Block::Pipelined, dim);
        self.idle(id, dim)
            .saturating_add(self.amount(id, Block::Releasing, dim))
            .saturating_sub(coming)
    }

    /// Requested, as filters and scores of Kubernetes count it: on the node or coming, less what was evicted now.
    #[inline]
    pub fn requested(&self, id: NodeId, dim: DimId) -> i64 {
        if self.tallies[id.index()].moving == 0 {
            return self.amount(id, Block::Used, dim);
        }
        let coming = self.amount(id, Block::Pipelined, dim);
        self.amount(id, Block::Used, dim)
            .saturating_add(coming)
            .saturating_sub(self.amount(id, Block::Evicted, dim))
    }

    /// The request fits into what is idle.
    #[inline]
    pub fn fits_idle(&self, id: NodeId, request: &Resource) -> bool {
        request
            .iter()
            .all(|(dim, value)| value <= 0 || value <= self.idle(id, dim))
    }

    /// The first dimension in which the request does not fit into what will be idle.
    #[inline]
    pub fn short_in_future(&self, id: NodeId, request: &Resource) -> Option<DimId> {
        request
            .iter()
            .find(|&(dim, value)| value > 0 && value > self.future_idle(id, dim))
            .map(|(dim, _)| dim)
    }

    /// Sum of what the present nodes offer.
    pub fn total(&self) -> &Resource {
        &self.totals[0]
    }

    /// Sum of what is in use on the present nodes.
    pub fn total_used(&self) -> &Resource {
        &self.totals[1]
    }

    /// The most pods a node takes.
    #[inline]
    pub fn max_pods(&self, id: NodeId) -> i64 {
        self.amount(id, Block::Allocatable, PODS)
    }

    /// Position of a node when all are sorted by name: the tie-break between equal scores.
    #[inline]
    pub fn rank(&self, id: NodeId) -> u32 {
        self.rank[id.index()]
    }

    /// Brings the ranks up to date after nodes came or went. O(n log n), only then.
    pub fn refresh_ranks(&mut self, text: impl Fn(Sym) -> std::sync::Arc<str>) {
        if !self.ranks_stale {
            return;
        }
        let mut named: Vec<_> = self
            .list
            .iter()
            .enumerate()
            .map(|(at, n)| (text(n.name), at))
            .collect();
        named.sort_unstable();
        for (rank, (_, at)) in named.into_iter().enumerate() {
            self.rank[at] = u32::try_from(rank).expect("fewer nodes than ids");
        }
        self.ranks_stale = false;
        self.epoch += 1;
    }

    /// Notes that a node changed.
    #[inline]
    pub fn changed(&mut self, id: NodeId, spec: bool) {
        self.log
            .push(Change(if spec { id.0 | Change::SPEC } else { id.0 }));
    }

    /// The end of the change log, as a position to read on from later.
    #[inline]
    pub fn log_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    /// The position of the first change that is still kept.
    pub fn log_start(&self) -> u64 {
        self.log_start
    }

    /// The changes since a position; `None` when they are no longer kept and all must be looked at again.
    pub fn changes_since(&self, position: u64) -> Option<&[Change]> {
        let from = usize::try_from(position.checked_sub(self.log_start)?).ok()?;
        self.log.get(from..)
    }

    /// Forgets the older half of a log that has grown past use: reading it would cost more than a new look.
    pub fn trim_log(&mut self) {
        let keep = 2 * self.list.len() + 1024;
        if self.log.len() > 4 * keep {
            let drop = self.log.len() - keep;
            self.log.drain(..drop);
            self.log_start += drop as u64;
        }
    }
}

impl std::ops::Index<NodeId> for Nodes {
    type Output = Node;
    #[inline]
    fn index(&self, id: NodeId) -> &Node {
        &self.list[id.index()]
    }
}

/// Equal when everything that decisions can see is equal; the change log and the caches' epoch are not part of it.
impl PartialEq for Nodes {
    fn eq(&self, other: &Self) -> bool {
        self.list.len() == other.list.len()
            && self.rows == other.rows
            && self.tallies == other.tallies
            && self.totals == other.totals
            && self.list.iter().zip(&other.list).all(|(a, b)| {
                let sorted = |n: &Node| {
                    let (mut tasks, mut ports) = (n.tasks.clone(), n.ports.to_vec());
                    tasks.sort_unstable();
                    ports.sort_unstable();
                    (tasks, ports)
                };
                a.name == b.name && sorted(a) == sorted(b)
            })
    }
}
