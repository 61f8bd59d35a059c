//! How an answer is written: in JSON, or in protobuf where that was asked for and the server has it.

use super::CallError;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use thiserror::Error;
use volcano_api::protobuf::{self, Message, Tables};

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";
/// The media type of logs; what cannot be had is told in JSON.
pub(super) const TEXT: &str = "text/plain,application/json";
/// Protobuf rather than JSON. A server or proxy that does not have it, or not for the kind, answers in JSON.
const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json";

/// How an answer is written.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// In JSON.
    Json,
    /// In protobuf, to be read with these tables.
    Protobuf(Tables),
}

impl Format {
    /// What to accept when there are such tables.
    pub(super) fn accept(tables: Option<Tables>) -> &'static str {
        if tables.is_some() { EITHER } else { JSON }
    }

    /// The format of an answer: what its header says, whatever was asked for.
    pub(super) fn of(headers: &HeaderMap, tables: Option<Tables>) -> Format {
        let is_protobuf = headers
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(protobuf::MEDIA_TYPE.as_bytes()));
        match tables {
            Some(tables) if is_protobuf => Format::Protobuf(tables),
            _ => Format::Json,
        }
    }
}

/// Why an object cannot be read.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// In JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// In protobuf.
    #[error(transparent)]
    Protobuf(#[from] protobuf::Error),
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        CallError::Unreadable(error.to_string())
    }
}

/// An object, a list or a status as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    /// How it is written.
    pub format: Format,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl Encoded<'_> {
    /// Reads an object of the kind that was asked for.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn object<T: DeserializeOwned>(self) -> Result<T, DecodeError> {
        self.read(|tables| tables.object)
    }

    /// Reads a list of such objects.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list<T: DeserializeOwned>(self) -> Result<T, DecodeError> {
        self.read(|tables| tables.list)
    }

    /// Reads a status; what cannot be read is empty.
    pub(crate) fn status(self) -> Status {
        self.read(|_| protobuf::STATUS).unwrap_or_default()
    }

    /// What a status refuses, such as the last event of a watch.
    pub fn refusal(self) -> CallError {
        self.status().refusal(None)
    }

    fn read<T: DeserializeOwned>(self, table: fn(&Tables) -> Message) -> Result<T, DecodeError> {
        match &self.format {
            Format::Json => match str::from_utf8(self.bytes) {
                // Checking all of the text at once is faster than piece by piece.
                Ok(text) => Ok(serde_json::from_str(text)?),
                Err(_) => Ok(serde_json::from_slice(self.bytes)?),
            },
            Format::Protobuf(tables) => Ok(protobuf::from_slice(table(tables), self.bytes)?),
        }
    }
}

/// The status that the API server sends with a refusal.
#[derive(Debug, Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) message: String,
    pub(crate) reason: String,
    pub(crate) code: u16,
}

impl Status {
    /// The refusal that it tells of.
    pub(crate) fn refusal(self, retry_after: Option<Duration>) -> CallError {
        CallError::Refused {
            code: self.code,
            reason: self.reason,
            message: self.message,
            retry_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_the_answer_decides_how_it_is_read() {
        let cases = [
            (
                "protobuf, asked for",
                Some("application/vnd.kubernetes.protobuf"),
                true,
                true,
            ),
            (
                "protobuf as a stream",
                Some("application/vnd.kubernetes.protobuf;stream=watch"),
                true,
                true,
            ),
            (
                "JSON although protobuf was asked for",
                Some("application/json"),
                true,
                false,
            ),
            ("nothing is said", None, true, false),
            (
                "protobuf that nobody asked for",
                Some("application/vnd.kubernetes.protobuf"),
                false,
                false,
            ),
        ];
        for (name, header, asked, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(CONTENT_TYPE, header.parse().unwrap());
            }
            let format = Format::of(&headers, asked.then_some(protobuf::POD));
            assert_eq!(matches!(format, Format::Protobuf(_)), expected, "{name}");
        }
    }

    #[test]
    fn protobuf_is_asked_for_where_it_can_be_read_and_json_always() {
        assert_eq!(Format::accept(None), JSON);
        let both = Format::accept(Some(protobuf::POD));
        assert_eq!(both.split(',').collect::<Vec<_>>(), [protobuf::MEDIA_TYPE, JSON]);
    }

    #[test]
    fn a_refusal_is_read_in_both_forms() {
        let json = br#"{"kind":"Status","message":"too old","reason":"Expired","code":410}"#;
        let message = b"\x1a\x07too old\x22\x07Expired\x30\x9a\x03";
        let envelope = [b"k8s\0\x12".as_slice(), &[message.len() as u8], message].concat();
        let cases = [
            (Format::Json, json.as_slice()),
            (Format::Protobuf(protobuf::POD), envelope.as_slice()),
        ];
        for (format, bytes) in cases {
            let error = Encoded { format, bytes }.status().refusal(None);
            assert!(error.is_gone(), "{format:?}");
            assert_eq!(error.to_string(), "too old (410 Expired)");
        }
    }
}
