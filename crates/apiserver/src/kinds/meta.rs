//! Metadata: names, labels, and what may change of it.

use crate::fault::FieldError;
use crate::resources::{Nature, Resource};
use crate::selector::{is_label_key, is_label_value};
use serde_json::Value;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
     must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
     end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
     character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
     '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
     must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
     is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Whether a text is a label of a domain.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| is_dns_label(&part[..part.len().min(63)]) && !part.ends_with('-');
    !text.is_empty() && text.len() <= 253 && text.split('.').all(part)
}

/// Names of paths may hold nothing that paths are made of; RBAC's kinds ask for no more.
fn is_path_segment(text: &str) -> bool {
    !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '%'])
}

/// What is wrong with the metadata of an object.
pub fn check(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(problem) = name_problem(resource, name) {
        errors.push(FieldError::invalid("metadata.name", name, problem));
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if !is_label_key(key) {
            errors.push(FieldError::invalid("metadata.labels", key.as_str(), QUALIFIED));
        }
        if value.len() > 63 {
            errors.push(FieldError::invalid(
                "metadata.labels",
                value,
                "must be no more than 63 bytes",
            ));
        } else if !is_label_value(value) {
            errors.push(FieldError::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let size: usize = annotations
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > 256 << 10 {
        let detail = "may not be more than 262144 bytes".to_owned();
        errors.push(FieldError::new(
            crate::fault::Wrong::TooLong,
            "metadata.annotations",
            Value::Null,
            detail,
        ));
    }
    errors.extend(owners(&metadata["ownerReferences"]));
    errors
}

fn name_problem(resource: &Resource, name: &str) -> Option<String> {
    let (fits, rule) = match (resource.nature, resource.group.as_str()) {
        (Nature::Namespace, _) => (is_dns_label(name), LABEL),
        (Nature::Service, _) => {
            let fits = is_dns_label(name) && name.starts_with(|letter: char| letter.is_ascii_lowercase());
            (fits, DNS_1035)
        }
        (_, "rbac.authorization.k8s.io") => (is_path_segment(name), "may not contain '/' or '%'"),
        _ => (is_subdomain(name), SUBDOMAIN),
    };
    if fits {
        return None;
    }
    let most = if matches!(resource.nature, Nature::Namespace | Nature::Service) {
        63
    } else {
        253
    };
    if name.len() > most {
        return Some(format!("must be no more than {most} bytes"));
    }
    Some(rule.to_owned())
}

fn owners(owners: &Value) -> Vec<FieldError> {
    let owners = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    for (at, owner) in owners.iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences[{at}].{field}");
                let detail = match field {
                    "apiVersion" => "version must not be empty",
                    _ => "must not be empty",
                };
                errors.push(FieldError::invalid(path, "", detail));
            }
        }
    }
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let shown = Value::Array(owners.to_vec());
        let detail = "Only one reference can have Controller set to true. Found \"true\" in references";
        errors.push(FieldError::invalid("metadata.ownerReferences", shown, detail));
    }
    errors
}

/// What a client may not change of metadata.
pub fn check_change(object: &Value, old: &Value) -> Vec<FieldError> {
    let (new, old) = (&object["metadata"], &old["metadata"]);
    let mut errors = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        let had = |finalizer: &Value| {
            old["finalizers"]
                .as_array()
                .is_some_and(|list| list.contains(finalizer))
        };
        let finalizers = new["finalizers"].as_array().into_iter().flatten();
        let added: Vec<&Value> = finalizers.filter(|finalizer| !had(finalizer)).collect();
        if !added.is_empty() {
            let added: Vec<String> = added
                .iter()
                .map(|one| one.as_str().unwrap_or_default().to_owned())
                .collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
    errors
}

/// Takes over from the stored object what is not the client's to write.
pub fn keep(object: &mut Value, old: &Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "selfLink",
    ] {
        match old["metadata"].get(field) {
            Some(value) => {
                metadata.insert(field.to_owned(), value.clone());
            }
            None => {
                metadata.remove(field);
            }
        }
    }
}
