//! Text with objects in it, and the documents of which it consists, as JSON.

use crate::fault::Fault;
use serde_json::Value;
use serde_json::value::RawValue;

/// The deepest nesting of a YAML document, the same as that of JSON.
const MAX_DEPTH: usize = 128;

/// A text in memory: that of a file, or an answer of an API server.
#[derive(Clone, Debug)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    text: String,
    /// JSON by its name: an error is one of JSON, and YAML is not tried.
    json_by_name: bool,
}

/// One document of a source.
pub struct Document {
    /// Counted from 1; empty documents do not count.
    pub number: usize,
    /// The document as JSON.
    pub json: String,
}

impl Source {
    /// Text that may be YAML or JSON; `name` is what messages call it.
    pub fn from_text(name: &str, text: impl Into<String>) -> Self {
        Source {
            name: name.to_owned(),
            text: text.into(),
            json_by_name: false,
        }
    }

    /// Text that is JSON: what is wrong with it is said in terms of JSON.
    pub fn from_json(name: &str, text: impl Into<String>) -> Self {
        Source {
            json_by_name: true,
            ..Source::from_text(name, text)
        }
    }

    /// The text as it is.
    pub fn text(&self) -> &str {
        self.text.strip_prefix('\u{feff}').unwrap_or(&self.text)
    }

    /// Its documents: JSON values one after the other, or YAML documents.
    pub fn documents(&self) -> Result<Vec<Document>, Fault> {
        let text = self.text();
        if !self.json_by_name && !text.trim_start().starts_with(['{', '[']) {
            return self.yaml(text);
        }
        match json(text) {
            Ok(documents) => Ok(documents),
            Err(error) if self.json_by_name => Err(Fault::new(format!("{}: not JSON: {error}", self.name))),
            // YAML may begin with a brace too.
            Err(error) => self
                .yaml(text)
                .map_err(|_| Fault::new(format!("{}: neither JSON nor YAML: as JSON: {error}", self.name))),
        }
    }

    fn yaml(&self, text: &str) -> Result<Vec<Document>, Fault> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            // A node may be called `n`, and a label be `yes`.
            strict_booleans: true,
            budget: serde_saphyr::budget! {
                max_reader_input_bytes: None,
                max_depth: MAX_DEPTH,
                // The size of the file is the limit; aliases have limits of their own.
                max_events: usize::MAX,
                max_nodes: usize::MAX,
                max_total_scalar_bytes: usize::MAX,
            },
        };
        let mut reader = text.as_bytes();
        let mut documents = Vec::new();
        for value in serde_saphyr::read_with_options::<_, Value>(&mut reader, options) {
            let number = documents.len() + 1;
            let value = value.map_err(|error| {
                Fault::new(format!(
                    "{}: document {number}: not YAML: {}",
                    self.name,
                    one_line(&error.to_string())
                ))
            })?;
            documents.push(Document {
                number,
                json: value.to_string(),
            });
        }
        Ok(documents)
    }
}

fn json(text: &str) -> Result<Vec<Document>, serde_json::Error> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
    let mut documents = Vec::new();
    for value in values {
        let json = String::from(Box::<str>::from(value?));
        if json != "null" {
            documents.push(Document {
                number: documents.len() + 1,
                json,
            });
        }
    }
    Ok(documents)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Result<Vec<String>, String> {
        let source = Source::from_text("x", text);
        let documents = source.documents().map_err(|fault| fault.to_string())?;
        Ok(documents.into_iter().map(|document| document.json).collect())
    }

    #[test]
    fn yaml_and_json_come_out_as_json_documents() {
        let cases: [(&str, &[&str]); 8] = [
            ("a: 1\n---\nb: two\n", &[r#"{"a":1}"#, r#"{"b":"two"}"#]),
            ("# nothing\n---\n---\na: {b: [1, 2]}\n", &[r#"{"a":{"b":[1,2]}}"#]),
            (r#"{"a": 1} {"b": 2}"#, &[r#"{"a": 1}"#, r#"{"b": 2}"#]),
            ("\u{feff}{\"a\": 1}", &[r#"{"a": 1}"#]),
            ("{a: 1}", &[r#"{"a":1}"#]),
            ("", &[]),
            ("# only a comment\n", &[]),
            ("null", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(documents(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn broken_text_says_where() {
        let error = documents("a: 1\n---\nb: [\n").unwrap_err();
        assert!(error.starts_with("x: document 2: not YAML: "), "{error}");
        let error = documents("{\"a\": ]").unwrap_err();
        assert!(
            error.contains("neither JSON nor YAML: as JSON: expected value at line 1 column 7"),
            "{error}"
        );
        let error = documents("a: 1\na: 2\n").unwrap_err();
        assert!(error.contains("duplicate"), "{error}");
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(documents(&"[".repeat(100_000)).is_err());
        assert!(
            documents(&format!(
                "x:\n{}",
                (0..300)
                    .map(|i| format!("{}- \n", " ".repeat(i)))
                    .collect::<String>()
            ))
            .is_err()
        );
    }
}
