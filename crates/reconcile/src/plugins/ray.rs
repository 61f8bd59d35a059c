//! ray: starts the head and the workers of a Ray cluster, and a Service in front of the head.

use serde_json::{Map, Value, json};
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::job_plugins::{RAY_CLIENT_PORT, RAY_DASHBOARD_PORT, RAY_GCS_PORT};
use volcano_api::names::{kinds, labels};

use super::edit::{Containers, add_port, each, text};
use super::flags::{Arguments, Flag};
use super::hosts::domain;
use super::object::{Made, Wanted};
use super::svc::selector;
use super::{Place, Plugin, PluginError, task};

const HEAD: &str = "head";
const HEAD_CONTAINER: &str = "headContainer";
const WORKER: &str = "worker";
const WORKER_CONTAINER: &str = "workerContainer";
const PORT: &str = "port";
const DASHBOARD_PORT: &str = "dashboardPort";
const CLIENT_PORT: &str = "clientPort";

pub const FLAGS: &[Flag] = &[
    Flag::text(HEAD),
    Flag::text(HEAD_CONTAINER),
    Flag::text(WORKER),
    Flag::text(WORKER_CONTAINER),
    Flag::port(PORT),
    Flag::port(DASHBOARD_PORT),
    Flag::port(CLIENT_PORT),
];

struct Ray {
    head: String,
    head_container: String,
    worker: String,
    worker_container: String,
    /// Name and number: of the head, of its web page, and for clients.
    ports: [(&'static str, i64); 3],
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    Box::new(Ray {
        head: arguments.text(HEAD, "head"),
        head_container: arguments.text(HEAD_CONTAINER, "head"),
        worker: arguments.text(WORKER, "worker"),
        worker_container: arguments.text(WORKER_CONTAINER, "worker"),
        ports: [
            (RAY_GCS_PORT, arguments.number(PORT, 6379)),
            (RAY_DASHBOARD_PORT, arguments.number(DASHBOARD_PORT, 8265)),
            (RAY_CLIENT_PORT, arguments.number(CLIENT_PORT, 10001)),
        ],
    })
}

impl Plugin for Ray {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        let head = self.head(at.job)?;
        let [(_, port), (_, dashboard), (_, client)] = self.ports;
        if at.task.name == self.head {
            let command = format!(
                "ray start --head --block --dashboard-host=0.0.0.0 --port={port} --dashboard-port={dashboard} \
                 --ray-client-server-port={client}"
            );
            run(pod, &self.head_container, &command, &self.ports);
        } else if at.task.name == self.worker {
            let command = format!("ray start --block --address={}:{port}", domain(at.job, head, 0));
            run(pod, &self.worker_container, &command, &[]);
        }
        Ok(())
    }

    fn makes(&self, job: &Job) -> Vec<Made> {
        vec![Made::new(kinds::SERVICE, service_name(job))]
    }

    fn objects(&self, job: &Job) -> Result<Vec<Wanted>, PluginError> {
        let head = self.head(job)?;
        let mut selector = selector(job);
        selector[labels::TASK_SPEC] = self.head.as_str().into();
        let ports = self.ports.map(|(name, number)| {
            let target = self.target_port(head, name, number);
            json!({"name": name, "port": number, "protocol": "TCP", "targetPort": target})
        });
        let spec = json!({"type": "ClusterIP", "selector": selector, "ports": ports});
        Ok(vec![Wanted::with_spec(kinds::SERVICE, service_name(job), spec)])
    }
}

fn service_name(job: &Job) -> String {
    format!("{}-head-svc", job.metadata.name)
}

/// Has a container of the pod run a command, with these ports.
fn run(pod: &mut Map<String, Value>, name: &str, command: &str, ports: &[(&str, i64)]) {
    each(pod, Containers::Normal, |container| {
        if text(container, "name") == name {
            container.insert("command".to_owned(), json!(["sh", "-c", command]));
            for (name, number) in ports {
                add_port(container, name, *number);
            }
        }
    });
}

impl Ray {
    fn head<'a>(&self, job: &'a Job) -> Result<&'a TaskSpec, PluginError> {
        task(job, &self.head).ok_or_else(|| PluginError::NoHead {
            job: job.metadata.name.clone(),
            head: self.head.clone(),
        })
    }

    /// What the Service calls a port of the head. The template may have the number under another name, or the name for
    /// another number.
    fn target_port(&self, head: &TaskSpec, name: &str, number: i64) -> Value {
        let containers = head
            .template
            .spec()
            .and_then(|spec| spec.get("containers")?.as_array());
        let container = containers
            .into_iter()
            .flatten()
            .find(|container| container["name"].as_str() == Some(&self.head_container));
        let ports = container.and_then(|container| container["ports"].as_array());
        let ports: Vec<_> = ports.into_iter().flatten().collect();
        let is = |port: &&&Value| port["containerPort"].as_i64() == Some(number);
        match ports.iter().find(is) {
            Some(port) => match port["name"].as_str().filter(|name| !name.is_empty()) {
                Some(name) => name.into(),
                None => number.into(),
            },
            None if ports.iter().any(|port| port["name"].as_str() == Some(name)) => number.into(),
            None => name.into(),
        }
    }
}
