//! overcommit: bounds how much work is admitted beyond what the cluster has free.
//!
//! A job is admitted while its minimum, and what admitted jobs have yet to take of theirs, fit into
//! `total × overcommit-factor − used`. Without a bound, every job's pods would be made and judged in each cycle.
//! What a queue deserves is not refused: in a full cluster others hold it, and `reclaim` gets it back, but only for
//! jobs that were admitted.

use crate::config::PluginConf;
use crate::explain::{AdmissionReason, Shortfall};
use crate::ids::{JobId, QueueId};
use crate::model::Model;
use crate::plugin::{Plugin, Point, Vote};
use crate::resource::Resource;
use std::collections::BTreeMap;

const FACTOR: &str = "overcommit-factor";
const DEFAULT_FACTOR: f64 = 1.2;

struct Overcommit {
    factor: f64,
    /// What may still be claimed; below zero when more is in use than the factor allows.
    idle: Resource,
    /// What admitted jobs have yet to take.
    inqueue: Resource,
    /// The part of it that was admitted in this cycle, by queue.
    admitted: BTreeMap<QueueId, Resource>,
}

/// Builds the plugin. A factor below 1 would lock out work that fits, so it counts as not given.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    let factor = conf.arguments.float(FACTOR, DEFAULT_FACTOR);
    let factor = if factor >= 1.0 { factor } else { DEFAULT_FACTOR };
    Box::new(Overcommit {
        factor,
        idle: Resource::default(),
        inqueue: Resource::default(),
        admitted: BTreeMap::new(),
    })
}

impl Overcommit {
    /// The queue stays within what it deserves (`spec.deserved`) in all that the job asks for.
    fn is_deserved(&self, m: &Model, queue: QueueId, wanted: &Resource) -> bool {
        let admitted = self.admitted.get(&queue);
        let queue = m.queue(queue);
        wanted.names().all(|dim| {
            let now = admitted.map_or(0, |sum| sum.get(dim));
            let parts = [queue.charged.get(dim), queue.inqueue.get(dim), now];
            let claimed = parts.into_iter().fold(wanted.get(dim), i64::saturating_add);
            claimed <= queue.deserved.get(dim)
        })
    }
}

impl Plugin for Overcommit {
    fn name(&self) -> &'static str {
        "overcommit"
    }

    fn points(&self) -> &'static [Point] {
        &[Point::JobEnqueueable, Point::JobEnqueued]
    }

    fn open(&mut self, m: &Model, _now: i64) {
        self.idle = m.nodes.total().times(self.factor).minus(m.nodes.total_used());
        self.inqueue = Resource::default();
        self.admitted.clear();
        for queue in m.queue_ids() {
            self.inqueue.add(&m.queue(queue).inqueue);
        }
    }

    fn job_enqueueable(&self, m: &Model, job: JobId) -> (Vote, Option<AdmissionReason>) {
        let wanted = m.job(job).unallocated_minimum();
        let claimed = self.inqueue.plus(&wanted);
        let short = claimed.exceeding(&self.idle, &wanted);
        if short.is_empty() || self.is_deserved(m, m.job(job).queue, &wanted) {
            return (Vote::Permit, None);
        }
        let shortfall = |dim| Shortfall {
            dim,
            needed: claimed.get(dim),
            limit: self.idle.get(dim),
        };
        (
            Vote::Reject,
            Some(AdmissionReason::Overcommitted(
                short.into_iter().map(shortfall).collect(),
            )),
        )
    }

    fn job_enqueued(&mut self, m: &Model, job: JobId) {
        let job = m.job(job);
        let wanted = job.without_gated(&job.unallocated_minimum());
        self.inqueue.add(&wanted);
        self.admitted.entry(job.queue).or_default().add(&wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::fixture::{Fixture, conf};
    use crate::resource::{CPU, MEMORY};
    use serde_json::{Value, json};

    /// 100 cpu in one node.
    fn cluster() -> Fixture {
        let mut f = Fixture::new();
        f.node("n", json!({"cpu": "100", "memory": "100Gi", "pods": "110"}));
        f
    }

    fn group(f: &mut Fixture, name: &str, phase: &str, minimum: Value) -> JobId {
        f.group(
            name,
            json!({"spec": {"minMember": 1, "minResources": minimum}, "status": {"phase": phase}}),
        );
        f.job_id(name)
    }

    fn vote(f: &mut Fixture, arguments: Value, job: JobId) -> Vote {
        f.open(build(&conf("overcommit", arguments)), 0)
            .job_enqueueable(&f.m, job)
            .0
    }

    #[test]
    fn admits_what_fits_into_the_overcommitted_rest() {
        // total 100, factor 1.2, used 100, inqueue 10: 10 more fit, 11 do not.
        for (wanted, expected) in [("10", Vote::Permit), ("11", Vote::Reject)] {
            let mut f = cluster();
            f.running("busy", "", "n", json!({"cpu": "100"}));
            group(&mut f, "admitted", "Inqueue", json!({"cpu": "10"}));
            let job = group(&mut f, "new", "Pending", json!({"cpu": wanted}));
            assert_eq!(vote(&mut f, json!({}), job), expected, "{wanted}");
        }
    }

    #[test]
    fn the_factor_is_read_and_one_below_one_is_not() {
        let cases = [
            (json!({"overcommit-factor": 2.0}), "200", Vote::Permit),
            (json!({"overcommit-factor": 2.0}), "201", Vote::Reject),
            (json!({"overcommit-factor": 1}), "100", Vote::Permit),
            (json!({"overcommit-factor": 1}), "101", Vote::Reject),
            (json!({"overcommit-factor": 0.5}), "120", Vote::Permit),
            (json!({"overcommit-factor": 0.5}), "121", Vote::Reject),
        ];
        for (arguments, wanted, expected) in cases {
            let mut f = cluster();
            let job = group(&mut f, "new", "Pending", json!({"cpu": wanted}));
            assert_eq!(
                vote(&mut f, arguments.clone(), job),
                expected,
                "{arguments} {wanted}"
            );
        }
    }

    #[test]
    fn only_wanted_resources_are_compared() {
        let mut f = cluster();
        f.running("busy", "", "n", json!({"memory": "150Gi"}));
        f.group(
            "free",
            json!({"spec": {"minMember": 5}, "status": {"phase": "Pending"}}),
        );
        let free = f.job_id("free");
        assert_eq!(
            vote(&mut f, json!({}), free),
            Vote::Permit,
            "no minimum resources"
        );
        let cpu = group(&mut f, "cpu", "Pending", json!({"cpu": "1"}));
        assert_eq!(
            vote(&mut f, json!({}), cpu),
            Vote::Permit,
            "memory is overused, cpu is not"
        );
        let gpu = group(&mut f, "gpu", "Pending", json!({"nvidia.com/gpu": "1"}));
        assert_eq!(vote(&mut f, json!({}), gpu), Vote::Reject, "no node has it");
    }

    #[test]
    fn a_refusal_says_what_is_short_and_by_how_much() {
        let mut f = cluster();
        let job = group(&mut f, "new", "Pending", json!({"cpu": "121", "memory": "200Gi"}));
        let (_, reason) = f
            .open(build(&conf("overcommit", json!({}))), 0)
            .job_enqueueable(&f.m, job);
        let reason = reason.expect("refused");
        assert_eq!(
            reason.text(&f.m),
            "resource in cluster is overused: overused cpu, overused memory"
        );
        let gib = 1 << 30;
        let short = vec![
            Shortfall {
                dim: CPU,
                needed: 121_000,
                limit: 120_000,
            },
            Shortfall {
                dim: MEMORY,
                needed: 200 * gib,
                limit: 120 * gib,
            },
        ];
        assert_eq!(reason, AdmissionReason::Overcommitted(short));
    }

    #[test]
    fn jobs_admitted_in_this_cycle_count_at_once_without_their_gated_pods() {
        let mut f = cluster();
        let gate = json!({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}});
        let first = group(&mut f, "first", "Pending", json!({"cpu": "100"}));
        f.pod("gated", "first", json!({"cpu": "30"}), gate);
        let second = group(&mut f, "second", "Pending", json!({"cpu": "50"}));
        let third = group(&mut f, "third", "Pending", json!({"cpu": "51"}));
        let mut p = f.open(build(&conf("overcommit", json!({}))), 0);
        assert_eq!(p.job_enqueueable(&f.m, second).0, Vote::Permit);
        p.job_enqueued(&f.m, first);
        assert_eq!(
            p.job_enqueueable(&f.m, second).0,
            Vote::Permit,
            "70 of 120 are claimed"
        );
        assert_eq!(p.job_enqueueable(&f.m, third).0, Vote::Reject);
    }

    #[test]
    fn an_admitted_job_that_runs_already_is_not_counted_twice() {
        let mut f = cluster();
        group(&mut f, "runs", "Inqueue", json!({"cpu": "60"}));
        f.running("pod", "runs", "n", json!({"cpu": "60"}));
        let job = group(&mut f, "new", "Pending", json!({"cpu": "60"}));
        assert_eq!(vote(&mut f, json!({}), job), Vote::Permit);
    }
}
