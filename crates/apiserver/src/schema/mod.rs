//! Structural schemas, compiled once: what CRDs have, and what Kubernetes publishes for its own kinds.
//!
//! One tree serves everything that has to know types: pruning, defaulting, validation, and how patches merge lists.

mod amounts;
pub mod builtin;
mod compile;
mod prune;
#[cfg(test)]
mod tests;
mod trail;
mod validate;

pub use amounts::write_amounts;
pub use compile::compile;
pub use prune::{drop_nulls, fill_defaults, prune};
pub use validate::{mistyped, validate};

use crate::cel::Program;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Anything.
    #[default]
    Any,
    /// A map or a structure.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A flag.
    Boolean,
    /// A whole number or a text.
    IntOrString,
}

/// How a list is merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum List {
    /// It is replaced as a whole.
    #[default]
    Atomic,
    /// Its items are what it is: it has each once.
    Set,
    /// Its items are known by these fields.
    Map(Vec<Box<str>>),
}

/// A rule in CEL.
#[derive(Debug)]
pub struct Rule {
    /// What has to be true.
    pub program: Program,
    /// The rule as it was written.
    pub text: String,
    /// What is said if it is not.
    pub message: Option<String>,
    /// An expression for what is said.
    pub message_expression: Option<Program>,
    /// The part that is said to be wrong, as a path below: `.a.b`.
    pub field_path: String,
    /// The kind of wrong.
    pub reason: String,
    /// It compares with the old value, so it holds for changes only.
    pub is_transition: bool,
}

/// Limits of values. Rarely set, so kept apart.
#[derive(Debug, Default)]
pub struct Limits {
    /// Allowed values.
    pub values: Option<Vec<Value>>,
    /// Smallest number, and whether it is itself left out.
    pub minimum: Option<(f64, bool)>,
    /// Largest number, and whether it is itself left out.
    pub maximum: Option<(f64, bool)>,
    /// A factor of the number.
    pub multiple_of: Option<f64>,
    /// Fewest and most letters.
    pub length: (Option<usize>, Option<usize>),
    /// Fewest and most items.
    pub items: (Option<usize>, Option<usize>),
    /// Fewest and most properties.
    pub properties: (Option<usize>, Option<usize>),
    /// Form of a text, with the pattern as written.
    pub pattern: Option<(Regex, String)>,
    /// Format of a text or a number.
    pub format: String,
    /// All of these have to hold, any, exactly one, not this one.
    pub all_of: Vec<Schema>,
    /// See `all_of`.
    pub any_of: Vec<Schema>,
    /// See `all_of`.
    pub one_of: Vec<Schema>,
    /// See `all_of`.
    pub not: Option<Box<Schema>>,
}

/// A compiled schema.
#[derive(Debug, Default)]
pub struct Schema {
    /// Type.
    pub r#type: Type,
    /// Null is a value.
    pub nullable: bool,
    /// Fields of a structure.
    pub properties: BTreeMap<Box<str>, Arc<Schema>>,
    /// Values of a map.
    pub additional: Option<Arc<Schema>>,
    /// Items of a list.
    pub items: Option<Arc<Schema>>,
    /// Fields that have to be there.
    pub required: Vec<Box<str>>,
    /// Value where there is none.
    pub default: Option<Value>,
    /// Unknown fields stay.
    pub preserve: bool,
    /// It is an object of Kubernetes, with kind and metadata.
    pub embedded: bool,
    /// How a list is merged.
    pub list: List,
    /// Whether a map is replaced as a whole.
    pub atomic_map: bool,
    /// Key of the strategic merge patch, if the list merges there.
    pub strategic_key: Option<Box<str>>,
    /// Limits.
    pub limits: Option<Box<Limits>>,
    /// Rules in CEL.
    pub rules: Vec<Rule>,
    /// It is an amount: `500m`.
    pub is_amount: bool,
    /// There are amounts at or below this.
    pub has_amounts: bool,
    /// There is a default at or below this.
    pub has_defaults: bool,
    /// There are rules in CEL at or below this.
    pub has_rules: bool,
}

impl Schema {
    /// The schema of a field: of a structure or of a map.
    pub fn field(&self, name: &str) -> Option<&Arc<Schema>> {
        self.properties.get(name).or(self.additional.as_ref())
    }
}
