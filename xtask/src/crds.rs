//! `cargo xtask crds --against DIR`: compares the generated CRDs with those in a directory.
//!
//! A drop-in replacement must accept, default and refuse what installed CRDs do, so everything that has an effect is
//! compared; descriptions are not, and neither is the order of what is a set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value};

/// Lists of a schema whose order has no meaning.
const SETS: [&str; 2] = ["required", "enum"];

/// One thing in which a CRD differs from its reference.
#[derive(Debug, PartialEq)]
struct Difference {
    /// Where: the CRD's name and a path in it.
    place: String,
    /// What is there in ours; `None` when nothing is.
    ours: Option<Value>,
    /// What is there in the reference.
    theirs: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.ours, &self.theirs) {
            (None, Some(theirs)) => write!(f, "{}: missing, the reference has {}", self.place, brief(theirs)),
            (Some(ours), None) => write!(f, "{}: extra, ours has {}", self.place, brief(ours)),
            (Some(ours), Some(theirs)) => {
                write!(
                    f,
                    "{}: ours {}, the reference {}",
                    self.place,
                    brief(ours),
                    brief(theirs)
                )
            }
            (None, None) => write!(f, "{}: differs", self.place),
        }
    }
}

/// A value in one short line.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Compares every CRD of the directory's YAML files with the generated ones and prints each difference.
///
/// # Errors
/// When a file cannot be read, or when there is any difference.
pub fn run(against: &Path) -> anyhow::Result<()> {
    let reference = read_directory(against)?;
    ensure!(!reference.is_empty(), "no CRD in {}", against.display());
    let differences = compare_all(&volcano_api::crd::all(), &reference);
    for difference in &differences {
        println!("{difference}");
    }
    println!(
        "{} CRDs compared, {} differences",
        reference.len(),
        differences.len()
    );
    if !differences.is_empty() {
        bail!("the generated CRDs differ from those in {}", against.display());
    }
    Ok(())
}

/// Every CRD in the YAML files of a directory.
fn read_directory(directory: &Path) -> anyhow::Result<Vec<Value>> {
    let entries = std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
    });
    paths.sort();
    let mut crds = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("parsing {}", path.display()))?;
        crds.extend(
            documents
                .into_iter()
                .filter(|document| document["kind"] == "CustomResourceDefinition"),
        );
    }
    Ok(crds)
}

/// Compares two sets of CRDs by name.
fn compare_all(ours: &[Value], theirs: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    let (ours, theirs) = (by_name(ours, "/metadata/name"), by_name(theirs, "/metadata/name"));
    each_key(&ours, &theirs, |name, ours, theirs| match (ours, theirs) {
        (Some(ours), Some(theirs)) => compare_crd(name, ours, theirs, &mut found),
        _ => found.push(Difference {
            place: name.to_owned(),
            ours: kind_of(ours),
            theirs: kind_of(theirs),
        }),
    });
    found
}

/// Enough to name a CRD that is on one side only.
fn kind_of(crd: Option<&Value>) -> Option<Value> {
    crd.map(|crd| crd["spec"]["names"]["kind"].clone())
}

/// Compares two CRDs of the same name. What the API server writes (`status`) is no part of them.
fn compare_crd(name: &str, ours: &Value, theirs: &Value, found: &mut Vec<Difference>) {
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    let our_versions = take_versions(&mut ours);
    let their_versions = take_versions(&mut theirs);
    compare_value(name, &ours, &theirs, found);
    let (our_versions, their_versions) = (by_name(&our_versions, "/name"), by_name(&their_versions, "/name"));
    each_key(&our_versions, &their_versions, |version, ours, theirs| {
        let place = format!("{name}/{version}");
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            let version = |side: Option<&Value>| side.map(|_| Value::from(version));
            found.push(Difference {
                place,
                ours: version(ours),
                theirs: version(theirs),
            });
            return;
        };
        let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
        let (our_schema, their_schema) = (take_schema(&mut ours), take_schema(&mut theirs));
        compare_value(&place, &ours, &theirs, found);
        compare_schema(&format!("{place} "), &our_schema, &their_schema, found);
    });
}

/// Takes the versions out of a CRD, and its status.
fn take_versions(crd: &mut Value) -> Vec<Value> {
    if let Some(crd) = crd.as_object_mut() {
        crd.remove("status");
    }
    match crd.pointer_mut("/spec/versions").map(Value::take) {
        Some(Value::Array(versions)) => versions,
        _ => Vec::new(),
    }
}

/// Takes the schema out of a version.
fn take_schema(version: &mut Value) -> Value {
    version
        .pointer_mut("/schema/openAPIV3Schema")
        .map(Value::take)
        .unwrap_or_default()
}

/// Compares two schemas; `place` ends in a space or the path of a field.
fn compare_schema(place: &str, ours: &Value, theirs: &Value, found: &mut Vec<Difference>) {
    let (Some(ours), Some(theirs)) = (ours.as_object(), theirs.as_object()) else {
        return compare_value(place, ours, theirs, found);
    };
    each_key(&members(ours), &members(theirs), |key, ours, theirs| {
        match (key, ours, theirs) {
            ("description", ..) => {}
            ("properties", ..) => {
                let none = Map::new();
                let fields = |side: Option<&Value>| {
                    members(side.and_then(Value::as_object).unwrap_or(&none))
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value.clone()))
                        .collect::<BTreeMap<_, _>>()
                };
                let (ours, theirs) = (fields(ours), fields(theirs));
                each_key(&ours, &theirs, |field, ours, theirs| {
                    let place = format!("{place}.{field}");
                    match (ours, theirs) {
                        (Some(ours), Some(theirs)) => compare_schema(&place, ours, theirs, found),
                        _ => found.push(Difference {
                            place,
                            ours: ours.cloned(),
                            theirs: theirs.cloned(),
                        }),
                    }
                });
            }
            ("items", Some(ours), Some(theirs)) => compare_schema(&format!("{place}[]"), ours, theirs, found),
            ("additionalProperties", Some(ours), Some(theirs)) => {
                compare_schema(&format!("{place}{{}}"), ours, theirs, found);
            }
            (set, Some(ours), Some(theirs)) if SETS.contains(&set) && same_set(ours, theirs) => {}
            _ => compare_optional(&format!("{place} {key}"), ours, theirs, found),
        }
    });
}

/// Compares two values part by part.
fn compare_value(place: &str, ours: &Value, theirs: &Value, found: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            each_key(&members(ours), &members(theirs), |key, ours, theirs| {
                compare_optional(&format!("{place}.{key}"), ours, theirs, found);
            });
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for index in 0..ours.len().max(theirs.len()) {
                compare_optional(
                    &format!("{place}[{index}]"),
                    ours.get(index),
                    theirs.get(index),
                    found,
                );
            }
        }
        _ if ours == theirs => {}
        _ => found.push(Difference {
            place: place.to_owned(),
            ours: Some(ours.clone()),
            theirs: Some(theirs.clone()),
        }),
    }
}

fn compare_optional(place: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => compare_value(place, ours, theirs, found),
        _ => {
            found.push(Difference {
                place: place.to_owned(),
                ours: ours.cloned(),
                theirs: theirs.cloned(),
            });
        }
    }
}

/// Whether two lists have the same members.
fn same_set(ours: &Value, theirs: &Value) -> bool {
    let set = |value: &Value| {
        value
            .as_array()
            .map(|list| list.iter().map(Value::to_string).collect::<BTreeSet<_>>())
    };
    set(ours) == set(theirs)
}

/// Values by the name that each has at a JSON pointer.
fn by_name<'a>(values: &'a [Value], pointer: &str) -> BTreeMap<String, &'a Value> {
    let name = |value: &Value| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    values.iter().map(|value| (name(value), value)).collect()
}

fn members(map: &Map<String, Value>) -> BTreeMap<&str, &Value> {
    map.iter().map(|(key, value)| (key.as_str(), value)).collect()
}

/// Calls for each key of either map, in order.
fn each_key<K, V>(
    ours: &BTreeMap<K, V>,
    theirs: &BTreeMap<K, V>,
    mut visit: impl FnMut(&str, Option<&Value>, Option<&Value>),
) where
    K: Ord + AsRef<str>,
    V: std::borrow::Borrow<Value>,
{
    let keys: BTreeSet<&K> = ours.keys().chain(theirs.keys()).collect();
    for key in keys {
        visit(
            key.as_ref(),
            ours.get(key).map(V::borrow),
            theirs.get(key).map(V::borrow),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A small CRD with one of everything that is compared.
    fn crd() -> Value {
        json!({
            "metadata": {"name": "things.example.org", "annotations": {"keep": "yes"}},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": "A", "type": "string", "jsonPath": ".spec.a"},
                        {"name": "B", "type": "string", "jsonPath": ".spec.b", "priority": 1},
                    ],
                    "schema": {"openAPIV3Schema": {"type": "object", "description": "A thing.", "properties": {
                        "spec": {"type": "object", "required": ["a", "b"], "properties": {
                            "a": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "default": 3},
                            "b": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^x", "nullable": true},
                            "description": {"type": "string", "enum": ["x", "y"]},
                            "d": {"type": "array", "minItems": 1, "maxItems": 2, "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["k"],
                                "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
                            "e": {"type": "object", "additionalProperties": {"type": "string"},
                                "x-kubernetes-map-type": "atomic",
                                "x-kubernetes-validations": [{"rule": "true", "message": "never"}]},
                        }},
                    }}},
                }],
            },
        })
    }

    /// The places of the differences between the CRD and one in which the value at a pointer was changed.
    fn planted(pointer: &str, change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut theirs = crd();
        change(theirs.pointer_mut(pointer).expect("the pointer leads somewhere"));
        let found = compare_all(&[crd()], &[theirs]);
        found.into_iter().map(|difference| difference.place).collect()
    }

    const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

    #[test]
    fn equal_crds_do_not_differ() {
        assert_eq!(compare_all(&[crd()], &[crd()]), []);
        let all = volcano_api::crd::all();
        assert_eq!(compare_all(&all, &all), []);
    }

    #[test]
    fn a_changed_value_of_any_sort_is_found_once_and_named() {
        let version = "things.example.org/v1";
        let cases = [
            (
                "/spec/scope",
                json!("Cluster"),
                "things.example.org.spec.scope".to_owned(),
            ),
            (
                "/spec/names/kind",
                json!("Think"),
                "things.example.org.spec.names.kind".to_owned(),
            ),
            (
                "/spec/names/shortNames/0",
                json!("t"),
                "things.example.org.spec.names.shortNames[0]".to_owned(),
            ),
            (
                "/metadata/annotations/keep",
                json!("no"),
                "things.example.org.metadata.annotations.keep".to_owned(),
            ),
            (
                "/spec/versions/0/served",
                json!(false),
                format!("{version}.served"),
            ),
            (
                "/spec/versions/0/additionalPrinterColumns/1/priority",
                json!(0),
                format!("{version}.additionalPrinterColumns[1].priority"),
            ),
        ];
        for (pointer, value, place) in cases {
            assert_eq!(planted(pointer, |old| *old = value), [place], "{pointer}");
        }
        let fields = [
            ("a", "type", json!("string")),
            ("a", "format", json!("int64")),
            ("a", "minimum", json!(0)),
            ("a", "maximum", json!(10)),
            ("a", "default", json!(4)),
            ("b", "minLength", json!(0)),
            ("b", "maxLength", json!(10)),
            ("b", "pattern", json!("^y")),
            ("b", "nullable", json!(false)),
            ("d", "minItems", json!(0)),
            ("d", "maxItems", json!(3)),
            ("d", "x-kubernetes-list-type", json!("set")),
            ("e", "x-kubernetes-map-type", json!("granular")),
        ];
        for (field, keyword, value) in fields {
            let pointer = format!("{SPEC}/properties/{field}/{keyword}");
            let place = format!("{version} .spec.{field} {keyword}");
            assert_eq!(planted(&pointer, |old| *old = value), [place]);
        }
    }

    #[test]
    fn changes_below_lists_maps_and_rules_are_found() {
        let version = "things.example.org/v1";
        let cases = [
            ("d/items/properties/k/type", json!("integer"), ".spec.d[].k type"),
            (
                "d/x-kubernetes-list-map-keys/0",
                json!("l"),
                ".spec.d x-kubernetes-list-map-keys[0]",
            ),
            ("e/additionalProperties/type", json!("integer"), ".spec.e{} type"),
            (
                "e/x-kubernetes-validations/0/rule",
                json!("false"),
                ".spec.e x-kubernetes-validations[0].rule",
            ),
            (
                "e/x-kubernetes-validations/0/message",
                json!("ever"),
                ".spec.e x-kubernetes-validations[0].message",
            ),
        ];
        for (path, value, place) in cases {
            let found = planted(&format!("{SPEC}/properties/{path}"), |old| *old = value);
            assert_eq!(found, [format!("{version} {place}")]);
        }
    }

    #[test]
    fn what_is_on_one_side_only_is_missing_or_extra() {
        let version = "things.example.org/v1";
        let without = |key: &'static str| {
            move |map: &mut Value| {
                map.as_object_mut().expect("an object").remove(key);
            }
        };
        let fields = format!("{SPEC}/properties");
        assert_eq!(planted(&fields, without("a")), [format!("{version} .spec.a")]);
        assert_eq!(
            planted(&fields, without("description")),
            [format!("{version} .spec.description")]
        );
        assert_eq!(
            planted(SPEC, without("required")),
            [format!("{version} .spec required")]
        );
        assert_eq!(
            planted("/spec/versions/0", without("subresources")),
            [format!("{version}.subresources")]
        );
        let more = |map: &mut Value| map["z"] = json!({"type": "string"});
        let mut theirs = crd();
        more(theirs.pointer_mut(&fields).expect("it is there"));
        let found = compare_all(&[crd()], &[theirs]);
        assert_eq!(
            found[0].to_string(),
            "things.example.org/v1 .spec.z: missing, the reference has {\"type\":\"string\"}"
        );
    }

    #[test]
    fn sets_are_compared_without_order_and_descriptions_not_at_all() {
        assert_eq!(
            planted(&format!("{SPEC}/required"), |list| *list = json!(["b", "a"])),
            [""; 0]
        );
        let values = format!("{SPEC}/properties/description/enum");
        assert_eq!(planted(&values, |list| *list = json!(["y", "x"])), [""; 0]);
        assert_eq!(planted(&values, |list| *list = json!(["x"])).len(), 1);
        let root = "/spec/versions/0/schema/openAPIV3Schema/description";
        assert_eq!(planted(root, |text| *text = json!("Another thing.")), [""; 0]);
    }

    #[test]
    fn whole_crds_and_versions_can_be_missing() {
        let found = compare_all(&[], &[crd()]);
        assert_eq!(
            found[0].to_string(),
            "things.example.org: missing, the reference has \"Thing\""
        );
        let found = compare_all(&[crd()], &[]);
        assert_eq!(
            found[0].to_string(),
            "things.example.org: extra, ours has \"Thing\""
        );
        let renamed = planted("/spec/versions/0/name", |name| *name = json!("v2"));
        assert_eq!(renamed, ["things.example.org/v1", "things.example.org/v2"]);
    }
}
