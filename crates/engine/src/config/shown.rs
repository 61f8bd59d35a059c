//! A configuration as it may be shown: snapshots hold it, and nobody has to say who he is to get one.

use super::yaml::{Entry, Node, Scalar, Yaml, load, resolve};

/// The section that has the password of a server, and decides nothing.
const METRICS: &str = "metrics";

/// The text of a configuration without its `metrics` section and without comments, which may have that section in them,
/// switched off. What is left means the same as before; it is written as JSON, which YAML has in it. A text that is not
/// YAML, and so was never in use, is left out as a whole.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    let Ok((Some(mut document), _)) = load(text) else {
        return out;
    };
    if let Yaml::Map(entries) = &mut document.yaml {
        entries.retain(|entry| entry.key != METRICS);
    }
    write(&document, &mut out);
    out
}

fn write(node: &Node, out: &mut String) {
    match &node.yaml {
        Yaml::Scalar { text, value } => out.push_str(&scalar(text, *value)),
        Yaml::List(items) => between(out, ['[', ']'], items, write),
        Yaml::Map(entries) => between(out, ['{', '}'], entries, |Entry { key, value, .. }, out| {
            out.push_str(&quoted(key));
            out.push_str(": ");
            write(value, out);
        }),
    }
}

fn between<T>(out: &mut String, [open, close]: [char; 2], items: &[T], write: impl Fn(&T, &mut String)) {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
    out.push(close);
}

/// In its own letters, which plugins may have asked for, unless a tag made something else of them.
fn scalar(text: &str, value: Scalar) -> String {
    match value {
        Scalar::Str => quoted(text),
        Scalar::Null => "null".to_owned(),
        Scalar::Float(number) if matches!(resolve(text), Scalar::Int(_)) => format!("{number:?}"),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_) => text.to_owned(),
    }
}

/// As JSON, with escapes for what YAML takes as an escape only.
fn quoted(text: &str) -> String {
    let is_refused = |c: char| c.is_control() || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let mut out = String::new();
    for c in serde_json::Value::from(text).to_string().chars() {
        if is_refused(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SchedulerConf, catalog};

    fn parsed(text: &str) -> SchedulerConf {
        SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).expect("a configuration")
    }

    #[test]
    fn nothing_of_the_metrics_section_is_shown_and_all_else_means_the_same() {
        let text = r#"
actions: "enqueue, allocate" # not hunter1
# metrics: {elasticsearch.password: hunter2}
tiers:
- plugins:
  - &gang {name: gang, enablePreemptable: off}
  - name: predicates
    arguments: {predicate.PodAffinityEnable: '1', predicate.CacheEnable: TRUE}
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 010
      binpack.cpu: 5
      binpack.resources: "nvidia.com/gpu"
      binpack.resources.nvidia.com/gpu: 2
  - name: overcommit
    arguments: {overcommit-factor: !!float 2}
metrics:
  type: elasticsearch
  address: https://elastic:hunter3@example.com
  interval: 30s
  elasticsearch: {username: hunter4, password: "hunter\
    5"}
"#;
        let shown = shown(text);
        assert!(!shown.contains("hunter") && !shown.contains("elastic"), "{shown}");
        let mut expected = parsed(text);
        assert!(expected.metrics["elasticsearch.password"].starts_with("hunter"));
        expected.metrics.clear();
        assert_eq!(parsed(&shown), expected, "{shown}");
    }

    #[test]
    fn scalars_stay_what_they_are() {
        for text in [
            "5",
            "'5'",
            "!!str 5",
            "!!float 5",
            "1e3",
            ".inf",
            "-.5",
            "~",
            "''",
            "'~'",
            "on",
            "\"on\"",
            "0x1F",
            "|\n  a \"b\"\n  \\c\n",
            "[a, {b: [~, c d]}, []]",
            "{}",
            "9223372036854775808",
            "\"\\t\\u0007\\u007f\\u0085\\ufeffé😀\"",
        ] {
            let of = |text: &str| load(text).expect("YAML").0.expect("a document");
            let (before, mut out) = (of(text), String::new());
            write(&before, &mut out);
            assert_eq!(values(&of(&out)), values(&before), "{text:?} as {out:?}");
        }
    }

    /// What a tree means, whatever its letters.
    fn values(node: &Node) -> String {
        match &node.yaml {
            Yaml::Scalar {
                text,
                value: Scalar::Str,
            } => format!("{text:?}"),
            Yaml::Scalar { value, .. } => format!("{value:?}"),
            Yaml::List(items) => format!("{:?}", items.iter().map(values).collect::<Vec<_>>()),
            Yaml::Map(entries) => {
                let entry = |entry: &Entry| (entry.key.clone(), values(&entry.value));
                format!("{:?}", entries.iter().map(entry).collect::<Vec<_>>())
            }
        }
    }

    #[test]
    fn what_was_never_a_configuration_is_not_shown() {
        for text in ["", "# metrics", "a: [", "metrics: {elasticsearch: {password: p}"] {
            assert_eq!(shown(text), "", "{text:?}");
        }
    }
}
