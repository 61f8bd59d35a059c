//! Which rules are called for what: paths, names of webhooks, and their registration with the API server.
//!
//! The server takes its paths from here, and the manifests their webhook configurations, so that the two agree.

use serde_json::{Value, json};
use thiserror::Error;
use volcano_api::names::admission::{CONFIGURATION_PREFIX, paths, webhooks as names};
use volcano_api::names::kinds::{CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, POD_GROUP, QUEUE};
use volcano_api::names::{Kind, critical};

use crate::review::Rule;
use crate::{cronjobs, hypernodes, jobflows, jobs, podgroups, pods, queues};

/// Versions of reviews that are understood.
pub const REVIEW_VERSIONS: &[&str] = &["v1"];
/// Requests fail while no answer can be had.
pub const FAIL: &str = "Fail";
/// Requests go on without an answer while none can be had.
pub const IGNORE: &str = "Ignore";
/// Requests for other versions of a resource are reviewed too.
pub const MATCH_POLICY: &str = "Equivalent";
/// A mutating webhook is not called again after others changed the object.
pub const REINVOCATION_POLICY: &str = "Never";
/// How long the API server waits for an answer.
pub const TIMEOUT_SECONDS: u32 = 10;
/// Value of `--enabled-admission` when the flag is not given.
pub const DEFAULT_ENABLED: &str = "/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,/queues/mutate,/queues/validate";

/// A set of rules and its registration.
#[derive(Clone, Copy, Debug)]
pub struct Webhook {
    /// Path that reviews are sent to.
    pub path: &'static str,
    /// Name, as denials show it.
    pub name: &'static str,
    /// Whether objects are changed, or only judged.
    pub mutating: bool,
    /// API group of the resource; empty for the core group.
    pub group: &'static str,
    /// API version of the resource.
    pub version: &'static str,
    /// Name of the resource in URLs.
    pub resource: &'static str,
    /// Operations that are reviewed.
    pub operations: &'static [&'static str],
    /// Whether requests are chosen by namespace and scope. Where they are not, all are reviewed.
    pub selective: bool,
    /// What happens to requests while no answer can be had: [`FAIL`] or [`IGNORE`].
    pub failure_policy: &'static str,
    /// What else a review may do: `NoneOnDryRun` or `None`.
    pub side_effects: &'static str,
    /// Whether the chart registers it when nothing else is configured.
    pub rendered_by_default: bool,
    pub(crate) rule: Rule,
}

const CREATE: &[&str] = &["CREATE"];
const CREATE_UPDATE: &[&str] = &["CREATE", "UPDATE"];
const CREATE_UPDATE_DELETE: &[&str] = &["CREATE", "UPDATE", "DELETE"];

/// A webhook of a kind of ours, validating and rendered by default: what most are.
const fn webhook(path: &'static str, name: &'static str, kind: &Kind, rule: Rule) -> Webhook {
    Webhook {
        path,
        name,
        mutating: false,
        group: kind.group,
        version: kind.version,
        resource: kind.plural,
        operations: CREATE_UPDATE,
        selective: true,
        failure_policy: FAIL,
        side_effects: "NoneOnDryRun",
        rendered_by_default: true,
        rule,
    }
}

/// The same for pods, which are not rendered by default.
const fn pod_webhook(path: &'static str, name: &'static str, rule: Rule) -> Webhook {
    Webhook {
        group: "",
        version: "v1",
        resource: "pods",
        operations: CREATE,
        rendered_by_default: false,
        ..webhook(path, name, &JOB, rule)
    }
}

/// Every webhook.
pub const ALL: &[Webhook] = &[
    Webhook {
        mutating: true,
        operations: CREATE,
        ..webhook(paths::JOBS_MUTATE, names::MUTATE_JOB, &JOB, jobs::mutate)
    },
    Webhook {
        mutating: true,
        operations: CREATE,
        ..webhook(paths::QUEUES_MUTATE, names::MUTATE_QUEUE, &QUEUE, queues::mutate)
    },
    Webhook {
        mutating: true,
        operations: CREATE,
        rendered_by_default: false,
        ..webhook(
            paths::PODGROUPS_MUTATE,
            names::MUTATE_POD_GROUP,
            &POD_GROUP,
            podgroups::mutate,
        )
    },
    // Which pods are of a resource group is in a file that may change, so that all are asked about. Pods of everybody
    // must not depend on this server: while it is down they go without what their group would give them.
    Webhook {
        mutating: true,
        failure_policy: IGNORE,
        ..pod_webhook(paths::PODS_MUTATE, names::MUTATE_POD, pods::mutate)
    },
    webhook(paths::JOBS_VALIDATE, names::VALIDATE_JOB, &JOB, jobs::validate),
    Webhook {
        operations: CREATE_UPDATE_DELETE,
        ..webhook(
            paths::QUEUES_VALIDATE,
            names::VALIDATE_QUEUE,
            &QUEUE,
            queues::validate,
        )
    },
    Webhook {
        operations: CREATE,
        ..webhook(
            paths::PODGROUPS_VALIDATE,
            names::VALIDATE_POD_GROUP,
            &POD_GROUP,
            podgroups::validate,
        )
    },
    pod_webhook(paths::PODS_VALIDATE, names::VALIDATE_POD, pods::validate),
    Webhook {
        rendered_by_default: false,
        ..webhook(
            paths::JOBFLOWS_VALIDATE,
            names::VALIDATE_JOB,
            &JOB_FLOW,
            jobflows::validate,
        )
    },
    webhook(
        paths::CRONJOBS_VALIDATE,
        names::VALIDATE_CRON_JOB,
        &CRON_JOB,
        cronjobs::validate,
    ),
    Webhook {
        selective: false,
        side_effects: "None",
        ..webhook(
            paths::HYPERNODES_VALIDATE,
            names::VALIDATE_HYPER_NODES,
            &HYPER_NODE,
            hypernodes::validate,
        )
    },
];

/// The webhook at a path.
pub fn find(path: &str) -> Option<&'static Webhook> {
    ALL.iter().find(|webhook| webhook.path == path)
}

/// A path of `--enabled-admission` at which there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("enabled admission {0} not found on the admission registered map")]
pub struct UnknownPath(pub String);

/// The webhooks of a list of paths as in `--enabled-admission`: commas between them, blanks around them do not count.
///
/// # Errors
/// The first path that is not known.
pub fn enabled(list: &str) -> Result<Vec<&'static Webhook>, UnknownPath> {
    let mut webhooks: Vec<&'static Webhook> = Vec::new();
    for path in list.split(',').map(str::trim).filter(|path| !path.is_empty()) {
        let webhook = find(path).ok_or_else(|| UnknownPath(path.to_owned()))?;
        if !webhooks.iter().any(|known| known.path == path) {
            webhooks.push(webhook);
        }
    }
    Ok(webhooks)
}

/// Where the webhook manager is installed, as the API server has to know it.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// Name of its Service.
    pub service: String,
    /// Namespace of its Service, whose own objects are not reviewed.
    pub namespace: String,
    /// Further conditions on the labels of namespaces.
    pub namespace_expressions: Vec<Value>,
    /// Schedulers whose pods are judged.
    pub scheduler_names: Vec<String>,
}

impl Webhook {
    /// Name of the webhook configuration.
    pub fn configuration_name(&self) -> String {
        format!("{CONFIGURATION_PREFIX}{}", self.path.replace('/', "-"))
    }

    /// Kind of the webhook configuration.
    pub fn configuration_kind(&self) -> &'static str {
        if self.mutating {
            "MutatingWebhookConfiguration"
        } else {
            "ValidatingWebhookConfiguration"
        }
    }

    /// The webhook configuration. Its `caBundle` is filled in later by the webhook manager.
    pub fn configuration(&self, installation: &Installation) -> Value {
        let mut rule = json!({
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "operations": self.operations,
            "resources": [self.resource],
        });
        let mut webhook = json!({
            "admissionReviewVersions": REVIEW_VERSIONS,
            "clientConfig": {"service": {
                "name": installation.service,
                "namespace": installation.namespace,
                "path": self.path,
                "port": 443,
            }},
            "failurePolicy": self.failure_policy,
            "matchPolicy": MATCH_POLICY,
            "name": self.name,
            "sideEffects": self.side_effects,
            "timeoutSeconds": TIMEOUT_SECONDS,
        });
        if self.selective {
            rule["scope"] = "*".into();
            let own = json!({
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": [installation.namespace, critical::NAMESPACE],
            });
            let mut expressions = vec![own];
            expressions.extend(installation.namespace_expressions.iter().cloned());
            webhook["namespaceSelector"] = json!({"matchExpressions": expressions});
            webhook["objectSelector"] = json!({});
        }
        if self.path == paths::PODS_VALIDATE {
            webhook["matchConditions"] = json!(pods::conditions(&installation.scheduler_names));
        }
        webhook["rules"] = json!([rule]);
        if self.mutating {
            webhook["reinvocationPolicy"] = REINVOCATION_POLICY.into();
        }
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": self.configuration_kind(),
            "metadata": {"name": self.configuration_name()},
            "webhooks": [webhook],
        })
    }

    pub(crate) fn is_about(&self, group: &str, version: &str, resource: &str) -> bool {
        (group, version, resource) == (self.group, self.version, self.resource)
    }

    /// The resource as messages name it, which is how Go prints a structure.
    pub(crate) fn resource_text(&self) -> String {
        format!("{{{} {} {}}}", self.group, self.version, self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_path_has_a_configuration_of_its_own() {
        let names: BTreeSet<_> = ALL.iter().map(Webhook::configuration_name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(
            find("/jobs/mutate").map(Webhook::configuration_name).as_deref(),
            Some("volcano-admission-service-jobs-mutate")
        );
    }

    #[test]
    fn rendered_by_default_is_what_the_chart_enables() {
        let rendered: BTreeSet<_> = ALL
            .iter()
            .filter(|w| w.rendered_by_default)
            .map(|w| w.path)
            .collect();
        let chart = "/jobs/mutate,/jobs/validate,/podgroups/validate,/queues/mutate,/queues/validate,/hypernodes/validate,/cronjobs/validate";
        assert_eq!(rendered, chart.split(',').collect());
    }

    #[test]
    fn enabled_paths_are_read_from_a_list() {
        let paths = |list: &str| enabled(list).map(|found| found.iter().map(|w| w.path).collect::<Vec<_>>());
        assert_eq!(paths(DEFAULT_ENABLED).map(|found| found.len()), Ok(7));
        assert_eq!(paths(""), Ok(vec![]));
        assert_eq!(paths(" /jobs/mutate , /jobs/mutate,"), Ok(vec!["/jobs/mutate"]));
        let error = enabled("/jobs/mutate,/nope").unwrap_err();
        assert_eq!(
            error.to_string(),
            "enabled admission /nope not found on the admission registered map"
        );
    }

    #[test]
    fn configurations_say_all_that_the_api_server_needs() {
        let installation = Installation {
            service: "volcano-admission-service".into(),
            namespace: "volcano-system".into(),
            namespace_expressions: vec![json!({"key": "team", "operator": "Exists"})],
            scheduler_names: vec!["volcano".into(), "o'hara".into()],
        };
        let queues = find("/queues/validate").unwrap().configuration(&installation);
        assert_eq!(
            queues,
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "volcano-admission-service-queues-validate"},
                "webhooks": [{
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"name": "volcano-admission-service", "namespace": "volcano-system",
                        "path": "/queues/validate", "port": 443}},
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "name": "validatequeue.volcano.sh",
                    "namespaceSelector": {"matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                            "values": ["volcano-system", "kube-system"]},
                        {"key": "team", "operator": "Exists"},
                    ]},
                    "objectSelector": {},
                    "rules": [{"apiGroups": ["scheduling.volcano.sh"], "apiVersions": ["v1beta1"],
                        "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["queues"], "scope": "*"}],
                    "sideEffects": "NoneOnDryRun",
                    "timeoutSeconds": 10,
                }],
            })
        );
        let pods = find("/pods/mutate").unwrap().configuration(&installation);
        assert_eq!(pods["kind"], "MutatingWebhookConfiguration");
        assert_eq!(pods["webhooks"][0]["reinvocationPolicy"], "Never");
        assert_eq!(pods["webhooks"][0]["failurePolicy"], "Ignore");
        assert_eq!(pods["webhooks"][0]["rules"][0]["apiGroups"], json!([""]));
        let pods = find("/pods/validate").unwrap().configuration(&installation);
        assert_eq!(
            pods["webhooks"][0]["matchConditions"],
            json!([
                {"name": "scheduler", "expression": r"has(object.spec.schedulerName) && object.spec.schedulerName in ['volcano', 'o\'hara']"},
                {"name": "budget", "expression": "has(object.metadata.annotations) && \
                    ('volcano.sh/jdb-min-available' in object.metadata.annotations || \
                    'volcano.sh/jdb-max-unavailable' in object.metadata.annotations)"},
            ])
        );
        let nodes = find("/hypernodes/validate").unwrap().configuration(&installation);
        assert_eq!(nodes["webhooks"][0].get("namespaceSelector"), None);
        assert_eq!(nodes["webhooks"][0]["rules"][0].get("scope"), None);
        assert_eq!(nodes["webhooks"][0]["sideEffects"], "None");
    }
}
