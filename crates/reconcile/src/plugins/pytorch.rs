//! pytorch: address of the master, size of the world and rank, as `torch.distributed` reads them from variables.

use serde_json::{Map, Value, json};
use volcano_api::names::job_plugins::{
    MASTER_ADDR, MASTER_PORT, PYTORCH_PORT, RANK, WAIT_FOR_MASTER, WORLD_SIZE,
};

use super::edit::{Containers, add_init_container, add_port, each, set_env};
use super::flags::{Arguments, Flag};
use super::hosts::domain;
use super::{Place, Plugin, PluginError, task};

const MASTER: &str = "master";
const WORKER: &str = "worker";
const PORT: &str = "port";
const WAIT: &str = "wait-master-enabled";
const WAIT_TIMEOUT: &str = "wait-master-timeout";
const WAIT_IMAGE: &str = "wait-master-image";

pub const FLAGS: &[Flag] = &[
    Flag::text(MASTER),
    Flag::text(WORKER),
    Flag::port(PORT),
    Flag::switch(WAIT),
    Flag::number(WAIT_TIMEOUT),
    Flag::text(WAIT_IMAGE),
];

struct Pytorch {
    master: String,
    worker: String,
    port: i64,
    wait: Option<Wait>,
}

/// How workers wait for the master.
struct Wait {
    timeout_seconds: i64,
    image: String,
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    let wait = Wait {
        timeout_seconds: arguments.number(WAIT_TIMEOUT, 300),
        image: arguments.needed_text(WAIT_IMAGE, "busybox:1.36.1"),
    };
    Box::new(Pytorch {
        master: arguments.text(MASTER, MASTER),
        worker: arguments.text(WORKER, WORKER),
        port: arguments.number(PORT, 23456),
        wait: arguments.switch(WAIT, false).then_some(wait),
    })
}

impl Plugin for Pytorch {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        let Some(master) = task(at.job, &self.master) else {
            return Ok(());
        };
        let masters = i64::from(master.replicas);
        let workers = task(at.job, &self.worker).map_or(0, |worker| i64::from(worker.replicas));
        let address = domain(at.job, master, 0);
        let index = i64::from(at.index);
        let is_worker = at.task.name == self.worker;
        let rank = match &at.task.name {
            name if *name == self.master => Some(index),
            _ if is_worker => Some(masters.saturating_add(index)),
            _ => None,
        };
        each(pod, Containers::Normal, |container| {
            add_port(container, PYTORCH_PORT, self.port);
            set_env(container, MASTER_ADDR, &address);
            set_env(container, MASTER_PORT, &self.port.to_string());
            set_env(
                container,
                WORLD_SIZE,
                &masters.saturating_add(workers).to_string(),
            );
            if let Some(rank) = rank {
                set_env(container, RANK, &rank.to_string());
            }
        });
        if let Some(wait) = self.wait.as_ref().filter(|_| is_worker) {
            add_init_container(pod, wait.container(&address, self.port));
        }
        Ok(())
    }
}

impl Wait {
    /// Ends well once something listens at the address, and badly after the timeout.
    fn container(&self, address: &str, port: i64) -> Value {
        let timeout = self.timeout_seconds;
        let script = format!(
            "end=$(($(date +%s) + {timeout}))\n\
             until nc -z {address} {port} 2>/dev/null || (echo > /dev/tcp/{address}/{port}) 2>/dev/null; do\n\
             \x20 if [ \"$(date +%s)\" -ge \"$end\" ]; then\n\
             \x20   echo \"{address}:{port} was not there after {timeout} seconds\" >&2\n\
             \x20   exit 1\n\
             \x20 fi\n\
             \x20 sleep 2\n\
             done\n"
        );
        json!({"name": WAIT_FOR_MASTER, "image": self.image, "command": ["sh", "-c", script]})
    }
}
