//! The queues as capacity sees them: a forest of single queues, or one tree under `root`.
//!
//! ```text
//!            root               limits   go down:  a child has at most what its parent leaves it
//!           /    \              sums     go up:    a parent uses what its children use
//!        sales   research       problems stay:     a broken queue and those below it, nobody else
//!                /      \
//!             vision   nlp
//! ```
//!
//! Shape, limits and deserved amounts are fixed for a cycle. What leaves use is read from the model; the sums of
//! their ancestors are kept here, along the path of each task that is placed or evicted.

use crate::ids::{DimId, QueueId};
use crate::model::Model;
use crate::plugins::quota::{self, Limit};
use crate::resource::{Missing, Resource, UNLIMITED, dominant_share};
use std::cmp::Ordering;
use std::sync::Arc;

/// The name of the queue that all others are below.
pub(super) const ROOT: &str = "root";

/// Resource names that count devices of a class. They are no amounts that pods request: as part of a guarantee they
/// could never be used, and would keep every pod of the queue from being reclaimed.
const DEVICE_CLASS: &str = "deviceclass/";

/// Where a queue is in the tree: the index of its id, or the number of queues for a root that has no object.
pub(super) type At = usize;

/// A queue in the tree.
#[derive(Debug, Default)]
pub(super) struct Branch {
    /// Its ancestors, root first and parent last; empty for the root and without hierarchy.
    pub path: Box<[At]>,
    /// Why it takes nothing, if its place in the tree is broken.
    pub broken: Option<Arc<str>>,
    /// How many queues have it as parent.
    pub children: usize,
    /// The most it may use.
    pub limit: Limit,
    /// What it may claim back.
    pub deserved: Resource,
    /// What is kept for it.
    pub guarantee: Resource,
    /// Sum of what the queues below it and its own jobs use; see [`Tree::charged`].
    charged: Resource,
    /// What admitted jobs have yet to allocate, those below and those admitted in this cycle included.
    pub inqueue: Resource,
    /// What jobs hold beyond their minimum, those below included.
    pub elastic: Resource,
}

/// All queues that take part.
#[derive(Debug, Default)]
pub(super) struct Tree {
    branches: Vec<Option<Branch>>,
}

impl Tree {
    /// Queues that own jobs, each for itself.
    pub fn flat(m: &Model) -> Self {
        let guaranteed = quota::total_guarantee(m);
        let mut tree = Tree { branches: Vec::new() };
        tree.branches.resize_with(m.queues.len(), || None);
        for id in m.queue_ids().filter(|&id| m.queue(id).jobs > 0) {
            let queue = m.queue(id);
            let limit = Limit::among_equals(m, id, &guaranteed);
            let guarantee = guarantee_of(m, id);
            let mut deserved = queue.deserved.clone();
            deserved.min_with(&limit.amounts, Missing::Infinity);
            deserved.max_with(&guarantee);
            let (inqueue, elastic) = (queue.inqueue.clone(), queue.elastic.clone());
            tree.branches[id.index()] = Some(Branch {
                limit,
                deserved,
                guarantee,
                inqueue,
                elastic,
                ..Branch::default()
            });
        }
        tree
    }

    /// All queues, below the queue `root`, or below one without limits if there is no such queue.
    pub fn hierarchical(m: &Model) -> Self {
        let root = root_of(m);
        let mut tree = Tree { branches: Vec::new() };
        tree.branches.resize_with(m.queues.len() + 1, || None);
        tree.branches[root] = Some(Branch::default());
        for (id, place) in places(m, root) {
            let (path, broken) = match place {
                Ok(path) => (path, None),
                Err(why) => ([root].into(), Some(why)),
            };
            tree.branches[id.index()] = Some(Branch {
                path,
                broken,
                ..Branch::default()
            });
        }
        tree.set_amounts(m, root);
        tree.set_sums(m);
        tree
    }

    /// A queue that takes part.
    #[inline]
    pub fn get(&self, at: At) -> Option<&Branch> {
        self.branches.get(at)?.as_ref()
    }

    #[inline]
    fn get_mut(&mut self, at: At) -> Option<&mut Branch> {
        self.branches.get_mut(at)?.as_mut()
    }

    /// What a queue and those below it use.
    #[inline]
    pub fn charged<'a>(&'a self, m: &'a Model, at: At, branch: &'a Branch) -> &'a Resource {
        match m.queues.get(at) {
            Some(queue) if branch.children == 0 => &queue.charged,
            _ => &branch.charged,
        }
    }

    /// What a queue and those below it have set aside for tasks that they let through the gate, in one dimension. Cost:
    /// the number of queues, for a queue with others below it and where the gate is in use.
    pub fn reserved(&self, m: &Model, at: At, branch: &Branch, dim: DimId) -> i64 {
        if !m.features.queue_admission {
            return 0;
        }
        let of = |at: At| m.queues.get(at).map_or(0, |queue| queue.reserved.get(dim));
        let is_below = |below: &At| self.get(*below).is_some_and(|b| b.path.contains(&at));
        let below = (0..if branch.children > 0 {
            self.branches.len()
        } else {
            0
        })
            .filter(is_below);
        below.map(of).fold(of(at), i64::saturating_add)
    }

    /// Visits the queue and then its ancestors up to the root.
    #[inline]
    pub fn up<'a>(&'a self, at: At, branch: &'a Branch) -> impl Iterator<Item = (At, &'a Branch)> {
        let ancestors = branch
            .path
            .iter()
            .rev()
            .filter_map(|&above| Some((above, self.get(above)?)));
        std::iter::once((at, branch)).chain(ancestors)
    }

    /// Changes the queue and all its ancestors.
    fn change_up(&mut self, at: At, change: impl Fn(&mut Branch)) {
        let depth = self.get(at).map_or(0, |branch| branch.path.len());
        for level in 0..depth {
            let above = self.get(at).map(|branch| branch.path[level]);
            if let Some(above) = above.and_then(|above| self.get_mut(above)) {
                change(above);
            }
        }
        if let Some(branch) = self.get_mut(at) {
            change(branch);
        }
    }

    /// A task of the queue was placed.
    pub fn charge(&mut self, queue: QueueId, request: &Resource) {
        self.change_up(queue.index(), |branch| branch.charged.add(request));
    }

    /// A task of the queue was evicted, or its placement undone.
    pub fn discharge(&mut self, queue: QueueId, request: &Resource) {
        self.change_up(queue.index(), |branch| branch.charged.sub_from_sum(request));
    }

    /// A job of the queue was admitted.
    pub fn admit(&mut self, queue: QueueId, minimum: &Resource) {
        self.change_up(queue.index(), |branch| branch.inqueue.add(minimum));
    }

    /// How much of what it deserves a queue uses; 1 for a queue that deserves nothing.
    pub fn share(&self, m: &Model, at: At, branch: &Branch) -> f64 {
        if branch.deserved.is_empty() {
            return 1.0;
        }
        dominant_share(self.charged(m, at, branch), &branch.deserved)
    }

    /// Smaller share first; at equal shares one that deserves something before one that does not.
    pub fn by_share(&self, m: &Model, a: (At, &Branch), b: (At, &Branch)) -> Ordering {
        let share = self.share(m, a.0, a.1).total_cmp(&self.share(m, b.0, b.1));
        share.then_with(|| a.1.deserved.is_empty().cmp(&b.1.deserved.is_empty()))
    }

    /// The two queues, or their ancestors, where their paths part.
    pub fn parting<'a>(
        &'a self,
        a: (At, &'a Branch),
        b: (At, &'a Branch),
    ) -> ((At, &'a Branch), (At, &'a Branch)) {
        let level = common_levels(a.1, b.1);
        let at_level = |(at, branch): (At, &'a Branch)| {
            let above = branch
                .path
                .get(level)
                .and_then(|&above| Some((above, self.get(above)?)));
            above.unwrap_or((at, branch))
        };
        (at_level(a), at_level(b))
    }

    /// Sets deserved amounts, guarantees and limits, from the root down.
    fn set_amounts(&mut self, m: &Model, root: At) {
        let is_sound = |&at: &At| self.get(at).is_some_and(|branch| branch.broken.is_none());
        let mut order: Vec<At> = (0..self.branches.len()).filter(is_sound).collect();
        order.sort_by_key(|&at| self.get(at).map_or(0, |branch| branch.path.len()));
        let mut below: Vec<Below> = Vec::new();
        below.resize_with(self.branches.len(), Below::default);
        for &at in order.iter().filter(|&&at| at != root) {
            let guarantee = guarantee_of(m, QueueId::from_index(at));
            let mut deserved = m.queue(QueueId::from_index(at)).deserved.clone();
            deserved.max_with(&guarantee);
            let Some(branch) = self.get_mut(at) else { continue };
            let Some(&parent) = branch.path.last() else {
                continue;
            };
            below[parent].guarantee.add(&guarantee);
            below[parent].deserved.add(&deserved);
            below[parent].queues += 1;
            (branch.guarantee, branch.deserved) = (guarantee, deserved);
        }
        for &at in &order {
            let limit = match self.get(at).and_then(|branch| branch.path.last()) {
                None => root_limit(m.queues.get(at).and_then(|queue| queue.capability.as_ref())),
                Some(&parent) => self.child_limit(m, at, parent, &below[parent].guarantee),
            };
            let Some(branch) = self.get_mut(at) else { continue };
            branch.limit = limit;
            branch.children = below[at].queues;
            if at == root {
                branch.guarantee = below[at].guarantee.clone();
                branch.deserved = below[at].deserved.clone();
            }
        }
    }

    /// What the parent has beyond the guarantees of all its children, and this one's; at most what the parent has and
    /// its own capability.
    fn child_limit(&self, m: &Model, at: At, parent: At, guaranteed: &Resource) -> Limit {
        let guarantee = self.get(at).map(|branch| &branch.guarantee);
        let mut amounts = self
            .get(parent)
            .map_or_else(Resource::default, |p| p.limit.amounts.clone());
        amounts.for_each_mut(|dim, value| {
            if *value != UNLIMITED {
                let free = value.saturating_sub(guaranteed.get(dim)).max(0);
                *value = free
                    .saturating_add(guarantee.map_or(0, |own| own.get(dim)))
                    .min(*value);
            }
        });
        let capability = m.queue(QueueId::from_index(at)).capability.as_ref();
        for (dim, most) in capability
            .map(quota::with_open_basics)
            .iter()
            .flat_map(Resource::iter)
        {
            amounts.set(dim, amounts.find(dim).unwrap_or(UNLIMITED).min(most));
        }
        Limit {
            amounts,
            missing: UNLIMITED,
            pods: quota::pods_limit(capability),
        }
    }

    /// Adds what each queue uses and has admitted to itself and all its ancestors. Queues whose place is broken
    /// still use the cluster, so they count for the root.
    fn set_sums(&mut self, m: &Model) {
        for id in m.queue_ids().filter(|&id| m.queue(id).jobs > 0) {
            let queue = m.queue(id);
            self.change_up(id.index(), |branch| {
                branch.charged.add(&queue.charged);
                branch.inqueue.add(&queue.inqueue);
                branch.elastic.add(&queue.elastic);
            });
        }
    }
}

/// Sums over the children of a queue.
#[derive(Default)]
struct Below {
    guarantee: Resource,
    deserved: Resource,
    queues: usize,
}

/// How many ancestors two queues have in common, from the root down.
pub(super) fn common_levels(a: &Branch, b: &Branch) -> usize {
    a.path.iter().zip(&b.path).take_while(|(x, y)| x == y).count()
}

/// What is kept for a queue, as far as pods can use it.
fn guarantee_of(m: &Model, queue: QueueId) -> Resource {
    let mut guarantee = m.queue(queue).guarantee.clone();
    guarantee.scalars.retain(|&mut (dim, _)| !counts_devices(m, dim));
    guarantee
}

fn counts_devices(m: &Model, dim: DimId) -> bool {
    // `deviceclass/<class>` for devices, `<dimension>.deviceclass/<class>` for a capacity of theirs.
    let name = m.dims.name(dim);
    name.find(DEVICE_CLASS)
        .is_some_and(|at| at == 0 || name[..at].ends_with('.'))
}

/// The root has no limit in what its capability does not name, resources that no node has yet included: else nothing
/// that needs them could be admitted, and no autoscaler would ever add such a node.
fn root_limit(capability: Option<&Resource>) -> Limit {
    let open = Resource {
        cpu: UNLIMITED,
        memory: UNLIMITED,
        ..Resource::default()
    };
    let amounts = capability.map_or(open, quota::with_open_basics);
    Limit {
        amounts,
        missing: UNLIMITED,
        pods: quota::pods_limit(capability),
    }
}

fn root_of(m: &Model) -> At {
    m.find_queue(ROOT).map_or(m.queues.len(), QueueId::index)
}

/// The ancestors of a queue, or why it has none that can be told.
type Place = Result<Box<[At]>, Arc<str>>;

/// The place of every queue but the root. Each queue is walked once: cost is the number of queues times their depth.
fn places(m: &Model, root: At) -> Vec<(QueueId, Place)> {
    let mut known: Vec<Option<Place>> = vec![None; m.queues.len() + 1];
    known[root] = Some(Ok([].into()));
    // By the queue whose walk came through it last, to tell a cycle from a queue met before.
    let mut seen_by: Vec<Option<QueueId>> = vec![None; m.queues.len() + 1];
    for id in m.queue_ids() {
        let mut chain: Vec<At> = Vec::new();
        let mut at = id.index();
        while known[at].is_none() {
            if seen_by[at] == Some(id) {
                let start = chain.iter().position(|&link| link == at).unwrap_or(0);
                for link in chain.split_off(start) {
                    let name = m.text(m.queues[link].name);
                    known[link] = Some(Err(
                        format!("cycle detected in queue hierarchy for queue {name}").into()
                    ));
                }
                break;
            }
            seen_by[at] = Some(id);
            chain.push(at);
            match parent_of(m, at, root) {
                Ok(parent) => at = parent,
                Err(why) => {
                    chain.pop();
                    known[at] = Some(Err(why));
                }
            }
        }
        for &link in chain.iter().rev() {
            known[link] = known[at].as_ref().map(|place| {
                place
                    .as_ref()
                    .map(|path| path.iter().copied().chain([at]).collect())
                    .map_err(Arc::clone)
            });
            at = link;
        }
    }
    let others = m.queue_ids().filter(|id| id.index() != root);
    others
        .filter_map(|id| Some((id, known[id.index()].take()?)))
        .collect()
}

fn parent_of(m: &Model, at: At, root: At) -> Result<At, Arc<str>> {
    let queue = &m.queues[at];
    match queue.parent.map(|name| m.text(name)) {
        None | Some(ROOT) => Ok(root),
        Some(name) => m.find_queue(name).map(QueueId::index).ok_or_else(|| {
            format!("the queue {} has invalid parent queue {name}", m.text(queue.name)).into()
        }),
    }
}
