//! The envelope: an AdmissionReview in, an AdmissionReview out.
//!
//! Whatever arrives is answered. What cannot be read is refused with the place of the fault, and the UID of the request
//! is echoed as soon as it can be told.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use volcano_api::core::null_default;
use volcano_api::names::admission::{REVIEW_API_VERSION, REVIEW_KIND, messages};

use crate::field::{MAX_MESSAGE, shorten};
use crate::webhooks::{self, Webhook};
use crate::{Lookups, Options, Patch};

/// The longest body that is read: a stored object has at most 1.5 MiB, and an update brings two.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Answers the review in `body`, which was sent to `path`.
pub fn review(path: &str, body: &[u8], cluster: &dyn Lookups, options: &Options) -> Response {
    if body.len() > MAX_BODY_BYTES {
        return Response::broken("", 413, messages::BODY_TOO_LARGE.to_owned());
    }
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return Response::broken("", 400, format!("cannot read the review: {error}")),
    };
    let uid = uid_in(&value);
    let Some(webhook) = webhooks::find(path) else {
        return Response::broken(&uid, 404, format!("there is no admission service at {path}"));
    };
    let request = match Request::read(value) {
        Ok(request) => request,
        Err(message) => return Response::broken(&uid, 400, message),
    };
    let context = Context { cluster, options };
    match judge(webhook, &context, &request) {
        Ok(patch) => Response {
            uid,
            allowed: true,
            patch,
            ..Response::default()
        },
        Err(refusal) => Response {
            uid,
            message: shorten(refusal.message, MAX_MESSAGE),
            event: refusal.event.filter(|_| !request.dry_run),
            ..Response::default()
        },
    }
}

/// UID of the request in a review; empty when it cannot be told.
pub fn request_uid(body: &[u8]) -> String {
    serde_json::from_slice(body).map_or_else(|_| String::new(), |review| uid_in(&review))
}

fn uid_in(review: &Value) -> String {
    let uid = review.pointer("/request/uid").and_then(Value::as_str);
    uid.unwrap_or_default().to_owned()
}

fn judge(webhook: &Webhook, context: &Context<'_>, request: &Request) -> Verdict {
    if !webhook.is_about(
        &request.resource.group,
        &request.resource.version,
        &request.resource.resource,
    ) {
        return Err(format!("expect resource to be {}", webhook.resource_text()).into());
    }
    (webhook.rule)(context, request)
}

/// What is said to a review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// UID of the request.
    pub uid: String,
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why not; empty when it may.
    pub message: String,
    /// HTTP status for a request that could not be judged. A plain refusal has none: the API server then takes 400.
    pub code: Option<u16>,
    /// Defaults to be filled in.
    pub patch: Patch,
    /// To be recorded about the object, when there is something to tell its owner.
    pub event: Option<Event>,
}

/// A warning to be recorded as an event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod; empty when the API server has yet to make one.
    pub name: String,
    /// A word for programs.
    pub reason: &'static str,
    /// The words for people.
    pub message: String,
}

impl Response {
    /// The answer to a request that could not be judged, with an HTTP status.
    pub fn broken(uid: &str, code: u16, message: String) -> Self {
        Response {
            uid: uid.to_owned(),
            code: Some(code),
            message: shorten(message, MAX_MESSAGE),
            ..Response::default()
        }
    }

    /// The AdmissionReview to answer with.
    pub fn to_value(&self) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": self.allowed});
        if !self.allowed {
            response["status"] = json!({"message": self.message});
            if let Some(code) = self.code {
                response["status"]["code"] = code.into();
            }
        }
        if !self.patch.is_empty() {
            let patch = serde_json::to_vec(&self.patch).expect("a patch is plain JSON");
            response["patch"] = STANDARD.encode(patch).into();
            response["patchType"] = "JSONPatch".into();
        }
        json!({"apiVersion": REVIEW_API_VERSION, "kind": REVIEW_KIND, "response": response})
    }

    /// The same as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_value().to_string().into_bytes()
    }
}

/// What a set of rules says: the defaults to be filled in, or why not.
pub(crate) type Verdict = Result<Patch, Refusal>;

/// A set of rules.
pub(crate) type Rule = fn(&Context<'_>, &Request) -> Verdict;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub message: String,
    pub event: Option<Event>,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Refusal { message, event: None }
    }
}

impl From<&str> for Refusal {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// Refuses with a message, unless there is none.
pub(crate) fn verdict(message: &str) -> Verdict {
    if message.is_empty() {
        Ok(Patch::default())
    } else {
        Err(message.into())
    }
}

/// What the rules know besides the request.
pub(crate) struct Context<'a> {
    pub cluster: &'a dyn Lookups,
    pub options: &'a Options,
}

/// The request within a review.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Request {
    #[serde(deserialize_with = "null_default")]
    resource: ResourceName,
    #[serde(deserialize_with = "null_default")]
    operation: String,
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    #[serde(deserialize_with = "null_default")]
    pub namespace: String,
    #[serde(deserialize_with = "null_default")]
    dry_run: bool,
    #[serde(deserialize_with = "null_default")]
    pub object: Value,
    #[serde(deserialize_with = "null_default")]
    old_object: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResourceName {
    group: String,
    version: String,
    resource: String,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Other,
}

impl Request {
    fn read(mut review: Value) -> Result<Self, String> {
        let (version, kind) = (&review["apiVersion"], &review["kind"]);
        if version != REVIEW_API_VERSION || kind != REVIEW_KIND {
            return Err(format!(
                "expected apiVersion \"{REVIEW_API_VERSION}\" and kind \"{REVIEW_KIND}\", got {version} and {kind}"
            ));
        }
        match review.get_mut("request").map(Value::take) {
            Some(request @ Value::Object(_)) => typed(request, "request"),
            _ => Err("the review has no request".to_owned()),
        }
    }

    pub fn operation(&self) -> Operation {
        match self.operation.as_str() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            _ => Operation::Other,
        }
    }

    /// The operation as it was written.
    pub fn operation_text(&self) -> &str {
        &self.operation
    }

    /// The object that is to be stored.
    pub fn object<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        decode(&self.object, "object")
    }

    /// The object as it is stored.
    pub fn old_object<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        decode(&self.old_object, "oldObject")
    }
}

fn decode<T: DeserializeOwned>(value: &Value, name: &str) -> Result<T, Refusal> {
    if !value.is_object() {
        return Err(format!("the request has no {name}").into());
    }
    expect_objects(value, name)?;
    typed(value, name).map_err(Refusal::from)
}

/// The parts that rules change are objects. A list in such a place would be read as the fields of one, in order.
fn expect_objects(value: &Value, name: &str) -> Result<(), Refusal> {
    let parts = ["metadata", "spec"].map(|part| (format!("{name}.{part}"), &value[part]));
    let tasks = value["spec"]["tasks"].as_array().into_iter().flatten();
    let tasks = tasks
        .enumerate()
        .map(|(at, task)| (format!("{name}.spec.tasks[{at}]"), task));
    let other = parts
        .into_iter()
        .chain(tasks)
        .find(|(_, part)| !part.is_object() && !part.is_null());
    match other {
        Some((place, _)) => Err(format!("{place}: it must be an object").into()),
        None => Ok(()),
    }
}

/// Reads a value as a type; the error names the field.
pub(crate) fn typed<'de, T, D>(value: D, name: &str) -> Result<T, String>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if path == "." {
            format!("{name}: {inner}")
        } else {
            format!("{name}.{path}: {inner}")
        }
    })
}
