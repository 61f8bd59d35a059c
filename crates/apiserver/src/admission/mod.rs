//! Admission webhooks, called as Kubernetes calls them: in process where the service is one of ours, else over HTTPS.

mod call;
mod hook;

pub use call::WebhookHandler;
pub use hook::Operation;

use crate::fault::Fault;
use crate::patch;
use crate::server::Server;
use crate::verbs::Call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hook::{Hook, Matched};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// All registered webhooks.
#[derive(Default)]
pub struct Hooks {
    mutating: RwLock<Arc<Vec<Hook>>>,
    validating: RwLock<Arc<Vec<Hook>>>,
    /// How they are reached.
    pub reach: call::Reach,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: ReviewRequest<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewRequest<'a> {
    uid: String,
    kind: Value,
    resource: Value,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Value,
    request_resource: Value,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: Value,
    object: &'a Value,
    old_object: &'a Value,
    dry_run: bool,
    options: Value,
}

/// What is asked about.
pub(crate) struct Subject<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) operation: Operation,
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
}

impl Subject<'_> {
    fn request(&self, uid: String) -> ReviewRequest<'_> {
        let (call, resource) = (self.call, self.call.resource);
        let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        let path = json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
        ReviewRequest {
            uid,
            kind: kind.clone(),
            resource: path.clone(),
            sub_resource: call.subresource,
            request_kind: kind,
            request_resource: path,
            request_sub_resource: call.subresource,
            name: call.name,
            namespace: match resource.nature {
                crate::resources::Nature::Namespace => call.name,
                _ => call.namespace,
            },
            operation: self.operation.name(),
            user_info: json!({"username": call.caller.user, "groups": call.caller.groups}),
            object: self.object,
            old_object: self.old,
            dry_run: call.dry_run,
            options: json!({"apiVersion": "meta.k8s.io/v1", "kind": self.operation.options()}),
        }
    }

    /// The request as match conditions see it.
    pub(crate) fn described(&self) -> Value {
        let mut request = serde_json::to_value(self.request(String::new())).unwrap_or_default();
        if let Some(fields) = request.as_object_mut() {
            fields.remove("object");
            fields.remove("oldObject");
        }
        request
    }
}

impl Hooks {
    /// Takes up the configurations that there are.
    pub fn load(&self, mutating: &[Value], validating: &[Value]) {
        let read = |configurations: &[Value]| {
            Arc::new(configurations.iter().flat_map(Hook::read).collect::<Vec<_>>())
        };
        *self.mutating.write().unwrap_or_else(PoisonError::into_inner) = read(mutating);
        *self.validating.write().unwrap_or_else(PoisonError::into_inner) = read(validating);
    }

    /// Lets webhooks change an object. Whether one did.
    pub async fn mutate(
        &self,
        server: &Server,
        call: &Call<'_>,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, Fault> {
        let hooks = self
            .mutating
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if hooks.is_empty() || is_exempt(call) {
            return Ok(false);
        }
        let mut changed_at = vec![false; hooks.len()];
        for (at, hook) in hooks.iter().enumerate() {
            changed_at[at] = self.one(server, hook, call, operation, object, old).await?;
        }
        // Webhooks that ask for it see what those after them changed.
        for (at, hook) in hooks.iter().enumerate().filter(|(_, hook)| hook.reinvoked) {
            if changed_at[at + 1..].iter().any(|changed| *changed) {
                changed_at[at] |= self.one(server, hook, call, operation, object, old).await?;
            }
        }
        Ok(changed_at.contains(&true))
    }

    async fn one(
        &self,
        server: &Server,
        hook: &Hook,
        call: &Call<'_>,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, Fault> {
        let subject = Subject {
            call,
            operation,
            object,
            old: old.unwrap_or(&Value::Null),
        };
        let Some(answer) = self.ask(server, hook, &subject).await? else {
            return Ok(false);
        };
        let patch = answer["patch"].as_str().unwrap_or_default();
        if patch.is_empty() {
            return Ok(false);
        }
        let patched = BASE64
            .decode(patch)
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
            .and_then(|body: Value| patch::parse_json_patch(&body))
            .and_then(|operations| {
                let mut patched = object.clone();
                patch::json_patch(&mut patched, &operations).map(|()| patched)
            });
        match patched {
            Ok(patched) => {
                let changed = patched != *object;
                *object = patched;
                Ok(changed)
            }
            Err(problem) => self
                .failed(hook, &format!("its patch cannot be applied: {problem}"))
                .map(|()| false),
        }
    }

    /// Asks webhooks whether an object may be written.
    pub async fn validate(
        &self,
        server: &Server,
        call: &Call<'_>,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Fault> {
        let hooks = self
            .validating
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if hooks.is_empty() || is_exempt(call) {
            return Ok(());
        }
        let subject = Subject {
            call,
            operation,
            object: object.unwrap_or(&Value::Null),
            old: old.unwrap_or(&Value::Null),
        };
        for hook in hooks.iter() {
            self.ask(server, hook, &subject).await?;
        }
        Ok(())
    }

    /// Asks one webhook, if it wants to be asked. Its answer, if it allows.
    async fn ask(&self, server: &Server, hook: &Hook, subject: &Subject<'_>) -> Result<Option<Value>, Fault> {
        let call = subject.call;
        match hook.matches(server, subject) {
            Matched::No => return Ok(None),
            Matched::Unclear(problem) => return self.failed(hook, &problem).map(|()| None),
            Matched::Yes => {}
        }
        if call.dry_run && !hook.dry_runs {
            let message = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(Fault::bad_request(message));
        }
        let review = Review {
            kind: "AdmissionReview",
            api_version: "admission.k8s.io/v1",
            request: subject.request(server.uid()),
        };
        let uid = review.request.uid.clone();
        let body = serde_json::to_vec(&review).map_err(Fault::internal)?;
        let timeout = Duration::from_secs(hook.timeout_seconds);
        let asked = self.reach.ask(server, &hook.client, body.into());
        let answer = match tokio::time::timeout(timeout, asked).await {
            Ok(answer) => answer,
            Err(_) => Err("context deadline exceeded".to_owned()),
        };
        let answer = answer.and_then(|bytes| read(&bytes, &uid));
        match answer {
            Ok(response) => {
                for warning in response["warnings"].as_array().into_iter().flatten() {
                    call.warn(warning.as_str().unwrap_or_default().to_owned());
                }
                if response["allowed"] == true {
                    return Ok(Some(response));
                }
                Err(denied(hook, &response))
            }
            Err(problem) => self.failed(hook, &problem).map(|()| None),
        }
    }

    fn failed(&self, hook: &Hook, problem: &str) -> Result<(), Fault> {
        if hook.ignores_failure {
            tracing::warn!(webhook = hook.name, problem, "a webhook failed and is ignored");
            return Ok(());
        }
        Err(Fault::internal(format!(
            "failed calling webhook {:?}: failed to call webhook: {problem}",
            hook.name
        )))
    }
}

/// Webhooks do not judge webhooks.
fn is_exempt(call: &Call<'_>) -> bool {
    call.resource.group == "admissionregistration.k8s.io"
}

fn read(bytes: &[u8], uid: &str) -> Result<Value, String> {
    let mut review: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("its answer cannot be read: {error}"))?;
    let response = review["response"].take();
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    if response["uid"] != uid {
        return Err(format!("expected response.uid={uid:?}, got {}", response["uid"]));
    }
    Ok(response)
}

fn denied(hook: &Hook, response: &Value) -> Fault {
    let status = &response["status"];
    let said = status["message"]
        .as_str()
        .or(status["reason"].as_str())
        .unwrap_or_default();
    let message = match said {
        "" => format!(
            "admission webhook {:?} denied the request without explanation",
            hook.name
        ),
        said => format!("admission webhook {:?} denied the request: {said}", hook.name),
    };
    let code = status["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400);
    let code = code.unwrap_or(400);
    let reason = match (status["reason"].as_str(), code) {
        (Some("Invalid"), _) | (None, 422) => "Invalid",
        (Some("BadRequest"), _) => "BadRequest",
        (_, 403) => "Forbidden",
        _ => "",
    };
    let mut fault = Fault::new(code, reason, message);
    if status["details"].is_object() {
        fault.details = Some(status["details"].clone());
    }
    fault
}
