//! Leader election: one works, another is ready, and a lease that somebody else holds is respected.

use crate::stage;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};
use volcano_api::time::{MicroTime, Time};
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, check};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/volcano";
const LEASE_DURATION: Duration = Duration::from_secs(3);
const SHORT: &[&str] = &[
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
];

async fn wait_leads(scheduler: &Scheduler) {
    until("it leads", || async {
        Ok(check(scheduler.leads(), || "it stands by"))
    })
    .await;
}

/// One that leads and one that stands by.
async fn two(stage: &Stage) -> (Scheduler, Scheduler) {
    let leader = stage.scheduler(SHORT).unwrap();
    wait_leads(&leader).await;
    let other = stage.scheduler(SHORT).unwrap();
    (leader, other)
}

fn now() -> Time {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Time::from_unix_micros(i64::try_from(since.as_micros()).unwrap())
}

#[tokio::test]
async fn the_lease_is_as_client_go_writes_it() {
    let stage = stage().await;
    let scheduler = stage.scheduler(SHORT).unwrap();
    wait_leads(&scheduler).await;
    let first = stage.get(LEASE).await;
    let spec = &first["spec"];
    let holder = spec["holderIdentity"].as_str().unwrap();
    let (host, id) = holder.rsplit_once('_').unwrap();
    assert!(!host.is_empty() && id.len() == 36, "{holder}");
    assert_eq!(spec["leaseDurationSeconds"], 3);
    assert_eq!(spec["leaseTransitions"], 0);
    for field in ["acquireTime", "renewTime"] {
        let text = spec[field].as_str().unwrap();
        let micros = text.rsplit_once('.').map(|(_, rest)| rest.len());
        assert_eq!(micros, Some("123456Z".len()), "{field} {text}");
    }
    stage
        .wait(LEASE, "it is renewed", |lease| {
            lease["spec"]["renewTime"] != spec["renewTime"]
                && lease["spec"]["acquireTime"] == spec["acquireTime"]
        })
        .await;
}

#[tokio::test]
async fn when_the_leader_is_killed_the_other_takes_over_after_the_lease_and_works() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let (leader, other) = two(&stage).await;
    stage.gang("before", 1, 1, "1").await;
    stage.wait_bound("before", 1).await;
    assert!(!other.leads(), "there is one leader");
    let held = stage.get(LEASE).await;
    leader.kill().unwrap();
    let killed = Instant::now();
    stage.gang("after", 2, 2, "1").await;
    wait_leads(&other).await;
    let took = killed.elapsed();
    stage.wait_bound("after", 2).await;
    // Not before the time that the dead one may have had, which is counted from its last renewal.
    assert!(took >= LEASE_DURATION - Duration::from_secs(2), "{took:?}");
    // And no later than that time and a look at the lease after it.
    assert!(took < LEASE_DURATION + Duration::from_millis(700), "{took:?}");
    let lease = stage.get(LEASE).await;
    assert_ne!(lease["spec"]["holderIdentity"], held["spec"]["holderIdentity"]);
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[tokio::test]
async fn a_leader_that_is_told_to_end_gives_its_lease_back() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    // With this duration nobody can take over by waiting.
    let long = &[
        "--leader-elect-lease-duration=600s",
        "--leader-elect-retry-period=500ms",
    ];
    let leader = stage.scheduler(long).unwrap();
    wait_leads(&leader).await;
    let other = stage.scheduler(long).unwrap();
    let status = leader.stop().unwrap();
    assert!(status.success(), "{status}");
    wait_leads(&other).await;
    stage.gang("after", 1, 1, "1").await;
    stage.wait_bound("after", 1).await;
}

#[tokio::test]
async fn a_lease_that_somebody_else_renews_is_respected() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let foreign = |renewed: Time| {
        json!({
            "holderIdentity": "vc-scheduler-0_4f1c9b0a-9e5c-4f0b-8a55-0d3c2a1b7e66",
            "leaseDurationSeconds": 3,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": MicroTime(renewed).to_string(),
            "leaseTransitions": 4,
        })
    };
    let lease = json!({"metadata": {"name": "volcano"}, "spec": foreign(now())});
    stage
        .create("/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease)
        .await;
    let scheduler = stage.scheduler(SHORT).unwrap();
    stage.gang("waits", 1, 1, "1").await;
    let began = Instant::now();
    until("the holder has renewed for two durations", || async {
        let renewed = json!({"spec": foreign(now())});
        objects::merge_patch(&stage.client, LEASE, &renewed).await?;
        Ok(check(began.elapsed() > LEASE_DURATION * 2, || "not yet"))
    })
    .await;
    assert!(!scheduler.leads());
    assert!(
        stage.bound("").await.is_empty(),
        "only the holder of the lease may bind"
    );
    let pod = stage.get(&stage.pod_path("waits-0")).await;
    assert_eq!(pod["status"]["conditions"], Value::Null, "nothing was written");
    // The holder has gone.
    wait_leads(&scheduler).await;
    stage.wait_bound("waits", 1).await;
    let lease = stage.get(LEASE).await;
    assert_eq!(lease["spec"]["leaseTransitions"], 5);
}
