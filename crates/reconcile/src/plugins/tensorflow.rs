//! tensorflow: `TF_CONFIG`, the description of the cluster that TensorFlow's distribution strategies read.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use volcano_api::batch::Job;
use volcano_api::names::job_plugins::TF_CONFIG;

use super::edit::{Containers, each, set_env};
use super::flags::{Arguments, Flag};
use super::hosts::{domain, too_many};
use super::{MAX_BYTES, Place, Plugin, PluginError, task};

/// The roles of TensorFlow, in the order in which they are written. Each is the name of an argument, and the task that
/// has it by default.
const ROLES: [&str; 4] = ["ps", "worker", "chief", "evaluator"];
const PORT: &str = "port";

pub const FLAGS: &[Flag] = &[
    Flag::text(ROLES[0]),
    Flag::text(ROLES[1]),
    Flag::text(ROLES[2]),
    Flag::text(ROLES[3]),
    Flag::port(PORT),
];

struct Tensorflow {
    /// Role, and the name of the task that has it.
    tasks: [(&'static str, String); 4],
    port: i64,
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    Box::new(Tensorflow {
        tasks: ROLES.map(|role| (role, arguments.text(role, role))),
        port: arguments.number(PORT, 2222),
    })
}

/// What is written; the order of the fields is that of the text.
#[derive(Serialize)]
struct Config<'a> {
    #[serde(serialize_with = "in_order")]
    cluster: Vec<(&'static str, Vec<String>)>,
    task: Member<'a>,
}

#[derive(Serialize)]
struct Member<'a> {
    r#type: &'a str,
    index: i32,
}

fn in_order<S: Serializer>(roles: &[(&str, Vec<String>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(roles.iter().map(|(role, hosts)| (role, hosts)))
}

impl Plugin for Tensorflow {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        if let [alone] = at.job.spec.tasks.as_slice()
            && alone.replicas == 1
        {
            return Ok(());
        }
        let role = self.tasks.iter().find(|(_, task)| *task == at.task.name);
        let config = Config {
            cluster: self.cluster(at.job)?,
            task: Member {
                r#type: role.map_or(&at.task.name, |(role, _)| role),
                index: at.index,
            },
        };
        let config = serde_json::to_string(&config).expect("texts and numbers can be written");
        each(pod, Containers::Normal, |container| {
            set_env(container, TF_CONFIG, &config);
        });
        Ok(())
    }
}

impl Tensorflow {
    /// Addresses by role, without roles that nobody has.
    fn cluster(&self, job: &Job) -> Result<Vec<(&'static str, Vec<String>)>, PluginError> {
        let mut cluster = Vec::new();
        let mut bytes = 0;
        for (role, name) in &self.tasks {
            let Some(task) = task(job, name).filter(|task| task.replicas > 0) else {
                continue;
            };
            let mut hosts = Vec::new();
            for index in 0..task.replicas {
                let host = format!("{}:{}", domain(job, task, index), self.port);
                bytes += host.len();
                if bytes > MAX_BYTES {
                    return Err(too_many(job, TF_CONFIG));
                }
                hosts.push(host);
            }
            cluster.push((*role, hosts));
        }
        Ok(cluster)
    }
}
