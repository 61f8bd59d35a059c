//! Which objects of a list or a watch are wanted: label and field selectors.

use crate::fault::Fault;
use crate::store::{Object, Selectable};
use serde_json::Value;

/// Requirements of one query, at most.
const MOST_REQUIREMENTS: usize = 200;

/// What is asked of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ask {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Greater(i64),
    Less(i64),
}

/// What is asked of the labels of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Ask)>);

impl LabelSelector {
    /// Reads `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<LabelSelector, Fault> {
        let wrong = |what: &str| Fault::bad_request(format!("unable to parse requirement: {what}"));
        let mut asks = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (part, after) = split_requirement(rest);
            asks.push(requirement(part.trim()).map_err(|what| wrong(&what))?);
            rest = after.trim();
            if asks.len() > MOST_REQUIREMENTS {
                return Err(wrong("too many requirements"));
            }
        }
        Ok(LabelSelector(asks))
    }

    /// Reads a `LabelSelector` as objects have it: `matchLabels` and `matchExpressions`.
    pub fn of(value: &Value) -> LabelSelector {
        let mut asks = Vec::new();
        for (key, label) in value["matchLabels"].as_object().into_iter().flatten() {
            asks.push((key.clone(), Ask::In(vec![text(label)])));
        }
        for expression in value["matchExpressions"].as_array().into_iter().flatten() {
            let values: Vec<String> = expression["values"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect();
            let ask = match expression["operator"].as_str().unwrap_or_default() {
                "In" => Ask::In(values),
                "NotIn" => Ask::NotIn(values),
                "Exists" => Ask::Exists,
                "DoesNotExist" => Ask::Missing,
                // No label is among no values: what is not understood selects nothing.
                _ => Ask::In(Vec::new()),
            };
            asks.push((text(&expression["key"]), ask));
        }
        LabelSelector(asks)
    }

    /// Labels that have to be equal, as in the selector of a Service.
    pub fn equal(labels: &Value) -> LabelSelector {
        let pairs = labels.as_object().into_iter().flatten();
        LabelSelector(
            pairs
                .map(|(key, label)| (key.clone(), Ask::In(vec![text(label)])))
                .collect(),
        )
    }

    /// Everything is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels are wanted.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(key, ask)| {
            let value = label(key);
            match ask {
                Ask::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
                Ask::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
                Ask::Exists => value.is_some(),
                Ask::Missing => value.is_none(),
                Ask::Greater(than) => number(value).is_some_and(|value| value > *than),
                Ask::Less(than) => number(value).is_some_and(|value| value < *than),
            }
        })
    }

    /// Whether the labels of an object, as JSON, are wanted.
    pub fn matches_value(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

/// Up to the next comma that is not within parentheses.
fn split_requirement(text: &str) -> (&str, &str) {
    let mut depth = 0_i32;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth <= 0 => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

fn requirement(text: &str) -> Result<(String, Ask), String> {
    let named = |key: &str, ask| match is_label_key(key) {
        true => Ok((key.to_owned(), ask)),
        false => Err(format!("{key:?} is not a label key in {text:?}")),
    };
    let value_of = |value: &str| match value.trim() {
        value if is_label_value(value) => Ok(value.to_owned()),
        value => Err(format!("{value:?} is not a label value in {text:?}")),
    };
    if let Some(key) = text.strip_prefix('!') {
        return named(key.trim(), Ask::Missing);
    }
    for (sign, not) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = text.split_once(sign) {
            let values = vec![value_of(value)?];
            return named(key.trim(), if not { Ask::NotIn(values) } else { Ask::In(values) });
        }
    }
    for (sign, greater) in [(">", true), ("<", false)] {
        if let Some((key, value)) = text.split_once(sign) {
            let than = value
                .trim()
                .parse()
                .map_err(|_| format!("{value:?} is not a number in {text:?}"))?;
            return named(
                key.trim(),
                if greater {
                    Ask::Greater(than)
                } else {
                    Ask::Less(than)
                },
            );
        }
    }
    let mut words = text.splitn(2, char::is_whitespace);
    let key = words.next().unwrap_or_default();
    let Some(rest) = words.next().map(str::trim) else {
        return named(key, Ask::Exists);
    };
    let (not, list) = match (rest.strip_prefix("notin"), rest.strip_prefix("in")) {
        (Some(list), _) => (true, list),
        (None, Some(list)) => (false, list),
        (None, None) => return Err(format!("found {rest:?}, expected: in, notin, =, ==, !=, gt, lt")),
    };
    let list = list
        .trim()
        .strip_prefix('(')
        .and_then(|list| list.strip_suffix(')'));
    let list = list.ok_or_else(|| format!("expected a list in parentheses in {text:?}"))?;
    let values = list.split(',').map(value_of).collect::<Result<Vec<_>, _>>()?;
    named(key, if not { Ask::NotIn(values) } else { Ask::In(values) })
}

/// Whether a text can be the key of a label.
pub fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    !name.is_empty() && is_label_value(name) && prefix.is_empty() != key.contains('/') && prefix.len() <= 253
}

/// Whether a text can be the value of a label.
pub fn is_label_value(value: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    value.len() <= 63 && value.chars().all(inner) && edge(value.chars().next()) && edge(value.chars().last())
}

/// What is asked of the fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(Field, String, bool)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    At(usize),
}

impl FieldSelector {
    /// Reads `metadata.name=a,status.phase!=Running`; only fields of the list are known.
    pub fn parse(text: &str, known: &[Selectable], unknown: impl Fn(&str) -> Fault) -> Result<Self, Fault> {
        let mut asks = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (field, value, equal) = if let Some((field, value)) = part.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, value, true)
            } else {
                let message = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(Fault::bad_request(message));
            };
            let field = match field {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                other => match known.iter().position(|field| &*field.name == other) {
                    Some(at) => Field::At(at),
                    None => return Err(unknown(other)),
                },
            };
            asks.push((field, value.to_owned(), equal));
            if asks.len() > MOST_REQUIREMENTS {
                return Err(Fault::bad_request("invalid selector: too many requirements"));
            }
        }
        Ok(FieldSelector(asks))
    }

    /// Whether an object is wanted.
    pub fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|(field, value, equal)| {
            let found = match field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace(),
                Field::At(at) => object.fields.get(*at).map_or("", |text| text),
            };
            (found == value) == *equal
        })
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Of the labels.
    pub labels: LabelSelector,
    /// Of the fields.
    pub fields: FieldSelector,
}

impl Selector {
    /// Whether an object is wanted.
    pub fn matches(&self, object: &Object) -> bool {
        let label = |key: &str| {
            let found = object.labels.iter().find(|(name, _)| &**name == key);
            found.map(|(_, value)| &**value)
        };
        self.labels.matches(label) && self.fields.matches(object)
    }

    /// Everything is wanted.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_selected_as_kubernetes_does() {
        let object = json!({"metadata": {"labels": {"a": "1", "app.kubernetes.io/name": "x", "n": "5"}}});
        let cases = [
            ("", true),
            ("a=1", true),
            ("a==1,app.kubernetes.io/name=x", true),
            ("a!=1", false),
            ("b!=1", true),
            ("a in (1,2)", true),
            ("a notin (1, 2)", false),
            ("b notin (1)", true),
            ("a", true),
            ("!a", false),
            ("!b,a in (0,1),n>4", true),
            ("n<5", false),
        ];
        for (text, expected) in cases {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches_value(&object), expected, "{text}");
        }
        for text in [
            "a in 1",
            "a b",
            "=",
            "a=-x-",
            "-a",
            "a in (1",
            "a in (-x-)",
            "a notin (1,x y)",
        ] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn selectors_of_objects_are_read_too() {
        let value = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "NotIn", "values": ["2"]}, {"key": "c", "operator": "DoesNotExist"},
        ]});
        let selector = LabelSelector::of(&value);
        assert!(selector.matches_value(&json!({"metadata": {"labels": {"a": "1", "b": "3"}}})));
        assert!(!selector.matches_value(&json!({"metadata": {"labels": {"a": "1", "b": "2"}}})));
        assert!(!selector.matches_value(&json!({"metadata": {"labels": {"a": "1", "c": ""}}})));
    }

    #[test]
    fn an_operator_that_does_not_exist_selects_nothing() {
        for operator in [json!("doesnotexist"), json!("Gt"), json!(null)] {
            let expression = json!({"key": "a", "operator": operator, "values": ["1"]});
            let selector = LabelSelector::of(&json!({"matchExpressions": [expression]}));
            for labels in [json!({}), json!({"a": "1"})] {
                let object = json!({"metadata": {"labels": labels}});
                assert!(!selector.matches_value(&object), "{operator} {labels}");
            }
        }
    }

    #[test]
    fn fields_are_selected_by_name_and_by_what_a_kind_offers() {
        let known = [Selectable::new("spec.nodeName")];
        let value = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}});
        let object = Object::new("ns/p", value, 1, &known);
        let unknown = |field: &str| Fault::bad_request(format!("field label not supported: {field}"));
        let parse = |text: &str| FieldSelector::parse(text, &known, unknown);
        for (text, expected) in [
            ("metadata.name=p,spec.nodeName!=m", true),
            ("metadata.namespace==ns", true),
            ("spec.nodeName=", false),
            ("metadata.name!=p", false),
        ] {
            assert_eq!(parse(text).unwrap().matches(&object), expected, "{text}");
        }
        assert_eq!(
            parse("spec.x=1").unwrap_err().message,
            "field label not supported: spec.x"
        );
        assert!(parse("nonsense").is_err());
    }
}
