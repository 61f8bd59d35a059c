//! Reads a configuration text section by section and collects every problem on the way.

use std::collections::BTreeMap;

use super::metrics;
use super::names::nearest;
use super::yaml::{self, Entry, Node, Place, Scalar, Yaml, item, member, quoted};
use super::{
    ActionConf, ActionSpec, Arguments, ConfigError, ConfigErrors, MAX_TEXT_BYTES, PluginConf, PluginSpec,
    SchedulerConf, Switches, Tier,
};

const SECTIONS: [&str; 4] = ["actions", "tiers", "configurations", "metrics"];

/// See [`SchedulerConf::parse`].
pub(super) fn read(
    text: &str,
    plugins: &[PluginSpec],
    actions: &[ActionSpec],
) -> Result<SchedulerConf, ConfigErrors> {
    let mut problems = Problems::default();
    if text.len() > MAX_TEXT_BYTES {
        problems.add(
            None,
            "",
            format!(
                "the configuration has {} bytes; at most {MAX_TEXT_BYTES} are read",
                text.len()
            ),
        );
        return Err(ConfigErrors::new(problems.0));
    }
    let conf = match yaml::load(text) {
        Ok((document, duplicates)) => {
            for duplicate in duplicates {
                problems.add(duplicate.place, &duplicate.path, duplicate.message);
            }
            Reader {
                plugins,
                actions,
                problems: &mut problems,
                listed: BTreeMap::new(),
            }
            .document(document.as_ref())
        }
        Err(error) => {
            problems.add(error.place, &error.path, error.message);
            SchedulerConf::default()
        }
    };
    if problems.0.is_empty() {
        Ok(conf)
    } else {
        Err(ConfigErrors::new(problems.0))
    }
}

/// The problems found so far.
#[derive(Default)]
pub(super) struct Problems(Vec<ConfigError>);

impl Problems {
    pub fn add(&mut self, place: impl Into<Option<Place>>, path: &str, message: impl Into<String>) {
        self.add_with_hint(place, path, message, None);
    }

    pub fn add_with_hint(
        &mut self,
        place: impl Into<Option<Place>>,
        path: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let place = place.into();
        self.0.push(ConfigError {
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            path: path.to_owned(),
            message: message.into(),
            hint,
        });
    }

    pub fn wrong_type(&mut self, node: &Node, path: &str, expected: &str, hint: Option<String>) {
        self.add_with_hint(
            node.place,
            path,
            format!("expected {expected}, found {}", node.describe()),
            hint,
        );
    }

    /// The entries of a mapping; a missing value counts as an empty one.
    pub fn map<'n>(&mut self, node: &'n Node, path: &str, expected: &str) -> Option<&'n [Entry]> {
        match &node.yaml {
            Yaml::Map(entries) => Some(entries),
            Yaml::Scalar {
                value: Scalar::Null, ..
            } => Some(&[]),
            _ => {
                self.wrong_type(node, path, expected, None);
                None
            }
        }
    }

    /// The items of a list; a missing value counts as an empty one.
    fn list<'n>(&mut self, node: &'n Node, path: &str, expected: &str) -> &'n [Node] {
        match &node.yaml {
            Yaml::List(items) => items,
            Yaml::Scalar {
                value: Scalar::Null, ..
            } => &[],
            _ => {
                self.wrong_type(node, path, expected, None);
                &[]
            }
        }
    }

    pub fn unknown_key(&mut self, entry: &Entry, path: &str, valid: &[&str]) {
        let hint = nearest(&entry.key, valid.iter().copied()).map(did_you_mean);
        self.add_with_hint(
            entry.key_place,
            path,
            format!("unknown key {}", quoted(&entry.key)),
            hint,
        );
    }
}

/// The hint that names the nearest valid name.
pub(super) fn did_you_mean(name: impl AsRef<str>) -> String {
    format!("did you mean {:?}?", name.as_ref())
}

/// A plugin entry that has been read, for the rules across plugins.
struct Listed {
    place: Place,
    path: String,
    hierarchy: bool,
}

struct Reader<'a> {
    plugins: &'a [PluginSpec],
    actions: &'a [ActionSpec],
    problems: &'a mut Problems,
    listed: BTreeMap<String, Listed>,
}

impl Reader<'_> {
    fn document(&mut self, document: Option<&Node>) -> SchedulerConf {
        let mut conf = SchedulerConf::default();
        let entries = match document {
            Some(node) => match self.problems.map(node, "", "a mapping with the key \"actions\"") {
                Some(entries) => entries,
                None => return conf,
            },
            None => &[],
        };
        for Entry { key, value, .. } in entries {
            match key.as_str() {
                "actions" => conf.actions = self.action_names(value),
                "tiers" => conf.tiers = self.tiers(value),
                "configurations" => conf.configurations = self.configurations(value),
                "metrics" => conf.metrics = metrics::read(self.problems, value),
                _ => {}
            }
        }
        for entry in entries
            .iter()
            .filter(|entry| !SECTIONS.contains(&entry.key.as_str()))
        {
            self.problems
                .unknown_key(entry, &member("", &entry.key), &SECTIONS);
        }
        if !entries.iter().any(|entry| entry.key == "actions") {
            let hint = "add a line such as actions: \"enqueue, allocate, backfill\"".to_owned();
            self.problems
                .add_with_hint(None, "actions", "missing key \"actions\"", Some(hint));
        }
        self.rules_across_plugins();
        conf
    }

    fn action_names(&mut self, node: &Node) -> Vec<String> {
        let Yaml::Scalar {
            text,
            value: Scalar::Str,
        } = &node.yaml
        else {
            let hint = matches!(node.yaml, Yaml::List(_))
                .then(|| "write the names in one string, such as \"enqueue, allocate, backfill\"".to_owned());
            self.problems.wrong_type(
                node,
                "actions",
                "a string of action names separated by commas",
                hint,
            );
            return Vec::new();
        };
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().all(String::is_empty) {
            self.problems.add(
                node.place,
                "actions",
                "failed to find Action : no action is named",
            );
            return Vec::new();
        }
        for name in &names {
            self.action_spec(name, node.place, "actions");
        }
        names
    }

    /// The registered action of that name, or a problem.
    fn action_spec(&mut self, name: &str, place: Place, path: &str) -> Option<ActionSpec> {
        let spec = self.actions.iter().find(|action| action.name == name).copied();
        if spec.is_none() {
            if name.is_empty() {
                self.problems
                    .add(place, path, "failed to find Action : a name is empty");
            } else {
                let hint = nearest(name, self.actions.iter().map(|action| action.name)).map(did_you_mean);
                let name = name.escape_debug();
                self.problems
                    .add_with_hint(place, path, format!("failed to find Action {name}"), hint);
            }
        }
        spec
    }

    fn tiers(&mut self, node: &Node) -> Vec<Tier> {
        let tiers = self.problems.list(node, "tiers", "a list of tiers");
        tiers
            .iter()
            .enumerate()
            .map(|(i, tier)| self.tier(tier, &item("tiers", i)))
            .collect()
    }

    fn tier(&mut self, node: &Node, path: &str) -> Tier {
        let mut tier = Tier::default();
        for entry in self
            .problems
            .map(node, path, "a mapping with the key \"plugins\"")
            .unwrap_or_default()
        {
            let path = member(path, &entry.key);
            if entry.key == "plugins" {
                let plugins = self
                    .problems
                    .list(&entry.value, &path, "a list of plugins")
                    .iter()
                    .enumerate();
                tier.plugins = plugins
                    .filter_map(|(i, plugin)| self.plugin(plugin, &item(&path, i)))
                    .collect();
            } else {
                self.problems.unknown_key(entry, &path, &["plugins"]);
            }
        }
        tier
    }

    fn plugin(&mut self, node: &Node, path: &str) -> Option<PluginConf> {
        let entries = match &node.yaml {
            Yaml::Map(entries) => entries,
            yaml => {
                let hint = match yaml {
                    Yaml::Scalar {
                        text,
                        value: Scalar::Str,
                    } => Some(format!("write \"- name: {}\"", text.escape_debug())),
                    _ => None,
                };
                self.problems
                    .wrong_type(node, path, "a mapping with the key \"name\"", hint);
                return None;
            }
        };
        let name = self.name(node, entries, path);
        let spec = name.and_then(|(name, place)| self.plugin_spec(name, place, &member(path, "name")));
        let mut plugin = PluginConf::default();
        for entry in entries {
            let path = member(path, &entry.key);
            match entry.key.as_str() {
                "name" => {}
                "arguments" => {
                    if let Some(spec) = spec {
                        let owner = format!("plugin {:?}", spec.name);
                        plugin.arguments =
                            self.problems
                                .arguments(&entry.value, &path, spec.arguments, &owner);
                    }
                }
                key if Switches::KEYS.contains(&key) => self.switch(entry, &path, &mut plugin.switches),
                _ => self.unknown_plugin_key(entry, &path, spec.as_ref()),
            }
        }
        plugin.name = name?.0.to_owned();
        let listed = Listed {
            place: node.place,
            path: path.to_owned(),
            hierarchy: plugin.switches.hierarchy,
        };
        if let Some(first) = self.listed.get(&plugin.name) {
            let message = format!(
                "plugin {} is listed twice, first in line {}",
                quoted(&plugin.name),
                first.place.line
            );
            self.problems.add(node.place, path, message);
        } else {
            self.listed.insert(plugin.name.clone(), listed);
        }
        Some(plugin)
    }

    /// The `name` of an entry, or a problem.
    fn name<'n>(&mut self, node: &Node, entries: &'n [Entry], path: &str) -> Option<(&'n str, Place)> {
        let Some(entry) = entries
            .iter()
            .find(|entry| entry.key == "name" && !entry.value.is_null())
        else {
            self.problems.add(node.place, path, "missing key \"name\"");
            return None;
        };
        match &entry.value.yaml {
            Yaml::Scalar {
                text,
                value: Scalar::Str,
            } => Some((text, entry.value.place)),
            _ => {
                self.problems
                    .wrong_type(&entry.value, &member(path, "name"), "a string", None);
                None
            }
        }
    }

    /// The registered plugin of that name, or a problem.
    fn plugin_spec(&mut self, name: &str, place: Place, path: &str) -> Option<PluginSpec> {
        let spec = self.plugins.iter().find(|plugin| plugin.name == name).copied();
        if spec.is_none() {
            let hint = nearest(name, self.plugins.iter().map(|plugin| plugin.name)).map(did_you_mean);
            self.problems
                .add_with_hint(place, path, format!("unknown plugin {}", quoted(name)), hint);
        }
        spec
    }

    fn switch(&mut self, entry: &Entry, path: &str, switches: &mut Switches) {
        match &entry.value.yaml {
            Yaml::Scalar {
                value: Scalar::Bool(on),
                ..
            } => {
                switches
                    .set(&entry.key, *on)
                    .expect("the key is one of Switches::KEYS");
            }
            Yaml::Scalar {
                value: Scalar::Null, ..
            } => {}
            Yaml::Scalar {
                text,
                value: Scalar::Str,
            } if matches!(yaml::resolve(text), Scalar::Bool(_)) => {
                self.problems.wrong_type(
                    &entry.value,
                    path,
                    "a boolean",
                    Some("remove the quotes".to_owned()),
                );
            }
            _ => self.problems.wrong_type(
                &entry.value,
                path,
                "a boolean",
                Some("write true or false".to_owned()),
            ),
        }
    }

    fn unknown_plugin_key(&mut self, entry: &Entry, path: &str, spec: Option<&PluginSpec>) {
        let is_argument = spec.is_some_and(|spec| super::schema::find(spec.arguments, &entry.key).is_some());
        if is_argument {
            let hint = "it is an argument: write it under \"arguments\"".to_owned();
            let message = format!("unknown key {}", quoted(&entry.key));
            self.problems
                .add_with_hint(entry.key_place, path, message, Some(hint));
        } else {
            let valid: Vec<&str> = ["name", "arguments"]
                .iter()
                .chain(Switches::KEYS)
                .copied()
                .collect();
            self.problems.unknown_key(entry, path, &valid);
        }
    }

    fn configurations(&mut self, node: &Node) -> Vec<ActionConf> {
        let path = "configurations";
        let mut all: Vec<ActionConf> = Vec::new();
        for (i, node) in self
            .problems
            .list(node, path, "a list of actions with arguments")
            .iter()
            .enumerate()
        {
            let path = item(path, i);
            let Some(action) = self.configuration(node, &path) else {
                continue;
            };
            let earlier = all.iter().filter(|other| other.name == action.name);
            if let Some((key, _)) = earlier
                .flat_map(|other| other.arguments.iter())
                .find(|(key, _)| action.arguments.get(key).is_some())
            {
                let message = format!("argument {key:?} of action {:?} is set twice", action.name);
                self.problems.add(node.place, &path, message);
            }
            all.push(action);
        }
        all
    }

    fn configuration(&mut self, node: &Node, path: &str) -> Option<ActionConf> {
        let Yaml::Map(entries) = &node.yaml else {
            self.problems.wrong_type(
                node,
                path,
                "a mapping with the keys \"name\" and \"arguments\"",
                None,
            );
            return None;
        };
        let name = self.name(node, entries, path);
        let spec = name.and_then(|(name, place)| self.action_spec(name, place, &member(path, "name")));
        let mut arguments = Arguments::new();
        for entry in entries {
            let path = member(path, &entry.key);
            match (entry.key.as_str(), spec) {
                ("name", _) | ("arguments", None) => {}
                ("arguments", Some(spec)) => {
                    let owner = format!("action {:?}", spec.name);
                    arguments = self
                        .problems
                        .arguments(&entry.value, &path, spec.arguments, &owner);
                }
                _ => self.problems.unknown_key(entry, &path, &["name", "arguments"]),
            }
        }
        Some(ActionConf {
            name: spec?.name.to_owned(),
            arguments,
        })
    }

    /// `proportion` and hierarchical `drf` divide the cluster in different ways, in whichever tiers they are.
    /// `proportion` beside `capacity` is allowed: configurations give each its own extension points by the switches.
    fn rules_across_plugins(&mut self) {
        let Some(proportion) = self.listed.get("proportion") else {
            return;
        };
        if let Some(drf) = self.listed.get("drf").filter(|drf| drf.hierarchy) {
            let message = "proportion and drf with hierarchy enabled conflicts";
            let hint = format!("proportion is in line {}", proportion.place.line);
            self.problems
                .add_with_hint(drf.place, &drf.path, message, Some(hint));
        }
    }
}
