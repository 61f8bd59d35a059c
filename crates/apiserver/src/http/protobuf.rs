//! Bodies in protobuf: kubectl sends what it makes itself (`create namespace`, `auth can-i`, …) in no other form.
//!
//! Only what tables name is read; an object with more is refused, with the advice to send JSON. Answers are JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// What a message of Kubernetes begins with.
const MAGIC: &[u8] = b"k8s\0";
/// Levels of messages, at most.
const DEEPEST: usize = 16;

/// How a field is written.
enum Kind {
    Text,
    Bytes,
    Int,
    Flag,
    Message(&'static [Field]),
    /// A map from texts.
    Map(&'static Kind),
    /// A list of texts.
    Texts,
    /// A list of messages.
    Messages(&'static [Field]),
}

/// Number, name and form of a field.
struct Field(u64, &'static str, Kind);

use Kind::{Bytes, Flag, Int, Message, Messages, Text, Texts};

const OWNER: &[Field] = &[
    Field(1, "kind", Text),
    Field(3, "name", Text),
    Field(4, "uid", Text),
    Field(5, "apiVersion", Text),
    Field(6, "controller", Flag),
    Field(7, "blockOwnerDeletion", Flag),
];
const META: &[Field] = &[
    Field(1, "name", Text),
    Field(2, "generateName", Text),
    Field(3, "namespace", Text),
    Field(5, "uid", Text),
    Field(6, "resourceVersion", Text),
    Field(11, "labels", Kind::Map(&Text)),
    Field(12, "annotations", Kind::Map(&Text)),
    Field(13, "ownerReferences", Messages(OWNER)),
    Field(14, "finalizers", Texts),
];
const REFERENCE: &[Field] = &[
    Field(1, "kind", Text),
    Field(2, "namespace", Text),
    Field(3, "name", Text),
    Field(4, "uid", Text),
    Field(5, "apiVersion", Text),
];
const PRECONDITIONS: &[Field] = &[Field(1, "uid", Text), Field(2, "resourceVersion", Text)];
const DELETE_OPTIONS: &[Field] = &[
    Field(1, "gracePeriodSeconds", Int),
    Field(2, "preconditions", Message(PRECONDITIONS)),
    Field(3, "orphanDependents", Flag),
    Field(4, "propagationPolicy", Text),
    Field(5, "dryRun", Texts),
];
/// An amount is a message of one text.
const QUANTITY: Kind = Message(&[Field(1, "string", Text)]);
const ACCESS: &[Field] = &[
    Field(1, "namespace", Text),
    Field(2, "verb", Text),
    Field(3, "group", Text),
    Field(4, "version", Text),
    Field(5, "resource", Text),
    Field(6, "subresource", Text),
    Field(7, "name", Text),
];
const URL_ACCESS: &[Field] = &[Field(1, "path", Text), Field(2, "verb", Text)];

/// The kinds that are read, by name.
const KINDS: &[(&str, &[Field])] = &[
    ("DeleteOptions", DELETE_OPTIONS),
    (
        "Namespace",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "spec", Message(&[Field(1, "finalizers", Texts)])),
            Field(3, "status", Message(&[Field(1, "phase", Text)])),
        ],
    ),
    (
        "ConfigMap",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "data", Kind::Map(&Text)),
            Field(3, "binaryData", Kind::Map(&Bytes)),
            Field(4, "immutable", Flag),
        ],
    ),
    (
        "Secret",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "data", Kind::Map(&Bytes)),
            Field(3, "type", Text),
            Field(4, "stringData", Kind::Map(&Text)),
            Field(5, "immutable", Flag),
        ],
    ),
    ("ServiceAccount", &[Field(1, "metadata", Message(META))]),
    (
        "PriorityClass",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "value", Int),
            Field(3, "globalDefault", Flag),
            Field(4, "description", Text),
            Field(5, "preemptionPolicy", Text),
        ],
    ),
    (
        "ResourceQuota",
        &[
            Field(1, "metadata", Message(META)),
            Field(
                2,
                "spec",
                Message(&[Field(1, "hard", Kind::Map(&QUANTITY)), Field(2, "scopes", Texts)]),
            ),
        ],
    ),
    (
        "Binding",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "target", Message(REFERENCE)),
        ],
    ),
    (
        "Eviction",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "deleteOptions", Message(DELETE_OPTIONS)),
        ],
    ),
    (
        "Scale",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "spec", Message(&[Field(1, "replicas", Int)])),
        ],
    ),
    (
        "SelfSubjectAccessReview",
        &[
            Field(1, "metadata", Message(META)),
            Field(
                2,
                "spec",
                Message(&[
                    Field(1, "resourceAttributes", Message(ACCESS)),
                    Field(2, "nonResourceAttributes", Message(URL_ACCESS)),
                ]),
            ),
        ],
    ),
    (
        "SelfSubjectRulesReview",
        &[
            Field(1, "metadata", Message(META)),
            Field(2, "spec", Message(&[Field(1, "namespace", Text)])),
        ],
    ),
    ("SelfSubjectReview", &[Field(1, "metadata", Message(META))]),
];

/// Reads an object.
pub fn read(body: &[u8]) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or("it is no message of Kubernetes")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for part in parts(envelope) {
        match part? {
            (1, Part::Bytes(about)) => {
                for part in parts(about) {
                    match part? {
                        (1, Part::Bytes(text)) => api_version = utf8(text)?,
                        (2, Part::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Part::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let table = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, fields) = table.ok_or_else(|| format!("objects of kind {kind:?} are read in JSON only"))?;
    let mut object = message(raw, fields, 0)?;
    object["kind"] = kind.into();
    object["apiVersion"] = api_version.into();
    Ok(object)
}

fn message(bytes: &[u8], fields: &[Field], depth: usize) -> Result<Value, String> {
    if depth > DEEPEST {
        return Err(format!("it is more than {DEEPEST} levels deep"));
    }
    let mut object = json!({});
    for part in parts(bytes) {
        let (number, part) = part?;
        let Some(Field(_, name, kind)) = fields.iter().find(|Field(known, ..)| *known == number) else {
            // Fields that are not set are written all the same.
            if part.is_empty() {
                continue;
            }
            return Err(format!("field {number} is read in JSON only"));
        };
        match (kind, part) {
            (Kind::Map(of), Part::Bytes(entry)) => {
                let (key, value) = map_entry(entry, of, depth)?;
                object[*name][key] = value;
            }
            (Texts, Part::Bytes(text)) => push(&mut object[*name], utf8(text)?.into()),
            (Messages(fields), Part::Bytes(bytes)) => {
                push(&mut object[*name], message(bytes, fields, depth + 1)?)
            }
            (kind, part) => {
                if let Some(value) = single(kind, &part, depth)? {
                    object[*name] = value;
                }
            }
        }
    }
    Ok(object)
}

fn push(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

/// A value that is there once; nothing for a text that is not set.
fn single(kind: &Kind, part: &Part<'_>, depth: usize) -> Result<Option<Value>, String> {
    Ok(match (kind, part) {
        (Text, Part::Bytes(b"")) => None,
        (Text, Part::Bytes(text)) => Some(utf8(text)?.into()),
        (Bytes, Part::Bytes(bytes)) => Some(BASE64.encode(bytes).into()),
        (Flag, Part::Number(number)) => Some((*number != 0).into()),
        (Int, Part::Number(number)) => Some(number.cast_signed().into()),
        (Message(fields), Part::Bytes(bytes)) => {
            let value = message(bytes, fields, depth + 1)?;
            Some(value).filter(|value| value.as_object().is_some_and(|fields| !fields.is_empty()))
        }
        _ => return Err("a field has the wrong form".to_owned()),
    })
}

fn map_entry(bytes: &[u8], of: &Kind, depth: usize) -> Result<(String, Value), String> {
    let (mut key, mut value) = (String::new(), None);
    for part in parts(bytes) {
        match part? {
            (1, Part::Bytes(text)) => key = utf8(text)?,
            (2, part) => value = single(of, &part, depth + 1)?,
            _ => {}
        }
    }
    let value = value.unwrap_or_else(|| "".into());
    // An amount is known by its text.
    let value = value.get("string").cloned().unwrap_or(value);
    Ok((key, value))
}

fn utf8(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
}

enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Part<'_> {
    /// Nothing is said by it: zero, or a message of nothing.
    fn is_empty(&self) -> bool {
        match self {
            Part::Number(number) => *number == 0,
            Part::Bytes(bytes) => parts(bytes).all(|part| part.is_ok_and(|(_, part)| part.is_empty())),
        }
    }
}

/// The fields of a message, as they come.
fn parts(bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Part<'_>), String>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let part = next(&mut rest);
        if part.is_err() {
            rest = &[];
        }
        Some(part)
    })
}

fn next<'a>(rest: &mut &'a [u8]) -> Result<(u64, Part<'a>), String> {
    let tag = varint(rest)?;
    let take = |rest: &mut &'a [u8], count: usize| {
        let (taken, left) = rest.split_at_checked(count).ok_or("it breaks off")?;
        *rest = left;
        Ok::<_, String>(taken)
    };
    let part = match tag & 7 {
        0 => Part::Number(varint(rest)?),
        1 => Part::Bytes(take(rest, 8)?),
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| "it breaks off")?;
            Part::Bytes(take(rest, length)?)
        }
        5 => Part::Bytes(take(rest, 4)?),
        other => return Err(format!("wire type {other} is not known")),
    };
    Ok((tag >> 3, part))
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, left) = rest.split_first().ok_or("it breaks off")?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut all = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        all.extend(bytes);
        all
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let about = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &about), field(2, raw)].concat()
    }

    #[test]
    fn objects_are_read_by_their_tables() {
        let labels = [field(1, b"a"), field(2, b"b")].concat();
        // Name, an empty text, a generation of zero, an empty time, a label.
        let meta = [
            field(1, b"x"),
            field(4, b""),
            vec![0x38, 0],
            field(8, b""),
            field(11, &labels),
        ]
        .concat();
        let data = [field(1, b"k"), field(2, b"v")].concat();
        let map = [field(1, &meta), field(2, &data), vec![0x20, 1]].concat();
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": "b"}},
            "data": {"k": "v"}, "immutable": true});
        assert_eq!(read(&envelope("ConfigMap", &map)), Ok(expected));
        let secret = [field(1, &field(1, b"s")), field(2, &data)].concat();
        assert_eq!(read(&envelope("Secret", &secret)).unwrap()["data"]["k"], "dg==");
        let quantity = [field(1, b"cpu"), field(2, &field(1, b"2"))].concat();
        let quota = field(2, &field(1, &quantity));
        assert_eq!(
            read(&envelope("ResourceQuota", &quota)).unwrap()["spec"]["hard"],
            json!({"cpu": "2"})
        );
    }

    #[test]
    fn what_is_not_in_a_table_is_refused() {
        for (body, part) in [
            (b"{}".to_vec(), "no message of Kubernetes"),
            (envelope("Deployment", b""), "read in JSON only"),
            (
                envelope("Namespace", &field(9, b"\x08\x01")),
                "field 9 is read in JSON only",
            ),
            (envelope("Namespace", &[0x0a, 9, 1]), "breaks off"),
            (envelope("Namespace", &[0xff; 12]), "too long"),
        ] {
            let error = read(&body).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
