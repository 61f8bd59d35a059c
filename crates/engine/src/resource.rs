//! Resource vectors in fixed point, and the comparisons that the plugins are specified with.
//!
//! Units: `cpu` in milli-cores, `memory` in bytes, `pods` in whole pods, every other scalar in thousandths.
//! A vector remembers which scalars were *named* in it, since several rules treat "absent" and "zero" differently.
//! All arithmetic saturates: a wrong number in one object must never stop the scheduler.

use crate::ids::DimId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use volcano_api::quantity::{Format, Quantity};

/// Milli-cores.
pub const CPU: DimId = DimId(0);
/// Bytes.
pub const MEMORY: DimId = DimId(1);
/// Whole pods.
pub const PODS: DimId = DimId(2);
/// "No limit" in a dimension.
pub const UNLIMITED: i64 = i64::MAX;

/// The names of the dimensions. Grows as objects name new resources.
#[derive(Clone, Debug)]
pub struct Dims {
    names: Vec<Arc<str>>,
    by_name: FxHashMap<Arc<str>, DimId>,
}

impl Default for Dims {
    fn default() -> Self {
        let mut dims = Dims {
            names: Vec::new(),
            by_name: FxHashMap::default(),
        };
        for name in ["cpu", "memory", "pods"] {
            dims.insert(name);
        }
        dims
    }
}

impl Dims {
    /// How many dimensions there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The name of a dimension.
    pub fn name(&self, dim: DimId) -> &str {
        &self.names[dim.index()]
    }

    /// The shared name of a dimension.
    pub fn shared_name(&self, dim: DimId) -> Arc<str> {
        self.names[dim.index()].clone()
    }

    /// The dimension of a resource name, made on first sight; `None` for names that scheduling does not count
    /// (quota keys such as `requests.cpu` or `count/pods`, and unqualified names that Kubernetes does not define).
    pub fn resolve(&mut self, name: &str) -> Option<DimId> {
        if let Some(&dim) = self.by_name.get(name) {
            return Some(dim);
        }
        is_counted(name).then(|| self.insert(name))
    }

    /// The dimension of a name that was seen before.
    pub fn get(&self, name: &str) -> Option<DimId> {
        self.by_name.get(name).copied()
    }

    fn insert(&mut self, name: &str) -> DimId {
        let dim = DimId::from_index(self.names.len());
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.by_name.insert(name, dim);
        dim
    }

    /// A resource list of an API object as a vector.
    pub fn vector<'a>(&mut self, list: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> Resource {
        let mut vector = Resource::default();
        for (name, quantity) in list {
            if let Some(dim) = self.resolve(name) {
                vector.set(dim, amount(dim, quantity));
            }
        }
        vector
    }

    /// An amount as a Kubernetes quantity.
    pub fn quantity(&self, dim: DimId, value: i64) -> Quantity {
        match dim {
            MEMORY => Quantity::from_value(value, Format::BinarySi),
            PODS => Quantity::from_value(value, Format::DecimalSi),
            _ => Quantity::from_milli(value, Format::DecimalSi),
        }
    }

    /// A vector as Kubernetes quantities, as `Queue.status.allocated` wants it.
    pub fn quantities(&self, vector: &Resource) -> BTreeMap<String, Quantity> {
        vector
            .iter()
            .map(|(dim, value)| (self.name(dim).to_owned(), self.quantity(dim, value)))
            .collect()
    }

    /// `cpu 1.00, memory 2.00, nvidia.com/gpu 3000.00`: the form of log lines and messages.
    pub fn text(&self, vector: &Resource) -> String {
        let mut text = format!(
            "cpu {}, memory {}",
            amount_text(vector.cpu),
            amount_text(vector.memory)
        );
        let mut scalars: Vec<_> = vector
            .scalars
            .iter()
            .map(|&(dim, value)| (self.name(dim), value))
            .collect();
        scalars.sort_unstable();
        for (name, value) in scalars {
            write!(text, ", {name} {}", amount_text(value)).expect("a String takes any text");
        }
        text
    }
}

fn amount_text(value: i64) -> String {
    if value == UNLIMITED {
        "maxInt".to_owned()
    } else {
        format!("{value}.00")
    }
}

/// The largest amount that an object may name, 4.5 petabytes or as many milli-cores: thousands of such objects still
/// add up without overflow.
pub const LARGEST: i64 = 1 << 52;

/// The amount of a quantity in the unit of its dimension, rounded up as Kubernetes does.
pub fn amount(dim: DimId, quantity: &Quantity) -> i64 {
    let exact = match dim {
        MEMORY | PODS => quantity.value(),
        _ => quantity.milli_value(),
    };
    exact.clamp(-LARGEST, LARGEST)
}

fn is_counted(name: &str) -> bool {
    if name.starts_with("count/") {
        return false;
    }
    let prefixed_native = name.contains("kubernetes.io/");
    let extended = name.contains('/') && !prefixed_native && !name.starts_with("requests.");
    name == "ephemeral-storage"
        || extended
        || prefixed_native
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
}

/// What a scalar that one side does not name counts as in a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Nothing of it.
    Zero,
    /// No limit on it.
    Infinity,
}

/// A resource vector. `cpu` and `memory` are always there; scalars are sorted by dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Milli-cores.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Named scalars, sorted by dimension.
    pub scalars: SmallVec<[(DimId, i64); 2]>,
}

impl Resource {
    /// The amount in a dimension, 0 when not named.
    #[inline]
    pub fn get(&self, dim: DimId) -> i64 {
        self.find(dim).unwrap_or(0)
    }

    /// The amount in a dimension, if it is named (`cpu` and `memory` always are).
    #[inline]
    pub fn find(&self, dim: DimId) -> Option<i64> {
        match dim {
            CPU => Some(self.cpu),
            MEMORY => Some(self.memory),
            _ => self
                .scalars
                .binary_search_by_key(&dim, |s| s.0)
                .ok()
                .map(|at| self.scalars[at].1),
        }
    }

    /// Sets the amount in a dimension.
    pub fn set(&mut self, dim: DimId, value: i64) {
        match dim {
            CPU => self.cpu = value,
            MEMORY => self.memory = value,
            _ => match self.scalars.binary_search_by_key(&dim, |s| s.0) {
                Ok(at) => self.scalars[at].1 = value,
                Err(at) => self.scalars.insert(at, (dim, value)),
            },
        }
    }

    /// All named dimensions with their amounts, `cpu` and `memory` first.
    pub fn iter(&self) -> impl Iterator<Item = (DimId, i64)> + '_ {
        [(CPU, self.cpu), (MEMORY, self.memory)]
            .into_iter()
            .chain(self.scalars.iter().copied())
    }

    /// The dimensions with an amount above zero.
    pub fn names(&self) -> impl Iterator<Item = DimId> + '_ {
        self.iter().filter(|&(_, value)| value > 0).map(|(dim, _)| dim)
    }

    /// Nothing but perhaps `pods`.
    pub fn is_empty(&self) -> bool {
        self.iter().all(|(dim, value)| dim == PODS || value <= 0)
    }

    fn combine(&mut self, other: &Resource, op: impl Fn(i64, i64) -> i64) {
        self.cpu = op(self.cpu, other.cpu);
        self.memory = op(self.memory, other.memory);
        // Same names on both sides is the usual case: no search, no insertion.
        if self.scalars.len() == other.scalars.len()
            && self.scalars.iter().zip(&other.scalars).all(|(a, b)| a.0 == b.0)
        {
            for (mine, theirs) in self.scalars.iter_mut().zip(&other.scalars) {
                mine.1 = op(mine.1, theirs.1);
            }
            return;
        }
        for &(dim, value) in &other.scalars {
            self.set(dim, op(self.get(dim), value));
        }
    }

    /// Adds per dimension.
    #[inline]
    pub fn add(&mut self, other: &Resource) {
        self.combine(other, i64::saturating_add);
    }

    /// Subtracts per dimension; amounts may become negative.
    #[inline]
    pub fn sub(&mut self, other: &Resource) {
        self.combine(other, i64::saturating_sub);
    }

    /// Adds a part to a running sum. Sums wrap around rather than saturate: taking the part out again restores the
    /// sum whatever absurd amounts an object may name. A sum names the scalars that are not zero, so that it depends on
    /// its parts alone and not on the order in which they came and went.
    #[inline]
    pub fn add_to_sum(&mut self, part: &Resource) {
        self.combine(part, i64::wrapping_add);
        self.forget_zeros();
    }

    /// Takes a part out of a running sum.
    #[inline]
    pub fn sub_from_sum(&mut self, part: &Resource) {
        self.combine(part, i64::wrapping_sub);
        self.forget_zeros();
    }

    #[inline]
    fn forget_zeros(&mut self) {
        if self.scalars.iter().any(|s| s.1 == 0) {
            self.scalars.retain(|s| s.1 != 0);
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Resource) -> Resource {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// The difference; amounts may become negative.
    #[must_use]
    pub fn minus(&self, other: &Resource) -> Resource {
        let mut difference = self.clone();
        difference.sub(other);
        difference
    }

    /// `part/whole` of every amount, rounded down; unlimited stays unlimited.
    #[must_use]
    pub fn scaled(&self, part: i64, whole: i64) -> Resource {
        let mut scaled = self.clone();
        scaled.for_each_mut(|_, value| {
            if *value != UNLIMITED && whole != 0 {
                let exact = i128::from(*value) * i128::from(part) / i128::from(whole);
                *value = i64::try_from(exact).unwrap_or(UNLIMITED);
            }
        });
        scaled
    }

    /// Every amount times a factor, rounded down.
    #[must_use]
    pub fn times(&self, factor: f64) -> Resource {
        let mut scaled = self.clone();
        scaled.for_each_mut(|_, value| *value = (*value as f64 * factor).floor() as i64);
        scaled
    }

    /// Visits every named dimension.
    pub fn for_each_mut(&mut self, mut visit: impl FnMut(DimId, &mut i64)) {
        visit(CPU, &mut self.cpu);
        visit(MEMORY, &mut self.memory);
        for (dim, value) in &mut self.scalars {
            visit(*dim, value);
        }
    }

    /// Every dimension of `self` is at most that of `other`; a scalar that `other` lacks counts as `missing` says.
    /// Under [`Missing::Infinity`] a scalar that only `other` names makes it false.
    pub fn le(&self, other: &Resource, missing: Missing) -> bool {
        if self.cpu > other.cpu || self.memory > other.memory {
            return false;
        }
        if missing == Missing::Infinity && other.scalars.iter().any(|&(dim, _)| self.find(dim).is_none()) {
            return false;
        }
        self.scalars.iter().all(|&(dim, value)| match other.find(dim) {
            Some(limit) => value <= limit,
            None => missing == Missing::Infinity || value <= 0,
        })
    }

    /// The dimensions named in `req` (`pods` excepted) in which `self` is above `limit`; empty means it fits.
    pub fn exceeding(&self, limit: &Resource, req: &Resource) -> SmallVec<[DimId; 2]> {
        req.iter()
            .filter(|&(dim, value)| value > 0 && dim != PODS && self.get(dim) > limit.get(dim))
            .map(|(dim, _)| dim)
            .collect()
    }

    /// Fits below `limit` in every dimension of `req` (`pods` excepted).
    pub fn le_in(&self, limit: &Resource, req: &Resource) -> bool {
        req.iter()
            .all(|(dim, value)| value <= 0 || dim == PODS || self.get(dim) <= limit.get(dim))
    }

    /// Some dimension of `req` (`pods` excepted), not zero on both sides, in which `self` is at most `limit`.
    pub fn le_partly_in(&self, limit: &Resource, req: &Resource) -> bool {
        req.iter().any(|(dim, value)| {
            let (mine, theirs) = (self.get(dim), limit.get(dim));
            value > 0 && dim != PODS && !(mine <= 0 && theirs <= 0) && mine <= theirs
        })
    }

    /// Some dimension of `req` (`pods` excepted) that `limit` really names, in which `self` is above it.
    pub fn gt_relevant_in(&self, limit: &Resource, req: &Resource) -> bool {
        req.iter().any(|(dim, value)| {
            if value <= 0 || dim == PODS {
                return false;
            }
            match dim {
                CPU | MEMORY => limit.get(dim) > 0 && self.get(dim) > limit.get(dim),
                _ => limit.find(dim).is_some_and(|bound| self.get(dim) > bound),
            }
        })
    }

    /// Per-dimension minimum, in place; a scalar that `other` lacks becomes 0 or stays, as `missing` says.
    pub fn min_with(&mut self, other: &Resource, missing: Missing) {
        self.for_each_mut(|dim, value| match other.find(dim) {
            Some(bound) => *value = (*value).min(bound),
            None if missing == Missing::Zero => *value = 0,
            None => {}
        });
    }

    /// Per-dimension maximum over the names of both; negative scalars are dropped.
    pub fn max_with(&mut self, other: &Resource) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        for &(dim, value) in &other.scalars {
            self.set(dim, self.get(dim).max(value));
        }
        self.scalars.retain(|s| s.1 >= 0);
    }

    /// What of `self` exceeds `other`, per dimension, never below 0.
    #[must_use]
    pub fn beyond(&self, other: &Resource) -> Resource {
        let mut beyond = self.clone();
        beyond.for_each_mut(|dim, value| {
            if *value != UNLIMITED {
                *value = value.saturating_sub(other.get(dim)).max(0);
            }
        });
        beyond
    }

    /// Names a dimension other than `pods` that the other vector names too, both above zero.
    pub fn shares_dimension(&self, other: &Resource) -> bool {
        self.names().any(|dim| dim != PODS && other.get(dim) > 0)
    }
}

/// `part / whole` where nothing of nothing is 0 and something of nothing is 1.
pub fn share(part: i64, whole: i64) -> f64 {
    match (part, whole) {
        (0, 0) => 0.0,
        (_, 0) => 1.0,
        _ => part as f64 / whole as f64,
    }
}

/// The largest share over the dimensions that `whole` has any of.
pub fn dominant_share(part: &Resource, whole: &Resource) -> f64 {
    whole
        .names()
        .map(|dim| share(part.get(dim), whole.get(dim)))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cpu memory [name=amount]…` in the vector's own units.
    fn vector(dims: &mut Dims, text: &str) -> Resource {
        let mut parts = text.split_whitespace();
        let mut next = || parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let mut vector = Resource {
            cpu: next(),
            memory: next(),
            ..Resource::default()
        };
        for part in parts {
            let (name, amount) = part.split_once('=').expect("name=amount");
            vector.set(
                dims.resolve(name).expect("a counted name"),
                amount.parse().expect("a number"),
            );
        }
        vector
    }

    #[test]
    fn names_that_scheduling_counts() {
        for (name, counted) in [
            ("cpu", true),
            ("pods", true),
            ("ephemeral-storage", true),
            ("nvidia.com/gpu", true),
            ("hugepages-2Mi", true),
            ("attachable-volumes-csi-x", true),
            ("kubernetes.io/batch-cpu", true),
            ("requests.cpu", false),
            ("requests.nvidia.com/gpu", false),
            ("count/pods", false),
            ("limits.memory", false),
            ("rdma", false),
        ] {
            assert_eq!(Dims::default().resolve(name).is_some(), counted, "{name}");
        }
    }

    #[test]
    fn amounts_are_in_the_unit_of_their_dimension() {
        let mut dims = Dims::default();
        let list: BTreeMap<String, Quantity> = [
            ("cpu", "1500m"),
            ("memory", "1Ki"),
            ("pods", "3"),
            ("nvidia.com/gpu", "2"),
        ]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.parse().expect("a quantity")))
        .collect();
        let amounts = dims.vector(&list);
        assert_eq!(
            dims.text(&amounts),
            "cpu 1500.00, memory 1024.00, nvidia.com/gpu 2000.00, pods 3.00"
        );
        let back: Vec<String> = dims
            .quantities(&amounts)
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(back, ["cpu=1500m", "memory=1Ki", "nvidia.com/gpu=2", "pods=3"]);
    }

    #[test]
    fn less_or_equal_with_what_one_side_does_not_name() {
        use Missing::{Infinity, Zero};
        for (left, right, missing, expected) in [
            ("1 1", "1 1", Zero, true),
            ("2 1", "1 1", Zero, false),
            ("1 1 a/x=1", "1 1", Zero, false),
            ("1 1 a/x=0", "1 1", Zero, true),
            ("1 1", "1 1 a/x=0", Zero, true),
            ("1 1 a/x=1", "1 1", Infinity, true),
            ("1 1", "1 1 a/x=1", Infinity, false),
            ("1 1 a/x=1", "1 1 a/x=1", Infinity, true),
        ] {
            let mut dims = Dims::default();
            let (l, r) = (vector(&mut dims, left), vector(&mut dims, right));
            assert_eq!(l.le(&r, missing), expected, "{left} <= {right} ({missing:?})");
        }
    }

    #[test]
    fn comparisons_in_the_dimensions_of_a_request() {
        let mut dims = Dims::default();
        let mut v = |text: &str| vector(&mut dims, text);
        let (used, limit) = (v("5 5 pods=9 a/x=3"), v("4 9 pods=1 a/x=3"));
        let (cpu, memory, gpu, pods) = (v("1 0"), v("0 1"), v("0 0 a/x=1"), v("0 0 pods=1"));
        let fits = [&cpu, &memory, &gpu, &pods].map(|req| used.le_in(&limit, req));
        assert_eq!(fits, [false, true, true, true]);
        assert_eq!(used.exceeding(&limit, &cpu).as_slice(), [CPU]);
        assert!(used.le_partly_in(&limit, &v("1 1")) && !used.le_partly_in(&limit, &cpu));
        assert!(
            !v("0 0").le_partly_in(&v("0 0"), &cpu),
            "nothing on both sides says nothing"
        );
        assert!(used.gt_relevant_in(&limit, &cpu) && !used.gt_relevant_in(&v("0 9"), &cpu));
        assert!(used.gt_relevant_in(&v("9 9 a/x=0"), &gpu) && !used.gt_relevant_in(&v("9 9"), &gpu));
    }

    #[test]
    fn minimum_maximum_and_excess() {
        let mut dims = Dims::default();
        let mut v = |text: &str| vector(&mut dims, text);
        let (a, b) = (v("5 2 a/x=4"), v("3 4 b/y=1"));
        let with = |missing| {
            let mut min = a.clone();
            min.min_with(&b, missing);
            min
        };
        assert_eq!(
            (with(Missing::Zero), with(Missing::Infinity)),
            (v("3 2 a/x=0"), v("3 2 a/x=4"))
        );
        let mut max = a.clone();
        max.max_with(&b);
        assert_eq!(max, v("5 4 a/x=4 b/y=1"));
        assert_eq!(a.beyond(&b), v("2 0 a/x=4"));
        assert_eq!(
            v("9223372036854775807 1").beyond(&v("5 5")).cpu,
            UNLIMITED,
            "no limit less something is no limit"
        );
    }

    #[test]
    fn a_sum_forgets_what_was_taken_out_of_it() {
        let mut dims = Dims::default();
        let (before, part) = (vector(&mut dims, "1 1"), vector(&mut dims, "1 2 a/x=3"));
        let mut sum = before.clone();
        sum.add_to_sum(&part);
        sum.sub_from_sum(&part);
        assert_eq!(sum, before);
    }

    #[test]
    fn shares() {
        assert_eq!([share(0, 0), share(1, 0), share(1, 4)], [0.0, 1.0, 0.25]);
        let mut dims = Dims::default();
        let (part, whole) = (vector(&mut dims, "3 12"), vector(&mut dims, "9 18"));
        assert!((dominant_share(&part, &whole) - 12.0 / 18.0).abs() < 1e-12);
        assert_eq!(vector(&mut dims, "10 7").scaled(1, 3), vector(&mut dims, "3 2"));
    }
}
