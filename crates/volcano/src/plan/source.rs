//! Where the objects are: files, directories, standard input; and the documents in them, as JSON text.

use crate::failure::Failure;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// The largest file that is read. A dump of 100,000 pods has about half of it.
const MAX_BYTES: u64 = 1 << 30;
/// The deepest nesting of a YAML document, the same as that of JSON.
const MAX_DEPTH: usize = 128;
/// File names that a directory is searched for.
const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];

/// A file, or standard input, in memory.
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

/// All files that the arguments name, directories replaced by what is in them.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        if is_stdin(path) && files.iter().any(|file| is_stdin(file)) {
            return Err(Failure::new("standard input (-) is named twice")
                .hint("name it once; one stream may hold several documents"));
        }
        if is_stdin(path) || !path.is_dir() {
            files.push(path.clone());
        } else {
            files.extend(directory(path)?);
        }
    }
    Ok(files)
}

/// Whether a path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn directory(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(format!("{}: cannot read the directory: {error}", path.display()))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| EXTENSIONS.contains(&e))
            && file.is_file()
        {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(format!(
            "{}: no *.yaml, *.yml or *.json files in this directory",
            path.display()
        ))
        .hint("subdirectories are not searched; name them with further -f"));
    }
    Ok(files)
}

impl Source {
    /// Reads a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if is_stdin(path) {
            return Self::from_reader("standard input", std::io::stdin().lock(), false);
        }
        let name = path.display().to_string();
        let unreadable = |error: std::io::Error| {
            let failure = Failure::new(format!("{name}: {error}"));
            if error.kind() == std::io::ErrorKind::NotFound {
                return failure
                    .hint("check the path; - reads standard input, a directory means all its files");
            }
            failure
        };
        let file = fs::File::open(path).map_err(unreadable)?;
        let json_by_name = path.extension().is_some_and(|extension| extension == "json");
        Self::from_reader(&name, file, json_by_name)
    }

    fn from_reader(name: &str, reader: impl Read, json_by_name: bool) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        reader
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(
                Failure::new(format!("{name}: larger than {} MiB", MAX_BYTES >> 20))
                    .hint("split it into several files, each with its own -f"),
            );
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            Failure::new(format!(
                "{name}: not UTF-8 text: byte {}",
                error.utf8_error().valid_up_to() + 1
            ))
        })?;
        Ok(Source {
            name: name.to_owned(),
            text,
            json_by_name,
        })
    }

    /// A source from text, for what is not in a file.
    pub fn from_text(name: &str, text: impl Into<String>) -> Self {
        Source {
            name: name.to_owned(),
            text: text.into(),
            json_by_name: false,
        }
    }

    /// The text as it is.
    pub fn text(&self) -> &str {
        self.text.strip_prefix('\u{feff}').unwrap_or(&self.text)
    }

    /// Its documents: JSON values one after the other, or YAML documents.
    pub fn documents(&self) -> Result<Vec<Document>, Failure> {
        let text = self.text();
        if !self.json_by_name && !text.trim_start().starts_with(['{', '[']) {
            return self.yaml(text);
        }
        match json(text) {
            Ok(documents) => Ok(documents),
            Err(error) if self.json_by_name => Err(Failure::new(format!("{}: not JSON: {error}", self.name))),
            // YAML may begin with a brace too.
            Err(error) => self
                .yaml(text)
                .map_err(|_| Failure::new(format!("{}: neither JSON nor YAML: as JSON: {error}", self.name))),
        }
    }

    fn yaml(&self, text: &str) -> Result<Vec<Document>, Failure> {
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
        let mut reader = Cursor::new(text.as_bytes());
        let mut documents = Vec::new();
        for value in serde_saphyr::read_with_options::<_, Value>(&mut reader, options) {
            let number = documents.len() + 1;
            let value = value.map_err(|error| {
                Failure::new(format!(
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
        let documents = source.documents().map_err(|failure| failure.to_string())?;
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
        assert!(error.starts_with("error: x: document 2: not YAML: "), "{error}");
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

    #[test]
    fn a_directory_means_its_files_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.yaml", "c.yml", "notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let files = expand(&[folder.path().to_owned()]).unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["a.yaml", "b.json", "c.yml"]);
        assert!(expand(&["-".into(), "-".into()]).is_err());
    }
}
