//! priority: larger priorities first, and only smaller ones are preempted.
//!
//! A job has the priority of its PodGroup's class; a task that of its pod. The first decides between jobs, the
//! second inside one job.

use crate::config::PluginConf;
use crate::ids::{JobId, TaskId};
use crate::model::Model;
use crate::plugin::{EvictionKind, Plugin, Point};
use std::cmp::Ordering;

struct Priority;

/// Builds the plugin.
pub fn build(_conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Priority)
}

/// The job of a task, if it takes part in the cycle.
fn job_of(m: &Model, task: TaskId) -> Option<JobId> {
    m.task(task).job.filter(|&job| m.in_session(job))
}

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn points(&self) -> &'static [Point] {
        &[
            Point::TaskOrder,
            Point::JobOrder,
            Point::SubJobOrder,
            Point::Preemptable,
            Point::UnifiedEvictable,
            Point::JobStarving,
        ]
    }

    fn task_order(&self, m: &Model, a: TaskId, b: TaskId) -> Ordering {
        m.task(b).priority.cmp(&m.task(a).priority)
    }

    fn job_order(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        m.job(b).priority.cmp(&m.job(a).priority)
    }

    fn sub_job_order(&self, m: &Model, job: JobId, a: u32, b: u32) -> Ordering {
        let priority = |at: u32| m.job(job).sub_jobs.get(at as usize).map_or(0, |s| s.priority);
        priority(b).cmp(&priority(a))
    }

    fn preemptable(&self, m: &Model, preemptor: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        let Some(mine) = job_of(m, preemptor) else {
            return Some(Vec::new());
        };
        let is_lower = |&victim: &TaskId| match job_of(m, victim) {
            Some(theirs) if theirs == mine => m.task(victim).priority < m.task(preemptor).priority,
            Some(theirs) => m.job(theirs).priority < m.job(mine).priority,
            None => false,
        };
        Some(candidates.iter().copied().filter(is_lower).collect())
    }

    fn unified_evictable(
        &self,
        m: &Model,
        kind: EvictionKind,
        evictor: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        if kind == EvictionKind::Reclaim {
            return Some(candidates.to_vec());
        }
        let is_lower = |&victim: &TaskId| {
            job_of(m, victim).is_some_and(|theirs| m.job(theirs).priority < m.job(evictor).priority)
        };
        Some(candidates.iter().copied().filter(is_lower).collect())
    }

    /// An elastic job that lacks any of its tasks is starving; `gang` in the same tier narrows that to its minimum.
    fn job_starving(&self, m: &Model, job: JobId) -> bool {
        let counts = &m.job(job).counts;
        counts.ready() + counts.waiting() < counts.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::delta::Delta;
    use crate::model::kind::Kind;
    use crate::model::status::Status;
    use crate::plugins::fixture::{Fixture, conf};
    use serde_json::json;

    /// Jobs `high` (priority 10) and `low` (1), each with a task of priority 5 and one of 2 that run on `n`.
    fn two_jobs() -> (Fixture, [TaskId; 4]) {
        let mut f = Fixture::new();
        f.node("n", json!({"cpu": "64", "memory": "64Gi", "pods": "110"}));
        f.priority_class("high", 10);
        f.priority_class("low", 1);
        let mut tasks = Vec::new();
        for job in ["high", "low"] {
            f.group(job, json!({"spec": {"minMember": 1, "priorityClassName": job}}));
            for priority in [5, 2] {
                let overlay =
                    json!({"spec": {"nodeName": "n", "priority": priority}, "status": {"phase": "Running"}});
                tasks.push(f.pod(&format!("{job}-{priority}"), job, json!({"cpu": "1"}), overlay));
            }
        }
        (f, tasks.try_into().expect("four tasks"))
    }

    fn plugin() -> Box<dyn Plugin> {
        build(&conf("priority", json!({})))
    }

    #[test]
    fn larger_priority_comes_first_and_equal_ones_tie() {
        let (f, [h5, h2, l5, _]) = two_jobs();
        let (p, m) = (plugin(), &f.m);
        assert_eq!(p.job_order(m, f.job_id("high"), f.job_id("low")), Ordering::Less);
        assert_eq!(
            p.job_order(m, f.job_id("low"), f.job_id("high")),
            Ordering::Greater
        );
        assert_eq!(p.job_order(m, f.job_id("low"), f.job_id("low")), Ordering::Equal);
        assert_eq!(p.task_order(m, h5, h2), Ordering::Less);
        assert_eq!(p.task_order(m, h5, l5), Ordering::Equal);
    }

    #[test]
    fn sub_jobs_go_by_their_highest_task_and_negative_counts_as_zero() {
        let mut f = Fixture::new();
        let policy = json!({"name": "g", "subGroupSize": 1, "matchLabelKeys": ["part"]});
        f.group("j", json!({"spec": {"minMember": 1, "subGroupPolicy": [policy]}}));
        for (name, part, priority) in [("a", "0", -5), ("b", "1", 7), ("c", "2", -9)] {
            let overlay = json!({"metadata": {"labels": {"part": part}}, "spec": {"priority": priority}});
            f.pod(name, "j", json!({"cpu": "1"}), overlay);
        }
        let (p, job) = (f.open(plugin(), 0), f.job_id("j"));
        assert_eq!(p.sub_job_order(&f.m, job, 0, 1), Ordering::Greater);
        assert_eq!(p.sub_job_order(&f.m, job, 0, 2), Ordering::Equal);
        assert_eq!(
            p.sub_job_order(&f.m, job, 0, 99),
            Ordering::Equal,
            "no such sub-job"
        );
        f.m.apply(Delta::gone(Kind::Pod, "ns", "b"));
        let p = f.open(p, 0);
        assert_eq!(
            p.sub_job_order(&f.m, job, 0, 1),
            Ordering::Equal,
            "its highest task is gone"
        );
    }

    #[test]
    fn only_smaller_priority_is_preempted() {
        let (mut f, [h5, h2, l5, l2]) = two_jobs();
        let orphan = f.pod("orphan", "", json!({"cpu": "1"}), json!({}));
        let all = [h5, h2, l5, l2, orphan];
        let p = plugin();
        let cases = [
            (
                "a task of the larger job takes all of the smaller one and smaller tasks of its own",
                h5,
                vec![h2, l5, l2],
            ),
            ("its smallest task takes nothing of its own job", h2, vec![l5, l2]),
            (
                "a task of the smaller job takes only smaller tasks of its own",
                l5,
                vec![l2],
            ),
            ("a preemptor without a job takes nothing", orphan, vec![]),
        ];
        for (case, preemptor, expected) in cases {
            assert_eq!(p.preemptable(&f.m, preemptor, &all), Some(expected), "{case}");
        }
    }

    #[test]
    fn whole_gang_eviction_asks_for_a_smaller_job_unless_it_reclaims() {
        let (f, [h5, h2, l5, l2]) = two_jobs();
        let all = [h5, h2, l5, l2];
        let (p, high, low) = (plugin(), f.job_id("high"), f.job_id("low"));
        let evictable = |kind, job| p.unified_evictable(&f.m, kind, job, &all);
        assert_eq!(evictable(EvictionKind::Preempt, high), Some(vec![l5, l2]));
        assert_eq!(evictable(EvictionKind::Preempt, low), Some(vec![]));
        assert_eq!(evictable(EvictionKind::Reclaim, low), Some(all.to_vec()));
    }

    #[test]
    fn a_job_starves_until_every_task_has_or_awaits_a_place() {
        let (mut f, _) = two_jobs();
        let waiting = f.pod("more", "low", json!({"cpu": "1"}), json!({}));
        let (p, low) = (plugin(), f.job_id("low"));
        assert!(p.job_starving(&f.m, low));
        assert!(!p.job_starving(&f.m, f.job_id("high")));
        f.set_status(waiting, Status::Pipelined, Some("n"));
        assert!(!p.job_starving(&f.m, low));
    }
}
