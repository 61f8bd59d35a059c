//! One line of a watch, taken apart without decoding its object twice.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is there, new or changed.
    Applied,
    /// It is gone.
    Deleted,
    /// Nothing happened up to a version.
    Bookmark,
    /// The watch is over; the object is a Status.
    Error,
}

impl Change {
    fn named(name: &[u8]) -> Option<Change> {
        match name {
            b"ADDED" | b"MODIFIED" => Some(Change::Applied),
            b"DELETED" => Some(Change::Deleted),
            b"BOOKMARK" => Some(Change::Bookmark),
            b"ERROR" => Some(Change::Error),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The kind of change and the JSON of the object. `None` for a line that is no watch event.
pub fn split(line: &[u8]) -> Option<(Change, &[u8])> {
    fast(line).or_else(|| {
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        Some((
            Change::named(line.r#type.as_bytes())?,
            line.object.get().as_bytes(),
        ))
    })
}

/// API servers write `{"type":"ADDED","object":{…}}` without blanks: the object is found without a scan of it.
fn fast(line: &[u8]) -> Option<(Change, &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = rest.iter().take(16).position(|&byte| byte == b'"')?;
    let change = Change::named(&rest[..end])?;
    let object = rest[end..].strip_prefix(br#"","object":"#)?.trim_ascii_end();
    Some((change, object.strip_suffix(b"}")?))
}

/// The metadata of an object, when no more is wanted of it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Only {
    /// Its metadata.
    pub metadata: OnlyMeta,
}

/// Name and version.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct OnlyMeta {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Version.
    pub resource_version: String,
    /// Annotations; only a bookmark's are of interest.
    pub annotations: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_whatever_the_blanks_and_the_order() {
        let cases: [(&str, Option<(Change, &str)>); 8] = [
            (
                r#"{"type":"ADDED","object":{"kind":"Pod"}}"#,
                Some((Change::Applied, r#"{"kind":"Pod"}"#)),
            ),
            (
                "{\"type\":\"DELETED\",\"object\":{}}\r",
                Some((Change::Deleted, "{}")),
            ),
            (
                r#"{ "object": {"a": 1}, "type": "MODIFIED" }"#,
                Some((Change::Applied, r#"{"a": 1}"#)),
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#,
                Some((Change::Bookmark, r#"{"metadata":{}}"#)),
            ),
            (
                r#"{"type":"ERROR","object":{"code":410}}"#,
                Some((Change::Error, r#"{"code":410}"#)),
            ),
            (r#"{"type":"NEW","object":{}}"#, None),
            (r#"{"type":"ADDED"}"#, None),
            ("", None),
        ];
        for (line, expected) in cases {
            let found = split(line.as_bytes()).map(|(c, o)| (c, std::str::from_utf8(o).unwrap()));
            assert_eq!(found, expected, "{line}");
        }
    }
}
