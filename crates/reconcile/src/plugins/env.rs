//! env: tells each container the index of its pod in the task.

use serde_json::{Map, Value};
use volcano_api::names::job_plugins::{VC_TASK_INDEX, VK_TASK_INDEX};

use super::edit::{Containers, each, set_env};
use super::flags::{Arguments, Flag};
use super::{Place, Plugin, PluginError};

pub const FLAGS: &[Flag] = &[];

struct Env;

pub fn build(_: &Arguments) -> Box<dyn Plugin> {
    Box::new(Env)
}

impl Plugin for Env {
    fn on_pod_create(&self, at: &Place<'_>, pod: &mut Map<String, Value>) -> Result<(), PluginError> {
        let index = at.index.to_string();
        each(pod, Containers::All, |container| {
            set_env(container, VK_TASK_INDEX, &index);
            set_env(container, VC_TASK_INDEX, &index);
        });
        Ok(())
    }
}
