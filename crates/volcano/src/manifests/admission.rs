//! The webhook manager, and the webhook configurations that lead to it.

use super::Values;
use super::parts::{Workload, account, config_map, config_volume, deployment, named_rule, rule};
use serde_json::{Value, json};
use volcano_admission::webhooks::{Installation, Webhook};
use volcano_api::names::SCHEDULER;
use volcano_api::names::admission::paths;
use volcano_api::names::kinds::SCHEDULING;

const PART: &str = "admission";
const CONFIG: &str = "admission-configmap";
const SERVICE: &str = "admission-service";
/// Label of its pods.
const APP: &str = "volcano-admission";
const CONF_FILE: &str = "volcano-admission.conf";
const CONF_FOLDER: &str = "/admission.local.config/configmap";

/// Its objects.
pub fn objects(values: &Values) -> Vec<Value> {
    let mut objects = account(values, PART, &cluster_rules(values), &own_rules(values));
    objects.push(config_map(values, CONFIG, CONF_FILE, &values.admission_conf));
    objects.push(service(values));
    objects.push(deployment(
        values,
        &Workload {
            part: PART,
            app: APP,
            container: PART.to_owned(),
            command: "vc-webhook-manager",
            program: &values.admission,
            args: args(values),
            env: Vec::new(),
            ports: vec![("webhooks", values.admission_port)],
            volumes: vec![("admission-config", CONF_FOLDER, config_volume(values, CONFIG))],
            probe_scheme: "HTTPS",
            tells_readiness: true,
        },
    ));
    objects
}

/// The webhook configurations.
pub fn configurations(values: &Values) -> Vec<Value> {
    let installation = Installation {
        service: values.name(SERVICE),
        namespace: values.namespace.clone(),
        namespace_expressions: values.namespace_expressions.clone(),
        scheduler_names: match values.scheduler_names.as_slice() {
            [] => vec![SCHEDULER.to_owned()],
            names => names.to_vec(),
        },
    };
    let webhooks = values.enabled.iter();
    webhooks
        .map(|webhook| webhook.configuration(&installation))
        .collect()
}

fn service(values: &Values) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": values.name(SERVICE), "namespace": values.namespace, "labels": {"app": APP}},
        "spec": {
            "selector": {"app": APP},
            "sessionAffinity": "None",
            "ports": [{"port": 443, "protocol": "TCP", "targetPort": values.admission_port}],
        },
    })
}

fn args(values: &Values) -> Vec<String> {
    let enabled: Vec<_> = values.enabled.iter().map(|webhook| webhook.path).collect();
    let mut args = vec![
        format!("--enabled-admission={}", enabled.join(",")),
        format!("--admission-secret-name={}", values.admission_secret),
        format!("--admission-conf={CONF_FOLDER}/{CONF_FILE}"),
        format!("--webhook-namespace={}", values.namespace),
        format!("--webhook-service-name={}", values.name(SERVICE)),
    ];
    args.extend(values.scheduler_name_flags());
    args.extend([
        "--enable-healthz=true".to_owned(),
        "--logtostderr".to_owned(),
        format!("--port={}", values.admission_port),
        format!("-v={}", values.admission.log_level),
    ]);
    args
}

fn cluster_rules(values: &Values) -> Vec<Value> {
    const GROUP: &str = "admissionregistration.k8s.io";
    const KEEP: &[&str] = &["get", "watch", "update"];
    let is_enabled = |path: &str| values.enabled.iter().any(|webhook| webhook.path == path);
    let mut rules = vec![rule(SCHEDULING, &["queues"], &["list", "watch"])];
    // Only pods that are refused have events.
    if is_enabled(paths::PODS_VALIDATE) {
        rules.push(rule("", &["events"], &["create"]));
    }
    for (mutating, resource) in [
        (true, "mutatingwebhookconfigurations"),
        (false, "validatingwebhookconfigurations"),
    ] {
        let webhooks = values
            .enabled
            .iter()
            .filter(|webhook| webhook.mutating == mutating);
        let names: Vec<_> = webhooks
            .map(|webhook| Webhook::configuration_name(webhook))
            .collect();
        // A rule without names would be one for all.
        if !names.is_empty() {
            rules.push(named_rule(GROUP, &[resource], &names, KEEP));
        }
    }
    if is_enabled(paths::PODGROUPS_MUTATE) {
        rules.push(rule("", &["namespaces"], &["list", "watch"]));
    }
    rules
}

/// The Secret of the certificate; creation cannot be limited to a name.
fn own_rules(values: &Values) -> Vec<Value> {
    vec![
        rule("", &["secrets"], &["create"]),
        named_rule(
            "",
            &["secrets"],
            std::slice::from_ref(&values.admission_secret),
            &["get", "patch"],
        ),
    ]
}
