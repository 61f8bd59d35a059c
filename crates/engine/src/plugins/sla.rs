//! sla: a job that has waited too long is admitted and may hold resources.
//!
//! The limit is the PodGroup's `volcano.sh/sla-waiting-time` (or `sla-waiting-time`) annotation, else the argument
//! of the same name. Its permission only counts when no plugin of its tier or an earlier one rejects: put it in a
//! tier before gang, overcommit, proportion and capacity.

use crate::config::PluginConf;
use crate::explain::AdmissionReason;
use crate::ids::JobId;
use crate::model::Model;
use crate::plugin::{Plugin, Point, Vote};
use std::cmp::Ordering;

const WAITING_TIME: &str = "sla-waiting-time";

struct Sla {
    /// For jobs that do not say; microseconds.
    default_limit: Option<i64>,
    now: i64,
}

/// Builds the plugin.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    let limit = conf
        .arguments
        .duration_nanos(WAITING_TIME)
        .filter(|&nanos| nanos > 0);
    Box::new(Sla {
        default_limit: limit.map(|nanos| nanos / 1000),
        now: 0,
    })
}

impl Sla {
    /// When the job will have waited too long, microseconds since 1970.
    fn deadline(&self, m: &Model, job: JobId) -> Option<i64> {
        let group = m.job(job).group.as_ref()?;
        Some(
            group
                .created
                .saturating_add(group.sla_waiting_micros.or(self.default_limit)?),
        )
    }

    fn vote(&self, m: &Model, job: JobId) -> Vote {
        match self.deadline(m, job) {
            Some(deadline) if self.now >= deadline => Vote::Permit,
            _ => Vote::Abstain,
        }
    }
}

impl Plugin for Sla {
    fn name(&self) -> &'static str {
        "sla"
    }

    fn points(&self) -> &'static [Point] {
        &[Point::JobOrder, Point::JobEnqueueable, Point::JobPipelined]
    }

    fn open(&mut self, _m: &Model, now: i64) {
        self.now = now;
    }

    /// Earlier deadlines first; those without one last.
    fn job_order(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        match (self.deadline(m, a), self.deadline(m, b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }

    fn job_enqueueable(&self, m: &Model, job: JobId) -> (Vote, Option<AdmissionReason>) {
        (self.vote(m, job), None)
    }

    fn job_pipelined(&self, m: &Model, job: JobId) -> Vote {
        self.vote(m, job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SchedulerConf, Tier};
    use crate::dispatch::Plugins;
    use crate::plugins::fixture::{Fixture, conf};
    use serde_json::{Value, json};
    use volcano_api::time::Time;

    const MINUTE: i64 = 60_000_000;
    const CREATED: &str = "2024-01-01T00:00:00Z";

    fn created() -> i64 {
        let time: Time = serde_json::from_value(json!(CREATED)).expect("a time");
        time.unix_micros()
    }

    fn group(f: &mut Fixture, name: &str, annotations: Value) -> JobId {
        f.group(
            name,
            json!({"metadata": {"annotations": annotations, "creationTimestamp": CREATED},
                "spec": {"minMember": 1, "minResources": {"cpu": "8"}}, "status": {"phase": "Pending"}}),
        );
        f.job_id(name)
    }

    #[test]
    fn a_job_past_its_limit_is_permitted_and_others_are_left_to_the_rest() {
        let hour = json!({"sla-waiting-time": "1h"});
        let cases = [
            ("age below the limit", hour.clone(), json!({}), 59, Vote::Abstain),
            ("age at the limit", hour.clone(), json!({}), 60, Vote::Permit),
            ("age past the limit", hour.clone(), json!({}), 61, Vote::Permit),
            ("no limit at all", json!({}), json!({}), 600_000, Vote::Abstain),
            (
                "the job's own limit is shorter",
                hour.clone(),
                json!({"volcano.sh/sla-waiting-time": "10m"}),
                11,
                Vote::Permit,
            ),
            (
                "the job's own limit is longer",
                hour.clone(),
                json!({"volcano.sh/sla-waiting-time": "2h"}),
                61,
                Vote::Abstain,
            ),
            (
                "the short annotation counts",
                json!({}),
                json!({"sla-waiting-time": "1m30s"}),
                2,
                Vote::Permit,
            ),
            (
                "a bad annotation is ignored",
                hour,
                json!({"volcano.sh/sla-waiting-time": "soon"}),
                61,
                Vote::Permit,
            ),
            (
                "a limit below zero is none",
                json!({"sla-waiting-time": "-1h"}),
                json!({}),
                61,
                Vote::Abstain,
            ),
            (
                "an argument that is no duration is none",
                json!({"sla-waiting-time": 3600}),
                json!({}),
                61,
                Vote::Abstain,
            ),
        ];
        for (case, arguments, annotations, minutes, vote) in cases {
            let mut f = Fixture::new();
            let job = group(&mut f, "j", annotations);
            let p = f.open(build(&conf("sla", arguments)), created() + minutes * MINUTE);
            assert_eq!(p.job_pipelined(&f.m, job), vote, "{case}");
            assert_eq!(p.job_enqueueable(&f.m, job), (vote, None), "{case}");
        }
    }

    #[test]
    fn earlier_deadlines_come_first_and_none_last() {
        let mut f = Fixture::new();
        let soon = group(&mut f, "soon", json!({"sla-waiting-time": "1m"}));
        let later = group(&mut f, "later", json!({"sla-waiting-time": "1h"}));
        let never = group(&mut f, "never", json!({}));
        let p = f.open(build(&conf("sla", json!({}))), created());
        assert_eq!(p.job_order(&f.m, soon, later), Ordering::Less);
        assert_eq!(p.job_order(&f.m, never, later), Ordering::Greater);
        assert_eq!(p.job_order(&f.m, later, never), Ordering::Less);
        assert_eq!(p.job_order(&f.m, never, never), Ordering::Equal);
    }

    #[test]
    fn in_a_tier_before_gang_and_overcommit_it_has_the_last_word() {
        let cases: [(&str, &[&[&str]], bool); 2] = [
            ("its own tier first", &[&["sla"], &["gang", "overcommit"]], true),
            (
                "in their tier it is outvoted",
                &[&["sla", "gang", "overcommit"]],
                false,
            ),
        ];
        for (case, tiers, permitted) in cases {
            let entry = |&name: &&str| match name {
                "sla" => conf(name, json!({"sla-waiting-time": "1h"})),
                _ => conf(name, json!({})),
            };
            let tiers = tiers.iter().map(|names| Tier {
                plugins: names.iter().map(entry).collect(),
            });
            let conf = SchedulerConf {
                tiers: tiers.collect(),
                ..SchedulerConf::default()
            };
            let mut f = Fixture::new();
            let job = group(&mut f, "j", json!({}));
            f.m.refresh_changed_jobs();
            let (mut plugins, missing) = Plugins::build(&conf);
            assert_eq!(missing, []);
            plugins.open(&f.m, created() + 61 * MINUTE, &mut |_| {});
            assert_eq!(plugins.job_pipelined(&f.m, job), permitted, "{case}");
            assert_eq!(plugins.job_enqueueable(&f.m, job).is_ok(), permitted, "{case}");
        }
    }
}
