//! What happens to every object on its way in, whoever writes it and how: reading, defaults, admission, rules.

use super::{Call, Validation};
use crate::fault::{Fault, FieldError};
use crate::kinds::{self, meta};
use crate::resources::{Nature, Resource, crd};
use crate::schema::{self, drop_nulls, fill_defaults, prune};
use crate::server::{Server, locked};
use serde_json::{Value, json};

/// Taints that pods bear for some minutes.
const TOLERATED: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

impl Server {
    /// Checks what kind of object was sent, drops what is unknown, and fills in defaults.
    pub(crate) fn decode(&self, call: &Call<'_>, object: &mut Value) -> Result<(), Fault> {
        let resource = call.resource;
        identify(resource, object)?;
        let unknown = prune(object, resource.schema());
        self.unknown(call, &unknown)?;
        if !resource.is_custom {
            read_values(resource, object).map_err(|problem| {
                let Resource { kind, version, .. } = &**resource;
                let message =
                    format!("{kind} in version {version:?} cannot be handled as a {kind}: {problem}");
                Fault::bad_request(message)
            })?;
        }
        fill(resource, object);
        Ok(())
    }

    fn unknown(&self, call: &Call<'_>, unknown: &[String]) -> Result<(), Fault> {
        let fields: Vec<String> = unknown
            .iter()
            .map(|field| format!("unknown field {field:?}"))
            .collect();
        match call.validation {
            Validation::Strict if !fields.is_empty() => {
                let Resource { kind, version, .. } = &**call.resource;
                let fields = fields.join(", ");
                let message = format!(
                    "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {fields}"
                );
                Err(Fault::bad_request(message))
            }
            Validation::Warn => {
                fields.into_iter().for_each(|field| call.warn(field));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Objects come into namespaces that are there and stay.
    pub(crate) fn check_namespace(&self, call: &Call<'_>) -> Result<(), Fault> {
        if !call.resource.namespaced {
            return Ok(());
        }
        let registry = self.registry();
        let namespaces = registry.of_nature(Nature::Namespace);
        match self.get(namespaces.table, call.namespace) {
            None => Err(Fault::not_found(&namespaces.about(call.namespace))),
            Some(namespace) if namespace.deleting => {
                let why = format!(
                    "unable to create new content in namespace {} because it is being terminated",
                    call.namespace
                );
                let mut fault = Fault::forbidden(&call.resource.about(call.name), &why);
                let details = fault.details.get_or_insert_with(|| json!({}));
                details["causes"] = json!([{
                    "reason": "NamespaceTerminating",
                    "message": format!("namespace {} is being terminated", call.namespace),
                    "field": "metadata.namespace",
                }]);
                Err(fault)
            }
            Some(_) => Ok(()),
        }
    }

    /// What Kubernetes' own admission does to a new object.
    pub(crate) fn admit_new(&self, call: &Call<'_>, object: &mut Value) -> Result<(), Fault> {
        match call.resource.nature {
            Nature::Pod => {
                self.set_priority(call, object)?;
                tolerate_for_a_while(object);
                give_account(object);
            }
            Nature::Service => {
                let services = self.all(Nature::Service, "");
                let at = call
                    .resource
                    .selectable
                    .iter()
                    .position(|field| &*field.name == "spec.clusterIP");
                let taken = |address: &str| {
                    services
                        .iter()
                        .any(|service| at.is_some_and(|at| &*service.fields[at] == address))
                };
                locked(&self.addresses).give(object, taken);
            }
            Nature::Claim if object["spec"]["storageClassName"].is_null() => self.default_class(object),
            _ => {}
        }
        Ok(())
    }

    /// The value of a pod's priority class.
    fn set_priority(&self, call: &Call<'_>, pod: &mut Value) -> Result<(), Fault> {
        let name = pod["spec"]["priorityClassName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let class = match name.as_str() {
            "system-cluster-critical" => json!({"value": 2_000_000_000}),
            "system-node-critical" => json!({"value": 2_000_001_000}),
            "" => {
                let classes = self.all(Nature::PriorityClass, "");
                let default = classes
                    .iter()
                    .map(|class| class.value())
                    .find(|class| class["globalDefault"] == true);
                if let Some(class) = &default {
                    pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
                }
                default.unwrap_or(json!({"value": 0}))
            }
            name => {
                let table = self.registry().of_nature(Nature::PriorityClass).table;
                let Some(class) = self.get(table, name) else {
                    let why = format!("no PriorityClass with name {name} was found");
                    return Err(Fault::forbidden(&call.resource.about(text_name(pod)), &why));
                };
                class.value()
            }
        };
        if let Some(given) = pod["spec"]["priority"].as_i64()
            && given != class["value"].as_i64().unwrap_or_default()
        {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
                 computed {} from the given PriorityClass name",
                class["value"]
            );
            return Err(Fault::forbidden(&call.resource.about(text_name(pod)), &why));
        }
        pod["spec"]["priority"] = class["value"].clone();
        let policy = class
            .get("preemptionPolicy")
            .cloned()
            .unwrap_or(json!("PreemptLowerPriority"));
        kinds::default(&mut pod["spec"], "preemptionPolicy", policy);
        Ok(())
    }

    fn default_class(&self, claim: &mut Value) {
        let registry = self.registry();
        let Some(classes) = registry.find("storage.k8s.io", "v1", "storageclasses") else {
            return;
        };
        let page = self.list(classes.table, crate::store::Range::default(), |_| true);
        let is_default = |class: &Value| {
            class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
        };
        let classes = page.map(|page| page.items).unwrap_or_default();
        let class = classes.iter().map(|class| class.value()).find(is_default);
        if let Some(class) = class {
            claim["spec"]["storageClassName"] = class["metadata"]["name"].clone();
        }
    }
}

fn text_name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Reads the values of a built-in kind as Kubernetes does, whose amounts have one form; what is wrong with the first that
/// cannot be read.
pub(super) fn read_values(resource: &Resource, object: &mut Value) -> Result<(), String> {
    if let Some(problem) = schema::mistyped(object, resource.schema()) {
        return Err(format!("json: {problem}"));
    }
    schema::write_amounts(object, resource.schema()).map_err(str::to_owned)
}

/// Fills in defaults.
pub(super) fn fill(resource: &Resource, object: &mut Value) {
    if resource.is_custom {
        fill_defaults(object, resource.schema());
        drop_nulls(object, resource.schema());
        return;
    }
    if resource.nature == Nature::Definition {
        crd::fill(object);
    }
    kinds::fill(resource, object);
    drop_nulls(object, resource.schema());
}

/// The object is what the path says.
pub(super) fn identify(resource: &Resource, object: &mut Value) -> Result<(), Fault> {
    let Some(fields) = object.as_object_mut() else {
        return Err(Fault::bad_request("the body of the request is not a JSON object"));
    };
    let wanted = resource.api_version();
    for (field, wanted) in [("kind", resource.kind.as_str()), ("apiVersion", wanted.as_str())] {
        match fields.get(field).and_then(Value::as_str) {
            Some(found) if found == wanted => {}
            None | Some("") if !resource.is_custom => {
                fields.insert(field.to_owned(), wanted.into());
            }
            None | Some("") => {
                let what = if field == "kind" { "Kind" } else { "apiVersion" };
                let shown: String = Value::Object(fields.clone())
                    .to_string()
                    .chars()
                    .take(300)
                    .collect();
                return Err(Fault::bad_request(format!(
                    "Object '{what}' is missing in '{shown}'"
                )));
            }
            Some(found) if field == "apiVersion" => {
                let message = format!(
                    "the API version in the data ({found}) does not match the expected API version ({wanted})"
                );
                return Err(Fault::bad_request(message));
            }
            Some(found) => {
                let version = &resource.version;
                let message = format!(
                    "{found} in version {version:?} cannot be handled as a {wanted}: the kind in the data does not match the expected kind"
                );
                return Err(Fault::bad_request(message));
            }
        }
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if !metadata.is_object() {
        return Err(Fault::bad_request("metadata is not an object"));
    }
    Ok(())
}

/// Taints of nodes that are away for a moment do not drive pods off at once.
fn tolerate_for_a_while(pod: &mut Value) {
    let tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let tolerated = |key: &str| {
        tolerations.iter().any(|one| {
            let named = one["key"].as_str().unwrap_or_default();
            let effect = one["effect"].as_str().unwrap_or_default();
            (named == key || named.is_empty() && one["operator"] == "Exists")
                && (effect.is_empty() || effect == "NoExecute")
        })
    };
    let missing: Vec<Value> = TOLERATED
        .iter()
        .filter(|key| !tolerated(key))
        .map(|key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}))
        .collect();
    if !missing.is_empty() {
        let all: Vec<Value> = tolerations.into_iter().chain(missing).collect();
        pod["spec"]["tolerations"] = all.into();
    }
}

/// A pod that names no account has that of its namespace.
fn give_account(pod: &mut Value) {
    let spec = &mut pod["spec"];
    if spec["serviceAccountName"].as_str().is_none_or(str::is_empty) {
        for field in ["serviceAccountName", "serviceAccount"] {
            spec[field] = "default".into();
        }
    }
}

/// What is wrong with an object that is to be stored.
pub(super) fn problems(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
) -> Vec<FieldError> {
    let mut errors = meta::check(resource, object);
    if resource.is_custom {
        errors.extend(schema::validate(object, old, resource.schema()));
    } else {
        if resource.nature == Nature::Definition && subresource.is_empty() {
            errors.extend(crd::check(object));
        }
        if subresource.is_empty() {
            errors.extend(kinds::check(resource, object));
        }
    }
    if let Some(old) = old {
        errors.extend(meta::check_change(object, old));
        if !resource.is_custom && subresource.is_empty() {
            errors.extend(kinds::check_change(resource, object, old));
        }
    }
    errors
}
