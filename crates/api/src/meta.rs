//! What every object has, whatever its kind: metadata, owners, selectors, references, conditions, lists.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::Kind;
use crate::quantity::Quantity;
use crate::time::Time;
pub use crate::wire::Extra;
use crate::wire::{object, string_enum};

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// An object of one of the kinds of this crate.
pub trait Resource {
    /// Its group, version, names and scope.
    const KIND: Kind;

    /// Name, labels, owners and the like.
    fn metadata(&self) -> &ObjectMeta;

    /// The same, to be changed.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;

    /// Fills in `apiVersion` and `kind`.
    fn set_type(&mut self);

    /// An otherwise empty object with its type and name; `namespace` is empty for a cluster-scoped kind.
    fn named(namespace: &str, name: &str) -> Self
    where
        Self: Default,
    {
        let mut object = Self::default();
        object.set_type();
        let metadata = object.metadata_mut();
        metadata.namespace = namespace.to_owned();
        metadata.name = name.to_owned();
        object
    }
}

object! {
    /// Metadata of an object.
    ///
    /// The schema is that of metadata embedded in a spec, such as the job template of a CronJob, which has only
    /// what makes sense for an object that does not exist yet.
    pub struct ObjectMeta {
        /// Name, unique in the namespace for the kind.
        pub name: String,
        /// Prefix of the name that the API server makes when `name` is empty.
        #[schema(skip)]
        pub generate_name: String,
        /// Namespace; empty for cluster-scoped kinds.
        pub namespace: String,
        /// Identity in time: a new object of the same name has another.
        #[schema(skip)]
        pub uid: String,
        /// Opaque version of the stored object.
        #[schema(skip)]
        pub resource_version: String,
        /// Counts changes of the spec.
        #[schema(skip)]
        pub generation: i64,
        /// When the object was stored first.
        #[schema(skip)]
        pub creation_timestamp: Option<Time>,
        /// When its deletion was asked for.
        #[schema(skip)]
        pub deletion_timestamp: Option<Time>,
        /// Keys and values that selectors match.
        pub labels: BTreeMap<String, String>,
        /// Keys and values that tools read.
        pub annotations: BTreeMap<String, String>,
        /// Objects whose deletion deletes this one.
        #[schema(skip)]
        pub owner_references: Vec<OwnerReference>,
        /// What must be done before the object goes.
        pub finalizers: Vec<String>,
    }
}

impl ObjectMeta {
    /// The owner that controls the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// `namespace/name`, or the name alone for cluster-scoped objects.
    pub fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

object! {
    /// A reference to an owner in the same namespace.
    #[schema(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct OwnerReference {
        /// Whether the owner manages the object; at most one does.
        pub controller: Option<bool>,
        /// Whether the owner waits for this object to be gone before it goes.
        pub block_owner_deletion: Option<bool>,
    }
    always {
        /// Group and version of the owner.
        pub api_version: String,
        /// Kind of the owner.
        pub kind: String,
        /// Name of the owner.
        pub name: String,
        /// UID of the owner.
        pub uid: String,
    }
}

object! {
    /// A reference to any object.
    #[schema(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct ObjectReference {
        /// Group and version of the object.
        pub api_version: String,
        /// Kind of the object.
        pub kind: String,
        /// Namespace of the object.
        pub namespace: String,
        /// Name of the object.
        pub name: String,
        /// UID of the object.
        pub uid: String,
        /// Version of the object that is meant.
        pub resource_version: String,
        /// Part of the object that is meant.
        pub field_path: String,
    }
}

object! {
    /// Selects objects by labels; all conditions must hold. Empty selects everything.
    #[schema(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct LabelSelector {
        /// Labels that must have exactly these values.
        pub match_labels: BTreeMap<String, String>,
        /// Conditions on labels.
        #[schema(extend("x-kubernetes-list-type" = "atomic"))]
        pub match_expressions: Vec<LabelSelectorRequirement>,
    }
}

object! {
    /// A condition on one label.
    pub struct LabelSelectorRequirement {
        /// Values that the operator compares with; empty for Exists and DoesNotExist.
        #[schema(extend("x-kubernetes-list-type" = "atomic"))]
        pub values: Vec<String>,
    }
    always {
        /// The label's key.
        pub key: String,
        /// How the label and the values relate: In, NotIn, Exists or DoesNotExist.
        #[schema(with = "String")]
        pub operator: SelectorOperator,
    }
}

string_enum! {
    /// Operator of a label selector's condition.
    pub enum SelectorOperator {
        /// The label has one of the values.
        In = "In",
        /// The label has none of the values, or is missing.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is not there.
        DoesNotExist = "DoesNotExist",
    }
}

impl LabelSelector {
    /// Whether a set of labels fulfils every condition. An operator that is not known matches nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|condition| condition.matches(labels.get(&condition.key)))
    }
}

impl LabelSelectorRequirement {
    fn matches(&self, value: Option<&String>) -> bool {
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            SelectorOperator::In => listed,
            SelectorOperator::NotIn => !listed,
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
            SelectorOperator::Unset | SelectorOperator::Other(_) => false,
        }
    }
}

object! {
    /// One aspect of an object's state, in Kubernetes' standard form.
    pub struct Condition {
        /// Generation of the object that the condition was set for.
        #[schema(range(min = 0))]
        pub observed_generation: i64,
    }
    always {
        /// Name of the aspect, in CamelCase.
        #[schema(length(max = 316), regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"))]
        pub r#type: String,
        /// True, False or Unknown.
        pub status: ConditionStatus,
        /// When the status changed last.
        #[schema(required)]
        pub last_transition_time: Option<Time>,
        /// Why it did, as a word for programs.
        #[schema(length(min = 1, max = 1024), regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
        pub reason: String,
        /// Why it did, for people.
        #[schema(length(max = 32768))]
        pub message: String,
    }
}

string_enum! {
    /// Status of a condition.
    pub enum ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// It is not known whether it holds.
        Unknown = "Unknown",
    }
}

object! {
    /// Metadata of a list.
    pub struct ListMeta {
        /// Version of the store that the list shows; a watch continues from it.
        pub resource_version: String,
        /// Token for the next part of the list.
        pub r#continue: String,
        /// How many objects follow in the next parts.
        pub remaining_item_count: Option<i64>,
    }
}

/// A list of objects, `<Kind>List`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    default,
    bound(deserialize = "T: Deserialize<'de> + Default")
)]
pub struct List<T> {
    /// Group and version of the list.
    #[serde(deserialize_with = "crate::wire::or_default")]
    pub api_version: String,
    /// `<Kind>List`, or `List` for objects of several kinds.
    #[serde(deserialize_with = "crate::wire::or_default")]
    pub kind: String,
    /// The version that the list shows.
    #[serde(deserialize_with = "crate::wire::or_default")]
    pub metadata: ListMeta,
    /// The objects.
    #[serde(deserialize_with = "crate::wire::or_default")]
    pub items: Vec<T>,
    /// Fields that this version does not know, kept for writing back.
    #[serde(flatten)]
    pub extra: Extra,
}

impl<T: Resource> List<T> {
    /// A list of these objects at a version of the store.
    pub fn of(items: Vec<T>, resource_version: &str) -> Self {
        Self {
            api_version: T::KIND.api_version(),
            kind: T::KIND.list_kind(),
            metadata: ListMeta {
                resource_version: resource_version.to_owned(),
                ..ListMeta::default()
            },
            items,
            extra: Extra::new(),
        }
    }
}

/// A pod template as it was written. The product hands it on and reads a few fields of it, so it has no second
/// copy of Kubernetes' types, and no field that a newer Kubernetes adds is ever lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(pub Map<String, Value>);

impl PodTemplate {
    /// The pod's spec, when there is one.
    pub fn spec(&self) -> Option<&Map<String, Value>> {
        self.0.get("spec")?.as_object()
    }

    /// The pod's spec, made when it is missing.
    pub fn spec_mut(&mut self) -> &mut Map<String, Value> {
        object_at(&mut self.0, "spec")
    }

    /// The pod's metadata, when there is any.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.0.get("metadata")?.as_object()
    }

    /// The pod's metadata, made when it is missing.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        object_at(&mut self.0, "metadata")
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata()?.get("labels")?.get(key)?.as_str()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()?.get("annotations")?.get(key)?.as_str()
    }
}

/// The spec of a persistent volume claim as it was written, raw for the same reason as [`PodTemplate`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PersistentVolumeClaimSpec(pub Map<String, Value>);

/// The object under a key; what is not an object there is replaced by an empty one.
fn object_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_selector_matches_when_all_its_conditions_hold() {
        let cases = [
            ("empty selects everything", json!({}), labels(&[]), true),
            (
                "labels must be equal",
                json!({"matchLabels": {"a": "1"}}),
                labels(&[("a", "2")]),
                false,
            ),
            (
                "In takes any of the values",
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}),
                labels(&[("a", "2")]),
                true,
            ),
            (
                "NotIn takes a missing label",
                json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}),
                labels(&[]),
                true,
            ),
            (
                "Exists needs the label",
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                labels(&[]),
                false,
            ),
            (
                "DoesNotExist refuses the label",
                json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
                labels(&[("a", "")]),
                false,
            ),
            (
                "an operator that is not known matches nothing",
                json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["1"]}]}),
                labels(&[("a", "1")]),
                false,
            ),
        ];
        for (name, selector, labels, expected) in cases {
            let selector: LabelSelector = serde_json::from_value(selector).expect("readable");
            assert_eq!(selector.matches(&labels), expected, "{name}");
        }
    }

    #[test]
    fn a_template_makes_what_is_missing() {
        let mut template = PodTemplate::default();
        assert_eq!(template.label("a"), None);
        template.metadata_mut().insert("labels".into(), json!({"a": "1"}));
        template.spec_mut().insert("nodeName".into(), "n".into());
        assert_eq!(template.label("a"), Some("1"));
        assert_eq!(
            serde_json::to_value(&template).expect("writable"),
            json!({"metadata": {"labels": {"a": "1"}}, "spec": {"nodeName": "n"}})
        );
    }

    #[test]
    fn the_controller_is_the_owner_that_says_so() {
        let meta: ObjectMeta = serde_json::from_value(json!({"ownerReferences": [
            {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
            {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": true},
        ]}))
        .expect("readable");
        assert_eq!(meta.controller().map(|owner| owner.name.as_str()), Some("b"));
    }
}
