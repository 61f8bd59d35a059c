//! ssh: keys, so that the pods of a job can log in to each other without a password.
//!
//! The key pair is in the Secret `<job>-ssh`. It is made once and stays until the job is deleted, so that a job that
//! starts again has the same keys; only the list of hosts follows the job's tasks.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use volcano_api::batch::Job;
use volcano_api::names::job_plugins::{SSH_AUTHORIZED_KEYS, SSH_CONFIG, SSH_PRIVATE_KEY, SSH_PUBLIC_KEY};
use volcano_api::names::kinds;

use super::edit::{Containers, add_mount, add_volume, each};
use super::flags::{Arguments, Flag};
use super::hosts::{host, indexes, subdomain, too_many};
use super::object::{Made, Wanted, encoded};
use super::{MAX_BYTES, Place, Plugin, PluginError};
use crate::write::Fill;

const KEY_FILE_PATH: &str = "ssh-key-file-path";
const PRIVATE_KEY: &str = "ssh-private-key";
const PUBLIC_KEY: &str = "ssh-public-key";
const PORT: &str = "ssh-port";

pub const FLAGS: &[Flag] = &[
    Flag::text(KEY_FILE_PATH),
    Flag::text(PRIVATE_KEY),
    Flag::text(PUBLIC_KEY),
    Flag::port(PORT),
];

/// Where `sshd` and `ssh` of root look.
const ROOT_PATH: &str = "/root/.ssh";
/// Folder in the volume.
const FOLDER: &str = ".ssh";
/// Keys that only their owner may read.
const ROOT_MODE: i32 = 0o600;
/// Keys for a user whose number is not known.
const USER_MODE: i32 = 0o644;
/// Hosts come and go, so nobody knows their keys.
const CONFIG_HEAD: &str = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n";

struct Ssh {
    path: String,
    /// Private and public, as given.
    keys: Option<[String; 2]>,
    port: i64,
}

pub fn build(arguments: &Arguments) -> Box<dyn Plugin> {
    let keys = [PRIVATE_KEY, PUBLIC_KEY].map(|name| arguments.text(name, ""));
    Box::new(Ssh {
        path: arguments.needed_text(KEY_FILE_PATH, ROOT_PATH),
        keys: Some(keys).filter(|[private, _]| !private.is_empty()),
        port: arguments.number(PORT, 22),
    })
}

fn secret_name(job: &Job) -> String {
    format!("{}-ssh", job.metadata.name)
}

impl Plugin for Ssh {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        let name = secret_name(at.job);
        each(pod, Containers::All, |container| {
            add_mount(
                container,
                json!({"name": name, "mountPath": self.path, "subPath": FOLDER}),
            );
        });
        let keys = [SSH_PRIVATE_KEY, SSH_PUBLIC_KEY, SSH_AUTHORIZED_KEYS, SSH_CONFIG];
        let items = keys.map(|key| json!({"key": key, "path": format!("{FOLDER}/{key}")}));
        let mode = if self.path == ROOT_PATH {
            ROOT_MODE
        } else {
            USER_MODE
        };
        let secret = json!({"secretName": name, "items": items, "defaultMode": mode});
        add_volume(pod, json!({"name": name, "secret": secret}));
        Ok(())
    }

    fn makes(&self, job: &Job) -> Vec<Made> {
        vec![Made {
            stays: true,
            ..Made::new(kinds::SECRET, secret_name(job))
        }]
    }

    fn objects(&self, job: &Job) -> Result<Vec<Wanted>, PluginError> {
        let mut data = Map::new();
        data.insert(SSH_CONFIG.to_owned(), encoded(&self.config(job)?));
        let fill = match &self.keys {
            None => Some(Fill::SshKeyPair),
            Some([private, public]) => {
                data.insert(SSH_PRIVATE_KEY.to_owned(), encoded(private));
                data.insert(SSH_PUBLIC_KEY.to_owned(), encoded(public));
                data.insert(SSH_AUTHORIZED_KEYS.to_owned(), encoded(public));
                None
            }
        };
        Ok(vec![Wanted {
            fill,
            ..Wanted::with_data(kinds::SECRET, secret_name(job), data)
        }])
    }
}

impl Ssh {
    /// The client's configuration: each pod by its host name.
    fn config(&self, job: &Job) -> Result<String, PluginError> {
        let mut text = CONFIG_HEAD.to_owned();
        for task in &job.spec.tasks {
            for index in indexes(task) {
                let (host, subdomain) = (host(job, task, index), subdomain(job, task));
                write!(
                    text,
                    "Host {host}\n  HostName {host}.{subdomain}\n  Port {}\n",
                    self.port
                )
                .expect("writing to a text does not fail");
                if text.len() > MAX_BYTES {
                    return Err(too_many(job, &format!("Secret {}", secret_name(job))));
                }
            }
        }
        Ok(text)
    }
}
