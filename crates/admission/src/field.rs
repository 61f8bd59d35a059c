//! Errors about fields, in the words and the notation of Kubernetes: `spec.containers[0].image: Required value`.

use std::fmt;
use std::num::{IntErrorKind, ParseIntError};

use serde_json::Value;

/// The most errors that are collected about one object: nobody reads more, and a hostile object could have millions.
pub(crate) const MAX_ERRORS: usize = 100;
/// The longest message that is given, in bytes.
pub(crate) const MAX_MESSAGE: usize = 32 * 1024;

/// A place in an object.
#[derive(Clone, Debug)]
pub(crate) struct Path(String);

impl Path {
    pub fn new(name: &str) -> Self {
        Path(name.to_owned())
    }

    pub fn child(&self, name: &str) -> Self {
        Path(format!("{}.{name}", self.0))
    }

    pub fn index(&self, index: usize) -> Self {
        Path(format!("{}[{index}]", self.0))
    }

    pub fn key(&self, key: &str) -> Self {
        Path(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was found wrong, in order.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<String>);

impl Errors {
    pub fn required(&mut self, at: &Path, detail: &str) {
        self.add(at, "Required value", "", detail);
    }

    pub fn invalid(&mut self, at: &Path, value: impl Into<Value>, detail: &str) {
        self.add(at, "Invalid value", &shown(&value.into()), detail);
    }

    pub fn duplicate(&mut self, at: &Path, value: &str) {
        self.add(at, "Duplicate value", &quote(value), "");
    }

    pub fn not_found(&mut self, at: &Path, value: &str) {
        self.add(at, "Not found", &quote(value), "");
    }

    pub fn forbidden(&mut self, at: &Path, detail: &str) {
        self.add(at, "Forbidden", "", detail);
    }

    pub fn not_supported(&mut self, at: &Path, value: &str, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|value| quote(value)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.add(at, "Unsupported value", &quote(value), &detail);
    }

    pub fn too_long(&mut self, at: &Path, most_bytes: usize) {
        self.add(
            at,
            "Too long",
            "",
            &format!("may not be more than {most_bytes} bytes"),
        );
    }

    /// One error of the value for each of the details.
    pub fn invalid_each(&mut self, at: &Path, value: &str, details: &[String]) {
        for detail in details {
            self.invalid(at, value, detail);
        }
    }

    fn add(&mut self, at: &Path, what: &str, value: &str, detail: &str) {
        if self.is_full() {
            return;
        }
        let mut text = format!("{at}: {what}");
        for part in [value, detail].iter().filter(|part| !part.is_empty()) {
            text.push_str(": ");
            text.push_str(part);
        }
        self.0.push(text);
    }

    /// Whether no further error is kept.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_ERRORS
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn list(&self) -> &[String] {
        &self.0
    }

    /// All of them as one message: one alone as it is, several as `[a, b]`, none twice.
    pub fn aggregate(self) -> Option<String> {
        let mut different: Vec<String> = Vec::new();
        for error in self.0 {
            if !different.contains(&error) {
                different.push(error);
            }
        }
        match different.len() {
            0 => None,
            1 => different.pop(),
            _ => Some(format!("[{}]", different.join(", "))),
        }
    }
}

/// A value as errors show it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}

/// A text in quotes, with the escapes that Go uses.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A list as Go prints it: `[a b]`.
pub(crate) fn go_list<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(" "))
}

/// What Go says of a text that is not a number.
pub(crate) fn go_number_error(function: &str, text: &str, error: &ParseIntError) -> String {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {}: {why}", quote(text))
}

/// Cuts a text at a limit in bytes, between two characters.
pub(crate) fn shorten(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_words() {
        let at = Path::new("spec").child("containers").index(1).key("cpu");
        let mut errors = Errors::default();
        errors.required(&at, "");
        errors.required(&at, "say it");
        errors.invalid(&at, "a\"b", "no quotes");
        errors.invalid(&at, 7, "too odd");
        errors.invalid(&at, Value::Null, "nothing");
        errors.duplicate(&at, "x");
        errors.not_found(&at, "x");
        errors.forbidden(&at, "not here");
        errors.not_supported(&at, "x", &["A", "B"]);
        errors.too_long(&at, 3);
        let place = "spec.containers[1][cpu]";
        let expected = [
            "Required value",
            "Required value: say it",
            "Invalid value: \"a\\\"b\": no quotes",
            "Invalid value: 7: too odd",
            "Invalid value: null: nothing",
            "Duplicate value: \"x\"",
            "Not found: \"x\"",
            "Forbidden: not here",
            "Unsupported value: \"x\": supported values: \"A\", \"B\"",
            "Too long: may not be more than 3 bytes",
        ]
        .map(|text| format!("{place}: {text}"));
        assert_eq!(errors.list(), expected);
    }

    #[test]
    fn several_errors_are_listed_once_each() {
        let at = Path::new("a");
        let mut errors = Errors::default();
        assert_eq!(Errors::default().aggregate(), None);
        errors.required(&at, "");
        errors.required(&at, "");
        errors.required(&at.child("b"), "");
        assert_eq!(
            errors.aggregate().as_deref(),
            Some("[a: Required value, a.b: Required value]")
        );
    }

    #[test]
    fn errors_without_end_are_not_all_kept() {
        let mut errors = Errors::default();
        for _ in 0..MAX_ERRORS * 2 {
            errors.required(&Path::new("a"), "");
        }
        assert_eq!(errors.count(), MAX_ERRORS);
    }

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        let cases = [
            ("plain text", "\"plain text\""),
            ("a\\b", "\"a\\\\b\""),
            ("a\nb\tc\rd", "\"a\\nb\\tc\\rd\""),
            ("\u{1}\u{7f}", "\"\\x01\\x7f\""),
            ("\u{85}\u{a0}", "\"\\u0085\\u00a0\""),
            ("größe", "\"größe\""),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shorten("abc".into(), 3), "abc");
        assert_eq!(shorten("abcd".into(), 3), "abc…");
        assert_eq!(shorten("aéé".into(), 2), "a…");
    }
}
