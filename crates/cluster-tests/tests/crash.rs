//! The scheduler ends without a warning in the middle of its work, and nodes and pods do: nothing is bound twice, nothing
//! is lost, and no gang is left with a part of its members.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use std::time::Duration;

use volcano_cluster_tests::cluster;
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_cluster_tests::seed::seed;
use volcano_cluster_tests::stage::Stage;
use volcano_cluster_tests::witness::{Members, Witness};
use volcano_testcluster::objects::{self, Node, Pod};

/// For what the control plane has to do in between, on a machine that has other things to do too.
const TIMEOUT: Duration = Duration::from_secs(90);
/// No pod came, went or was bound for so long: nothing more is on its way.
const QUIET: Duration = Duration::from_secs(2);
/// A lease that is free again soon after its holder died.
const SHORT_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=250ms",
];
/// Binds that a scheduler has under way at the most: so many may be sent again after each of its deaths.
const LANES: usize = 64;
const CPU_PER_NODE: i64 = 10;
const GANG: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_that_is_killed_ten_times_binds_every_pod_once() {
    const GANGS: usize = 20;
    const KILLS: usize = 10;
    let seed = seed(
        "crash",
        "a_scheduler_that_is_killed_ten_times_binds_every_pod_once",
    );
    let mut random = fastrand::Rng::with_seed(seed);
    let stage = Stage::set().await.unwrap();
    let witness = Witness::call(&stage.client, &stage.namespace, CPU_PER_NODE)
        .await
        .unwrap();
    create_nodes(&stage, 200).await;
    for gang in 0..GANGS {
        submit(&stage, &format!("gang-{gang}"), GANG).await;
    }
    let attempts_before = bind_attempts(&stage.client).await;

    let mut scheduler = launch();
    let points = kill_points(&mut random, KILLS, GANGS * GANG - LANES);
    for point in points {
        scheduler = kill_at(scheduler, &witness, point).await;
    }
    let all = witness.until("all pods are bound", TIMEOUT, |seen| seen.bound() == GANGS * GANG);
    all.await.unwrap();
    witness.at_rest(QUIET, TIMEOUT).await.unwrap();

    witness.all_right().unwrap();
    let seen = witness.seen().gangs();
    let whole = Members {
        bound: GANG,
        there: GANG,
    };
    assert_eq!(seen.len(), GANGS);
    assert!(seen.values().all(|members| *members == whole), "{seen:?}");
    assert_eq!(witness.seen().ever_bound(), GANGS * GANG);
    let attempts = bind_attempts(&stage.client).await - attempts_before;
    eprintln!("{attempts} attempts to bind {} pods", GANGS * GANG);
    assert!(
        attempts <= GANGS * GANG + (KILLS + 1) * LANES,
        "{attempts} attempts"
    );
    scheduler.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_scheduler_leaves_no_gang_in_parts_when_there_is_not_enough_room() {
    const GANGS: usize = 12;
    const FIT: usize = 8;
    const ROUNDS: usize = 4;
    /// Gangs that end, and new ones, in each round.
    const TURNOVER: usize = 2;
    let test = "a_killed_scheduler_leaves_no_gang_in_parts_when_there_is_not_enough_room";
    let mut random = fastrand::Rng::with_seed(seed("crash", test));
    let stage = Stage::set().await.unwrap();
    let witness = Witness::call(&stage.client, &stage.namespace, CPU_PER_NODE)
        .await
        .unwrap();
    // Room for eight gangs and a half.
    create_nodes(&stage, (FIT * GANG + GANG / 2) / 10).await;
    for gang in 0..GANGS {
        submit(&stage, &format!("gang-{gang}"), GANG).await;
    }
    let mut gangs = GANGS;

    let mut scheduler = launch();
    for point in kill_points(&mut random, 3, FIT * GANG - LANES) {
        scheduler = kill_at(scheduler, &witness, point).await;
    }
    assert_whole_gangs(&witness, FIT).await;

    for _ in 0..ROUNDS {
        let running = whole_gangs(&witness);
        let ends = random.choose_multiple(running.iter(), TURNOVER);
        let new = gangs..gangs + TURNOVER;
        gangs = new.end;
        let turnover = async {
            for gang in ends {
                finish(&stage, &witness, gang).await;
            }
            for gang in new {
                submit(&stage, &format!("gang-{gang}"), GANG).await;
            }
        };
        let point = witness.seen().ever_bound() + random.usize(1..TURNOVER * GANG - LANES);
        ((), scheduler) = tokio::join!(turnover, kill_at(scheduler, &witness, point));
        assert_whole_gangs(&witness, FIT).await;
    }
    witness.all_right().unwrap();
    scheduler.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_that_lost_pods_gets_what_is_freed_before_smaller_jobs() {
    let stage = Stage::set().await.unwrap();
    let witness = Witness::call(&stage.client, &stage.namespace, CPU_PER_NODE)
        .await
        .unwrap();
    create_nodes(&stage, 4).await;
    let scheduler = stage.scheduler(&["--schedule-period=200ms"]).unwrap();
    submit(&stage, "big", 20).await;
    // One that can do with less, so that it is not broken by what it loses.
    create_group(&stage, "filler", 1).await;
    create_members(&stage, "filler", 0..20).await;
    let full = witness.until("all is taken", TIMEOUT, |seen| seen.bound() == 40);
    full.await.unwrap();
    for small in 0..8 {
        submit(&stage, &format!("small-{small}"), 1).await;
    }
    // Members to take the place of others.
    create_members(&stage, "big", 20..23).await;
    scheduler_looks(&scheduler).await;
    assert_eq!(small_jobs(&witness), 0);

    for lost in 0..3 {
        delete_pod(&stage, &format!("big-{lost}")).await;
    }
    let again = witness.until("the gang is whole again", TIMEOUT, |seen| {
        seen.gang("big") == Members { bound: 20, there: 20 }
    });
    again.await.unwrap();
    assert_eq!(small_jobs(&witness), 0);

    let (node, lost) = loses_fewest(&witness, "big");
    lose_node(&stage, &node).await;
    create_members(&stage, "big", 23..23 + lost).await;
    // The room of the node is gone for good; what others free comes in pieces.
    for missing in (0..lost).rev() {
        delete_one_of(&stage, &witness, "filler").await;
        scheduler_looks(&scheduler).await;
        if missing > 0 {
            let members = witness.seen().gang("big");
            assert_eq!(small_jobs(&witness), 0, "the gang still lacks {missing}");
            assert_eq!(members.bound, 20 - lost, "what would be no whole gang waits");
        }
    }
    let again = witness.until("the gang is whole again", TIMEOUT, |seen| {
        seen.gang("big") == Members { bound: 20, there: 20 }
    });
    again.await.unwrap();
    assert_eq!(small_jobs(&witness), 0);

    // The gang has no more claims than others once it is whole.
    delete_one_of(&stage, &witness, "filler").await;
    let turn = witness.until("a small job has its turn", TIMEOUT, |seen| {
        let small = seen.pods().filter(|pod| pod.group.starts_with("small"));
        small.filter(|pod| pod.node.is_some()).count() == 1
    });
    turn.await.unwrap();
    witness.all_right().unwrap();
}

fn launch() -> Scheduler {
    Scheduler::launch(
        &cluster().kubeconfig_path(),
        cluster().data_directory(),
        &SHORT_LEASE,
    )
    .unwrap()
}

/// Numbers of bound pods at which the scheduler is killed, in order: one in each part of the work.
fn kill_points(random: &mut fastrand::Rng, count: usize, most: usize) -> Vec<usize> {
    let part = most / count;
    (0..count).map(|at| at * part + random.usize(1..=part)).collect()
}

/// Kills it when so many pods have come to nodes, and starts another one.
async fn kill_at(scheduler: Scheduler, witness: &Witness, binds: usize) -> Scheduler {
    let what = format!("{binds} pods are bound");
    let reached = witness.until(&what, TIMEOUT, |seen| seen.ever_bound() >= binds);
    reached.await.unwrap();
    scheduler.kill().unwrap();
    let partly = witness.seen().partly_bound(|_| GANG);
    let bound = witness.seen().ever_bound();
    eprintln!("killed after {bound} binds, in the middle of {partly:?}");
    launch()
}

async fn create_nodes(stage: &Stage, count: usize) {
    let nodes = (0..count).map(|at| {
        let node = Node::new(&format!("node-{at}")).memory("64Gi");
        node.cpu(&CPU_PER_NODE.to_string())
    });
    objects::create_nodes(&stage.client, nodes).await.unwrap();
}

/// Creates a gang that needs all of its members.
async fn submit(stage: &Stage, name: &str, size: usize) {
    create_group(stage, name, size).await;
    create_members(stage, name, 0..size).await;
}

async fn create_group(stage: &Stage, name: &str, minimum: usize) {
    let minimum = u32::try_from(minimum).unwrap();
    objects::create_pod_group(&stage.client, &stage.namespace, name, minimum, "")
        .await
        .unwrap();
}

async fn create_members(stage: &Stage, group: &str, numbers: std::ops::Range<usize>) {
    let pods = numbers.map(|at| {
        let pod = Pod::new(&stage.namespace, &format!("{group}-{at}"));
        pod.group(group).cpu("1").memory("1Gi")
    });
    objects::create_pods(&stage.client, pods).await.unwrap();
}

/// Ends a gang: it and its pods are gone.
async fn finish(stage: &Stage, witness: &Witness, gang: &str) {
    let members: Vec<String> = {
        let seen = witness.seen();
        let members = seen.pods().filter(|pod| pod.group == gang);
        members.map(|pod| pod.name.clone()).collect()
    };
    let groups = objects::path(
        "scheduling.volcano.sh/v1beta1",
        &stage.namespace,
        "podgroups",
        gang,
    );
    objects::delete(&stage.client, &groups).await.unwrap();
    futures::future::join_all(members.iter().map(|pod| delete_pod(stage, pod))).await;
}

async fn delete_pod(stage: &Stage, name: &str) {
    let path = objects::path("v1", &stage.namespace, "pods", name);
    objects::delete_now(&stage.client, &path).await.unwrap();
}

/// Deletes a pod of a group that is on a node, and waits until that is seen.
async fn delete_one_of(stage: &Stage, witness: &Witness, group: &str) {
    let name = {
        let seen = witness.seen();
        let mut members = seen.pods().filter(|pod| pod.group == group && pod.node.is_some());
        members.next().unwrap().name.clone()
    };
    delete_pod(stage, &name).await;
    let gone = witness.until("a pod is gone", TIMEOUT, |seen| {
        seen.pods().all(|pod| pod.name != name)
    });
    gone.await.unwrap();
}

/// A node that fewest members of a gang are on, and how many these are.
fn loses_fewest(witness: &Witness, group: &str) -> (String, usize) {
    let seen = witness.seen();
    let members = seen.pods().filter(|pod| pod.group == group);
    let nodes: Vec<&String> = members.filter_map(|pod| pod.node.as_ref()).collect();
    let count = |node: &String| nodes.iter().filter(|other| **other == node).count();
    let node = nodes.iter().min_by_key(|node| count(node)).unwrap();
    ((*node).clone(), count(node))
}

/// A node goes away, and its pods with it, as the garbage collector of pods sees to.
async fn lose_node(stage: &Stage, node: &str) {
    let path = objects::path("v1", "", "nodes", node);
    objects::delete(&stage.client, &path).await.unwrap();
    let nodes = objects::pod_nodes(&stage.client, &stage.namespace).await.unwrap();
    let lost = nodes
        .iter()
        .filter(|(_, on)| on.as_ref().is_some_and(|on| on == node));
    for (pod, _) in lost {
        delete_pod(stage, pod).await;
    }
}

fn small_jobs(witness: &Witness) -> usize {
    let seen = witness.seen();
    let small = seen.pods().filter(|pod| pod.group.starts_with("small"));
    small.filter(|pod| pod.node.is_some()).count()
}

/// Waits until the scheduler has decided a few times, which it does after every change and five times a second.
async fn scheduler_looks(scheduler: &Scheduler) {
    let cycles = || scheduler.metric("volcano_cycles_total");
    let before = cycles().unwrap();
    objects::wait_until("the scheduler has decided a few times", TIMEOUT, || async {
        let now = cycles()?;
        Ok(objects::check(now >= before + 5.0, || format!("{now} cycles")))
    })
    .await
    .unwrap();
}

fn whole_gangs(witness: &Witness) -> Vec<String> {
    let gangs = witness.seen().gangs().into_iter();
    let whole = gangs.filter(|(_, members)| members.bound == GANG);
    whole.map(|(gang, _)| gang).collect()
}

/// At rest so many gangs are whole and the others wait as a whole.
async fn assert_whole_gangs(witness: &Witness, count: usize) {
    let filled = witness.until("what fits is bound", TIMEOUT, |seen| seen.bound() >= count * GANG);
    filled.await.unwrap();
    witness.at_rest(QUIET, TIMEOUT).await.unwrap();
    let partly = witness.seen().partly_bound(|_| GANG);
    assert!(partly.is_empty(), "gangs in parts: {partly:?}");
    assert_eq!(whole_gangs(witness).len(), count);
}

/// How often the API server was asked to bind a pod since it was started, whatever came of it.
async fn bind_attempts(client: &kube::Client) -> usize {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = client.request_text(request).await.unwrap();
    let binds = text.lines().filter(|line| {
        line.starts_with("apiserver_request_total{") && line.contains(r#"subresource="binding""#)
    });
    let counts = binds.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small count"
    )]
    let sum = counts.sum::<f64>() as usize;
    sum
}
