//! The same work with and without trouble between the scheduler and the API server comes to the same end.
//!
//! ```text
//! script (from the seed) ──> run without faults ──> end state ─┐
//!                       └──> run with faults, then without ────┴─> equal
//! ```

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use volcano_api::quantity::Quantity;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_cluster_tests::seed::seed;
use volcano_cluster_tests::stage::Stage;
use volcano_cluster_tests::witness::Witness;
use volcano_testcluster::objects::{self, Node, Pod};
use volcano_testcluster::{Delay, Faults, Proxy, Rejections};

const TIMEOUT: Duration = Duration::from_secs(90);
const QUIET: Duration = Duration::from_secs(2);
const NODES: usize = 100;
const CPU_PER_NODE: i64 = 8;
/// What is asked for when the script ends: so much less than there is that every gang fits, however pods lie.
const CPU_AT_THE_END: i64 = 480;
/// What is asked for in between: more than there is.
const MOST_CPU: i64 = 1000;
const STEPS: usize = 60;
/// Kubelets get a turn after so many steps.
const KUBELET: usize = 4;
/// Between two steps while there are faults.
const PACE: Duration = Duration::from_millis(1300);

/// A queue that has room for two of its gangs, whichever.
const LIMITED: &str = "limited";
const LIMITED_CPU: &str = "20";
const LIMITED_GANGS: usize = 5;
const LIMITED_GANG: usize = 8;
/// Queues and their weights.
const QUEUES: [(&str, u32); 3] = [("light", 1), ("heavy", 3), (LIMITED, 1)];
/// A gang that no node has room for.
const NEVER: &str = "never";

#[derive(Clone, Debug)]
struct Gang {
    name: String,
    queue: &'static str,
    members: usize,
    cpu: i64,
}

impl Gang {
    fn cpu_in_all(&self) -> i64 {
        i64::try_from(self.members).unwrap() * self.cpu
    }

    fn member(&self, at: usize) -> String {
        format!("{}-{at}", self.name)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A gang with all of its pods.
    Submit(Gang),
    /// Its pods are deleted, and then it is.
    Finish(Gang),
    /// A pod is deleted and made anew.
    Replace(Gang, usize),
}

/// What a run comes to. Where nodes or gangs are interchangeable, numbers.
#[derive(Debug, PartialEq, Eq)]
struct End {
    /// Bound pods of gangs that have room.
    bound: BTreeSet<String>,
    /// Phases of gangs that have room, and of the one that has none.
    phases: BTreeMap<String, String>,
    /// Phase and bound members of each gang of the limited queue, sorted.
    limited: Vec<(String, usize)>,
    /// Processor in use, by queue.
    allocated: BTreeMap<String, i64>,
}

#[tokio::test(flavor = "multi_thread")]
async fn work_under_faults_comes_to_the_same_end_as_without() {
    let seed = seed("chaos", "work_under_faults_comes_to_the_same_end_as_without");
    let (script, live) = script(&mut fastrand::Rng::with_seed(seed));
    let calm = run(&script, &live, None).await.unwrap();
    eprintln!(
        "without faults: {} pods bound, limited {:?}, allocated {:?}",
        calm.bound.len(),
        calm.limited,
        calm.allocated
    );
    let stormy = run(&script, &live, Some(seed)).await.unwrap();
    assert_eq!(stormy, calm);
}

/// Steps from a seed, and the gangs that are there at the end.
fn script(random: &mut fastrand::Rng) -> (Vec<Step>, Vec<Gang>) {
    let mut steps = Vec::new();
    let mut live: Vec<Gang> = Vec::new();
    let mut fixed = vec![Gang {
        name: NEVER.to_owned(),
        queue: "light",
        members: 4,
        cpu: 2 * CPU_PER_NODE,
    }];
    fixed.extend((0..LIMITED_GANGS).map(|at| Gang {
        name: format!("{LIMITED}-{at}"),
        queue: LIMITED,
        members: LIMITED_GANG,
        cpu: 1,
    }));
    for at in 0..STEPS {
        if at % 8 == 4
            && let Some(gang) = fixed.pop()
        {
            steps.push(Step::Submit(gang));
        }
        let asked: i64 = live.iter().map(Gang::cpu_in_all).sum();
        match random.u32(0..10) {
            _ if at < 12 || live.is_empty() => submit(random, at, &mut live, &mut steps),
            0..5 if asked < MOST_CPU => submit(random, at, &mut live, &mut steps),
            5..8 => {
                let gang = &live[random.usize(..live.len())];
                let member = random.usize(..gang.members);
                steps.push(Step::Replace(gang.clone(), member));
            }
            _ => steps.push(Step::Finish(live.swap_remove(random.usize(..live.len())))),
        }
    }
    while live.iter().map(Gang::cpu_in_all).sum::<i64>() > CPU_AT_THE_END {
        steps.push(Step::Finish(live.swap_remove(random.usize(..live.len()))));
    }
    (steps, live)
}

fn submit(random: &mut fastrand::Rng, at: usize, live: &mut Vec<Gang>, steps: &mut Vec<Step>) {
    let alone = random.u32(0..3) == 0;
    let gang = Gang {
        name: format!("gang-{at}"),
        queue: QUEUES[random.usize(0..2)].0,
        members: if alone { 1 } else { random.usize(8..64) },
        cpu: random.i64(1..=2),
    };
    live.push(gang.clone());
    steps.push(Step::Submit(gang));
}

/// Plays the script to a scheduler; with a seed, under faults.
async fn run(script: &[Step], live: &[Gang], faults: Option<u64>) -> anyhow::Result<End> {
    let stage = Stage::set().await?;
    let witness = Witness::call(&stage.client, &stage.namespace, CPU_PER_NODE).await?;
    for (queue, weight) in QUEUES {
        let spec = match queue {
            LIMITED => json!({"capability": {"cpu": LIMITED_CPU}}),
            _ => Value::Null,
        };
        objects::create_queue(&stage.client, queue, weight, &spec).await?;
    }
    let nodes = (0..NODES).map(|at| {
        let node = Node::new(&format!("node-{at}")).memory("64Gi");
        node.cpu(&CPU_PER_NODE.to_string())
    });
    objects::create_nodes(&stage.client, nodes).await?;

    let proxy = Proxy::start(cluster())?;
    let mut scheduler = Scheduler::start(proxy.kubeconfig_path(), cluster().data_directory(), &[])?;
    let calm = Footprint::of(&scheduler)?;
    let began = Instant::now();
    match faults {
        None => play(&stage, script, Duration::ZERO).await?,
        Some(seed) => {
            let (played, ()) = tokio::join!(play(&stage, script, PACE), make_trouble(&proxy, seed));
            played?;
            proxy.clear();
            eprintln!(
                "faults ended after {:.0?}: {:?}",
                began.elapsed(),
                proxy.counters()
            );
        }
    }
    let calmed = Instant::now();
    let end = settle(&stage, &witness, live).await;
    eprintln!(
        "settled after {:.1?}; {}",
        calmed.elapsed(),
        Footprint::of(&scheduler)?
    );
    let end = end?;

    witness.all_right()?;
    anyhow::ensure!(scheduler.ended()?.is_none(), "the scheduler ended");
    let log = scheduler.log();
    anyhow::ensure!(!log.contains("panicked"), "a panic:\n{log}");
    Footprint::of(&scheduler)?.is_sane(&calm)?;
    Ok(end)
}

async fn play(stage: &Stage, script: &[Step], pace: Duration) -> anyhow::Result<()> {
    let began = tokio::time::Instant::now();
    for (at, step) in script.iter().enumerate() {
        tokio::time::sleep_until(began + pace * u32::try_from(at)?).await;
        match step {
            Step::Submit(gang) => {
                insist(|| create_group(stage, gang)).await?;
                let members = (0..gang.members).map(|at| insist(move || create_member(stage, gang, at)));
                all(members).await?;
            }
            Step::Finish(gang) => {
                let members = (0..gang.members).map(|at| insist(move || delete_member(stage, gang, at)));
                all(members).await?;
                let group = group_path(stage, &gang.name);
                insist(|| objects::delete(&stage.client, &group)).await?;
            }
            Step::Replace(gang, member) => {
                insist(|| delete_member(stage, gang, *member)).await?;
                insist(|| create_member(stage, gang, *member)).await?;
            }
        }
        if at % KUBELET == 0 {
            let play = || async {
                objects::play_kubelet(&stage.client, &stage.namespace)
                    .await
                    .map(drop)
            };
            insist(play).await?;
        }
    }
    Ok(())
}

/// Some at a time.
async fn all(acts: impl Iterator<Item = impl Future<Output = anyhow::Result<()>>>) -> anyhow::Result<()> {
    let acts = futures::stream::iter(acts).buffer_unordered(objects::CONCURRENCY);
    acts.try_collect().await
}

/// Does something until it is done: the API server may be away, and something may be done without its answer.
async fn insist<F>(mut act: impl FnMut() -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    objects::wait_until("it is done", TIMEOUT, || {
        let act = act();
        async move {
            match act.await {
                Err(error) if !is_there_already(&error) => Err(error),
                _ => Ok(objects::Progress::Done(())),
            }
        }
    })
    .await
}

fn is_there_already(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<kube::Error>());
    causes.any(|cause| matches!(cause, kube::Error::Api(status) if status.reason == "AlreadyExists"))
}

fn group_path(stage: &Stage, name: &str) -> String {
    objects::path(
        "scheduling.volcano.sh/v1beta1",
        &stage.namespace,
        "podgroups",
        name,
    )
}

async fn create_group(stage: &Stage, gang: &Gang) -> anyhow::Result<()> {
    let minimum = u32::try_from(gang.members)?;
    objects::create_pod_group(&stage.client, &stage.namespace, &gang.name, minimum, gang.queue).await
}

async fn create_member(stage: &Stage, gang: &Gang, at: usize) -> anyhow::Result<()> {
    let pod = Pod::new(&stage.namespace, &gang.member(at)).group(&gang.name);
    objects::create_pod(&stage.client, &pod.cpu(&gang.cpu.to_string())).await
}

async fn delete_member(stage: &Stage, gang: &Gang, at: usize) -> anyhow::Result<()> {
    let path = objects::path("v1", &stage.namespace, "pods", &gang.member(at));
    objects::delete_now(&stage.client, &path).await
}

/// One kind of trouble after the other, for about two minutes.
async fn make_trouble(proxy: &Proxy, seed: u64) {
    let refusals = Rejections {
        conflict: 0.1,
        too_many: 0.1,
        internal: 0.1,
    };
    let refused = Faults {
        seed,
        reads: refusals,
        writes: refusals,
        retry_after_secs: 1,
        delay: Delay {
            probability: 0.1,
            longest: Duration::from_millis(300),
        },
        ..Faults::default()
    };
    let lost = Faults {
        seed,
        gone: 0.3,
        cut: Some(Duration::from_secs(2)),
        drop_after: 0.2,
        ..Faults::default()
    };
    let everything = Faults {
        gone: lost.gone,
        cut: Some(Duration::from_secs(4)),
        drop_after: 0.1,
        ..refused.clone()
    };
    let outage = Faults {
        outage: true,
        ..Faults::default()
    };
    let lasts = tokio::time::sleep;

    proxy.set_faults(refused);
    lasts(Duration::from_secs(20)).await;
    proxy.set_faults(lost);
    lasts(Duration::from_secs(20)).await;
    proxy.set_faults(everything.clone());
    lasts(Duration::from_secs(8)).await;
    let restarted = tokio::task::spawn_blocking(|| cluster().restart_apiserver());
    restarted.await.unwrap().unwrap();
    lasts(Duration::from_secs(15)).await;
    // Long enough to lose the lease.
    proxy.set_faults(outage);
    lasts(Duration::from_secs(14)).await;
    proxy.set_faults(everything);
    lasts(Duration::from_secs(25)).await;
}

/// Waits until everything is as it will stay, and says how that is.
async fn settle(stage: &Stage, witness: &Witness, live: &[Gang]) -> anyhow::Result<End> {
    let sizes: BTreeMap<&str, usize> = live
        .iter()
        .map(|gang| (gang.name.as_str(), gang.members))
        .collect();
    let placed = witness.until("every gang that has room is whole", TIMEOUT, |seen| {
        let gangs = seen.gangs();
        let bound = |name: &str| gangs.get(name).map_or(0, |members| members.bound);
        let limited = gangs.iter().filter(|(name, _)| name.starts_with(LIMITED));
        let limited: usize = limited.map(|(_, members)| members.bound).sum();
        sizes.iter().all(|(name, members)| bound(name) == *members) && limited >= 2 * LIMITED_GANG
    });
    placed.await?;
    witness.at_rest(QUIET, TIMEOUT).await?;
    let partly = witness.seen().partly_bound(|name| match sizes.get(name) {
        Some(members) => *members,
        None => LIMITED_GANG,
    });
    anyhow::ensure!(partly.is_empty(), "gangs in parts: {partly:?}");
    while objects::play_kubelet(&stage.client, &stage.namespace).await? > 0 {}
    objects::wait_until("statuses say how it is", TIMEOUT, || async {
        let end = end(stage, witness, &sizes).await?;
        let used = used_by_queue(stage, witness).await?;
        let waiting = end.phases.iter().filter(|(name, phase)| {
            let expected = if *name == NEVER { "Inqueue" } else { "Running" };
            *phase != expected
        });
        let waiting: Vec<_> = waiting.collect();
        let running = end.limited.iter().filter(|(phase, _)| phase == "Running").count();
        Ok(if waiting.is_empty() && running == 2 && used == end.allocated {
            objects::Progress::Done(end)
        } else {
            objects::Progress::Waiting(format!(
                "phases {waiting:?}, limited {:?}, in use {used:?}, allocated {:?}",
                end.limited, end.allocated
            ))
        })
    })
    .await
}

async fn end(stage: &Stage, witness: &Witness, sizes: &BTreeMap<&str, usize>) -> anyhow::Result<End> {
    let groups = objects::list(&stage.client, &group_path(stage, "")).await?;
    let phase = |group: &Value| group["status"]["phase"].as_str().unwrap_or_default().to_owned();
    let is_limited = |group: &&Value| objects::name_of(group).starts_with(LIMITED);
    let phases = groups.iter().filter(|group| !is_limited(group));
    let phases = phases.map(|group| (objects::name_of(group).to_owned(), phase(group)));
    let phases = phases.collect();
    let mut limited: Vec<(String, usize)> = {
        let gangs = witness.seen().gangs();
        let bound = |group: &Value| {
            gangs
                .get(objects::name_of(group))
                .map_or(0, |members| members.bound)
        };
        let limited = groups.iter().filter(is_limited);
        limited.map(|group| (phase(group), bound(group))).collect()
    };
    limited.sort();
    let bound = {
        let seen = witness.seen();
        let bound = seen.pods().filter(|pod| pod.node.is_some());
        let bound = bound.filter(|pod| sizes.contains_key(pod.group.as_str()));
        bound.map(|pod| pod.name.clone()).collect()
    };
    Ok(End {
        bound,
        phases,
        limited,
        allocated: allocated(stage).await?,
    })
}

/// What queues say about themselves.
async fn allocated(stage: &Stage) -> anyhow::Result<BTreeMap<String, i64>> {
    let queues = objects::list(&stage.client, "/apis/scheduling.volcano.sh/v1beta1/queues").await?;
    let ours = queues
        .iter()
        .filter(|queue| QUEUES.iter().any(|(name, _)| *name == objects::name_of(queue)));
    ours.map(|queue| {
        let cpu = queue["status"]["allocated"]["cpu"].as_str().unwrap_or("0");
        let cpu = Quantity::parse(cpu).context("an amount of a queue")?;
        Ok((objects::name_of(queue).to_owned(), cpu.milli_value()))
    })
    .collect()
}

/// What the bound pods of each queue ask for.
async fn used_by_queue(stage: &Stage, witness: &Witness) -> anyhow::Result<BTreeMap<String, i64>> {
    let groups = objects::list(&stage.client, &group_path(stage, "")).await?;
    let mut used: BTreeMap<String, i64> = QUEUES.iter().map(|(name, _)| ((*name).to_owned(), 0)).collect();
    let seen = witness.seen();
    for group in &groups {
        let queue = group["spec"]["queue"].as_str().unwrap_or_default();
        let pods = seen.pods().filter(|pod| pod.group == objects::name_of(group));
        let bound = pods.filter(|pod| pod.node.is_some());
        *used.get_mut(queue).context("a queue of ours")? += bound.map(|pod| pod.milli_cpu).sum::<i64>();
    }
    Ok(used)
}

/// What a process takes.
struct Footprint {
    resident_kib: u64,
    threads: u64,
    files: usize,
}

impl Footprint {
    fn of(scheduler: &Scheduler) -> anyhow::Result<Footprint> {
        let folder = Path::new("/proc").join(scheduler.id().to_string());
        let status = std::fs::read_to_string(folder.join("status"))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            number.with_context(|| format!("{name} of the process"))
        };
        Ok(Footprint {
            resident_kib: number("VmRSS")?,
            threads: number("Threads")?,
            files: std::fs::read_dir(folder.join("fd"))?.count(),
        })
    }

    /// Nothing has piled up: threads of the runtime come and go, and connections do.
    fn is_sane(&self, before: &Footprint) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.resident_kib < 3 * before.resident_kib + 100_000
                && self.threads < before.threads + 20
                && self.files < before.files + 200,
            "{self} after {before}"
        );
        Ok(())
    }
}

impl std::fmt::Display for Footprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Footprint {
            resident_kib,
            threads,
            files,
        } = self;
        write!(f, "{} MiB, {threads} threads, {files} files", resident_kib / 1024)
    }
}
