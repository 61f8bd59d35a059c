//! The `metrics` section: where the load of nodes is read. All values are text; keys are flat, and the nested form
//! that users write (`tls:`, `elasticsearch:`) is flattened to it.

use std::collections::BTreeMap;

use super::names::nearest;
use super::parse_duration;
use super::reader::{Problems, did_you_mean};
use super::yaml::{Entry, Node, Place, Scalar, Yaml, member, quoted};

const KEYS: [&str; 8] = [
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.hostnameFieldName",
    "elasticsearch.username",
    "elasticsearch.password",
];

/// The sources, and whether each needs an address.
const TYPES: [(&str, bool); 3] = [
    ("prometheus", true),
    ("prometheus_adaptor", false),
    ("elasticsearch", true),
];

/// Reads the section under flat keys.
pub(super) fn read(problems: &mut Problems, node: &Node) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, (String, Place)> = BTreeMap::new();
    flatten(problems, node, "", &mut found);
    check_type(problems, node, &found);
    if let Some((text, place)) = found.get("interval").filter(|(text, _)| !text.is_empty())
        && parse_duration(text).is_none()
    {
        let message = format!("expected a duration such as \"30s\", found {}", quoted(text));
        problems.add(*place, "metrics.interval", message);
    }
    found.into_iter().map(|(key, (text, _))| (key, text)).collect()
}

fn flatten(
    problems: &mut Problems,
    node: &Node,
    parent: &str,
    found: &mut BTreeMap<String, (String, Place)>,
) {
    let entries = problems.map(node, &path(parent), "a mapping").unwrap_or_default();
    for Entry {
        key,
        key_place,
        value,
    } in entries
    {
        let key = member(parent, key);
        let is_group = KEYS.iter().any(|known| known.starts_with(&format!("{key}.")));
        if !is_group && !KEYS.contains(&key.as_str()) {
            let groups = ["tls", "elasticsearch"];
            let hint = nearest(&key, KEYS.into_iter().chain(groups)).map(did_you_mean);
            let message = format!("unknown key {} of the metrics section", quoted(&key));
            problems.add_with_hint(*key_place, &path(&key), message, hint);
            continue;
        }
        match &value.yaml {
            _ if is_group => flatten(problems, value, &key, found),
            Yaml::Scalar { text, value: kind } => {
                let text = if *kind == Scalar::Null {
                    String::new()
                } else {
                    text.clone()
                };
                if let Some((_, first)) = found.get(&key) {
                    let message = format!("duplicate key {key:?}, already set in line {}", first.line);
                    problems.add(*key_place, &path(&key), message);
                } else {
                    found.insert(key, (text, value.place));
                }
            }
            _ => problems.wrong_type(value, &path(&key), "a single value", None),
        }
    }
}

fn check_type(problems: &mut Problems, node: &Node, found: &BTreeMap<String, (String, Place)>) {
    let Some((kind, place)) = found.get("type").filter(|(kind, _)| !kind.is_empty()) else {
        return;
    };
    match TYPES.iter().find(|(name, _)| name == kind) {
        None => {
            let names = TYPES.map(|(name, _)| name);
            let message = format!("unknown source {}; one of {}", quoted(kind), names.join(", "));
            problems.add_with_hint(
                *place,
                "metrics.type",
                message,
                nearest(kind, names).map(did_you_mean),
            );
        }
        Some((name, true)) if found.get("address").is_none_or(|(address, _)| address.is_empty()) => {
            problems.add(
                node.place,
                "metrics",
                format!("missing key \"address\", which type {name} needs"),
            );
        }
        Some(_) => {}
    }
}

fn path(key: &str) -> String {
    if key.is_empty() {
        "metrics".to_owned()
    } else {
        format!("metrics.{key}")
    }
}
