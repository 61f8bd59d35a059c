//! One event of a watch, taken apart without decoding its object twice.

use crate::client::{Encoded, Format};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use volcano_api::protobuf;

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

/// The kind of change and the object. `None` for what is no watch event.
pub fn split(format: Format, frame: &[u8]) -> Option<(Change, Encoded<'_>)> {
    let (change, bytes) = match format {
        Format::Json => fast(frame).or_else(|| slow(frame))?,
        Format::Protobuf(_) => {
            let (name, object) = protobuf::watch_event(frame).ok()?;
            (Change::named(name)?, object)
        }
    };
    Some((change, Encoded { format, bytes }))
}

fn slow(line: &[u8]) -> Option<(Change, &[u8])> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let change = Change::named(line.r#type.as_bytes())?;
    Some((change, line.object.get().as_bytes()))
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
            let found = split(Format::Json, line.as_bytes());
            let found = found.map(|(change, object)| (change, std::str::from_utf8(object.bytes).unwrap()));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn frames_are_split_by_their_fields() {
        type Case = (&'static [u8], Option<(Change, &'static [u8])>);
        let cases: [Case; 6] = [
            (
                b"\x0a\x05ADDED\x12\x05\x0a\x03pod",
                Some((Change::Applied, b"pod")),
            ),
            (
                b"\x12\x05\x0a\x03pod\x0a\x07DELETED",
                Some((Change::Deleted, b"pod")),
            ),
            (b"\x0a\x08BOOKMARK", Some((Change::Bookmark, b""))),
            (b"\x0a\x03NEW\x12\x05\x0a\x03pod", None),
            (b"\x0a\x05ADDED\x12\x05\x0a\x04pod", None),
            (b"", None),
        ];
        for (frame, expected) in cases {
            let found = split(Format::Protobuf(protobuf::POD), frame);
            let found = found.map(|(change, object)| (change, object.bytes));
            assert_eq!(found, expected, "{frame:?}");
        }
    }
}
