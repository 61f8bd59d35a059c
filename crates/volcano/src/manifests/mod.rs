//! Everything that an installation needs, as Kubernetes objects.
//!
//! ```text
//! Values ──> namespace, crds, scheduler, controllers, admission, webhooks, users ──> objects, in the order of installing
//! ```
//!
//! A file for each program: what it may do, how it runs, and how it is reached. Names and ports are those of Volcano's
//! chart, so that what refers to them keeps working. Roles hold what the program uses and no more.

mod admission;
mod controllers;
mod parts;
mod scheduler;
mod users;

use serde_json::{Value, json};
use volcano_admission::webhooks::Webhook;

/// Parts of an installation that can be had alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Group {
    /// The namespace
    Namespace,
    /// The CustomResourceDefinitions
    Crds,
    /// The scheduler
    Scheduler,
    /// The controller manager
    Controllers,
    /// The webhook manager
    Admission,
    /// The webhook configurations
    Webhooks,
    /// Roles for users
    Users,
}

impl Group {
    /// All, in the order of installing.
    pub const ALL: [Group; 7] = [
        Group::Namespace,
        Group::Crds,
        Group::Scheduler,
        Group::Controllers,
        Group::Admission,
        Group::Webhooks,
        Group::Users,
    ];

    /// The objects of a part.
    pub fn objects(self, values: &Values) -> Vec<Value> {
        match self {
            Group::Namespace => vec![namespace(values)],
            Group::Crds => volcano_api::crd::all(),
            Group::Scheduler => scheduler::objects(values),
            Group::Controllers => controllers::objects(values),
            Group::Admission => admission::objects(values),
            Group::Webhooks => admission::configurations(values),
            Group::Users => users::objects(),
        }
    }
}

/// What differs between installations.
#[derive(Clone, Debug)]
pub struct Values {
    /// Namespace of everything that has one.
    pub namespace: String,
    /// Before the names of most objects.
    pub release: String,
    /// Where images come from.
    pub images: Images,
    /// Names of the schedulers; the default one if there are none.
    pub scheduler_names: Vec<String>,
    /// Whether replicas elect a leader.
    pub leader_elect: bool,
    /// The scheduler.
    pub scheduler: Program,
    /// The controller manager.
    pub controllers: Program,
    /// The webhook manager.
    pub admission: Program,
    /// What the webhook manager serves.
    pub enabled: Vec<&'static Webhook>,
    /// Port of the webhook manager.
    pub admission_port: u16,
    /// Secret of its certificate.
    pub admission_secret: String,
    /// Further conditions on the labels of namespaces whose objects are reviewed.
    pub namespace_expressions: Vec<Value>,
    /// Configuration of the scheduler.
    pub scheduler_conf: String,
    /// Resource groups.
    pub admission_conf: String,
}

/// Where images come from.
#[derive(Clone, Debug)]
pub struct Images {
    /// Host.
    pub registry: String,
    /// Version.
    pub tag: String,
    /// When they are pulled.
    pub pull_policy: String,
    /// Secret for the registry, if it wants one.
    pub pull_secret: Option<String>,
}

/// One of the programs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of its image.
    pub image: String,
    /// How many run.
    pub replicas: u32,
    /// How much they log.
    pub log_level: i32,
}

impl Values {
    /// The name of an object of this release.
    fn name(&self, part: &str) -> String {
        format!("{}-{part}", self.release)
    }

    /// Flags for the schedulers that are not the default one.
    fn scheduler_name_flags(&self) -> Vec<String> {
        let names = self.scheduler_names.iter();
        names.map(|name| format!("--scheduler-name={name}")).collect()
    }

    /// Flags of the election.
    fn election_flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--leader-elect={}", self.leader_elect)];
        if self.leader_elect {
            flags.push(format!("--leader-elect-resource-namespace={}", self.namespace));
        }
        flags
    }
}

fn namespace(values: &Values) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": values.namespace,
            "labels": {"kubernetes.io/metadata.name": values.namespace},
        },
    })
}
