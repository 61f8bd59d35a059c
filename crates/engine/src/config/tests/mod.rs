//! Tables of configuration texts with what comes of them.

mod accepted;
mod rejected;
mod values;

use super::catalog::{ACTIONS, PLANNED_PLUGINS};
use super::{ConfigErrors, PluginConf, SchedulerConf};

fn parse(text: &str) -> Result<SchedulerConf, ConfigErrors> {
    SchedulerConf::parse(text, PLANNED_PLUGINS, ACTIONS)
}

/// The problems of a text, one per line.
fn problems(text: &str) -> String {
    parse(text).map_or_else(|errors| errors.to_string(), |conf| format!("accepted: {conf:?}"))
}

fn accepted(text: &str) -> SchedulerConf {
    parse(text).unwrap_or_else(|errors| panic!("rejected:\n{errors}\n---\n{text}"))
}

/// The only plugin of a text that lists one.
fn only_plugin(text: &str) -> PluginConf {
    accepted(text).tiers.remove(0).plugins.remove(0)
}

/// A configuration with one plugin and these `arguments` in flow form.
fn with_arguments(plugin: &str, arguments: &str) -> String {
    format!("actions: allocate\ntiers:\n- plugins:\n  - name: {plugin}\n    arguments: {arguments}\n")
}

/// The tiers in short: names, then the switches and arguments that are not as by default.
fn outline(conf: &SchedulerConf) -> String {
    let mut lines = vec![format!("actions: {}", conf.actions.join(" "))];
    for tier in &conf.tiers {
        let plugins: Vec<String> = tier.plugins.iter().map(outline_of_plugin).collect();
        lines.push(format!("tier: {}", plugins.join(" | ")));
    }
    for action in &conf.configurations {
        let arguments: Vec<String> = action.arguments.iter().map(|(k, v)| format!("{k}={v}")).collect();
        lines.push(format!("{}: {}", action.name, arguments.join(" ")));
    }
    if !conf.metrics.is_empty() {
        let metrics: Vec<String> = conf.metrics.iter().map(|(k, v)| format!("{k}={v}")).collect();
        lines.push(format!("metrics: {}", metrics.join(" ")));
    }
    lines.join("\n")
}

fn outline_of_plugin(plugin: &PluginConf) -> String {
    let defaults = super::Switches::default();
    let mut words = vec![plugin.name.clone()];
    let changed = plugin
        .switches
        .iter()
        .zip(defaults.iter())
        .filter(|(now, default)| now != default);
    words.extend(changed.map(|((key, on), _)| format!("{key}={on}")));
    words.extend(
        plugin
            .arguments
            .iter()
            .map(|(key, value)| format!("{key}={value}")),
    );
    words.join(" ")
}
