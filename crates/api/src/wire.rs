//! The wire rules of the API, once: what is omitted, what `null` means, what happens to what is not known.
//!
//! Every structure of the API is declared with [`object!`] and every enumeration with [`string_enum!`], so that
//! the rules hold for all of them alike:
//!
//! - a field that is missing, `null` or zero reads the same, and a zero value is not written,
//!   unless the field is in the `always` block;
//! - fields that this version does not know are kept in `extra` and written back, since an update is a PUT of the
//!   whole object and dropping them would erase what a newer client stored;
//! - an enumeration value that is not known is kept as text, so that one odd value does not make an object unreadable.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Fields of an object that this version does not know, kept so that writing the object back does not drop them.
pub type Extra = Map<String, Value>;

/// Pattern of a DNS subdomain, the form of most object names.
#[cfg(feature = "schema")]
pub(crate) const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Reads `null` as the zero value.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value is its type's zero value, and thus not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes an empty map as `null`, which is what clients of [`QueueStatus`](crate::scheduling::QueueStatus) expect.
pub(crate) fn null_if_empty<S, T>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Serialize + Default + PartialEq,
{
    if is_default(value) {
        serializer.serialize_none()
    } else {
        value.serialize(serializer)
    }
}

/// Declares a structure of the API.
///
/// Fields of the `always` block are written even when zero: in the schema they are required, except those whose
/// zero value is written as `null`. `#[schema(…)]` is `#[schemars(…)]` when the `schema` feature is on.
macro_rules! object {
    (
        $(#[doc = $doc:expr])*
        $(#[schema $schema:tt])?
        pub struct $name:ident {
            $(
                $(#[doc = $field_doc:expr])*
                $(#[schema $field_schema:tt])?
                $(#[serde $field_serde:tt])?
                pub $field:ident: $ty:ty,
            )*
        }
        $(always {
            $(
                $(#[doc = $always_doc:expr])*
                $(#[schema $always_schema:tt])?
                $(#[serde $always_serde:tt])?
                pub $always:ident: $always_ty:ty,
            )*
        })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase", default)]
        $(#[cfg_attr(feature = "schema", schemars $schema)])?
        pub struct $name {
            $($(
                $(#[doc = $always_doc])*
                #[serde(deserialize_with = "crate::wire::or_default")]
                $(#[serde $always_serde])?
                $(#[cfg_attr(feature = "schema", schemars $always_schema)])?
                pub $always: $always_ty,
            )*)?
            $(
                $(#[doc = $field_doc])*
                #[serde(
                    deserialize_with = "crate::wire::or_default",
                    skip_serializing_if = "crate::wire::is_default"
                )]
                $(#[serde $field_serde])?
                $(#[cfg_attr(feature = "schema", schemars $field_schema)])?
                pub $field: $ty,
            )*
            /// Fields that this version does not know, kept for writing back.
            #[serde(flatten)]
            #[cfg_attr(feature = "schema", schemars(skip))]
            pub extra: crate::wire::Extra,
        }
    };
}

/// Declares a kind: its top-level structure, and its [`Resource`](crate::meta::Resource) implementation.
macro_rules! resource {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident = $kind:ident {
            $( $(#[doc = $field_doc:expr])* $(#[schema $field_schema:tt])? pub $field:ident: $ty:ty, )*
        }
        $(always { $( $(#[doc = $always_doc:expr])* pub $always:ident: $always_ty:ty, )* })?
    ) => {
        crate::wire::object! {
            $(#[doc = $doc])*
            pub struct $name {
                /// Group and version of the object's schema, `group/version`.
                pub api_version: String,
                /// The kind's name.
                pub kind: String,
                /// Name, labels, owners and the like.
                pub metadata: crate::meta::ObjectMeta,
                $( $(#[doc = $field_doc])* $(#[schema $field_schema])? pub $field: $ty, )*
            }
            $(always { $( $(#[doc = $always_doc])* pub $always: $always_ty, )* })?
        }

        impl crate::meta::Resource for $name {
            const KIND: crate::names::Kind = crate::names::kinds::$kind;

            fn metadata(&self) -> &crate::meta::ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut crate::meta::ObjectMeta {
                &mut self.metadata
            }

            fn set_type(&mut self) {
                self.api_version = Self::KIND.api_version();
                self.kind = Self::KIND.kind.to_owned();
            }
        }
    };
}

/// Declares an enumeration whose values are strings on the wire: `Unset` is the empty string, `Other` keeps a
/// value that is not known.
macro_rules! string_enum {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident { $( $(#[doc = $variant_doc:expr])* $variant:ident = $text:literal, )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            /// No value, the empty string.
            #[default]
            Unset,
            $( $(#[doc = $variant_doc])* $variant, )*
            /// A value that this version does not know, kept as it is.
            Other(Box<str>),
        }

        impl $name {
            /// Every known value, in the order of the schema.
            pub const VALUES: &'static [&'static str] = &[$($text),*];

            /// The value as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    Self::Unset => "",
                    $( Self::$variant => $text, )*
                    Self::Other(text) => text,
                }
            }

            /// Whether there is no value.
            pub fn is_unset(&self) -> bool {
                *self == Self::Unset
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    "" => Self::Unset,
                    $( $text => Self::$variant, )*
                    other => Self::Other(other.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(&*<std::borrow::Cow<'de, str>>::deserialize(deserializer)?))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": Self::VALUES})
            }
        }
    };
}

pub(crate) use {object, resource, string_enum};

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::batch::{Job, JobPhase};
    use crate::bus::Event;
    use crate::config::ColocationConfiguration;
    use crate::meta::{List, Resource as _};
    use crate::scheduling::{NetworkTopologyMode, PodGroup, PodGroupPhase, Queue};
    use crate::topology::HyperNode;

    /// Reads the value as `T` and writes it again.
    fn again<T: serde::de::DeserializeOwned + serde::Serialize>(value: Value) -> Value {
        let object: T = serde_json::from_value(value).expect("the object is readable");
        serde_json::to_value(object).expect("the object is writable")
    }

    #[test]
    fn fields_that_are_not_known_survive_at_every_level() {
        let job = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "top": 1,
            "metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]},
            "spec": {"new": {"deep": [null, 1]}, "tasks": [{"name": "t", "newer": true,
                "template": {"spec": {"containers": [], "newest": null}}}]},
            "status": {"state": {"phase": "Running", "lastTransitionTime": null, "code": 7}, "more": "x"},
        });
        assert_eq!(again::<Job>(job.clone()), job);
    }

    #[test]
    fn null_reads_as_missing_everywhere() {
        let group: PodGroup = serde_json::from_value(json!({
            "apiVersion": null, "kind": null,
            "metadata": {"name": null, "labels": null, "annotations": null, "ownerReferences": null,
                "creationTimestamp": null, "finalizers": null, "generation": null},
            "spec": {"minMember": null, "minTaskMember": null, "queue": null, "minResources": null,
                "networkTopology": null, "subGroupPolicy": null},
            "status": {"phase": null, "conditions": [{"lastTransitionTime": null, "status": null}], "running": null},
        }))
        .expect("nulls are readable");
        assert_eq!(group.metadata, crate::meta::ObjectMeta::default());
        assert_eq!(group.spec, crate::scheduling::PodGroupSpec::default());
        let whole: PodGroup = serde_json::from_value(json!({"metadata": null, "spec": null, "status": null}))
            .expect("nulls are readable");
        assert_eq!(whole, PodGroup::default());
    }

    #[test]
    fn zero_values_are_not_written() {
        assert_eq!(serde_json::to_value(Job::default()).expect("writable"), json!({}));
        let mut job = Job::named("ns", "a");
        job.spec.tasks = vec![crate::batch::TaskSpec {
            min_available: Some(0),
            ..Default::default()
        }];
        assert_eq!(
            serde_json::to_value(job).expect("writable"),
            json!({
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                "metadata": {"name": "a", "namespace": "ns"},
                // A pointer field: zero is not the same as missing.
                "spec": {"tasks": [{"minAvailable": 0}]},
            })
        );
    }

    #[test]
    fn unset_times_and_an_empty_allocation_are_written_as_null() {
        let mut job = Job::default();
        job.status.state.phase = JobPhase::Pending;
        assert_eq!(
            serde_json::to_value(&job.status).expect("writable"),
            json!({"state": {"phase": "Pending", "lastTransitionTime": null}})
        );
        let mut queue = Queue::default();
        queue.status.running = 1;
        let status = serde_json::to_value(&queue.status).expect("writable");
        assert_eq!(status, json!({"running": 1, "allocated": null}));
    }

    #[test]
    fn required_fields_are_written_even_when_zero() {
        let mut node = HyperNode::default();
        node.spec.tier_name = "leaf".into();
        assert_eq!(
            serde_json::to_value(&node.spec).expect("writable"),
            json!({"tier": 0, "tierName": "leaf"})
        );
        let config = serde_json::to_value(ColocationConfiguration::default()).expect("writable");
        assert_eq!(config, json!({"spec": {}}));
    }

    #[test]
    fn enumeration_values_that_are_not_known_are_kept() {
        let group = json!({"spec": {"networkTopology": {"mode": "medium"}}, "status": {"phase": "Paused"}});
        let read: PodGroup = serde_json::from_value(group.clone()).expect("readable");
        assert_eq!(read.status.phase, PodGroupPhase::Other("Paused".into()));
        assert_eq!(serde_json::to_value(&read).expect("writable"), group);
        let mode = read.spec.network_topology.expect("it is there").mode;
        assert_eq!(mode, NetworkTopologyMode::Other("medium".into()));
        assert_eq!(Event::from("*"), Event::Any);
        assert!(PodGroupPhase::from("").is_unset());
        assert_eq!(format!("{:>8}", JobPhase::Failed), "  Failed");
    }

    #[test]
    fn names_that_no_rule_gives_are_right() {
        let group = json!({"status": {"conditions": [{"transitionID": "u", "lastTransitionTime": null, "type": "Scheduled"}]}});
        assert_eq!(again::<PodGroup>(group.clone()), group);
        let flow = json!({"status": {"unKnowJobs": ["a"]}});
        assert_eq!(again::<crate::flow::JobFlow>(flow.clone()), flow);
    }

    #[test]
    fn a_list_knows_its_kind() {
        let list = List::of(vec![Queue::named("", "default")], "7");
        let value = serde_json::to_value(&list).expect("writable");
        assert_eq!(value["kind"], "QueueList");
        assert_eq!(value["apiVersion"], "scheduling.volcano.sh/v1beta1");
        assert_eq!(value["metadata"]["resourceVersion"], "7");
        assert_eq!(again::<List<Queue>>(value.clone()), value);
    }
}
