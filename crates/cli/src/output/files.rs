//! Files that users hand in: YAML documents, of a size that an API server would take.

use serde_json::Value;
use std::io::Read as _;
use std::path::Path;

/// A larger file is refused: API servers refuse objects of a few megabytes.
const LARGEST: u64 = 16 << 20;

/// The text of a file.
pub fn read(path: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| format!("open {}: {}", path.display(), in_go(&error));
    let file = std::fs::File::open(path).map_err(told)?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(told)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("{} is larger than {} MiB", path.display(), LARGEST >> 20));
    }
    Ok(text)
}

/// An error of a file, in Go's spelling: in lower case, without its number.
fn in_go(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The object of a text.
pub fn object(text: &str) -> Result<Value, String> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("it is not an object with fields such as metadata and spec".to_owned())
    }
}

/// The documents of a text, which lines that begin with `---` divide. Those without content do not count. Each has as many
/// empty lines before it as there are lines of others, so that errors have the lines of the text.
pub fn documents(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (at, line) in text.lines().enumerate() {
        match line.strip_prefix("---") {
            Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t', '#']) => {
                parts.push("\n".repeat(at + 1));
            }
            _ => {
                let part = parts.last_mut().expect("there is always one");
                part.push_str(line);
                part.push('\n');
            }
        }
    }
    parts.retain(|part| {
        let mut lines = part.lines().map(str::trim);
        lines.any(|line| !line.is_empty() && !line.starts_with('#'))
    });
    parts
}

/// The objects of a text of documents.
pub fn objects(text: &str) -> Result<Vec<Value>, String> {
    documents(text).iter().map(|part| object(part)).collect()
}

/// Checks that an object says no other kind than this, and fills it in.
pub fn of_kind(mut value: Value, kind: volcano_api::names::Kind) -> Result<Value, String> {
    let (version, name) = (kind.api_version(), kind.kind);
    for (field, wanted) in [("apiVersion", version.as_str()), ("kind", name)] {
        match &value[field] {
            Value::Null => value[field] = Value::from(wanted),
            Value::String(given) if given == wanted => {}
            given => return Err(format!("{field} is {given}, where {wanted:?} is expected")),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use volcano_api::names::kinds;

    #[test]
    fn documents_are_divided_at_lines_of_dashes_only() {
        let text = "---\na: 1\n--- # next\nb: \"x---y\"\n---\n# nothing\n\n---\n";
        assert_eq!(objects(text).unwrap(), [json!({"a": 1}), json!({"b": "x---y"})]);
        assert!(objects("- 1").unwrap_err().contains("not an object"));
        assert!(objects("a: [").is_err());
        assert_eq!(objects("").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn another_kind_is_refused_and_a_missing_one_filled_in() {
        let job = of_kind(json!({}), kinds::JOB).unwrap();
        assert_eq!(
            job,
            json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"})
        );
        let told = of_kind(json!({"kind": "Deployment"}), kinds::JOB).unwrap_err();
        assert_eq!(told, "kind is \"Deployment\", where \"Job\" is expected");
    }
}
