//! Pods that wait for another scheduler. They are no tasks; all that matters of them is whose their PodGroup is.

use crate::ids::{JobId, Sym};
use crate::model::Model;

impl Model {
    /// A pod waits for another scheduler as part of the PodGroup `group`; `None`: it does not, or is gone.
    pub(in crate::model) fn note_foreign(&mut self, key: (Sym, Box<str>), group: Option<&str>) {
        if group.is_none() && self.foreign_pods.is_empty() {
            return;
        }
        let before = self.foreign_pods.get(&key).copied();
        let now = group.map(|name| {
            let name = self.strings.intern(name);
            self.job_id(key.0, name)
        });
        if before == now {
            return;
        }
        self.news = true;
        if let Some(job) = now {
            self.foreign_pods.insert(key, job);
            self.jobs[job.index()].foreign_pods += 1;
            self.touch(job);
        } else {
            self.foreign_pods.remove(&key);
        }
        if let Some(job) = before {
            self.jobs[job.index()].foreign_pods -= 1;
            self.touch(job);
            self.free_job_if_unused(job);
        }
    }

    /// Namespace, name and PodGroup of every pod that waits for another scheduler, sorted.
    pub(crate) fn foreign_pods(&self) -> Vec<(String, String, String)> {
        let pod = |((namespace, name), job): (&(Sym, Box<str>), &JobId)| {
            let group = self.text(self.job(*job).name).to_owned();
            (self.text(*namespace).to_owned(), name.to_string(), group)
        };
        let mut pods: Vec<_> = self.foreign_pods.iter().map(pod).collect();
        pods.sort();
        pods
    }
}
