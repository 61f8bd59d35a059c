//! `conf: ACTION… / PLUGIN… / PLUGIN…` as a scheduler configuration, read by the engine's own strict reader.

use volcano_engine::config::{SchedulerConf, Switches, catalog};

const HELM: &str = "enqueue allocate backfill \
    / priority gang{enablePreemptable=false} conformance \
    / overcommit drf{enablePreemptable=false} predicates proportion nodeorder binpack";

/// Reads a configuration in its compact form.
pub fn read(compact: &str) -> Result<SchedulerConf, String> {
    let text = match compact {
        "default" => SchedulerConf::default_text().to_owned(),
        "helm" => yaml(HELM)?,
        compact => yaml(compact)?,
    };
    SchedulerConf::parse(&text, catalog::PLANNED_PLUGINS, catalog::ACTIONS)
        .map_err(|errors| errors.to_string())
}

struct Entry {
    name: String,
    settings: Vec<(String, String)>,
}

fn yaml(compact: &str) -> Result<String, String> {
    let mut parts = compact.split(" / ").map(str::trim);
    let actions = entries(parts.next().unwrap_or_default())?;
    let names: Vec<&str> = actions.iter().map(|entry| entry.name.as_str()).collect();
    let mut text = format!("actions: \"{}\"\n", names.join(", "));
    let tiers: Vec<Vec<Entry>> = parts.map(entries).collect::<Result<_, _>>()?;
    if !tiers.is_empty() {
        text.push_str("tiers:\n");
    }
    for tier in tiers {
        text.push_str("- plugins:\n");
        for Entry { name, settings } in tier {
            text.push_str(&format!("  - name: {name}\n"));
            let is_switch = |(key, _): &&(String, String)| Switches::KEYS.contains(&key.as_str());
            for (key, value) in settings.iter().filter(is_switch) {
                text.push_str(&format!("    {key}: {value}\n"));
            }
            let arguments: Vec<_> = settings.iter().filter(|setting| !is_switch(setting)).collect();
            if !arguments.is_empty() {
                text.push_str("    arguments:\n");
            }
            for (key, value) in arguments {
                text.push_str(&format!("      {key}: {value}\n"));
            }
        }
    }
    if actions.iter().any(|entry| !entry.settings.is_empty()) {
        text.push_str("configurations:\n");
    }
    for Entry { name, settings } in actions.iter().filter(|entry| !entry.settings.is_empty()) {
        text.push_str(&format!("- name: {name}\n  arguments:\n"));
        for (key, value) in settings {
            text.push_str(&format!("    {key}: {value}\n"));
        }
    }
    Ok(text)
}

/// `gang binpack{binpack.weight=5, binpack.cpu=2}`: names, each with its settings.
fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let mut list = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find([' ', '{']).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        rest = &rest[end..];
        let mut settings = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            let (inside, after) = inside
                .split_once('}')
                .ok_or_else(|| format!("`{name}{{` has no `}}`"))?;
            for setting in inside.split([',', ' ']).filter(|s| !s.is_empty()) {
                let (key, value) = setting
                    .split_once('=')
                    .ok_or_else(|| format!("`{setting}` has no `=`"))?;
                settings.push((key.to_owned(), value.to_owned()));
            }
            rest = after;
        }
        list.push(Entry { name, settings });
        rest = rest.trim_start();
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compact_form_reads_as_the_file_would() {
        let conf = read("allocate preempt{enableTopologyAwarePreemption=true} / gang{enablePreemptable=false} / binpack{binpack.weight=5}").unwrap();
        assert_eq!(conf.actions, ["allocate", "preempt"]);
        assert_eq!(conf.tiers.len(), 2);
        assert_eq!(conf.tiers[1].plugins[0].name, "binpack");
        assert!(conf.plugin("binpack").unwrap().arguments.iter().next().is_some());
        assert!(conf.action_arguments("preempt").iter().next().is_some());
    }

    #[test]
    fn a_name_that_is_not_known_is_an_error() {
        assert!(read("allocate / ganng").unwrap_err().contains("ganng"));
        assert!(read("alocate").unwrap_err().contains("alocate"));
        read("helm").unwrap();
        read("default").unwrap();
    }
}
