//! One webhook: what it wants to be asked about.

use super::Subject;
use super::call::Client;
use crate::cel::{Program, Scope};
use crate::resources::Nature;
use crate::selector::LabelSelector;
use crate::server::Server;
use serde_json::Value;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
}

impl Operation {
    /// As reviews name it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }

    /// The kind of its options.
    pub fn options(self) -> &'static str {
        match self {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        }
    }
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

/// A webhook.
#[derive(Debug)]
pub struct Hook {
    /// Its name, as messages say it.
    pub name: String,
    /// How it is reached.
    pub client: Client,
    /// A failure to reach it is no refusal.
    pub ignores_failure: bool,
    /// How long it may take.
    pub timeout_seconds: u64,
    /// It may be asked when nothing is to be written.
    pub dry_runs: bool,
    /// It wants to see what later ones changed.
    pub reinvoked: bool,
    rules: Vec<Rule>,
    namespaces: LabelSelector,
    objects: LabelSelector,
    conditions: Vec<(String, Result<Program, String>)>,
    exact: bool,
}

/// Whether a webhook is to be asked.
pub enum Matched {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// Its conditions cannot be evaluated.
    Unclear(String),
}

impl Hook {
    /// The webhooks of a configuration.
    pub fn read(configuration: &Value) -> Vec<Hook> {
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        webhooks.map(Hook::one).collect()
    }

    fn one(webhook: &Value) -> Hook {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect::<Vec<_>>()
        };
        let rules = webhook["rules"].as_array().into_iter().flatten();
        let conditions = webhook["matchConditions"].as_array().into_iter().flatten();
        Hook {
            name: text(&webhook["name"]),
            client: Client::read(&webhook["clientConfig"]),
            ignores_failure: webhook["failurePolicy"] == "Ignore",
            timeout_seconds: webhook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30),
            dry_runs: matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
            rules: rules
                .map(|rule| Rule {
                    operations: texts(&rule["operations"]),
                    groups: texts(&rule["apiGroups"]),
                    versions: texts(&rule["apiVersions"]),
                    resources: texts(&rule["resources"]),
                    scope: text(&rule["scope"]),
                })
                .collect(),
            namespaces: LabelSelector::of(&webhook["namespaceSelector"]),
            objects: LabelSelector::of(&webhook["objectSelector"]),
            conditions: conditions
                .map(|condition| {
                    let expression = text(&condition["expression"]);
                    let program = Program::parse(&expression).map_err(|error| error.to_string());
                    (expression, program)
                })
                .collect(),
            exact: webhook["matchPolicy"] == "Exact",
        }
    }

    /// Whether it is to be asked about this.
    pub(super) fn matches(&self, server: &Server, subject: &Subject<'_>) -> Matched {
        if !self.rules.iter().any(|rule| self.rule_matches(rule, subject)) {
            return Matched::No;
        }
        let wanted = |value: &Value| !value.is_null() && self.objects.matches_value(value);
        if !self.objects.is_empty() && !wanted(subject.object) && !wanted(subject.old) {
            return Matched::No;
        }
        if !self.namespaces.is_empty() && !self.namespace_matches(server, subject) {
            return Matched::No;
        }
        self.conditions_match(subject)
    }

    fn rule_matches(&self, rule: &Rule, subject: &Subject<'_>) -> bool {
        let (call, resource) = (subject.call, subject.call.resource);
        let among = |list: &[String], one: &str| list.iter().any(|item| item == "*" || item == one);
        let path = match call.subresource {
            "" => resource.plural.clone(),
            subresource => format!("{}/{subresource}", resource.plural),
        };
        let is_named = rule.resources.iter().any(|wanted| match wanted.as_str() {
            "*/*" => true,
            "*" => call.subresource.is_empty(),
            wanted => match wanted.split_once('/') {
                Some(("*", subresource)) => subresource == call.subresource,
                Some((plural, "*")) => plural == resource.plural,
                _ => wanted == path,
            },
        });
        let in_scope = match rule.scope.as_str() {
            "Namespaced" => resource.namespaced,
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        // Versions of a resource are equivalent unless the webhook wants to know.
        let version = among(&rule.versions, &resource.version) || !self.exact && resource.is_custom;
        is_named
            && in_scope
            && version
            && among(&rule.operations, subject.operation.name())
            && among(&rule.groups, &resource.group)
    }

    fn namespace_matches(&self, server: &Server, subject: &Subject<'_>) -> bool {
        let resource = subject.call.resource;
        if resource.nature == Nature::Namespace {
            let object = if subject.object.is_null() {
                subject.old
            } else {
                subject.object
            };
            return self.namespaces.matches_value(object);
        }
        if !resource.namespaced {
            return true;
        }
        let table = server.registry().of_nature(Nature::Namespace).table;
        let Some(namespace) = server.get(table, subject.call.namespace) else {
            return false;
        };
        self.namespaces.matches(|key| {
            let found = namespace.labels.iter().find(|(name, _)| &**name == key);
            found.map(|(_, value)| &**value)
        })
    }

    fn conditions_match(&self, subject: &Subject<'_>) -> Matched {
        if self.conditions.is_empty() {
            return Matched::Yes;
        }
        let asks_request = self.conditions.iter().any(|(text, _)| text.contains("request"));
        let request = if asks_request {
            subject.described()
        } else {
            Value::Null
        };
        let mut scope = Scope::new();
        scope.set("object", subject.object);
        scope.set("oldObject", subject.old);
        scope.set("request", &request);
        let mut problem = None;
        for (text, program) in &self.conditions {
            let holds = match program {
                Ok(program) => program.holds(&scope).map_err(|error| error.to_string()),
                Err(error) => Err(error.clone()),
            };
            match holds {
                Ok(true) => {}
                // One that does not hold decides, whatever became of the others.
                Ok(false) => return Matched::No,
                Err(error) => problem = Some(format!("match condition {text:?}: {error}")),
            }
        }
        problem.map_or(Matched::Yes, Matched::Unclear)
    }
}
