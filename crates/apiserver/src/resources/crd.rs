//! CRDs: from a definition to served resources, and what is wrong with a definition.

use super::{Column, Nature, Resource, Scale, TABLE};
use crate::fault::FieldError;
use crate::schema::{Schema, compile};
use crate::store::{Selectable, TableId};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// Fills in what a definition leaves out.
pub fn fill(definition: &mut Value) {
    let spec = &mut definition["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"]["singular"].as_str().is_none_or(str::is_empty) {
        spec["names"]["singular"] = kind.to_lowercase().into();
    }
    if spec["names"]["listKind"].as_str().is_none_or(str::is_empty) && !kind.is_empty() {
        spec["names"]["listKind"] = format!("{kind}List").into();
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
}

/// Whether a resource is one of the built-in ones, which no definition replaces.
pub fn is_built_in(group: &str, plural: &str) -> bool {
    TABLE.iter().any(|row| row.group == group && row.plural == plural)
}

/// What is wrong with a definition.
pub fn check(definition: &Value) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let mut errors = Vec::new();
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(
            "spec.group",
            group.as_str(),
            "should be a domain with at least one dot",
        ));
    }
    for (value, field) in [
        (&plural, "spec.names.plural"),
        (&text(&spec["names"]["kind"]), "spec.names.kind"),
    ] {
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    let name = text(&definition["metadata"]["name"]);
    if name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    if is_built_in(&group, &plural) {
        let detail = format!("{plural}.{group} is built into this server and cannot be defined anew");
        errors.push(FieldError::forbidden("spec.names.plural", detail));
    }
    let scope = text(&spec["scope"]);
    if !matches!(scope.as_str(), "Namespaced" | "Cluster") {
        let allowed = ["Cluster".to_owned(), "Namespaced".to_owned()];
        errors.push(FieldError::not_supported("spec.scope", scope.into(), &allowed));
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(
            "spec.versions",
            spec["versions"].clone(),
            detail,
        ));
    }
    if text(&spec["conversion"]["strategy"]) == "Webhook" {
        errors.push(FieldError::forbidden(
            "spec.conversion.strategy",
            "this server converts between versions by their name only; use None",
        ));
    }
    for (at, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_null() {
            errors.push(FieldError::required(field, "schemas are required"));
        } else if let Err(error) = compile(schema, &Map::new()) {
            let field = format!("spec.versions[{at}].schema.{}", error.path);
            errors.push(FieldError::invalid(field, Value::Null, error.problem));
        }
    }
    errors
}

/// The versions of a definition that are served or stored. It has been checked.
pub fn resources(definition: &Value, table: TableId) -> Vec<Resource> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect::<Vec<_>>()
    };
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .filter(|version| version["served"] == true || version["storage"] == true)
        .map(|version| {
            let schema = OnceLock::new();
            let _ = schema.set(schema_of(&version["schema"]["openAPIV3Schema"]));
            let fields = version["selectableFields"].as_array().into_iter().flatten();
            let fields = fields.map(|field| text(&field["jsonPath"]));
            let subresources = &version["subresources"];
            Resource {
                table,
                group: text(&spec["group"]),
                version: text(&version["name"]),
                kind: text(&spec["names"]["kind"]),
                list_kind: text(&spec["names"]["listKind"]),
                plural: text(&spec["names"]["plural"]),
                singular: text(&spec["names"]["singular"]),
                short_names: texts(&spec["names"]["shortNames"]),
                categories: texts(&spec["names"]["categories"]),
                namespaced: spec["scope"] == "Namespaced",
                status: subresources["status"].is_object(),
                scale: scale(&subresources["scale"]),
                selectable: fields
                    .map(|path| Selectable::new(path.trim_start_matches('.')))
                    .collect(),
                nature: Nature::Plain,
                columns: columns(&version["additionalPrinterColumns"]),
                is_custom: true,
                is_storage: version["storage"] == true,
                is_served: version["served"] == true,
                published: version["schema"]["openAPIV3Schema"].clone(),
                schema,
                make_schema: None,
            }
        })
        .collect()
}

/// The compiled schema of a custom resource: what metadata is, every object knows.
fn schema_of(published: &Value) -> Arc<Schema> {
    let mut published = published.clone();
    published["type"] = "object".into();
    for name in ["apiVersion", "kind"] {
        published["properties"][name] = json!({"type": "string"});
    }
    let given = published["properties"]["metadata"].take();
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    published["properties"]["metadata"] = json!({"$ref": format!("#/$defs/{name}")});
    let (root, mut definitions) =
        crate::schema::builtin::published::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>();
    let mut root = root;
    // Rules on the name are all that a CRD can say of metadata.
    if given["properties"]["name"].is_object() {
        root["properties"]["name"] = given["properties"]["name"].clone();
    }
    definitions.insert(name.to_owned(), root);
    compile(&published, &definitions).unwrap_or_default()
}

fn scale(scale: &Value) -> Option<Scale> {
    let pointer = |key: &str| scale[key].as_str().map(|path| path.replace('.', "/"));
    Some(Scale {
        spec: pointer("specReplicasPath")?,
        status: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath"),
    })
}

/// The columns of `kubectl get`; a definition without any shows the age.
fn columns(columns: &Value) -> Vec<Column> {
    let Some(columns) = columns.as_array().filter(|columns| !columns.is_empty()) else {
        let definition =
            json!({"name": "Age", "type": "date", "format": "", "priority": 0, "description": ""});
        return vec![Column {
            definition,
            path: ".metadata.creationTimestamp".to_owned(),
        }];
    };
    let one = |column: &Value| Column {
        definition: json!({
            "name": column["name"],
            "type": column["type"],
            "format": column["format"].as_str().unwrap_or_default(),
            "priority": column["priority"].as_i64().unwrap_or_default(),
            "description": described(column),
        }),
        path: column["jsonPath"].as_str().unwrap_or_default().to_owned(),
    };
    columns.iter().map(one).collect()
}

fn described(column: &Value) -> String {
    match column["description"].as_str() {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => {
            let path = column["jsonPath"].as_str().unwrap_or_default();
            format!("Custom resource definition column (in JSONPath format): {path}")
        }
    }
}

/// The status of a definition that is served; `old` is that of its last version. Versions that objects were ever stored in
/// stay in the list: some of them may still be.
pub fn accepted(definition: &mut Value, old: &Value, now: &str) {
    let condition = |name: &str, reason: &str, message: &str| json!({"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    let mut stored = old["storedVersions"].as_array().cloned().unwrap_or_default();
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    for version in versions.filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            stored.push(version["name"].clone());
        }
    }
    definition["status"] = json!({
        "acceptedNames": definition["spec"]["names"],
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}
