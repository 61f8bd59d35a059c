//! Kubernetes' protobuf form of the core objects, read into the same slim types as JSON.
//!
//! Writing a pod as protobuf costs the API server a fraction of writing it as JSON, and every watcher of a busy cluster
//! makes it write each pod several times.
//!
//! ```text
//! frame of a watch ── watch_event ──> type, object          object ── "k8s\0", Unknown ── raw ──> table ──> slim type
//! ```
//!
//! The format has numbers where JSON has names, so a table per message gives the names and types of the fields that the
//! slim types have; everything else is passed over without a look. The tables are a tree, which bounds the depth.
//!
//! Absent means the same in both forms. A Go pointer that is nil is not written in either; a text, number or truth
//! value that is no pointer is always written here, where JSON leaves out a zero, which is the default of the slim type.

mod binding;
mod de;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;

use serde::de::DeserializeOwned;

pub use binding::binding;
pub use tables::{
    CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM,
    POD, POD_DISRUPTION_BUDGET, PRIORITY_CLASS, RESOURCE_QUOTA, STATUS, STORAGE_CLASS, Tables, WORKLOAD,
};
use wire::{Fault, Raw, Reader};

/// The media type, in `Accept` and `Content-Type`.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// A field of a message that is read.
#[derive(Debug)]
pub struct Field {
    number: u32,
    name: &'static str,
    form: Form,
}

/// The fields of a message that are read.
pub type Message = &'static [Field];

/// What a field holds.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Integer,
    Truth,
    /// Seconds since 1970; without content, `null`.
    Time,
    /// An amount, as a text in a message.
    Quantity,
    Nested(Message),
    /// A message whose fields are those of the outer one in JSON.
    Inline(Message),
    List(&'static Form),
    /// From texts.
    Map(&'static Form),
}

/// Why bytes are not the object that they should be.
#[derive(Debug)]
pub struct Error(Box<Problem>);

#[derive(Debug)]
struct Problem {
    /// Names of fields, the innermost first.
    path: Vec<&'static str>,
    text: String,
}

impl Error {
    fn inside(mut self, field: &'static str) -> Self {
        self.0.path.push(field);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, field) in self.0.path.iter().rev().enumerate() {
            write!(f, "{}{field}", if at == 0 { "" } else { "." })?;
        }
        let colon = if self.0.path.is_empty() { "" } else { ": " };
        write!(f, "{colon}{}", self.0.text)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Error(Box::new(Problem {
            path: Vec::new(),
            text: text.to_string(),
        }))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        serde::de::Error::custom(fault)
    }
}

/// Reads an object or a list, as it is in an answer or in an event.
///
/// # Errors
/// When the bytes are not in the format, or a value does not fit; the error names the field.
pub fn from_slice<T: DeserializeOwned>(message: Message, bytes: &[u8]) -> Result<T, Error> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        <Error as serde::de::Error>::custom("not an object in the protobuf form of Kubernetes")
    })?;
    let object = Raw::Bytes(part(envelope, 2)?);
    T::deserialize(de::Value::new(&Form::Nested(message), object))
}

/// Type and object of an event of a watch; the object is for [`from_slice`].
///
/// # Errors
/// When the bytes are not in the format.
pub fn watch_event(frame: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    Ok((part(frame, 1)?, part(part(frame, 2)?, 1)?))
}

/// The bytes of one field; empty when it is not there.
fn part(message: &[u8], wanted: u32) -> Result<&[u8], Error> {
    let mut reader = Reader::new(message);
    while let Some((number, value)) = reader.field()? {
        match value {
            Raw::Bytes(bytes) if number == wanted => return Ok(bytes),
            _ => {}
        }
    }
    Ok(&[])
}
