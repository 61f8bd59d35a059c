//! From documents to single objects: lists are taken apart, and each object knows its kind, name and place.

use crate::fault::Fault;
use crate::source::{Document, Source};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use volcano_api::time::Time;
use volcano_engine::export::Underway;
use volcano_engine::model::features::Features;

/// Lists within lists; nobody writes more than one.
const MAX_LIST_DEPTH: usize = 8;

/// One object of the input.
#[derive(Debug)]
pub struct Entry<'a> {
    /// File, document and item, for messages.
    pub place: String,
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, if it has one.
    pub namespace: String,
    /// Name, if it has one.
    pub name: String,
    json: &'a str,
}

/// What a source says about how its objects are to be planned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The scheduler configuration.
    pub conf: Option<String>,
    /// The names of the scheduler.
    pub scheduler_names: Option<Vec<String>>,
    /// The queue of PodGroups that name none.
    pub default_queue: Option<String>,
    /// Flags and feature gates of the scheduler.
    pub features: Option<Features>,
    /// The moment of the first cycle.
    pub now: Option<Time>,
    /// The objects are all that there is: no queues are added to them.
    pub complete: bool,
    /// What was decided and the objects do not show.
    pub underway: Option<Underway>,
}

impl Settings {
    /// Takes in the settings of a later source, which hold where both say something.
    pub fn merge(&mut self, later: Settings) {
        self.conf = later.conf.or_else(|| self.conf.take());
        self.scheduler_names = later.scheduler_names.or_else(|| self.scheduler_names.take());
        self.default_queue = later.default_queue.or_else(|| self.default_queue.take());
        self.features = later.features.or_else(|| self.features.take());
        self.now = later.now.or(self.now);
        self.underway = later.underway.or_else(|| self.underway.take());
        self.complete |= later.complete;
    }
}

/// What a document can be apart from an object: objects with the settings to plan them with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot<'a> {
    conf: Option<String>,
    scheduler_names: Option<Vec<String>>,
    default_queue: Option<String>,
    features: Option<Features>,
    now: Option<Time>,
    complete: Option<bool>,
    underway: Option<Underway>,
    #[serde(borrow)]
    objects: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, expecting = "a Kubernetes object")]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<HeadMeta<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "metadata with a name")]
struct HeadMeta<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Items<'a> {
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

/// Calls `take` for every object of a source, and returns the settings that it may come with.
pub fn read(
    source: &Source,
    take: &mut dyn FnMut(Entry<'_>) -> Result<(), Fault>,
) -> Result<Settings, Fault> {
    let mut settings = Settings::default();
    for Document { number, json } in source.documents()? {
        let place = format!("{}: document {number}", source.name);
        let Some(objects) = bundle(&place, &json, &mut settings)? else {
            each(&place, &json, None, 0, take)?;
            continue;
        };
        for (index, object) in objects.iter().enumerate() {
            each(&format!("{place}, objects[{index}]"), object.get(), None, 0, take)?;
        }
    }
    Ok(settings)
}

/// The objects of a document that is an array or a snapshot; `None` when it is an object.
fn bundle<'a>(
    place: &str,
    json: &'a str,
    settings: &mut Settings,
) -> Result<Option<Vec<&'a RawValue>>, Fault> {
    if json.starts_with('[') {
        return decode_at(place, json).map(Some);
    }
    let head: Head = decode_at(place, json)?;
    if head.kind.is_some() || head.api_version.is_some() {
        return Ok(None);
    }
    let snapshot: Snapshot = decode_at(place, json)?;
    let objects = snapshot.objects.ok_or_else(|| {
        Fault::new(format!(
            "{place}: no kind and apiVersion: this is not a Kubernetes object"
        ))
        .hint("expected objects, a List, or {\"conf\": …, \"objects\": […]}; a Job goes in with --submit")
    })?;
    settings.merge(Settings {
        conf: snapshot.conf,
        scheduler_names: snapshot.scheduler_names,
        default_queue: snapshot.default_queue,
        features: snapshot.features,
        now: snapshot.now,
        complete: snapshot.complete.unwrap_or(false),
        underway: snapshot.underway,
    });
    Ok(Some(objects))
}

/// Calls `take` for an object, or for the items of a list. `inherited` is what the items of a typed list are.
fn each(
    place: &str,
    json: &str,
    inherited: Option<(&str, &str)>,
    depth: usize,
    take: &mut dyn FnMut(Entry<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let head: Head = decode_at(place, json)?;
    let api_version = head
        .api_version
        .as_deref()
        .or(inherited.map(|(version, _)| version));
    let kind = head.kind.as_deref().or(inherited.map(|(_, kind)| kind));
    let (Some(api_version), Some(kind)) = (api_version, kind) else {
        let missing = if kind.is_none() { "kind" } else { "apiVersion" };
        return Err(Fault::new(format!("{place}: {missing}: required")));
    };
    if let Some(item_kind) = kind.strip_suffix("List") {
        if depth == MAX_LIST_DEPTH {
            return Err(Fault::new(format!(
                "{place}: lists in lists, more than {MAX_LIST_DEPTH} deep"
            )));
        }
        let list: Items = decode_at(place, json)?;
        let inherited = (!item_kind.is_empty()).then_some((api_version, item_kind));
        for (index, item) in list.items.unwrap_or_default().iter().enumerate() {
            each(
                &format!("{place}, items[{index}]"),
                item.get(),
                inherited,
                depth + 1,
                take,
            )?;
        }
        return Ok(());
    }
    let meta = head.metadata.unwrap_or_default();
    take(Entry {
        place: place.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: meta.namespace.unwrap_or_default().into_owned(),
        name: meta.name.unwrap_or_default().into_owned(),
        json,
    })
}

impl Entry<'_> {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// `apps/v1 Deployment`.
    pub fn full_kind(&self) -> String {
        format!("{} {}", self.api_version, self.kind)
    }

    /// `cluster.yaml: document 3 (Pod default/p1)`.
    pub fn title(&self) -> String {
        let name = match (self.namespace.as_str(), self.name.as_str()) {
            (_, "") => String::new(),
            ("", name) => format!(" {name}"),
            (namespace, name) => format!(" {namespace}/{name}"),
        };
        format!("{} ({}{name})", self.place, self.kind)
    }

    /// The object in its type. An error names the field.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.json).map_err(|error| locate::<T>(&self.title(), self.json, &error))
    }
}

/// Decodes a whole document. An error names the field.
pub fn decode_at<'a, T: Deserialize<'a>>(place: &str, json: &'a str) -> Result<T, Fault> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let cause = without_position(error.inner());
        let path = if path == "." {
            String::new()
        } else {
            format!("{path}: ")
        };
        Fault::new(format!("{place}: {path}{cause}"))
    })
}

/// Decodes again, slowly, to find the field that is wrong: the fast way knows only a byte.
fn locate<T: DeserializeOwned>(title: &str, json: &str, error: &serde_json::Error) -> Fault {
    let value = match serde_json::from_str::<Value>(json) {
        Ok(value) => value,
        Err(error) => return Fault::new(format!("{title}: {error}")),
    };
    decode_value::<T>(title, "", value)
        .err()
        .unwrap_or_else(|| Fault::new(format!("{title}: {}", without_position(error))))
}

/// Decodes a part of an object; `prefix` is the way to it. An error names the field.
pub fn decode_value<T: DeserializeOwned>(title: &str, prefix: &str, value: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." => prefix.to_owned(),
            path if prefix.is_empty() => path,
            path => format!("{prefix}.{path}"),
        };
        let cause = error.into_inner();
        if path.is_empty() {
            Fault::new(format!("{title}: {cause}"))
        } else {
            Fault::new(format!("{title}: {path}: {cause}"))
        }
    })
}

/// The position is that within one document turned into JSON: no help to anyone.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volcano_api::core::Pod;

    fn titles(text: &str) -> Result<(Vec<String>, Settings), String> {
        let mut titles = Vec::new();
        let settings = read(&Source::from_text("c", text), &mut |entry| {
            titles.push(entry.title());
            Ok(())
        });
        settings
            .map(|settings| (titles, settings))
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn lists_are_taken_apart() {
        let cases: [(&str, &[&str]); 5] = [
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x}}",
                &["c: document 1 (Pod x/a)"],
            ),
            (
                r#"{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}]}"#,
                &["c: document 1, items[0] (Node n)"],
            ),
            // Items of a typed list do not say what they are.
            (
                r#"{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "p"}}, {"metadata": {}}]}"#,
                &["c: document 1, items[0] (Pod p)", "c: document 1, items[1] (Pod)"],
            ),
            (r#"{"kind": "PodList", "apiVersion": "v1", "items": null}"#, &[]),
            (
                r#"[{"kind": "Node", "apiVersion": "v1"}]"#,
                &["c: document 1, objects[0] (Node)"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(titles(text).unwrap().0, expected, "{text}");
        }
    }

    #[test]
    fn a_snapshot_brings_its_settings() {
        let text = r#"{"conf": "actions: allocate", "objects": [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}]}"#;
        let (objects, settings) = titles(text).unwrap();
        assert_eq!(objects, ["c: document 1, objects[0] (Node n)"]);
        let only_conf = Settings {
            conf: Some("actions: allocate".to_owned()),
            ..Settings::default()
        };
        assert_eq!(settings, only_conf);
        let text = r#"{"conf": "a", "schedulerNames": ["vc"], "defaultQueue": "q", "now": "1970-01-01T00:00:01Z",
            "features": {"queueAdmission": true}, "complete": true, "objects": [],
            "underway": {"bindFailed": ["ns/p"]}}"#;
        let (_, mut settings) = titles(text).unwrap();
        let all = Settings {
            conf: Some("a".to_owned()),
            scheduler_names: Some(vec!["vc".to_owned()]),
            default_queue: Some("q".to_owned()),
            features: Some(Features {
                queue_admission: true,
                ..Features::default()
            }),
            now: Some(Time::from_unix_seconds(1)),
            complete: true,
            underway: Some(Underway {
                bind_failed: vec!["ns/p".to_owned()],
                ..Underway::default()
            }),
        };
        assert_eq!(settings, all);
        settings.merge(only_conf.clone());
        let both = Settings {
            conf: only_conf.conf,
            ..all
        };
        assert_eq!(settings, both, "the later one holds where it says something");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let cases = [
            (
                "a: 1",
                "c: document 1: no kind and apiVersion: this is not a Kubernetes object",
            ),
            ("kind: Pod", "c: document 1: apiVersion: required"),
            ("apiVersion: v1", "c: document 1: kind: required"),
            (
                "just words",
                "c: document 1: invalid type: string \"just words\", expected a Kubernetes object",
            ),
            (
                r#"{"now": "noon", "objects": []}"#,
                "c: document 1: now: \"noon\" is no RFC 3339 time",
            ),
            (
                "{kind: 1, apiVersion: v1}",
                "c: document 1: kind: invalid type: integer `1`, expected a string",
            ),
        ];
        for (text, expected) in cases {
            let error = titles(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_bad_field_is_named() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p1, namespace: default}\n\
                    spec: {containers: [{resources: {requests: {cpu: 1 core}}}]}";
        let mut error = String::new();
        read(&Source::from_text("c.yaml", text), &mut |entry| {
            error = entry.decode::<Pod>().unwrap_err().to_string();
            Ok(())
        })
        .unwrap();
        let expected = "c.yaml: document 1 (Pod default/p1): spec.containers[0].resources.requests.cpu: ";
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains("line"), "{error}");
    }
}
