//! Refusals, in the words that Kubernetes has for them: clients match on codes and reasons, people read the messages.

use serde_json::{Map, Value, json};
use std::fmt;

/// A refusal; what a client gets as a `Status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable cause.
    pub reason: &'static str,
    /// The cause in words.
    pub message: String,
    /// Which object, and what of it.
    pub details: Option<Value>,
}

/// What a message is about: `pods "a"` or `queues.scheduling.volcano.sh "a"`.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Plural, or kind where messages say the kind.
    pub what: &'a str,
    /// Name of the object.
    pub name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        match self.group {
            "" => self.what.to_owned(),
            group => format!("{}.{group}", self.what),
        }
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.what)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        details
    }
}

impl Fault {
    /// A refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Fault {
        let message = message.into();
        Fault {
            code,
            reason,
            message,
            details: None,
        }
    }

    fn about(code: u16, reason: &'static str, about: &About<'_>, said: &str) -> Fault {
        let message = format!("{} {:?} {said}", about.qualified(), about.name);
        let details = Some(about.details().into());
        Fault {
            code,
            reason,
            message,
            details,
        }
    }

    /// There is no such object.
    pub fn not_found(about: &About<'_>) -> Fault {
        Fault::about(404, "NotFound", about, "not found")
    }

    /// There is no such path.
    pub fn no_resource() -> Fault {
        let mut fault = Fault::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        fault.details = Some(json!({}));
        fault
    }

    /// There is one of that name.
    pub fn already_exists(about: &About<'_>) -> Fault {
        Fault::about(409, "AlreadyExists", about, "already exists")
    }

    /// Somebody else was faster.
    pub fn conflict(about: &About<'_>, why: &str) -> Fault {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            about.qualified(),
            about.name
        );
        let details = Some(about.details().into());
        Fault {
            code: 409,
            reason: "Conflict",
            message,
            details,
        }
    }

    /// The version that a write was made against is not the current one.
    pub fn modified(about: &About<'_>) -> Fault {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Fault::conflict(about, why)
    }

    /// Not allowed, for a reason that no right would change.
    pub fn forbidden(about: &About<'_>, why: &str) -> Fault {
        let said = format!("is forbidden: {why}");
        let message = match about.name {
            "" => format!("{} {said}", about.qualified()),
            name => format!("{} {name:?} {said}", about.qualified()),
        };
        let details = Some(about.details().into());
        Fault {
            code: 403,
            reason: "Forbidden",
            message,
            details,
        }
    }

    /// The object breaks rules; `about` says its kind.
    pub fn invalid(about: &About<'_>, errors: &[FieldError]) -> Fault {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let mut seen: Vec<&String> = Vec::new();
        for text in &texts {
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        let said = match seen.as_slice() {
            [one] => (*one).clone(),
            many => format!(
                "[{}]",
                many.iter()
                    .map(|text| text.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        let mut fault = Fault::about(422, "Invalid", about, &format!("is invalid: {said}"));
        let mut details = about.details();
        let causes: Vec<Value> = errors.iter().map(FieldError::cause).collect();
        details.insert("causes".to_owned(), causes.into());
        fault.details = Some(details.into());
        fault
    }

    /// The request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Fault {
        Fault::new(400, "BadRequest", message)
    }

    /// More bytes than are taken.
    pub fn too_large(limit: usize) -> Fault {
        let message = format!("Request entity too large: limit is {limit}");
        Fault::new(413, "RequestEntityTooLarge", message)
    }

    /// The verb is not for this path.
    pub fn method_not_allowed() -> Fault {
        let message = "the server does not allow this method on the requested resource";
        let mut fault = Fault::new(405, "MethodNotAllowed", message);
        fault.details = Some(json!({}));
        fault
    }

    /// The version is no longer kept.
    pub fn expired(message: impl Into<String>) -> Fault {
        Fault::new(410, "Expired", message)
    }

    /// Something of ours failed.
    pub fn internal(message: impl fmt::Display) -> Fault {
        Fault::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
    }

    /// As a `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It has to be there.
    Required,
    /// Its value is wrong.
    Invalid,
    /// Its type is wrong; said as an invalid value.
    Type,
    /// Not one of those allowed.
    NotSupported,
    /// Too many bytes.
    TooLong,
    /// Too many items.
    TooMany,
    /// It may not be set or changed.
    Forbidden,
    /// It is there twice.
    Duplicate,
    /// It names something that is not there.
    NotFound,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What kind of wrong.
    pub wrong: Wrong,
    /// Where.
    pub field: String,
    /// The value there.
    pub value: Value,
    /// More words.
    pub detail: String,
}

impl FieldError {
    /// Something wrong.
    pub fn new(wrong: Wrong, field: impl Into<String>, value: Value, detail: impl Into<String>) -> Self {
        FieldError {
            wrong,
            field: field.into(),
            value,
            detail: detail.into(),
        }
    }

    /// Something missing.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError::new(Wrong::Required, field, Value::Null, detail)
    }

    /// A wrong value.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        FieldError::new(Wrong::Invalid, field, value.into(), detail)
    }

    /// Not to be set or changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError::new(Wrong::Forbidden, field, Value::Null, detail)
    }

    /// Not one of these.
    pub fn not_supported(field: impl Into<String>, value: Value, allowed: &[String]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("supported values: {}", allowed.join(", "));
        FieldError::new(Wrong::NotSupported, field, value, detail)
    }

    fn title(&self) -> &'static str {
        match self.wrong {
            Wrong::Required => "Required value",
            Wrong::Invalid | Wrong::Type => "Invalid value",
            Wrong::NotSupported => "Unsupported value",
            Wrong::TooLong => "Too long",
            Wrong::TooMany => "Too many",
            Wrong::Forbidden => "Forbidden",
            Wrong::Duplicate => "Duplicate value",
            Wrong::NotFound => "Not found",
        }
    }

    /// Without the field, as in the causes of a status.
    fn body(&self) -> String {
        let mut text = self.title().to_owned();
        if !matches!(self.wrong, Wrong::Required | Wrong::Forbidden | Wrong::TooLong) {
            text.push_str(": ");
            text.push_str(&shown(&self.value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }

    fn cause(&self) -> Value {
        let reason = match self.wrong {
            Wrong::Required => "FieldValueRequired",
            Wrong::Invalid => "FieldValueInvalid",
            Wrong::Type => "FieldValueTypeInvalid",
            Wrong::NotSupported => "FieldValueNotSupported",
            Wrong::TooLong => "FieldValueTooLong",
            Wrong::TooMany => "FieldValueTooMany",
            Wrong::Forbidden => "FieldValueForbidden",
            Wrong::Duplicate => "FieldValueDuplicate",
            Wrong::NotFound => "FieldValueNotFound",
        };
        json!({"reason": reason, "message": self.body(), "field": self.field})
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A value as Kubernetes shows it in messages: texts quoted, objects as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
