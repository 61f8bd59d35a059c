//! The file of resource groups (`--admission-conf`): which pods go to which nodes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;
use volcano_api::core::Affinity;
use volcano_api::meta::ObjectMeta;
use volcano_api::names::annotations;

use crate::review::typed;

/// The longest file: a ConfigMap has no more.
const MAX_BYTES: usize = 1024 * 1024;
/// Members of an affinity that are objects. What is in lists is never a list, either.
const AFFINITY_OBJECTS: [&str; 7] = [
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "preference",
    "podAffinityTerm",
    "labelSelector",
    "namespaceSelector",
];

/// Groups of pods, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceGroups {
    groups: Vec<ResourceGroup>,
    notes: Vec<String>,
}

/// Why a file of resource groups cannot be used.
#[derive(Debug, Error)]
pub enum ResourceGroupsError {
    /// The file is longer than a ConfigMap.
    #[error("the file of resource groups has {0} bytes; at most {MAX_BYTES} are read")]
    TooLong(usize),
    /// The file is not what it should be.
    #[error("the file of resource groups cannot be read: {0}")]
    Yaml(String),
}

/// Pods that are alike in where they come from, and what they get.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResourceGroup {
    pods: Pods,
    pub labels: BTreeMap<String, String>,
    pub affinity: Option<Value>,
    pub tolerations: Vec<Value>,
    pub scheduler_name: String,
}

/// Which pods are of a group.
#[derive(Clone, Debug, PartialEq)]
enum Pods {
    /// Those of these namespaces.
    Namespaces(Vec<String>),
    /// Those with any of these annotations.
    Annotations(Vec<(String, String)>),
    /// None.
    Nobody,
}

impl ResourceGroups {
    /// Reads the file. One without groups is a file.
    ///
    /// # Errors
    /// When it is too long or not of the form that it should have; the message says where.
    pub fn parse(text: &str) -> Result<Self, ResourceGroupsError> {
        if text.len() > MAX_BYTES {
            return Err(ResourceGroupsError::TooLong(text.len()));
        }
        let file: Option<File> =
            serde_saphyr::from_str(text).map_err(|error| ResourceGroupsError::Yaml(error.to_string()))?;
        let mut groups = ResourceGroups::default();
        for written in file.unwrap_or_default().resource_groups.unwrap_or_default() {
            let group = groups.read(written);
            groups.groups.push(group);
        }
        Ok(groups)
    }

    /// What in the file has no effect, for the log.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The first group that a pod is of.
    pub(super) fn of(&self, pod: &ObjectMeta) -> Option<&ResourceGroup> {
        self.groups.iter().find(|group| group.pods.contain(pod))
    }

    fn read(&mut self, written: WrittenGroup) -> ResourceGroup {
        let name = written.resource_group;
        let mut note = |what: String| self.notes.push(format!("resource group {name:?}: {what}"));
        let values = written.object.value.unwrap_or_default();
        let pods = match written.object.key.as_str() {
            "namespace" => Pods::Namespaces(values),
            "annotation" => Pods::Annotations(pairs(&values, &mut note)),
            "" => {
                let mut pairs = pairs(&values, &mut note);
                pairs.push((annotations::RESOURCE_GROUP.to_owned(), name.clone()));
                Pods::Annotations(pairs)
            }
            other => {
                note(format!(
                    "object.key {other:?} is neither \"namespace\" nor \"annotation\": no pod is in it"
                ));
                Pods::Nobody
            }
        };
        let affinity = match written.affinity.trim() {
            "" => None,
            text => match read_affinity(text) {
                Ok(affinity) => Some(affinity),
                Err(error) => {
                    note(format!(
                        "affinity is not the JSON of an affinity and is left out: {error}"
                    ));
                    None
                }
            },
        };
        ResourceGroup {
            pods,
            labels: written.labels.unwrap_or_default(),
            affinity,
            tolerations: written
                .tolerations
                .unwrap_or_default()
                .iter()
                .map(WrittenToleration::value)
                .collect(),
            scheduler_name: written.scheduler_name,
        }
    }
}

impl Pods {
    fn contain(&self, pod: &ObjectMeta) -> bool {
        match self {
            Pods::Namespaces(names) => names.contains(&pod.namespace),
            Pods::Annotations(pairs) => pairs
                .iter()
                .any(|(key, value)| pod.annotation(key) == Some(value.as_str())),
            Pods::Nobody => false,
        }
    }
}

/// An affinity as it is written, once it is known to be one: with anything else no pod of the group could be made.
fn read_affinity(text: &str) -> Result<Value, String> {
    let affinity = serde_json::from_str(text)
        .map(Value::Object)
        .map_err(|error| error.to_string())?;
    typed::<Affinity, _>(&affinity, "affinity")?;
    match misplaced_list("affinity", &affinity) {
        Some(place) => Err(format!("{place}: invalid type: sequence, expected a map")),
        None => Ok(affinity),
    }
}

/// The place of the first list where an object belongs. It was read as the fields of that object, in their order, which the
/// API server does not do.
fn misplaced_list(at: &str, value: &Value) -> Option<String> {
    let look = |place: String, part: &Value, is_object: bool| {
        if is_object && part.is_array() {
            return Some(place);
        }
        misplaced_list(&place, part)
    };
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            // Of nodes one object is required, of pods a list of them.
            let is_selector = at == "affinity.nodeAffinity" && name.starts_with("required");
            let is_object = is_selector || AFFINITY_OBJECTS.contains(&name.as_str());
            look(format!("{at}.{name}"), member, is_object)
        }),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| look(format!("{at}[{index}]"), item, true))
        }
        _ => None,
    }
}

/// Annotations written as YAML texts, `key: value` in each.
fn pairs(texts: &[String], note: &mut impl FnMut(String)) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for text in texts {
        match serde_saphyr::from_str::<BTreeMap<String, String>>(text) {
            Ok(map) => pairs.extend(map),
            Err(_) => note(format!(
                "object.value {text:?} is not of the form \"key: value\" and is left out"
            )),
        }
    }
    pairs
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct File {
    resource_groups: Option<Vec<WrittenGroup>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct WrittenGroup {
    resource_group: String,
    object: WrittenObject,
    scheduler_name: String,
    tolerations: Option<Vec<WrittenToleration>>,
    labels: Option<BTreeMap<String, String>>,
    affinity: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenObject {
    key: String,
    value: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenToleration {
    key: String,
    operator: String,
    value: String,
    effect: String,
    #[serde(alias = "tolerationSeconds")]
    tolerationseconds: Option<i64>,
}

impl WrittenToleration {
    /// As it stands in a pod.
    fn value(&self) -> Value {
        let mut toleration = Map::new();
        let texts = [
            ("key", &self.key),
            ("operator", &self.operator),
            ("value", &self.value),
            ("effect", &self.effect),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            toleration.insert(name.to_owned(), text.as_str().into());
        }
        if let Some(seconds) = self.tolerationseconds {
            toleration.insert("tolerationSeconds".to_owned(), json!(seconds));
        }
        Value::Object(toleration)
    }
}
