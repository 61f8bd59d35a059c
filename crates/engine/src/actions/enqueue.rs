//! `enqueue`: admits waiting jobs while there is room for their minimum.

use super::ByQueue;
use super::claims::is_broken;
use crate::effect::Effect;
use crate::explain::AdmissionReason;
use crate::ids::JobId;
use crate::model::job::Phase;
use crate::session::Session;
use volcano_api::names::reasons;

/// Queues in order, jobs of a queue in order. Nothing that the order depends on changes while jobs are admitted.
pub fn run(ssn: &mut Session<'_>) {
    let waiting: Vec<JobId> = ssn
        .m
        .waiting_jobs()
        .filter(|&j| ssn.m.job(j).phase() == Phase::Pending)
        .collect();
    for (queue, jobs) in ByQueue::new(ssn, waiting).queues {
        for job in jobs {
            match admit(ssn, job) {
                Ok(()) => {
                    ssn.plugins.job_enqueued(ssn.m, job);
                    ssn.m.set_phase(job, Phase::Inqueue);
                }
                Err(reason) => {
                    refuse(ssn, job, reason);
                    if ssn.m.queue(queue).fifo {
                        break;
                    }
                }
            }
        }
    }
}

/// A closed queue takes nothing, whatever the plugins say. A gang that lost a part was admitted before, and holds what is
/// left of it: it is not asked for its minimum a second time.
fn admit(ssn: &Session<'_>, job: JobId) -> Result<(), AdmissionReason> {
    let queue = ssn.m.job(job).queue;
    if !ssn.m.queue(queue).is_open() {
        return Err(AdmissionReason::QueueNotOpen(queue));
    }
    if is_broken(ssn, job) {
        return Ok(());
    }
    ssn.plugins.job_enqueueable(ssn.m, job)
}

/// Tells the PodGroup why, once, not in every cycle.
fn refuse(ssn: &mut Session<'_>, job: JobId, reason: AdmissionReason) {
    let message = reason.text(ssn.m);
    if ssn.m.set_refusal(job, &message) {
        ssn.effects.push(Effect::GroupEvent {
            job,
            warning: false,
            reason: reasons::UNSCHEDULABLE,
            message,
        });
    }
    ssn.report(job).admission = Some(reason);
}
