//! Job plugins: what they add to the pods of a Job, and the objects that they need beside them.
//!
//! ```text
//! Job ──> Plugins::of ──┬─> on_pod_create   variables, ports, volumes of one pod
//!                       ├─> objects         Services, ConfigMaps, … that the job needs and that are not there as wanted
//!                       └─> removals        those that a finished job needs no longer
//! ```
//!
//! Plugins run in the order of `AVAILABLE`. Those of frameworks come first, so that an init container that one of them
//! adds gets its variables and mounts like any other; hcclrank is last, as it reads the `RANK` that pytorch sets. What a
//! plugin adds, it adds once: a pod that has been through all of them is not changed by a second round.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::{controlled, job_plugins};

use crate::write::{Target, Write};

mod edit;
mod env;
mod flags;
mod hcclrank;
mod hosts;
mod mpi;
mod object;
mod pytorch;
mod ray;
mod ssh;
mod svc;
mod tensorflow;
#[cfg(test)]
mod tests;

use flags::{Arguments, Flag};
pub use hosts::pod_name;
pub use object::Observed;
use object::{Made, Wanted};

/// How to make a plugin from its arguments.
type Build = fn(&Arguments) -> Box<dyn Plugin>;

/// Every plugin, in the order in which they run.
const AVAILABLE: [(&str, &[Flag], Build); 8] = [
    (job_plugins::TENSORFLOW, tensorflow::FLAGS, tensorflow::build),
    (job_plugins::PYTORCH, pytorch::FLAGS, pytorch::build),
    (job_plugins::MPI, mpi::FLAGS, mpi::build),
    (job_plugins::RAY, ray::FLAGS, ray::build),
    (job_plugins::ENV, env::FLAGS, env::build),
    (job_plugins::SVC, svc::FLAGS, svc::build),
    (job_plugins::SSH, ssh::FLAGS, ssh::build),
    (job_plugins::HCCLRANK, hcclrank::FLAGS, hcclrank::build),
];

/// What a job plugin does.
trait Plugin {
    /// Adds to a pod that is about to be made.
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError>;

    /// Which objects the plugin makes for a job, without what is in them.
    fn makes(&self, _job: &Job) -> Vec<Made> {
        Vec::new()
    }

    /// The objects, as they should be.
    fn objects(&self, _job: &Job) -> Result<Vec<Wanted>, PluginError> {
        Ok(Vec::new())
    }
}

/// Which pod of which job is about to be made.
struct Place<'a> {
    job: &'a Job,
    task: &'a TaskSpec,
    index: i32,
}

/// Why a plugin cannot do its work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PluginError {
    /// There is no plugin of that name.
    #[error("failed to get plugin {0}")]
    Unknown(String),
    /// The task that the others depend on is missing.
    #[error("job {job} doesn't have head task {head}")]
    NoHead {
        /// Name of the job.
        job: String,
        /// The task that was looked for.
        head: String,
    },
    /// The job has more pods than can be listed.
    #[error(
        "{what} of job {job} would list more hosts than fit into {} bytes; use fewer replicas or shorter names",
        MAX_BYTES
    )]
    TooManyHosts {
        /// Where the hosts would be listed.
        what: String,
        /// Name of the job.
        job: String,
    },
    /// An object of that name belongs to something else.
    #[error("{kind} {name} belongs to the {owner}, not to the job; it is made once that is gone")]
    Taken {
        /// Kind of the object.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// Kind and name of its controller.
        owner: String,
    },
}

/// The most that the values of a ConfigMap or a Secret may have in all, and more than a variable can have.
const MAX_BYTES: usize = 1024 * 1024;

/// The plugins of one job, with their arguments.
pub struct Plugins {
    plugins: Vec<(&'static str, Box<dyn Plugin>)>,
    problems: Vec<String>,
}

impl Plugins {
    /// The plugins that a job asks for.
    ///
    /// # Errors
    /// When one of them is not known.
    pub fn of(job: &Job) -> Result<Self, PluginError> {
        let asked = &job.spec.plugins;
        let known = |name: &String| AVAILABLE.iter().any(|(known, ..)| known == name);
        if let Some(unknown) = asked.keys().find(|name| !known(name)) {
            return Err(PluginError::Unknown(unknown.clone()));
        }
        let mut all = Plugins {
            plugins: Vec::new(),
            problems: Vec::new(),
        };
        for (name, flags, build) in AVAILABLE {
            if let Some(arguments) = asked.get(name) {
                let arguments = Arguments::parse(flags, arguments);
                all.plugins.push((name, build(&arguments)));
                let problems = arguments.problems();
                all.problems
                    .extend(problems.map(|problem| format!("job plugin {name}: {problem}")));
            }
        }
        Ok(all)
    }

    /// What is wrong with the arguments. The rest of them is in force, so this is for the log.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Entries for `status.controlledResources` of a job that the plugins work for.
    pub fn controlled(&self) -> BTreeMap<String, String> {
        let names = self.plugins.iter().map(|(name, _)| *name);
        names
            .filter(|name| *name != job_plugins::HCCLRANK)
            .map(|name| (format!("{}{name}", controlled::PLUGIN_PREFIX), name.to_owned()))
            .collect()
    }

    /// Adds what the plugins add to a pod that is about to be made: the whole pod, with `metadata` and `spec`.
    ///
    /// # Errors
    /// When a plugin cannot do its work; the pod must not be made then.
    pub fn on_pod_create(
        &self,
        job: &Job,
        task: &TaskSpec,
        index: i32,
        pod: &mut Map<String, Value>,
    ) -> Result<(), PluginError> {
        let at = Place { job, task, index };
        self.plugins
            .iter()
            .try_for_each(|(_, plugin)| plugin.on_pod_create(&at, pod))
    }

    /// The objects that the plugins make for the job: what has to be read for [`objects`](Self::objects) and
    /// [`removals`](Self::removals).
    pub fn makes(&self, job: &Job) -> Vec<Target> {
        let made = self.made(job);
        made.map(|Made { kind, name, .. }| Target::named(kind, &job.metadata.namespace, &name))
            .collect()
    }

    /// What has to be written for the objects of a job that is not finished to be as they should. Nothing, when they
    /// are. The writes do not depend on each other.
    ///
    /// # Errors
    /// When an object cannot be as it should.
    pub fn objects(&self, job: &Job, observed: &Observed) -> Result<Vec<Write>, PluginError> {
        let mut writes = Vec::new();
        for (_, plugin) in &self.plugins {
            for wanted in plugin.objects(job)? {
                writes.extend(wanted.write(job, observed)?);
            }
        }
        Ok(writes)
    }

    /// What has to be deleted of a job whose pods are to go. The SSH keys stay until the job itself is deleted: a job
    /// that starts again has the keys that its users know. Objects that are not the job's are left alone.
    pub fn removals(&self, job: &Job, observed: &Observed) -> Vec<Write> {
        self.made(job)
            .filter(|made| !made.stays)
            .filter_map(|made| observed.removal(job, &made))
            .collect()
    }

    fn made<'a>(&'a self, job: &'a Job) -> impl Iterator<Item = Made> + 'a {
        self.plugins.iter().flat_map(|(_, plugin)| plugin.makes(job))
    }
}

/// The task of that name.
fn task<'a>(job: &'a Job, name: &str) -> Option<&'a TaskSpec> {
    job.spec.tasks.iter().find(|task| task.name == name)
}
