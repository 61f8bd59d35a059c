//! A seeded simulation: Jobs whose controller dies at any moment, whose writes fail, and whose pods come and go.
//!
//! Whoever takes over sees the Job, or its pods, as they were some time ago, until its watches have caught up.
//!
//! Each script says how its Job has to end. The same seed gives the same run; a run that ends otherwise prints the
//! command that repeats it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use volcano_api::names::kinds;
use volcano_api::time::GoDuration;
use volcano_reconcile::job::{Footing, Known, Memory, Reading};
use volcano_reconcile::write::{Plan, Write};

use crate::world::{World, job, task, with};

/// Runs of each script, unless the variable says otherwise.
const RUNS: u64 = 15;
/// The variable with the number of runs.
const MORE_RUNS: &str = "VOLCANO_JOB_RUNS";
/// Steps of a run at the most; a Job that has not ended by then never will.
const MOST_STEPS: usize = 20_000;
/// Steps that a watch lags behind at the most, after a crash.
const MOST_LAG: usize = 40;
/// The variable with the seed of one run.
const SEED: &str = "VOLCANO_JOB_SEED";

/// Numbers that look drawn (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Whether a chance of one in `odds` comes up.
    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }
}

/// How a pod ends: by name and the attempt that it was made for. Nothing means that it runs on.
type Ends = fn(&str, i64) -> Option<i32>;

/// Phase, retries, version, and pods that succeeded.
type End = (&'static str, i64, i64, i64);

/// A Job, what happens to it, and how it has to end.
struct Script {
    name: &'static str,
    job: Value,
    ends: Ends,
    /// What users do once, each when the Job is in the phase.
    users: &'static [(&'static str, User)],
    end: End,
}

#[derive(Clone, Copy)]
enum User {
    Commands(&'static str),
    Evicts(&'static str),
    Scales(i64),
}

fn ok(_: &str, _: i64) -> Option<i32> {
    Some(0)
}

fn fails_at_first(pod: &str, attempt: i64) -> Option<i32> {
    Some(i32::from(pod == "j-a-0" && attempt < 2))
}

fn always_fails(pod: &str, _: i64) -> Option<i32> {
    Some(i32::from(pod == "j-a-0"))
}

fn fails_first(pod: &str, _: i64) -> Option<i32> {
    (pod == "j-a-0").then_some(3)
}

fn a_ends(pod: &str, _: i64) -> Option<i32> {
    pod.starts_with("j-a-").then_some(0)
}

fn runs_first(_: &str, attempt: i64) -> Option<i32> {
    (attempt > 0).then_some(0)
}

fn a_runs_first(pod: &str, attempt: i64) -> Option<i32> {
    (pod.starts_with("j-b-") || attempt > 0).then_some(0)
}

fn last_ones_end(pod: &str, _: i64) -> Option<i32> {
    (pod.ends_with("-4") || pod == "j-b-0").then_some(0)
}

fn spec(fields: Value) -> Value {
    with(
        job(json!({"minAvailable": 5, "tasks": [task("a", 3), task("b", 2)]})),
        json!({"spec": fields}),
    )
}

fn on(event: &str, action: &str) -> Value {
    json!({"policies": [{"event": event, "action": action}]})
}

fn script(name: &'static str, job: Value, ends: Ends, end: End) -> Script {
    let users = &[];
    Script {
        name,
        job,
        ends,
        users,
        end,
    }
}

/// Scripts in which nobody but the pods and the controller does anything.
fn scripts_of_pods() -> Vec<Script> {
    let later = json!({"policies": [{"event": "PodFailed", "action": "RestartJob", "timeout": "20s"}]});
    let by_code = json!({"policies": [{"exitCode": 3, "action": "TerminateJob"}]});
    let chain = with(task("b", 2), json!({"dependsOn": {"name": ["a"]}}));
    let policy = json!({"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}});
    let partitions = json!({"spec": {"minAvailable": 4, "tasks": [with(task("a", 4), policy)]}});
    let partitioned = with(spec(on("PodFailed", "RestartPartition")), partitions);
    let failing = |action| spec(on("PodFailed", action));
    let done = |action| spec(on("TaskCompleted", action));
    vec![
        script("a plain job", spec(json!({})), ok, ("Completed", 0, 1, 5)),
        script("no policy", spec(json!({})), always_fails, ("Failed", 0, 1, 4)),
        script(
            "restarts",
            failing("RestartJob"),
            fails_at_first,
            ("Completed", 2, 3, 5),
        ),
        script(
            "restarts in vain",
            failing("RestartJob"),
            fails_first,
            ("Failed", 3, 4, 0),
        ),
        script(
            "restarts after a while",
            spec(later),
            fails_at_first,
            ("Completed", 2, 3, 5),
        ),
        script(
            "restarts of a task",
            failing("RestartTask"),
            fails_at_first,
            ("Completed", 2, 1, 5),
        ),
        script(
            "restarts of a pod",
            failing("RestartPod"),
            fails_at_first,
            ("Completed", 2, 1, 5),
        ),
        script(
            "restarts of a partition",
            partitioned,
            fails_at_first,
            ("Completed", 2, 1, 4),
        ),
        script(
            "an abort by policy",
            failing("AbortJob"),
            fails_first,
            ("Aborted", 0, 1, 0),
        ),
        script(
            "a termination by exit code",
            spec(by_code),
            fails_first,
            ("Terminated", 0, 1, 0),
        ),
        script(
            "completion by a task",
            done("CompleteJob"),
            a_ends,
            ("Completed", 0, 1, 3),
        ),
        script(
            "minimum success",
            spec(json!({"minSuccess": 3})),
            a_ends,
            ("Completed", 0, 1, 3),
        ),
        script(
            "a chain",
            spec(json!({"tasks": [task("a", 3), chain]})),
            ok,
            ("Completed", 0, 1, 5),
        ),
    ]
}

/// Scripts in which users do something.
fn scripts_of_users() -> Vec<Script> {
    let suspend = &[
        ("Running", User::Commands("AbortJob")),
        ("Aborted", User::Commands("ResumeJob")),
    ];
    let restart = &[("Running", User::Commands("RestartJob"))];
    let evict = &[("Running", User::Evicts("j-a-1"))];
    let scale = &[("Running", User::Scales(5))];
    let down_and_up = &[("Running", User::Scales(2)), ("Running", User::Scales(3))];
    let scaled = spec(json!({"minSuccess": 2, "minAvailable": 4}));
    let rescaled = with(
        spec(on("PodEvicted", "RestartJob")),
        json!({"spec": {"minAvailable": 4}}),
    );
    let evicted = |action| spec(on("PodEvicted", action));
    let by = |users, script: Script| Script { users, ..script };
    vec![
        by(
            suspend,
            script(
                "suspend and resume",
                spec(json!({})),
                runs_first,
                ("Completed", 1, 3, 5),
            ),
        ),
        by(
            restart,
            script(
                "a restart by command",
                spec(json!({})),
                runs_first,
                ("Completed", 1, 2, 5),
            ),
        ),
        by(
            evict,
            script(
                "an eviction",
                evicted("RestartJob"),
                runs_first,
                ("Completed", 1, 2, 5),
            ),
        ),
        by(
            evict,
            script(
                "an eviction, task",
                evicted("RestartTask"),
                a_runs_first,
                ("Completed", 1, 1, 5),
            ),
        ),
        by(
            scale,
            script("scaled up", scaled, last_ones_end, ("Completed", 0, 1, 2)),
        ),
        by(
            down_and_up,
            script("scaled down and up", rescaled, ok, ("Completed", 0, 1, 5)),
        ),
    ]
}

/// One run.
struct Run {
    world: World,
    dice: Dice,
    ends: Ends,
    users: Vec<(&'static str, User)>,
    /// Writes that are on their way: those of the step that is under way, then the other steps.
    under_way: Vec<Vec<Write>>,
    /// What may be relied on since the last crash.
    footing: Footing,
    /// The last steps, oldest first.
    past: VecDeque<Moment>,
    /// What the watches of the Job and of pods still show, if they lag.
    lag: Lag,
    quiet_looks: usize,
    evicted: usize,
    /// Whether pods were scaled away, and may be wanted again.
    has_rescaled: bool,
    /// Whether pods fail at any time, and users evict and command at random.
    is_wild: bool,
}

/// A Job and its pods as they were, and the newest version then.
#[derive(Clone)]
struct Moment {
    job: Value,
    pods: BTreeMap<String, Value>,
    version: u64,
}

#[derive(Clone, Default)]
struct Lag {
    job: Option<Moment>,
    pods: Option<Moment>,
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

impl Run {
    fn new(script: &Script, seed: u64) -> Self {
        Run {
            world: World::new(script.job.clone()),
            dice: Dice(seed),
            ends: script.ends,
            users: script.users.to_vec(),
            under_way: Vec::new(),
            footing: Footing::default(),
            past: VecDeque::new(),
            lag: Lag::default(),
            quiet_looks: 0,
            evicted: 0,
            has_rescaled: false,
            is_wild: false,
        }
    }

    /// Runs until nothing changes any more.
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..MOST_STEPS {
            self.past.push_back(self.moment());
            if self.past.len() > MOST_LAG {
                self.past.pop_front();
            }
            if self.dice.one_in(20) {
                self.lag = Lag::default();
            }
            match self.dice.below(10) {
                0 => {
                    self.others();
                }
                1 => {
                    let names: Vec<_> = self.world.pods.keys().cloned().collect();
                    if let Some(name) = names.get(self.dice.below(names.len())) {
                        self.node(name);
                    }
                }
                2 if self.dice.one_in(6) => self.crash(),
                _ => self.controller(),
            }
            if self.quiet_looks > 5 && !self.stir() {
                return Ok(());
            }
        }
        Err(format!("still not quiet: {:?}", self.world.phases))
    }

    /// Lets everybody do what they still can; says whether anybody could.
    fn stir(&mut self) -> bool {
        self.quiet_looks = 0;
        let lag = std::mem::take(&mut self.lag);
        if lag.job.is_some() || lag.pods.is_some() {
            return true;
        }
        if let Some(at) = self.world.again_at.take() {
            self.world.now = self.world.now.max(at);
            return true;
        }
        let names: Vec<_> = self.world.pods.keys().cloned().collect();
        let have_moved = names.iter().filter(|name| self.node(name)).count();
        self.others() || have_moved > 0
    }

    fn crash(&mut self) {
        self.world.memory = Memory::default();
        self.footing = Footing::default();
        self.under_way.clear();
        let earlier = self.past.get(self.dice.below(self.past.len())).cloned();
        self.lag = match self.dice.below(3) {
            // A watch tells of everything in its order: no pod is made again before the mark on the one before is told.
            _ if self.has_rescaled => Lag::default(),
            0 => Lag {
                job: earlier,
                pods: None,
            },
            1 => Lag {
                job: None,
                pods: earlier,
            },
            _ => Lag::default(),
        };
    }

    fn moment(&self) -> Moment {
        Moment {
            job: self.world.job.clone(),
            pods: self.world.pods.clone(),
            version: u64::try_from(self.world.version()).unwrap_or(0),
        }
    }

    /// What the controller decides on what it sees; none while it has to know more. The API server is asked for that.
    fn look(&mut self) -> Option<Plan> {
        let now = self.moment();
        let job = self.lag.job.as_ref().unwrap_or(&now).job.clone();
        let pods = self.lag.pods.clone().unwrap_or_else(|| now.clone());
        let known = Known {
            job: version(&job),
            pods: pods.version,
        };
        if self.footing.is_behind(known) {
            return None;
        }
        let plan = self.world.look_at(&job, &pods.pods);
        let job = serde_json::from_value(job).expect("a job");
        let Some(ask) = self.footing.asks(&job, &plan, &self.world.memory) else {
            return Some(plan);
        };
        self.world.memory = Memory::default();
        self.footing.read(Reading {
            job: version(&now.job),
            pods: ask
                .pods
                .then(|| now.pods.values().map(version).max().unwrap_or(0)),
        });
        None
    }

    /// The controller decides, or carries out one write of what it decided, in any order within a step.
    fn controller(&mut self) {
        self.under_way.retain(|step| !step.is_empty());
        let Some(step) = self.under_way.first_mut() else {
            let Some(plan) = self.look() else {
                self.quiet_looks = 0;
                return;
            };
            self.under_way = plan.steps;
            self.quiet_looks = if self.under_way.is_empty() {
                self.quiet_looks + 1
            } else {
                0
            };
            return;
        };
        let write = step.swap_remove(self.dice.below(step.len()));
        let is_lost = self.dice.one_in(15);
        let is_unanswered = self.dice.one_in(15);
        if is_lost || self.world.apply(&write).is_err() || is_unanswered {
            self.under_way.clear();
            return;
        }
        // What was answered is seen.
        match &write {
            Write::Patch { status: true, .. } => {
                self.footing.answered();
                self.lag.job = None;
            }
            Write::Create { target, .. } | Write::Delete { target, .. } if target.kind == kinds::POD => {
                self.lag.pods = None;
            }
            _ => {}
        }
    }

    /// The scheduler admits, and users do what the script says. Says whether anybody did anything.
    fn others(&mut self) -> bool {
        self.world.now = self.world.now.saturating_add(GoDuration::from_millis(700));
        self.schedule() | self.use_it() | self.go_wild()
    }

    fn schedule(&mut self) -> bool {
        let phase = self
            .world
            .group
            .as_ref()
            .map(|group| group["status"]["phase"].clone());
        match phase {
            Some(Value::Null) => {
                let phase = if self.dice.one_in(2) { "Pending" } else { "Inqueue" };
                self.world.group_phase(phase);
                true
            }
            Some(phase) if phase == "Pending" => {
                self.world.group_phase("Inqueue");
                true
            }
            _ => false,
        }
    }

    /// Somebody evicts a pod or gives a command, a few times.
    fn go_wild(&mut self) -> bool {
        if !self.is_wild || self.evicted > 6 || !self.dice.one_in(12) {
            return false;
        }
        self.evicted += 1;
        let names: Vec<_> = self.world.pods.keys().cloned().collect();
        match names.get(self.dice.below(names.len() + 2)) {
            Some(name) => self.world.delete_pod(name),
            None => {
                let actions = ["AbortJob", "ResumeJob", "RestartJob", "ResumeJob"];
                self.world.command(actions[self.dice.below(actions.len())]);
            }
        }
        true
    }

    fn use_it(&mut self) -> bool {
        let phase = self.world.phase();
        let Some((_, user)) = self.users.first().filter(|(when, _)| *when == phase).copied() else {
            return false;
        };
        self.users.remove(0);
        match user {
            User::Commands(action) => {
                self.world.command(action);
            }
            User::Evicts(pod) => {
                self.evicted += 1;
                if self.dice.one_in(2) {
                    self.world.delete_pod(pod);
                } else {
                    self.world.remove_pod(pod);
                }
                if self.dice.one_in(3) {
                    self.crash();
                }
            }
            User::Scales(replicas) => {
                // What is scaled away may be made again.
                let is_less = replicas < 3;
                self.has_rescaled |= is_less;
                self.evicted += usize::from(is_less);
                let tasks = json!([with(task("a", 3), json!({"replicas": replicas})), task("b", 2)]);
                self.world.edit(json!({"tasks": tasks}));
            }
        }
        true
    }

    /// A pod starts, ends or is gone. Says whether it did.
    fn node(&mut self, name: &str) -> bool {
        let pod = &self.world.pods[name];
        let attempt = self
            .world
            .annotation(name, "volcano.sh/job-retry-count")
            .parse()
            .unwrap_or(0);
        let is_leaving = pod["metadata"].get("deletionTimestamp").is_some();
        let waits_for_users = self.users.iter().any(|(when, _)| *when == "Running");
        match pod["status"]["phase"].as_str() {
            _ if is_leaving => self.world.remove_pod(name),
            Some("Pending") => self.world.start(name),
            Some("Running") if !waits_for_users => match (self.ends)(name, attempt) {
                Some(0) => self.world.succeed(name),
                // A pod fails when the others run, so that how the job ends is no matter of luck.
                Some(code) if self.is_wild || self.world.phase() == "Running" => self.world.fail(name, code),
                _ => return false,
            },
            _ => return false,
        }
        self.quiet_looks = 0;
        true
    }
}

fn check(script: &Script, seed: u64) -> Result<(), String> {
    let mut run = Run::new(script, seed);
    run.run()?;
    let world = &run.world;
    let phase = world.phase();
    let end = (
        phase.as_str(),
        world.count("retryCount"),
        world.count("version"),
        world.count("succeeded"),
    );
    if end != script.end {
        return Err(format!(
            "{end:?} instead of {:?}, by {:?}",
            script.end, world.phases
        ));
    }
    let is_left = |pod: &&String| !pod.ends_with("Succeeded") && !pod.ends_with("Failed");
    let pods = world.shown_pods();
    if let Some(left) = pods.iter().find(is_left) {
        return Err(format!("{left} is left"));
    }
    if world.group.is_some() || !world.commands.is_empty() {
        return Err(format!("left: {:?} {:?}", world.group, world.commands));
    }
    let mut made: BTreeMap<_, usize> = BTreeMap::new();
    world
        .made
        .iter()
        .for_each(|pod| *made.entry(pod).or_default() += 1);
    let twice: Vec<_> = made.iter().filter(|(_, times)| **times > 1).collect();
    if twice.len() > run.evicted {
        return Err(format!("made more than once: {twice:?}"));
    }
    Ok(())
}

/// Seeds of the runs: one that is asked for, or the first ones, as many `times` as usual.
fn seeds(times: u64) -> std::ops::RangeInclusive<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number(SEED) {
        Some(seed) => seed..=seed,
        None => 1..=number(MORE_RUNS).unwrap_or(RUNS) * times,
    }
}

fn fail(name: &str, error: &str, seed: u64) -> ! {
    panic!("{name}: {error}\n{SEED}={seed} cargo test -p volcano-reconcile --test job simulation")
}

#[test]
fn every_job_ends_as_it_should_whatever_dies() {
    for script in scripts_of_pods().into_iter().chain(scripts_of_users()) {
        for seed in seeds(1) {
            if let Err(error) = check(&script, seed) {
                fail(script.name, &error, seed);
            }
        }
    }
}

/// Fails, or goes on, as the name and the attempt have it: about one pod in five fails.
fn mixed(pod: &str, attempt: i64) -> Option<i32> {
    let sum: i64 = pod.bytes().map(i64::from).sum::<i64>() + attempt * 7;
    Some(i32::from(sum % 5 == 0))
}

/// A job with policies of every kind, pods that fail at any time, evictions and commands at any time.
fn chaos(seed: u64) -> Result<(), String> {
    let actions = [
        "RestartJob",
        "RestartTask",
        "RestartPod",
        "AbortJob",
        "CompleteJob",
    ];
    let mut dice = Dice(seed ^ 0xc4a0_5000);
    let mut action = || actions[dice.below(actions.len())];
    let policies =
        json!([{"event": "PodFailed", "action": action()}, {"event": "PodEvicted", "action": action()}]);
    let of_a = json!({"policies": [{"event": "PodFailed", "action": action(), "timeout": "3s"}]});
    let tasks = json!([with(task("a", 3), of_a), task("b", 2)]);
    let job = spec(json!({"policies": policies, "tasks": tasks, "maxRetry": 6}));
    let mut run = Run::new(&script("chaos", job, mixed, ("", 0, 0, 0)), seed);
    run.is_wild = true;
    run.run()?;
    run.world.wait(3);
    let (world, retries) = (&run.world, run.world.count("retryCount"));
    let phase = world.phase();
    if retries > 6 || !world.commands.is_empty() {
        return Err(format!("{retries} retries, {:?}", world.commands));
    }
    let is_over = ["Aborted", "Terminated", "Completed", "Failed"].contains(&phase.as_str());
    let pods = world.shown_pods();
    let ended = |pod: &&String| pod.ends_with("Succeeded") || pod.ends_with("Failed");
    if !is_over {
        return Err(format!(
            "{phase} though nothing is left to do: {pods:?}, by {:?}",
            world.phases
        ));
    }
    if pods.iter().filter(ended).count() != pods.len() || world.group.is_some() {
        return Err(format!("{phase} with {pods:?} and {:?}", world.group));
    }
    let counted = world.count("succeeded") + world.count("failed");
    if usize::try_from(counted).unwrap_or(0) < pods.len() || counted > 5 {
        return Err(format!("{counted} counted of {pods:?}"));
    }
    Ok(())
}

#[test]
fn whatever_happens_a_job_comes_to_its_end_and_leaves_nothing() {
    for seed in seeds(10) {
        if let Err(error) = chaos(seed) {
            fail("chaos", &error, seed);
        }
    }
}
