//! mpi: the hosts of the workers for `mpirun` on the master, and the port of `sshd` on all pods.

use serde_json::{Map, Value};
use volcano_api::names::job_plugins::{MPI_HOST, MPI_PORT};

use super::edit::{Containers, add_port, each, set_env};
use super::flags::{Arguments, Flag};
use super::hosts::{domain, indexes, joined};
use super::{Place, Plugin, PluginError, task};

const MASTER: &str = "master";
const WORKER: &str = "worker";
const PORT: &str = "port";

pub const FLAGS: &[Flag] = &[Flag::text(MASTER), Flag::text(WORKER), Flag::port(PORT)];

struct Mpi {
    master: String,
    worker: String,
    port: i64,
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    Box::new(Mpi {
        master: arguments.text(MASTER, MASTER),
        worker: arguments.text(WORKER, WORKER),
        port: arguments.number(PORT, 22),
    })
}

impl Plugin for Mpi {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        let hosts = if at.task.name == self.master {
            let Some(worker) = task(at.job, &self.worker) else {
                return Ok(());
            };
            let domain = |index| domain(at.job, worker, index);
            Some(joined(at.job, indexes(worker), ",", MPI_HOST, domain)?)
        } else {
            None
        };
        each(pod, Containers::All, |container| {
            add_port(container, MPI_PORT, self.port);
            if let Some(hosts) = &hosts {
                set_env(container, MPI_HOST, hosts);
            }
        });
        Ok(())
    }
}
