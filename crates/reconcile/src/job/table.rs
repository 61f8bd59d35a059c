//! The state machine: what an action does to a Job, by phase.
//!
//! ```text
//!             ┌──────────── Restarting ◄───────────┐ RestartJob, RestartTask, RestartPod, RestartPartition
//!             ▼                 │                  │
//!  "" ──► Pending ◄──► Running ─┼──────────────────┤
//!             │           │     │ maxRetry         │ ResumeJob
//!             └───────────┤     ▼                  │
//!                         ├─► Completed, Failed    │
//!  AbortJob               ├─► Aborting ──► Aborted ┘
//!  TerminateJob           ├─► Terminating ──► Terminated
//!  CompleteJob            └─► Completing ──► Completed
//! ```

use volcano_api::batch::JobPhase;
use volcano_api::bus::Action;

/// What a Job is about in a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its pods are to be there.
    Active,
    /// Its pods are being deleted; this phase follows when none is left.
    Ending(JobPhase),
    /// It rests, until it is resumed if it was aborted.
    Over,
}

/// What a phase is about. A phase that is not known is taken for Pending.
pub fn stage(phase: &JobPhase) -> Stage {
    match phase {
        JobPhase::Unset
        | JobPhase::Other(_)
        | JobPhase::Pending
        | JobPhase::Running
        | JobPhase::Restarting => Stage::Active,
        JobPhase::Aborting => Stage::Ending(JobPhase::Aborted),
        JobPhase::Terminating => Stage::Ending(JobPhase::Terminated),
        JobPhase::Completing => Stage::Ending(JobPhase::Completed),
        JobPhase::Aborted | JobPhase::Terminated | JobPhase::Completed | JobPhase::Failed => Stage::Over,
    }
}

/// Whether a Job can never run again.
pub fn is_finished(phase: &JobPhase) -> bool {
    stage(phase) == Stage::Over && *phase != JobPhase::Aborted
}

/// Whether a restart counts against `maxRetry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It does not.
    Free,
    /// It does.
    Counted,
    /// Only if a pod of the current attempt is the cause: one of an earlier attempt is part of what the Job restarts
    /// for already.
    CountedIfNew,
}

/// What an action does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing of its own: the Job goes on as its phase asks for.
    GoOn,
    /// Pods are killed, and the Job is in this phase from then on.
    Kill(JobPhase, Retry),
}

/// What an action does in a phase.
pub fn answer(phase: &JobPhase, action: &Action) -> Answer {
    match stage(phase) {
        Stage::Active => active(phase, action),
        Stage::Ending(JobPhase::Aborted) => aborted(action),
        Stage::Over if *phase == JobPhase::Aborted => aborted(action),
        Stage::Ending(_) | Stage::Over => Answer::GoOn,
    }
}

fn active(phase: &JobPhase, action: &Action) -> Answer {
    let retry = if *phase == JobPhase::Restarting {
        Retry::CountedIfNew
    } else {
        Retry::Counted
    };
    match action {
        Action::RestartJob | Action::RestartTask | Action::RestartPod | Action::RestartPartition => {
            Answer::Kill(JobPhase::Restarting, retry)
        }
        Action::AbortJob => Answer::Kill(JobPhase::Aborting, Retry::Free),
        Action::TerminateJob => Answer::Kill(JobPhase::Terminating, Retry::Free),
        Action::CompleteJob => Answer::Kill(JobPhase::Completing, Retry::Free),
        _ => Answer::GoOn,
    }
}

fn aborted(action: &Action) -> Answer {
    match action {
        Action::ResumeJob => Answer::Kill(JobPhase::Restarting, Retry::Counted),
        _ => Answer::GoOn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every phase and action, one row each. `.` goes on, `r` restarts at the cost of a retry, `n` at that cost only for
    /// a new failure, `a`, `t` and `c` abort, terminate and complete.
    #[test]
    fn every_phase_answers_every_action() {
        let actions = [
            "RestartJob",
            "RestartTask",
            "RestartPod",
            "RestartPartition",
            "AbortJob",
            "TerminateJob",
            "CompleteJob",
            "ResumeJob",
            "SyncJob",
            "EnqueueJob",
            "Somersault",
        ];
        let table = [
            ("", "rrrratc...."),
            ("Pending", "rrrratc...."),
            ("Lost", "rrrratc...."),
            ("Running", "rrrratc...."),
            ("Restarting", "nnnnatc...."),
            ("Aborting", ".......r..."),
            ("Aborted", ".......r..."),
            ("Terminating", "..........."),
            ("Terminated", "..........."),
            ("Completing", "..........."),
            ("Completed", "..........."),
            ("Failed", "..........."),
        ];
        for (phase, row) in table {
            for (action, expected) in actions.iter().zip(row.chars()) {
                let shown = match answer(&JobPhase::from(phase), &Action::from(*action)) {
                    Answer::GoOn => '.',
                    Answer::Kill(JobPhase::Restarting, Retry::Counted) => 'r',
                    Answer::Kill(JobPhase::Restarting, Retry::CountedIfNew) => 'n',
                    Answer::Kill(JobPhase::Aborting, Retry::Free) => 'a',
                    Answer::Kill(JobPhase::Terminating, Retry::Free) => 't',
                    Answer::Kill(JobPhase::Completing, Retry::Free) => 'c',
                    other => panic!("{phase} × {action}: {other:?}"),
                };
                assert_eq!(shown, expected, "{phase} × {action}");
            }
        }
    }

    #[test]
    fn an_aborted_job_rests_without_being_finished() {
        assert!(!is_finished(&JobPhase::Aborted));
        assert!(!is_finished(&JobPhase::Terminating));
        for phase in [JobPhase::Completed, JobPhase::Failed, JobPhase::Terminated] {
            assert!(is_finished(&phase), "{phase}");
        }
    }
}
