//! What a cycle means for the metrics.

use crate::metrics::{Metrics, TaskStage};
use volcano_api::time::Time;
use volcano_engine::effect::{Cycle, Effect};
use volcano_engine::model::Model;

/// Counts what a cycle decided.
pub fn report(metrics: &Metrics, m: &Model, cycle: &Cycle, now: Time) {
    for effect in &cycle.effects {
        let Effect::Bind { job, binds } = effect else {
            continue;
        };
        let job = m.job(*job);
        let (namespace, name) = (m.text(job.namespace), m.text(job.name));
        let queue = m.text(m.queue(job.queue).name);
        let since_creation = now.since(Time::from_unix_micros(job.created()));
        for &(task, _) in binds {
            metrics.job_scheduled(namespace, name, queue, since_creation, now);
            let pod_created = Time::from_unix_micros(m.task(task).created);
            metrics.task_stage(TaskStage::Assumed, now.since(pod_created));
        }
    }
}
