//! The environment and the command line of a container. Pure: objects in, words out.

use crate::fields::{Facts, container_named, field, resource};
use crate::objects::Objects;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};
use std::collections::BTreeMap;

/// Where programs are, for containers that do not say it themselves.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variables of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// All, in the order in which they are given.
    pub all: Vec<(String, String)>,
    /// Those that the pod gives it: only these are put in for `$(NAME)`.
    pub own: BTreeMap<String, String>,
}

/// The variables of a container, or what is wrong with its configuration.
pub(crate) fn variables(
    container: &Container,
    pod: &Pod,
    objects: &Objects,
    facts: &Facts,
    hostname: &str,
    home: &str,
) -> Result<Environment, String> {
    let given_by_node = [("PATH", PATH), ("HOSTNAME", hostname), ("HOME", home)];
    let mut all: Vec<(String, String)> = given_by_node
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: String, value: String, values: &mut BTreeMap<String, String>| {
        all.retain(|(known, _)| *known != name);
        values.insert(name.clone(), value.clone());
        all.push((name, value));
    };
    for (name, value) in given(container, objects)? {
        set(name, value, &mut values);
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(from)) => match value_from(from, container, pod, objects, facts)? {
                Some(value) => value,
                None => continue,
            },
            (Some(text), None) => expand(text, &values),
            (None, None) => String::new(),
        };
        if value.contains('\0') || variable.name.contains(['\0', '=']) || variable.name.is_empty() {
            return Err(format!(
                "environment variable {:?} has a character that cannot be given",
                variable.name
            ));
        }
        set(variable.name.clone(), value, &mut values);
    }
    Ok(Environment { all, own: values })
}

/// Whole ConfigMaps and Secrets.
fn given(container: &Container, objects: &Objects) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let mut add = |key: &String, value: String| {
            if !key.contains('=') && !value.contains('\0') {
                found.push((format!("{prefix}{key}"), value));
            }
        };
        if let Some(source) = &from.config_map_ref {
            match objects.config_maps.get(&source.name) {
                Some(map) => map
                    .data
                    .iter()
                    .flatten()
                    .for_each(|(key, value)| add(key, value.clone())),
                None if source.optional == Some(true) => {}
                None => return Err(format!("configmap {:?} not found", source.name)),
            }
        }
        if let Some(source) = &from.secret_ref {
            match objects.secrets.get(&source.name) {
                Some(secret) => secret
                    .data
                    .iter()
                    .flatten()
                    .for_each(|(key, value)| add(key, String::from_utf8_lossy(&value.0).into_owned())),
                None if source.optional == Some(true) => {}
                None => return Err(format!("secret {:?} not found", source.name)),
            }
        }
    }
    Ok(found)
}

/// `None` for what is optional and not there.
fn value_from(
    from: &EnvVarSource,
    container: &Container,
    pod: &Pod,
    objects: &Objects,
    facts: &Facts,
) -> Result<Option<String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(source) = &from.config_map_key_ref {
        let optional = source.optional == Some(true);
        let map = objects.config_maps.get(&source.name);
        let value = map.and_then(|map| map.data.as_ref()?.get(&source.key));
        return match (map, value) {
            (_, Some(value)) => Ok(Some(value.clone())),
            (_, None) if optional => Ok(None),
            (None, None) => Err(format!("configmap {:?} not found", source.name)),
            (Some(_), None) => Err(format!(
                "couldn't find key {} in ConfigMap {namespace}/{}",
                source.key, source.name
            )),
        };
    }
    if let Some(source) = &from.secret_key_ref {
        let optional = source.optional == Some(true);
        let secret = objects.secrets.get(&source.name);
        let value = secret.and_then(|secret| secret.data.as_ref()?.get(&source.key));
        return match (secret, value) {
            (_, Some(value)) => Ok(Some(String::from_utf8_lossy(&value.0).into_owned())),
            (_, None) if optional => Ok(None),
            (None, None) => Err(format!("secret {:?} not found", source.name)),
            (Some(_), None) => Err(format!(
                "couldn't find key {} in Secret {namespace}/{}",
                source.key, source.name
            )),
        };
    }
    if let Some(source) = &from.field_ref {
        return field(&source.field_path, pod, facts).map(Some);
    }
    if let Some(source) = &from.resource_field_ref {
        let other = source.container_name.as_deref().filter(|name| !name.is_empty());
        let of = match other {
            Some(name) => container_named(pod, name).ok_or_else(|| format!("container {name} not found"))?,
            None => container,
        };
        return resource(source, of, facts).map(Some);
    }
    Err("a source of a value that this node does not have (fileKeyRef)".to_owned())
}

/// The words of a container's command line; empty when it has none.
pub(crate) fn command(container: &Container, values: &BTreeMap<String, String>) -> Vec<String> {
    let command = container.command.iter().flatten();
    if container.command.iter().flatten().next().is_none() {
        // Arguments are for the image's own command, and there is no image.
        return Vec::new();
    }
    let words = command.chain(container.args.iter().flatten());
    words.map(|word| expand(word, values)).collect()
}

/// Replaces `$(NAME)` by the value of a variable that is known; `$$` stands for `$`.
pub(crate) fn expand(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let name = after.strip_prefix('(').and_then(|inside| inside.split_once(')'));
        match name {
            Some((name, after)) => {
                match values.get(name) {
                    Some(value) => expanded.push_str(value),
                    None => {
                        expanded.push_str("$(");
                        expanded.push_str(name);
                        expanded.push(')');
                    }
                }
                rest = after;
            }
            None => {
                expanded.push('$');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn of(container: Value) -> Result<Vec<(String, String)>, String> {
        let objects = Objects {
            config_maps: BTreeMap::from([("m".to_owned(), from_value(json!({"data": {"k": "v"}})).unwrap())]),
            secrets: BTreeMap::from([(
                "s".to_owned(),
                from_value(json!({"data": {"p": "c2VjcmV0"}})).unwrap(),
            )]),
        };
        let mut container: Value = container;
        container["name"] = "c".into();
        let container: Container = from_value(container).unwrap();
        let pod: Pod = from_value(json!({"metadata": {"name": "p", "namespace": "ns"}})).unwrap();
        let all = variables(&container, &pod, &objects, &Facts::default(), "host", "/root")?;
        Ok(all.all.into_iter().skip(3).collect())
    }

    #[test]
    fn text_is_expanded_as_kubernetes_does() {
        let values = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("E".to_owned(), String::new())]);
        let cases = [
            ("$(A)", "1"),
            ("x$(A)y$(E)z", "x1yz"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$($(A))", "$($(A))"),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, &values), expected, "{text}");
        }
    }

    #[test]
    fn later_variables_see_earlier_ones_and_replace_what_was_given() {
        let found = of(json!({
            "envFrom": [{"prefix": "X_", "configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}],
            "env": [
                {"name": "A", "value": "$(X_k)-$(B)"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}},
                {"name": "p", "value": "other"},
                {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "O", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": true}}},
                {"name": "P", "value": "$(HOME)"},
            ],
        }));
        let expected = [
            ("X_k", "v"),
            ("A", "v-$(B)"),
            ("B", "secret"),
            ("p", "other"),
            ("N", "p"),
            ("P", "$(HOME)"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        let key = |kind: &str, name: &str, key: &str| {
            of(json!({"env": [{"name": "A", "valueFrom": {kind: {"name": name, "key": key}}}]})).unwrap_err()
        };
        assert_eq!(key("configMapKeyRef", "x", "k"), "configmap \"x\" not found");
        assert_eq!(
            key("configMapKeyRef", "m", "x"),
            "couldn't find key x in ConfigMap ns/m"
        );
        assert_eq!(key("secretKeyRef", "x", "k"), "secret \"x\" not found");
        assert_eq!(
            key("secretKeyRef", "s", "x"),
            "couldn't find key x in Secret ns/s"
        );
        let whole = of(json!({"envFrom": [{"configMapRef": {"name": "x"}}]}));
        assert_eq!(whole.unwrap_err(), "configmap \"x\" not found");
    }

    #[test]
    fn arguments_alone_are_no_command() {
        let container = |value: Value| from_value::<Container>(value).unwrap();
        let values = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let whole = container(json!({"name": "c", "command": ["sh", "-c"], "args": ["echo $(A)"]}));
        assert_eq!(command(&whole, &values), ["sh", "-c", "echo 1"]);
        let lone = container(json!({"name": "c", "args": ["x"]}));
        assert!(command(&lone, &values).is_empty());
    }
}
