//! What was done to a Job last, as `status.state.reason` keeps it.
//!
//! A kill is written down before the first pod is deleted, in the same write as the phase and the counters, so that
//! whoever comes after a crash knows which pods were meant: `RestartTask/worker` says that the pods of the task
//! `worker` of an earlier attempt are to go. It also tells users why a Job restarts.

use std::fmt;

use volcano_api::bus::Action;

/// What was done to a Job last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// Nothing, or nothing that is known.
    #[default]
    None,
    /// An action on the whole Job.
    Whole(Action),
    /// `RestartTask` of this task.
    Task(String),
    /// `RestartPod` of the pod of this name.
    Pod(String),
    /// `RestartPartition` of a partition of a task.
    Partition {
        /// The task.
        task: String,
        /// The partition's id, as the label has it.
        id: String,
    },
}

impl Cause {
    /// What an action on a pod, or on what the pod is part of, is written down as; nothing when the action needs a
    /// pod and there is none, or the pod has no partition.
    pub fn of(
        action: &Action,
        task: Option<&str>,
        pod: Option<&str>,
        partition: Option<&str>,
    ) -> Option<Cause> {
        Some(match action {
            Action::RestartTask => Cause::Task(task?.to_owned()),
            Action::RestartPod => Cause::Pod(pod?.to_owned()),
            Action::RestartPartition => Cause::Partition {
                task: task?.to_owned(),
                id: partition?.to_owned(),
            },
            whole => Cause::Whole(whole.clone()),
        })
    }

    /// Reads it; what nobody here wrote is no cause.
    pub fn read(reason: &str) -> Cause {
        let (action, target) = reason.split_once('/').unwrap_or((reason, ""));
        match (Action::from(action), target) {
            (Action::RestartTask, task) if !task.is_empty() => Cause::Task(task.to_owned()),
            (Action::RestartPod, pod) if !pod.is_empty() => Cause::Pod(pod.to_owned()),
            (Action::RestartPartition, target) => match target.split_once('/') {
                Some((task, id)) => Cause::Partition {
                    task: task.to_owned(),
                    id: id.to_owned(),
                },
                None => Cause::None,
            },
            (
                action @ (Action::RestartJob
                | Action::AbortJob
                | Action::TerminateJob
                | Action::CompleteJob
                | Action::ResumeJob),
                "",
            ) => Cause::Whole(action),
            _ => Cause::None,
        }
    }

    /// Whether it was done to a part of the Job.
    pub fn is_targeted(&self) -> bool {
        matches!(self, Cause::Task(_) | Cause::Pod(_) | Cause::Partition { .. })
    }

    /// Whether a pod is in the part of the Job that it was done to.
    pub fn covers(&self, task: &str, pod: &str, partition: Option<&str>) -> bool {
        match self {
            Cause::None | Cause::Whole(_) => false,
            Cause::Task(name) => name == task,
            Cause::Pod(name) => name == pod,
            Cause::Partition { task: name, id } => name == task && partition == Some(id),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::None => Ok(()),
            Cause::Whole(action) => write!(f, "{action}"),
            Cause::Task(task) => write!(f, "{}/{task}", Action::RestartTask),
            Cause::Pod(pod) => write!(f, "{}/{pod}", Action::RestartPod),
            Cause::Partition { task, id } => write!(f, "{}/{task}/{id}", Action::RestartPartition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let partition = Cause::Partition {
            task: "t-1".into(),
            id: "3".into(),
        };
        let causes = [
            (Cause::None, ""),
            (Cause::Whole(Action::RestartJob), "RestartJob"),
            (Cause::Whole(Action::ResumeJob), "ResumeJob"),
            (Cause::Task("t-1".into()), "RestartTask/t-1"),
            (Cause::Pod("j-t-0".into()), "RestartPod/j-t-0"),
            (partition, "RestartPartition/t-1/3"),
        ];
        for (cause, text) in causes {
            assert_eq!(cause.to_string(), text);
            assert_eq!(Cause::read(text), cause, "{text}");
        }
    }

    #[test]
    fn what_others_wrote_is_no_cause() {
        for text in [
            "Because",
            "RestartTask",
            "RestartPartition/t",
            "SyncJob",
            "RestartJob/x",
        ] {
            assert_eq!(Cause::read(text), Cause::None, "{text}");
        }
    }

    #[test]
    fn an_action_on_a_part_needs_the_part() {
        let of = |action| Cause::of(&action, None, None, None);
        assert_eq!(of(Action::RestartTask), None);
        assert_eq!(of(Action::RestartPod), None);
        assert_eq!(of(Action::RestartPartition), None);
        assert_eq!(of(Action::AbortJob), Some(Cause::Whole(Action::AbortJob)));
        let unpartitioned = Cause::of(&Action::RestartPartition, Some("t"), Some("p"), None);
        assert_eq!(unpartitioned, None);
    }
}
