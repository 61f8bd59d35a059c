//! Random orders, answers, claims and lease losses. Whatever happens, each bind that is ordered ends once, nothing is
//! written twice at the same time, and in the end nothing is left.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

struct Run {
    desk: Desk,
    random: fastrand::Rng,
    lanes: usize,
    /// Pods that were ordered to be bound and did not end, with their job.
    open: BTreeMap<String, String>,
    /// Claims of those pods.
    claims: BTreeMap<String, Vec<ClaimRef>>,
    bound_claims: BTreeSet<String>,
    paused: BTreeMap<String, Pause>,
    pods: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let lanes = random.usize(1..20);
        let settings = Settings {
            lanes,
            event_qps: 20.0,
            bind_timeout: secs(60),
            ..Settings::default()
        };
        Run {
            desk: Desk::with(settings),
            random,
            lanes,
            open: BTreeMap::new(),
            claims: BTreeMap::new(),
            bound_claims: BTreeSet::new(),
            paused: BTreeMap::new(),
            pods: 0,
        }
    }

    fn step(&mut self) {
        match self.random.u8(0..21) {
            20 => self.lose_something(),
            0..4 => self.order_gang(None),
            4 => self.order_something(),
            5..8 => self.decide(),
            8..10 => self.say_of_a_claim(),
            10 if self.random.u8(0..10) == 0 => {
                let open = self.random.bool();
                self.desk.queue.set_open(open, self.desk.now);
            }
            10 => self.desk.queue.set_open(true, self.desk.now),
            11 => self.desk.pass(ms(self.random.u64(0..20_000))),
            12 => self.desk.pass(ms(self.random.u64(0..300))),
            _ => self.answer(),
        }
        self.look();
    }

    fn order_gang(&mut self, job: Option<String>) {
        let job = job.unwrap_or_else(|| format!("j{}", self.random.u8(0..8)));
        let mut binds = Vec::new();
        for _ in 0..self.random.usize(1..5) {
            self.pods += 1;
            let again = self.random.u8(0..3) == 0;
            let at = if again {
                self.random.usize(0..self.pods)
            } else {
                self.pods
            };
            let name = format!("p{at}");
            if self.open.contains_key(&name) {
                continue;
            }
            let volumes = self.some_claims(&name);
            self.open.insert(name.clone(), job.clone());
            binds.push(PodBind {
                volumes,
                ..bind(&name, "n")
            });
        }
        let ends = self.paused.remove(&job);
        self.desk.order(Order::Bind(GangBind {
            job: job.as_str().into(),
            binds,
            ends,
        }));
    }

    fn some_claims(&mut self, pod: &str) -> Vec<VolumeStep> {
        let count = if self.random.u8(0..5) == 0 {
            self.random.usize(1..4)
        } else {
            0
        };
        let mut claims = Vec::new();
        let steps = (0..count).map(|at| {
            let name = format!("{pod}-{at}");
            let claim = ClaimRef {
                namespace: "ns".into(),
                name: name.as_str().into(),
                uid: name.as_str().into(),
            };
            self.bound_claims.remove(&name);
            claims.push(claim.clone());
            let volume = (at == 1).then(|| "v".into());
            VolumeStep { claim, volume }
        });
        let steps = steps.collect();
        self.claims.insert(pod.to_owned(), claims);
        steps
    }

    fn order_something(&mut self) {
        let name = format!("x{}", self.random.u8(0..5));
        let order = match self.random.u8(0..5) {
            0 => group(&name, 1, json!({"running": self.random.u8(0..3)})),
            1 => condition(&name, "Unschedulable", "full"),
            2 => queue_status(&name, json!({"cpu": self.random.u8(..).to_string()})),
            3 => evict(&name),
            _ => event(&name, self.random.bool(), "happened"),
        };
        self.desk.order(order);
    }

    fn decide(&mut self) {
        let Some((job, pause)) = self.paused.pop_first() else {
            return;
        };
        match self.random.u8(0..3) {
            0 => {
                self.paused.insert(job.clone(), pause);
                self.order_gang(Some(job));
            }
            1 => self.desk.order(Order::Resume(job.as_str().into(), pause)),
            _ => self.desk.order(Order::Release(job.as_str().into(), pause)),
        }
    }

    fn lose_something(&mut self) {
        let order = match self.random.u8(0..10) {
            0 => Order::NodeGone("n".into()),
            _ => Order::PodGone(format!("uid-p{}", self.random.usize(0..=self.pods)).into()),
        };
        self.desk.order(order);
    }

    fn say_of_a_claim(&mut self) {
        let claims: Vec<ClaimRef> = self.claims.values().flatten().cloned().collect();
        let Some(claim) = self.random.choice(claims) else {
            return;
        };
        let waits = |node: Option<&str>| ClaimState::Waiting {
            selected_node: node.map(Into::into),
        };
        let state = match self.random.u8(0..6) {
            0..3 => {
                self.bound_claims.insert(claim.name.to_string());
                ClaimState::Bound
            }
            3 => waits(Some("n")),
            4 => waits(None),
            _ => ClaimState::Gone,
        };
        self.desk.order(Order::Claim(claim, state));
    }

    fn answer(&mut self) {
        if self.desk.flying.is_empty() {
            return;
        }
        let at = self.random.usize(0..self.desk.flying.len());
        let (_, ticket) = self.desk.flying.remove(at);
        let answer = match self.random.u8(0..12) {
            0 => later(),
            1 => refused(),
            2 => forbidden(),
            3 => Answer::Gone,
            4 => Answer::Taken {
                why: "taken".to_owned(),
            },
            5 => Answer::Fenced,
            _ => Answer::DONE,
        };
        self.desk.queue.answered(ticket, answer, self.desk.now);
    }

    /// Sends what there is to send and checks what must always hold.
    fn look(&mut self) {
        for sent in self.desk.sent() {
            let Some(pod) = sent.strip_prefix("bind ") else {
                continue;
            };
            let pod = pod.trim_end_matches(" n");
            assert!(
                self.open.contains_key(pod),
                "{pod} is bound though nobody wants it"
            );
            let claims = self.claims.get(pod).into_iter().flatten();
            for claim in claims {
                assert!(
                    self.bound_claims.contains(&*claim.name),
                    "{pod} is bound before {}",
                    claim.name
                );
            }
        }
        let flying = &self.desk.flying;
        assert!(flying.len() <= self.lanes);
        for (at, (text, ticket)) in flying.iter().enumerate() {
            let twice = flying[..at].iter().any(|(_, other)| other == ticket);
            assert!(!twice, "{text} is under way twice");
        }
        for outcome in self.desk.queue.take_outcomes() {
            match outcome {
                Outcome::Bound(pod) => {
                    let open = self.open.remove(&*pod.name);
                    assert!(open.is_some(), "{} ended twice", pod.name);
                    self.claims.remove(&*pod.name);
                }
                Outcome::BindFailed { pod, job, paused } => {
                    assert_eq!(self.open.remove(&*pod.name).as_deref(), Some(&*job));
                    self.claims.remove(&*pod.name);
                    if let Some(pause) = paused {
                        self.paused.insert(job.to_string(), pause);
                    }
                }
                Outcome::EvictFailed(_) | Outcome::GroupWritten { .. } => {}
            }
        }
    }

    /// From now on everything works: all that is left ends, by itself or in time.
    fn finish(&mut self) {
        self.desk.queue.set_open(true, self.desk.now);
        for _ in 0..1000 {
            for claim in self.claims.values().flatten().cloned().collect::<Vec<_>>() {
                self.bound_claims.insert(claim.name.to_string());
                self.desk.order(Order::Claim(claim, ClaimState::Bound));
            }
            self.decide();
            self.look();
            self.desk.all_done();
            self.look();
            if self.desk.queue.is_empty() {
                break;
            }
            if self.desk.flying.is_empty() {
                self.desk.now = self.desk.queue.due(self.desk.now).unwrap_or(self.desk.now);
            }
        }
        assert!(self.open.is_empty(), "never ended: {:?}", self.open);
        assert!(
            self.desk.queue.is_empty(),
            "left: {:?}",
            self.desk.queue.waiting()
        );
    }
}

#[test]
fn every_bind_ends_once_whatever_happens() {
    let seeds = match std::env::var("VOLCANO_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => seed..seed + 1,
        None => 0..100,
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            for _ in 0..600 {
                run.step();
            }
            run.finish();
        });
        assert!(
            run.is_ok(),
            "again with: VOLCANO_TEST_SEED={seed} cargo test -p volcano-runtime every_bind_ends_once"
        );
    }
}
