//! Selectors: by labels, and by the labels and fields of a node.

use super::Labels;

slim! {
    /// Chooses objects by their labels; all parts must hold, and an empty selector chooses everything.
    pub struct LabelSelector {
        /// Labels that must have exactly these values.
        pub match_labels: Labels,
        /// Further conditions on labels.
        pub match_expressions: Vec<LabelRequirement>,
    }

    /// One condition on a label.
    pub struct LabelRequirement {
        /// The label's key.
        pub key: String,
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        pub operator: String,
        /// The values that `In` and `NotIn` compare with.
        pub values: Vec<String>,
    }

    /// Chooses nodes: any one of the terms must hold; without a term no node is chosen.
    pub struct NodeSelector {
        /// The alternatives.
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// One alternative of a node selector; all its conditions must hold, and an empty term holds for no node.
    pub struct NodeSelectorTerm {
        /// Conditions on labels.
        pub match_expressions: Vec<NodeSelectorRequirement>,
        /// Conditions on fields; the only field there is is `metadata.name`.
        pub match_fields: Vec<NodeSelectorRequirement>,
    }

    /// One condition on a label or field of a node.
    pub struct NodeSelectorRequirement {
        /// Key of the label, or path of the field.
        pub key: String,
        /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
        pub operator: String,
        /// The values to compare with; exactly one for `Gt` and `Lt`.
        pub values: Vec<String>,
    }
}

impl LabelSelector {
    /// Whether it has no condition at all, and so chooses everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether an object with these labels is chosen.
    ///
    /// A selector with an invalid condition chooses nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        // Conjunction: one invalid condition is false, and so is the whole.
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.matches(labels))
    }
}

impl LabelRequirement {
    /// Whether the condition holds for these labels; an invalid one never does.
    ///
    /// `In` and `NotIn` need values, the other two must have none.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match (self.operator.as_str(), self.values.is_empty()) {
            ("In", false) => value.is_some_and(|value| self.values.contains(value)),
            ("NotIn", false) => value.is_none_or(|value| !self.values.contains(value)),
            ("Exists", true) => value.is_some(),
            ("DoesNotExist", true) => value.is_none(),
            _ => false,
        }
    }
}

impl NodeSelector {
    /// Whether a node with this name and these labels is chosen.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.node_selector_terms
            .iter()
            .any(|term| term.matches(name, labels))
    }
}

impl NodeSelectorTerm {
    /// Whether the term has no condition, and so holds for no node.
    pub fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }

    /// Whether a node with this name and these labels satisfies every condition of the term.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        !self.is_empty()
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.matches(labels.get(&requirement.key).map(String::as_str)))
            && self
                .match_fields
                .iter()
                .all(|requirement| requirement.matches_field(name))
    }
}

impl NodeSelectorRequirement {
    /// Whether the condition holds for the value that the node has under the key; an invalid one never does.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|wanted| wanted == value);
        match (self.operator.as_str(), self.values.is_empty()) {
            ("In", false) => value.is_some_and(listed),
            ("NotIn", false) => !value.is_some_and(listed),
            ("Exists", true) => value.is_some(),
            ("DoesNotExist", true) => value.is_none(),
            ("Gt", false) => self.compare(value).is_some_and(|(have, bound)| have > bound),
            ("Lt", false) => self.compare(value).is_some_and(|(have, bound)| have < bound),
            _ => false,
        }
    }

    /// Fields allow only `metadata.name`, `In` or `NotIn`, and one value.
    fn matches_field(&self, name: &str) -> bool {
        let valid = self.key == "metadata.name"
            && self.values.len() == 1
            && matches!(self.operator.as_str(), "In" | "NotIn");
        valid && self.matches(Some(name))
    }

    /// The node's value and the single bound as numbers.
    fn compare(&self, value: Option<&str>) -> Option<(i64, i64)> {
        match self.values.as_slice() {
            [bound] => Some((value?.parse().ok()?, bound.parse().ok()?)),
            _ => None,
        }
    }
}
