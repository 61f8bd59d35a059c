//! Whole objects, as `kubectl -o` prints them: JSON, YAML or names, one after the other, so that a list of any length
//! takes the memory of a page.

use super::Out;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::io::Write as _;
use volcano_api::names::Kind;

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Whole objects in JSON
    Json,
    /// Whole objects in YAML
    Yaml,
    /// Kind and name of each
    Name,
    /// The table with more columns
    Wide,
}

/// Prints objects; in JSON and YAML as one list if there may be several.
pub struct ObjectWriter<'a> {
    out: &'a mut Out,
    format: Format,
    kind: Kind,
    is_list: bool,
    count: usize,
}

impl<'a> ObjectWriter<'a> {
    /// Prints a list.
    pub fn list(out: &'a mut Out, format: Format, kind: Kind) -> Self {
        ObjectWriter {
            out,
            format,
            kind,
            is_list: true,
            count: 0,
        }
    }

    /// Prints documents of their own: a single object, or changes as they come.
    pub fn single(out: &'a mut Out, format: Format, kind: Kind) -> Self {
        ObjectWriter {
            is_list: false,
            ..ObjectWriter::list(out, format, kind)
        }
    }

    /// Prints an object.
    pub fn push(&mut self, mut object: Value) -> Result<(), Failure> {
        tidy(&mut object, self.kind);
        let is_first = self.count == 0;
        self.count += 1;
        let text = match (self.format, self.is_list) {
            (Format::Name, _) | (Format::Wide, _) => format!("{}\n", name(self.kind, &object)),
            (Format::Json, false) => format!("{}\n", to_json(&object)?),
            (Format::Json, true) => {
                let before = if is_first { LIST_JSON } else { "," };
                format!("{before}\n{}", indented(&to_json(&object)?, "        "))
            }
            (Format::Yaml, false) => {
                let before = if is_first { "" } else { "---\n" };
                format!("{before}{}", to_yaml(&object)?)
            }
            (Format::Yaml, true) => {
                let before = if is_first { LIST_YAML } else { "" };
                let item = indented(to_yaml(&object)?.trim_end(), "  ");
                format!("{before}-{}\n", &item[1..])
            }
        };
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// What was printed is to be seen now.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Ends a list. How many objects it had.
    pub fn end(self) -> Result<usize, Failure> {
        if self.is_list {
            let text = match (self.format, self.count) {
                (Format::Json, 0) => format!(
                    "{LIST_JSON}]{}",
                    &LIST_JSON_END[LIST_JSON_END.find(',').unwrap_or(0)..]
                ),
                (Format::Json, _) => LIST_JSON_END.to_owned(),
                (Format::Yaml, 0) => LIST_YAML.replace("items:\n", "items: []\n") + LIST_YAML_END,
                (Format::Yaml, _) => LIST_YAML_END.to_owned(),
                _ => String::new(),
            };
            self.out.write_all(text.as_bytes())?;
        }
        Ok(self.count)
    }
}

const LIST_JSON: &str = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [";
const LIST_JSON_END: &str =
    "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n";
const LIST_YAML: &str = "apiVersion: v1\nitems:\n";
const LIST_YAML_END: &str = "kind: List\nmetadata:\n  resourceVersion: \"\"\n";

/// Without what only servers read, and with its kind, which lists of built-in kinds leave out.
fn tidy(object: &mut Value, kind: Kind) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if object["kind"].is_null() {
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
    }
}

/// `kind.group/name`.
fn name(kind: Kind, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match kind.group {
        "" => format!("{}/{name}", kind.singular()),
        group => format!("{}.{group}/{name}", kind.singular()),
    }
}

/// JSON with four blanks per level, as kubectl has it.
fn to_json(object: &Value) -> Result<String, Failure> {
    json_indented(object, b"    ")
}

/// JSON with so many blanks per level.
pub fn json_indented(object: &Value, indent: &[u8]) -> Result<String, Failure> {
    use serde::Serialize as _;
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    object
        .serialize(&mut serializer)
        .map_err(|error| Failure::new(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| Failure::new(error.to_string()))
}

/// YAML.
pub fn to_yaml(object: &Value) -> Result<String, Failure> {
    serde_saphyr::to_string(object).map_err(|error| Failure::new(error.to_string()))
}

fn indented(text: &str, by: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("{by}{line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubectl() {
        use volcano_api::names::kinds;
        let object = json!({"metadata": {"name": "x"}});
        assert_eq!(name(kinds::JOB, &object), "job.batch.volcano.sh/x");
        assert_eq!(name(kinds::POD, &object), "pod/x");
    }

    #[test]
    fn what_servers_alone_read_is_left_out() {
        let mut object = json!({"metadata": {"name": "x", "managedFields": [1]}});
        tidy(&mut object, volcano_api::names::kinds::POD);
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
        );
    }
}
