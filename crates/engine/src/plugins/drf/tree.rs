//! The tree of hierarchical fair share: inner nodes are the path elements of the queues' `volcano.sh/hierarchy`,
//! leaves are jobs.
//!
//! ```text
//! leaf:  saturated when it has all it asks for of a resource, or holds one that is used up and that it asks for
//! inner: M         = smallest share of its unsaturated children that hold something, at most 1
//!        allocated = Σ saturated children: allocated  +  M · Σ unsaturated children: allocated / share
//!        share     = the largest part of any resource;  saturated when all children are
//! ```
//!
//! A change touches only the way from its leaf to the root, and each node on it in O(log children): a node keeps
//! the two sums and the shares of its children. The sums are fixed-point integers, so taking a part out restores
//! them exactly and the result is that of computing the whole tree anew, in whatever order changes came. Only when
//! a resource becomes used up, or free again, is every leaf looked at.

use crate::ids::{DimId, JobId, QueueId};
use crate::model::Model;
use crate::model::status::Status;
use crate::resource::Resource;
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Binary places behind the point of an amount.
const FRACTION: u32 = 32;
/// Shares are compared on a grid of this many steps, so that rounding never decides between equal queues.
const GRID: f64 = (1_u64 << 40) as f64;

/// Amounts in fixed point, in the order of the tree's dimensions.
type Amounts = SmallVec<[i128; 4]>;

/// What a parent sees of a child.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    allocated: Amounts,
    share: f64,
    saturated: bool,
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    children: BTreeMap<Box<str>, usize>,
    weight: Option<f64>,
    value: Option<Value>,
    /// Sum over saturated children.
    settled: Amounts,
    /// Sum over unsaturated children, each divided by its share.
    scaled: Amounts,
    /// Shares of unsaturated children that hold something, as ordered bits, with how many have each.
    shares: BTreeMap<u64, u32>,
    unsaturated: u32,
}

#[derive(Debug)]
struct Leaf {
    parent: usize,
    request: Resource,
    allocated: Resource,
    value: Option<Value>,
    /// In the list of leaves to look at again.
    stale: bool,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    total: Vec<(DimId, i64)>,
    /// Sum over all leaves.
    allocated: SmallVec<[i64; 4]>,
    /// Which resources are not used up; `None` before the first look.
    demanding: Option<SmallVec<[bool; 4]>>,
    /// Parents come before their children; the root is first.
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    leaf_of: Vec<Option<usize>>,
    /// Nodes from the root, by queue.
    paths: Vec<Vec<usize>>,
    stale: Vec<usize>,
    /// Jobs that changed in the model.
    marked: Vec<JobId>,
}

const ROOT: usize = 0;

impl Tree {
    /// The tree of all queues and jobs that take part. Two queues that give one node different weights: the queue
    /// with the smaller name decides. A weight that is missing, not a number or not above 0 counts as 1.
    pub(super) fn new(m: &Model, total: &[(DimId, i64)]) -> Self {
        let mut tree = Tree {
            total: total.to_vec(),
            allocated: smallvec![0; total.len()],
            demanding: None,
            nodes: vec![Node::new(None, total.len())],
            leaves: Vec::new(),
            leaf_of: vec![None; m.jobs.len()],
            paths: vec![Vec::new(); m.queues.len()],
            stale: Vec::new(),
            marked: Vec::new(),
        };
        let mut queues: Vec<QueueId> = m.queue_ids().collect();
        queues.sort_unstable_by_key(|&queue| m.text(m.queue(queue).name));
        for queue in queues {
            let info = m.queue(queue);
            tree.paths[queue.index()] = tree.path(&info.hierarchy, &info.hierarchy_weights);
        }
        for job in (0..m.jobs.len())
            .map(JobId::from_index)
            .filter(|&job| m.in_queue(job))
        {
            let parent = tree.paths[m.job(job).queue.index()]
                .last()
                .copied()
                .unwrap_or(ROOT);
            tree.add_leaf(job, parent, total_request(m, job));
            tree.put(job, m.job(job).charged.clone());
        }
        tree
    }

    /// The nodes of a path, made on first sight. The first element stands for the root, whatever it is called.
    fn path(&mut self, hierarchy: &str, weights: &str) -> Vec<usize> {
        let mut weights = weights.split('/').skip(1);
        let mut path = vec![ROOT];
        let mut at = ROOT;
        for element in hierarchy.split('/').skip(1) {
            let weight = weights.next().and_then(parse_weight);
            at = match self.nodes[at].children.get(element) {
                Some(&child) => child,
                None => {
                    let child = self.nodes.len();
                    self.nodes.push(Node::new(Some(at), self.total.len()));
                    self.nodes[at].children.insert(element.into(), child);
                    child
                }
            };
            self.nodes[at].weight = self.nodes[at].weight.or(weight);
            path.push(at);
        }
        path
    }

    fn add_leaf(&mut self, job: JobId, parent: usize, request: Resource) {
        self.leaf_of[job.index()] = Some(self.leaves.len());
        self.leaves.push(Leaf {
            parent,
            request,
            allocated: Resource::default(),
            value: None,
            stale: false,
        });
    }

    fn leaf(&self, job: JobId) -> Option<usize> {
        self.leaf_of.get(job.index()).copied().flatten()
    }

    /// A job changed in the model.
    pub(super) fn mark(&mut self, job: JobId) {
        if self.marked.last() != Some(&job) {
            self.marked.push(job);
        }
    }

    /// Takes over what marked jobs have in the model.
    pub(super) fn follow(&mut self, m: &Model) {
        for job in std::mem::take(&mut self.marked) {
            self.put(job, m.job(job).charged.clone());
        }
    }

    /// What a job has, as the tree sees it.
    pub(super) fn allocated(&self, job: JobId) -> Resource {
        self.leaf(job)
            .map(|at| self.leaves[at].allocated.clone())
            .unwrap_or_default()
    }

    /// Sets what a job has. Follow with [`Tree::settle`] before comparing.
    pub(super) fn put(&mut self, job: JobId, allocated: Resource) {
        let Some(at) = self.leaf(job) else { return };
        let leaf = &mut self.leaves[at];
        if leaf.allocated == allocated {
            return;
        }
        for (sum, &(dim, _)) in self.allocated.iter_mut().zip(&self.total) {
            *sum = sum
                .saturating_add(allocated.get(dim))
                .saturating_sub(leaf.allocated.get(dim));
        }
        leaf.allocated = allocated;
        if !leaf.stale {
            leaf.stale = true;
            self.stale.push(at);
        }
    }

    /// Brings shares up to date with what was put.
    pub(super) fn settle(&mut self) {
        let demanding: SmallVec<[bool; 4]> = self
            .total
            .iter()
            .zip(&self.allocated)
            .map(|(&(_, whole), &used)| used < whole)
            .collect();
        let mut dirty = BTreeSet::new();
        if self.demanding.as_ref() != Some(&demanding) {
            if self.demanding.is_none() {
                dirty.extend(0..self.nodes.len());
            }
            self.demanding = Some(demanding.clone());
            self.stale = (0..self.leaves.len()).collect();
        }
        for at in std::mem::take(&mut self.stale) {
            let leaf = &mut self.leaves[at];
            leaf.stale = false;
            let value = leaf.evaluate(&self.total, &demanding);
            if leaf.value.as_ref() != Some(&value) {
                self.nodes[leaf.parent].replace(leaf.value.as_ref(), &value);
                dirty.insert(leaf.parent);
                leaf.value = Some(value);
            }
        }
        // Children have larger indices than their parents: each node is looked at once, after its children.
        while let Some(at) = dirty.pop_last() {
            let value = self.nodes[at].evaluate(&self.total);
            let old = self.nodes[at].value.take();
            if let Some(parent) = self.nodes[at].parent
                && old.as_ref() != Some(&value)
            {
                self.nodes[parent].replace(old.as_ref(), &value);
                dirty.insert(parent);
            }
            self.nodes[at].value = Some(value);
        }
    }

    /// Which queue is served first: level by level from the root, the unsaturated one, then the one with the
    /// smaller share for its weight.
    pub(super) fn compare(&self, a: QueueId, b: QueueId) -> Ordering {
        let path = |queue: QueueId| self.paths.get(queue.index()).map_or(&[][..], Vec::as_slice);
        let levels = path(a).iter().zip(path(b)).filter(|(a, b)| a != b);
        let order = |(&a, &b): (&usize, &usize)| self.nodes[a].rank().cmp(&self.nodes[b].rank());
        levels
            .map(order)
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Shares and saturation of all nodes, to compare trees in tests.
    #[cfg(test)]
    pub(super) fn values(&self) -> Vec<(f64, bool)> {
        let value = |node: &Node| {
            node.value
                .as_ref()
                .map_or((0.0, true), |v| (v.share, v.saturated))
        };
        self.nodes.iter().map(value).collect()
    }
}

impl Node {
    fn new(parent: Option<usize>, dims: usize) -> Self {
        Node {
            parent,
            children: BTreeMap::new(),
            weight: None,
            value: None,
            settled: smallvec![0; dims],
            scaled: smallvec![0; dims],
            shares: BTreeMap::new(),
            unsaturated: 0,
        }
    }

    /// Saturation, then the share for its weight on the grid.
    fn rank(&self) -> (bool, i64) {
        let Some(value) = &self.value else {
            return (true, 0);
        };
        (
            value.saturated,
            (value.share / self.weight.unwrap_or(1.0) * GRID).round() as i64,
        )
    }

    /// A child has another value than before.
    fn replace(&mut self, old: Option<&Value>, new: &Value) {
        if let Some(old) = old {
            self.count(old, -1);
        }
        self.count(new, 1);
    }

    fn count(&mut self, child: &Value, sign: i128) {
        if !child.saturated {
            self.unsaturated = self.unsaturated.saturating_add_signed(sign as i32);
        }
        if child.share == 0.0 {
            return;
        }
        if child.saturated {
            self.settled
                .iter_mut()
                .zip(&child.allocated)
                .for_each(|(sum, part)| *sum += sign * part);
            return;
        }
        for (sum, &part) in self.scaled.iter_mut().zip(&child.allocated) {
            *sum += sign * (part as f64 / child.share).round() as i128;
        }
        let bits = child.share.to_bits();
        if sign > 0 {
            *self.shares.entry(bits).or_default() += 1;
        } else if let Some(count) = self.shares.get_mut(&bits) {
            *count -= 1;
            if *count == 0 {
                self.shares.remove(&bits);
            }
        }
    }

    fn evaluate(&self, total: &[(DimId, i64)]) -> Value {
        // Bits of numbers that are not negative sort as the numbers do.
        let smallest = self
            .shares
            .first_key_value()
            .map_or(1.0, |(&bits, _)| f64::from_bits(bits))
            .min(1.0);
        let parts = self.settled.iter().zip(&self.scaled);
        let allocated: Amounts = parts
            .map(|(settled, &scaled)| settled + (scaled as f64 * smallest).round() as i128)
            .collect();
        let share = dominant_share(&allocated, total);
        Value {
            allocated,
            share,
            saturated: self.unsaturated == 0,
        }
    }
}

impl Leaf {
    fn evaluate(&self, total: &[(DimId, i64)], demanding: &[bool]) -> Value {
        let is_demanding = |dim| {
            total
                .iter()
                .zip(demanding)
                .any(|(&(d, _), &demanding)| d == dim && demanding)
        };
        let saturated = self.allocated.names().any(|dim| {
            let request = self.request.get(dim);
            request != 0 && (self.allocated.get(dim) >= request || !is_demanding(dim))
        });
        let allocated: Amounts = total
            .iter()
            .map(|&(dim, _)| i128::from(self.allocated.get(dim)) << FRACTION)
            .collect();
        let share = dominant_share(&allocated, total);
        Value {
            allocated,
            share,
            saturated,
        }
    }
}

fn dominant_share(allocated: &Amounts, total: &[(DimId, i64)]) -> f64 {
    let share =
        |(&part, &(_, whole)): (&i128, &(DimId, i64))| part as f64 / (i128::from(whole) << FRACTION) as f64;
    allocated.iter().zip(total).map(share).fold(0.0, f64::max)
}

fn parse_weight(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|weight: &f64| weight.is_finite() && *weight > 0.0)
}

/// Requests of all tasks of a job, in whatever state.
fn total_request(m: &Model, job: JobId) -> Resource {
    let job = m.job(job);
    let summed = job.counts.valid() - job.counts.of(Status::Succeeded);
    if summed == job.counts.total() {
        return job.charged.plus(&job.pending);
    }
    let mut sum = Resource::default();
    job.tasks.iter().for_each(|&task| sum.add(m.request(task)));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{CPU, MEMORY};

    #[test]
    fn unsaturated_children_are_scaled_to_the_smallest_share_before_they_are_summed() {
        let total = [(CPU, 10), (MEMORY, 10)];
        let value = |cpu: i128, memory: i128, share, saturated| Value {
            allocated: smallvec![cpu << FRACTION, memory << FRACTION],
            share,
            saturated,
        };
        let mut node = Node::new(None, 2);
        node.count(&value(5, 0, 0.5, false), 1);
        node.count(&value(0, 10, 1.0, false), 1);
        assert_eq!(
            node.evaluate(&total),
            value(5, 5, 0.5, false),
            "the second is scaled by 0.5"
        );
        node.count(&value(0, 10, 1.0, false), -1);
        node.count(&value(0, 10, 1.0, true), 1);
        assert_eq!(
            node.evaluate(&total),
            value(5, 10, 1.0, false),
            "a saturated child counts in full"
        );
        node.count(&value(5, 0, 0.5, false), -1);
        assert_eq!(
            node.evaluate(&total),
            value(0, 10, 1.0, true),
            "all children are saturated"
        );
    }

    #[test]
    fn weights_that_make_no_sense_are_not_given() {
        let cases = [
            ("2", Some(2.0)),
            ("0.25", Some(0.25)),
            (" 3 ", Some(3.0)),
            ("", None),
            ("x", None),
        ];
        for (text, weight) in
            cases
                .into_iter()
                .chain([("0", None), ("-1", None), ("NaN", None), ("inf", None)])
        {
            assert_eq!(parse_weight(text), weight, "{text:?}");
        }
    }
}
