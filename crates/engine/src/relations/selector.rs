//! Which pods a rule is about: label selectors compiled to integers, and namespaces.

use crate::ids::Sym;
use crate::intern::Interner;
use crate::model::class::label;
use crate::model::cluster::Cluster;
use volcano_api::core::{LabelSelector, Labels};

/// A label selector: every requirement must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Requirement {
    key: Sym,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Operator {
    In(Vec<Sym>),
    NotIn(Vec<Sym>),
    Exists,
    DoesNotExist,
}

impl Requirement {
    fn holds(&self, labels: &[(Sym, Sym)]) -> bool {
        let value = label(labels, self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|v| values.contains(&v)),
            Operator::NotIn(values) => value.is_none_or(|v| !values.contains(&v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl Selector {
    /// Compiles a selector. An absent one chooses nothing, as does one with an invalid requirement.
    pub fn compile(selector: Option<&LabelSelector>, strings: &mut Interner) -> Self {
        let Some(selector) = selector else {
            return Selector {
                nothing: true,
                ..Selector::default()
            };
        };
        let mut compiled = Selector::default();
        for (key, value) in &selector.match_labels {
            compiled.add(strings.intern(key), Operator::In(vec![strings.intern(value)]));
        }
        for requirement in &selector.match_expressions {
            let mut values: Vec<Sym> = requirement.values.iter().map(|v| strings.intern(v)).collect();
            values.sort_unstable();
            let operator = match (requirement.operator.as_str(), values.is_empty()) {
                ("In", false) => Operator::In(values),
                ("NotIn", false) => Operator::NotIn(values),
                ("Exists", true) => Operator::Exists,
                ("DoesNotExist", true) => Operator::DoesNotExist,
                _ => {
                    compiled.nothing = true;
                    continue;
                }
            };
            compiled.add(strings.intern(&requirement.key), operator);
        }
        compiled
    }

    /// Also asks that the labels of these keys have (`equal`) or have not the values that the pod itself has; keys
    /// that it lacks are left out.
    pub fn pin(&mut self, keys: &[String], own: &Labels, equal: bool, strings: &mut Interner) {
        for (key, value) in keys.iter().filter_map(|key| own.get_key_value(key)) {
            let values = vec![strings.intern(value)];
            let operator = if equal {
                Operator::In(values)
            } else {
                Operator::NotIn(values)
            };
            self.add(strings.intern(key), operator);
        }
    }

    fn add(&mut self, key: Sym, operator: Operator) {
        let requirement = Requirement { key, operator };
        if let Err(at) = self.requirements.binary_search(&requirement) {
            self.requirements.insert(at, requirement);
        }
    }

    /// Chooses an object with these labels, sorted by key.
    #[inline]
    pub fn matches(&self, labels: &[(Sym, Sym)]) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.holds(labels))
    }

    /// A key and the values of which an object must have one to be chosen, if there is such a requirement.
    pub(crate) fn needed(&self) -> Option<(Sym, &[Sym])> {
        self.requirements.iter().find_map(|r| match &r.operator {
            Operator::In(values) => Some((r.key, values.as_slice())),
            _ => None,
        })
    }
}

/// Pods, by namespace and labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSet {
    /// Namespaces by name, sorted.
    pub namespaces: Vec<Sym>,
    /// Namespaces by label.
    pub namespace_selector: Option<Selector>,
    /// Pods in them.
    pub labels: Selector,
}

/// A set of pods with its namespaces looked up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resolved {
    pub(super) set: PodSet,
    // Namespaces that the selector chooses; or, if it chooses namespaces without labels too, those it does not.
    listed: Vec<Sym>,
    others_match: bool,
}

impl Resolved {
    pub(super) fn new(set: PodSet, cluster: &Cluster, strings: &mut Interner) -> Self {
        let mut resolved = Resolved {
            set,
            listed: Vec::new(),
            others_match: false,
        };
        resolved.resolve(cluster, strings);
        resolved
    }

    /// Looks the namespaces up again; true if the answer differs from before.
    pub(super) fn resolve(&mut self, cluster: &Cluster, strings: &mut Interner) -> bool {
        let Some(selector) = &self.set.namespace_selector else {
            return false;
        };
        let others_match = selector.matches(&[]);
        let mut listed = Vec::new();
        for (&namespace, labels) in &cluster.namespaces {
            let mut labels: Vec<_> = labels
                .iter()
                .map(|(k, v)| (strings.intern(k), strings.intern(v)))
                .collect();
            labels.sort_unstable();
            if selector.matches(&labels) != others_match {
                listed.push(namespace);
            }
        }
        let changed = self.others_match != others_match || self.listed != listed;
        (self.listed, self.others_match) = (listed, others_match);
        changed
    }

    #[inline]
    pub(super) fn matches(&self, namespace: Sym, labels: &[(Sym, Sym)]) -> bool {
        self.has_namespace(namespace) && self.set.labels.matches(labels)
    }

    fn has_namespace(&self, namespace: Sym) -> bool {
        self.set.namespaces.contains(&namespace)
            || (self.set.namespace_selector.is_some()
                && self.listed.binary_search(&namespace).is_ok() != self.others_match)
    }

    pub(super) fn needed(&self) -> Option<(Sym, &[Sym])> {
        self.set.labels.needed()
    }
}
