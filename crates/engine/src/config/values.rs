//! The types of arguments: turns a YAML value into the checked value that a plugin or an action will read.

use super::names::nearest_argument;
use super::reader::{Problems, did_you_mean};
use super::schema::{self, ArgKind, ArgSpec};
use super::yaml::{self, Entry, Node, Scalar, Yaml, item, member, quoted};
use super::{Arguments, Switches, Value, parse_duration};

impl Problems {
    /// Checks the `arguments` of a plugin or an action, which `owner` names.
    pub fn arguments(
        &mut self,
        node: &Node,
        path: &str,
        specs: &'static [ArgSpec],
        owner: &str,
    ) -> Arguments {
        let entries = self.map(node, path, "a mapping of arguments").unwrap_or_default();
        let checked = entries.iter().filter_map(|entry| {
            let path = member(path, &entry.key);
            let Some(spec) = schema::find(specs, &entry.key) else {
                self.unknown_argument(entry, &path, specs, owner);
                return None;
            };
            Some((entry.key.clone(), self.value(&entry.value, &path, spec.kind)?))
        });
        checked.collect()
    }

    fn unknown_argument(&mut self, entry: &Entry, path: &str, specs: &[ArgSpec], owner: &str) {
        let key = &entry.key;
        let nothing = if specs.is_empty() {
            ", which takes no arguments"
        } else {
            ""
        };
        let message = format!("unknown argument {} of {owner}{nothing}", quoted(key));
        let nested = || {
            let is_map = matches!(entry.value.yaml, Yaml::Map(_));
            let dotted = specs
                .iter()
                .find(|spec| is_map && spec.key.starts_with(&format!("{key}.")))?;
            Some(format!("write flat keys with dots, such as {:?}", dotted.key))
        };
        let dotted = || {
            let (outer, inner) = key.split_once('.')?;
            let spec = specs.iter().find(|spec| spec.key == outer)?;
            matches!(spec.kind, ArgKind::Map(_)).then(|| format!("write it nested: {outer}: {{{inner}: …}}"))
        };
        let switch = || {
            Switches::KEYS
                .contains(&key.as_str())
                .then(|| "it is a switch: write it beside \"name\"".to_owned())
        };
        let hint = switch()
            .or_else(nested)
            .or_else(dotted)
            .or_else(|| nearest_argument(key, specs).map(did_you_mean));
        self.add_with_hint(entry.key_place, path, message, hint);
    }

    /// The value if it is of that kind; `None` if it is not, which is a problem, or if there is none, which is not.
    fn value(&mut self, node: &Node, path: &str, kind: ArgKind) -> Option<Value> {
        if node.is_null() {
            return None;
        }
        match kind {
            ArgKind::Any => self.any(node, path),
            ArgKind::Map(specs) => self.nested(node, path, specs),
            ArgKind::List(kind) => self.list_of(node, path, *kind),
            ArgKind::Curve => self.curve(node, path),
            _ => {
                let value = scalar(node, kind);
                if value.is_none() {
                    self.wrong_type(node, path, expected(kind), hint(node, kind));
                }
                value
            }
        }
    }

    fn list_of(&mut self, node: &Node, path: &str, kind: ArgKind) -> Option<Value> {
        let Yaml::List(items) = &node.yaml else {
            self.wrong_type(node, path, "a list", None);
            return None;
        };
        let values = items.iter().enumerate().filter_map(|(i, node)| {
            let path = item(path, i);
            if node.is_null() {
                self.wrong_type(node, &path, expected(kind), None);
            }
            self.value(node, &path, kind)
        });
        Some(Value::Array(values.collect()))
    }

    /// Points that go up; what a point does not say is 0.
    fn curve(&mut self, node: &Node, path: &str) -> Option<Value> {
        const POINT: &[ArgSpec] = &[
            ArgSpec::new("utilization", ArgKind::Int),
            ArgSpec::new("score", ArgKind::Int),
        ];
        let points = self.list_of(node, path, ArgKind::Map(POINT))?;
        let number = |point: &Value, key| point[key].as_i64().unwrap_or(0);
        let list = points.as_array().map_or(&[][..], Vec::as_slice);
        if list.is_empty() {
            self.add(node.place, path, "at least one point is needed");
        }
        let mut last = None;
        for (i, point) in list.iter().enumerate() {
            let (utilization, score) = (number(point, "utilization"), number(point, "score"));
            let path = item(path, i);
            if !(0..=100).contains(&utilization) {
                let message = format!("a utilization is between 0 and 100, this is {utilization}");
                self.add(node.place, &path, message);
            }
            if last.is_some_and(|last| last >= utilization) {
                let message = format!("utilizations go up from point to point, {utilization} does not");
                self.add(node.place, &path, message);
            }
            if !(0..=10).contains(&score) {
                let message = format!("a score is between 0 and 10, this is {score}");
                self.add(node.place, &path, message);
            }
            last = Some(utilization);
        }
        Some(points)
    }

    fn nested(&mut self, node: &Node, path: &str, specs: &'static [ArgSpec]) -> Option<Value> {
        let mut values = serde_json::Map::new();
        let Yaml::Map(entries) = &node.yaml else {
            self.wrong_type(node, path, "a mapping", None);
            return None;
        };
        for entry in entries {
            let path = member(path, &entry.key);
            let spelled_out = specs
                .iter()
                .find(|spec| spec.key.eq_ignore_ascii_case(&entry.key));
            let Some(spec) = spelled_out.or_else(|| schema::find(specs, &entry.key)) else {
                let hint = nearest_argument(&entry.key, specs).map(did_you_mean);
                self.add_with_hint(
                    entry.key_place,
                    &path,
                    format!("unknown key {}", quoted(&entry.key)),
                    hint,
                );
                continue;
            };
            let key = if spec.prefix().is_some() {
                &entry.key
            } else {
                spec.key
            };
            if values.contains_key(key) {
                self.add(
                    entry.key_place,
                    &path,
                    format!("duplicate key {key:?}, letter case does not count here"),
                );
            } else if let Some(value) = self.value(&entry.value, &path, spec.kind) {
                values.insert(key.to_owned(), value);
            }
        }
        Some(Value::Object(values))
    }

    /// A value that only its plugin can check. It must still be one that JSON can hold.
    fn any(&mut self, node: &Node, path: &str) -> Option<Value> {
        match &node.yaml {
            Yaml::Scalar { text, value } => Some(match value {
                Scalar::Null => Value::Null,
                Scalar::Bool(on) => Value::from(*on),
                Scalar::Int(number) => Value::from(*number),
                Scalar::Str => Value::from(text.as_str()),
                Scalar::Float(_) => {
                    let number = scalar(node, ArgKind::Float);
                    if number.is_none() {
                        self.wrong_type(node, path, expected(ArgKind::Float), None);
                    }
                    number?
                }
            }),
            Yaml::List(items) => {
                let values = items
                    .iter()
                    .enumerate()
                    .filter_map(|(i, node)| self.any(node, &item(path, i)));
                Some(Value::Array(values.collect()))
            }
            Yaml::Map(entries) => {
                let values = entries.iter().filter_map(|Entry { key, value, .. }| {
                    Some((key.clone(), self.any(value, &member(path, key))?))
                });
                Some(Value::Object(values.collect()))
            }
        }
    }
}

/// The value of a scalar, if it is of that kind.
fn scalar(node: &Node, kind: ArgKind) -> Option<Value> {
    let Yaml::Scalar { text, value } = &node.yaml else {
        return None;
    };
    match (kind, value) {
        (ArgKind::Int | ArgKind::Float | ArgKind::Quantity, Scalar::Int(number)) => {
            Some(Value::from(*number))
        }
        (ArgKind::Float, Scalar::Float(number)) => serde_json::Number::from_f64(*number).map(Value::Number),
        (ArgKind::Bool, Scalar::Bool(on)) => Some(Value::from(*on)),
        (ArgKind::Bool, Scalar::Str) => parse_bool(text).map(Value::from),
        (ArgKind::Str, Scalar::Str) => Some(Value::from(text.as_str())),
        (ArgKind::Duration, Scalar::Str) => parse_duration(text).map(|_| Value::from(text.as_str())),
        (ArgKind::Quantity, Scalar::Str) => is_quantity(text).then(|| Value::from(text.as_str())),
        _ => None,
    }
}

fn expected(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::Int => "an integer",
        ArgKind::Float => "a number",
        ArgKind::Bool => "a boolean",
        ArgKind::Str => "a string",
        ArgKind::Duration => "a duration such as \"1m30s\"",
        ArgKind::Quantity => "an integer or a quantity such as \"250m\"",
        ArgKind::List(_) | ArgKind::Curve => "a list",
        ArgKind::Map(_) => "a mapping",
        ArgKind::Any => "a value",
    }
}

/// How to write what was probably meant.
fn hint(node: &Node, kind: ArgKind) -> Option<String> {
    let Yaml::Scalar { text, value } = &node.yaml else {
        return None;
    };
    let unquoted = yaml::resolve(text);
    let hint = match (kind, value, unquoted) {
        (ArgKind::Int, Scalar::Str, Scalar::Int(_)) => "remove the quotes",
        (ArgKind::Float, Scalar::Str, Scalar::Int(_) | Scalar::Float(_)) => "remove the quotes",
        (ArgKind::Bool, Scalar::Str, Scalar::Bool(_)) => "remove the quotes",
        (ArgKind::Bool, ..) => "write true or false",
        (ArgKind::Duration, Scalar::Int(_), _) => return Some(format!("add a unit, such as {text}s")),
        (ArgKind::Str | ArgKind::Quantity, Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_), _) => {
            "put it in quotes"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Go's `ParseBool`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Whether the text has the form of a Kubernetes quantity: a decimal number with a suffix or an exponent.
fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let is_number = number.contains(|c: char| c.is_ascii_digit()) && number.matches('.').count() <= 1;
    let is_exponent = || {
        suffix
            .strip_prefix(['e', 'E'])
            .is_some_and(|exponent| exponent.parse::<i32>().is_ok())
    };
    let suffixes = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    is_number && (suffixes.contains(&suffix) || is_exponent())
}

#[cfg(test)]
mod tests {
    use super::is_quantity;

    #[test]
    fn quantities_are_told_by_their_form() {
        for text in ["250m", "200Mi", "1", "0.5", "1e3", "1E-3", ".5Gi", "2E"] {
            assert!(is_quantity(text), "{text:?}");
        }
        for text in ["", "m", ".", "1.2.3", "1 Gi", "1gi", "250M i", "1e"] {
            assert!(!is_quantity(text), "{text:?}");
        }
    }
}
