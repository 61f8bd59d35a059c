//! svc: host names for the pods, and lists of all of them in files and variables.
//!
//! ```text
//! Service <job>        headless: the pods find each other as <host>.<job>
//! ConfigMap <job>-svc  per task: <task>.host, VC_<TASK>_HOSTS, VC_<TASK>_NUM; mounted at /etc/volcano
//! NetworkPolicy <job>  only pods of the job may come in
//! ```

use serde_json::{Map, Value, json};
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::job_plugins::SVC_MOUNT_PATH;
use volcano_api::names::{kinds, labels};

use super::edit::{Containers, add_mount, add_volume, each, set_env_from, set_if_empty};
use super::flags::{Arguments, Flag};
use super::hosts::{domain, indexes, joined, pod_name, too_many};
use super::object::{Made, Wanted};
use super::{MAX_BYTES, Place, Plugin, PluginError};

const PUBLISH_NOT_READY: &str = "publish-not-ready-addresses";
const DISABLE_NETWORK_POLICY: &str = "disable-network-policy";
const INJECT_HOSTS_ENV: &str = "inject-hosts-env";

pub const FLAGS: &[Flag] = &[
    Flag::switch(PUBLISH_NOT_READY),
    Flag::switch(DISABLE_NETWORK_POLICY),
    Flag::switch(INJECT_HOSTS_ENV),
];

struct Svc {
    publish_not_ready: bool,
    network_policy: bool,
    hosts_env: bool,
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    Box::new(Svc {
        publish_not_ready: arguments.switch(PUBLISH_NOT_READY, false),
        network_policy: !arguments.switch(DISABLE_NETWORK_POLICY, false),
        hosts_env: arguments.switch(INJECT_HOSTS_ENV, true),
    })
}

/// Labels of all pods of a job.
pub fn selector(job: &Job) -> Value {
    json!({labels::JOB_NAME: job.metadata.name, labels::JOB_NAMESPACE: job.metadata.namespace})
}

fn config_map_name(job: &Job) -> String {
    format!("{}-svc", job.metadata.name)
}

/// The variable with the hosts of a task, and the one with their number; also keys of the ConfigMap.
fn variables(task: &TaskSpec) -> [String; 2] {
    let task = task.name.replace('-', "_").to_uppercase();
    [format!("VC_{task}_HOSTS"), format!("VC_{task}_NUM")]
}

impl Plugin for Svc {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        set_if_empty(pod, "hostname", &pod_name(at.job, at.task, at.index));
        set_if_empty(pod, "subdomain", &at.job.metadata.name);
        let name = config_map_name(at.job);
        let variables: Vec<_> = at.job.spec.tasks.iter().flat_map(variables).collect();
        each(pod, Containers::All, |container| {
            for variable in variables.iter().filter(|_| self.hosts_env) {
                set_env_from(container, variable, &name, variable);
            }
            add_mount(container, json!({"name": name, "mountPath": SVC_MOUNT_PATH}));
        });
        add_volume(pod, json!({"name": name, "configMap": {"name": name}}));
        Ok(())
    }

    fn makes(&self, job: &Job) -> Vec<Made> {
        vec![
            Made::new(kinds::CONFIG_MAP, config_map_name(job)),
            Made::new(kinds::SERVICE, job.metadata.name.clone()),
            Made::new(kinds::NETWORK_POLICY, job.metadata.name.clone()),
        ]
    }

    fn objects(&self, job: &Job) -> Result<Vec<Wanted>, PluginError> {
        let mut objects = vec![config_map(job)?, self.service(job)];
        if self.network_policy {
            objects.push(network_policy(job));
        }
        Ok(objects)
    }
}

impl Svc {
    fn service(&self, job: &Job) -> Wanted {
        let spec = json!({
            "clusterIP": "None",
            "publishNotReadyAddresses": self.publish_not_ready,
            "selector": selector(job),
        });
        Wanted::with_spec(kinds::SERVICE, job.metadata.name.clone(), spec)
    }
}

fn config_map(job: &Job) -> Result<Wanted, PluginError> {
    let name = config_map_name(job);
    let what = format!("ConfigMap {name}");
    let mut data = Map::new();
    let mut bytes = 0;
    for task in &job.spec.tasks {
        let lines = joined(job, indexes(task), "\n", &what, |index| domain(job, task, index))?;
        let [hosts, number] = variables(task);
        let count = indexes(task).len().to_string();
        bytes += 2 * lines.len() + count.len();
        if bytes > MAX_BYTES {
            return Err(too_many(job, &what));
        }
        data.insert(hosts, lines.replace('\n', ",").into());
        data.insert(number, count.into());
        data.insert(format!("{}.host", task.name.replace('-', "_")), lines.into());
    }
    Ok(Wanted::with_data(kinds::CONFIG_MAP, name, data))
}

fn network_policy(job: &Job) -> Wanted {
    let pods = json!({"matchLabels": selector(job)});
    let spec = json!({
        "podSelector": pods,
        "ingress": [{"from": [{"podSelector": pods}]}],
        "policyTypes": ["Ingress"],
    });
    Wanted::with_spec(kinds::NETWORK_POLICY, job.metadata.name.clone(), spec)
}
