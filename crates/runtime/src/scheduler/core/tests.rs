use super::*;
use crate::client::Client;
use crate::fence::Fence;
use crate::gates::FeatureGates;
use crate::metrics::Metrics;
use crate::ownership::Ownership;
use crate::scheduler::options::Options;
use crate::testing::Server;
use crate::writes::order::GangBind;
use serde_json::{Value, json};
use volcano_engine::config::catalog;
use volcano_engine::model::features::Features;

const CONF: &str = "{actions: allocate, tiers: [{plugins: [{name: gang}]}]}";

fn conf() -> SchedulerConf {
    SchedulerConf::parse(CONF, catalog::PLANNED_PLUGINS, catalog::ACTIONS).unwrap()
}

/// An engine with a node that takes two of these pods.
fn cluster() -> Cluster {
    let names = SchedulerNames::Only(vec!["volcano".to_owned()]);
    let mut cluster = Cluster::new(conf(), names, "default", Features::default(), []).0;
    let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "pods": "10"}}});
    cluster.apply(Delta::Node(Box::new(serde_json::from_value(node).unwrap())));
    let queue = json!({"metadata": {"name": "default"}});
    cluster.apply(Delta::Queue(Box::new(serde_json::from_value(queue).unwrap())));
    let group = json!({"metadata": {"namespace": "ns", "name": "g"}, "spec": {"minMember": 1}});
    cluster.apply(Delta::PodGroup(Box::new(serde_json::from_value(group).unwrap())));
    cluster
}

fn pod(name: &str, scheduler: &str, change: fn(&mut Value)) -> Delta {
    let mut pod = json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {"schedulerName": scheduler, "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending"},
    });
    change(&mut pod);
    Delta::Pod(Box::new(serde_json::from_value(pod).unwrap()))
}

fn as_it_is(_: &mut Value) {}

#[test]
fn pods_count_as_watched_once_and_only_those_of_this_scheduler() {
    let mut cluster = cluster();
    cluster.apply(pod("known", "volcano", as_it_is));
    let ours = |pod: &Pod| pod.spec.scheduler_name == "volcano";
    for (case, deltas, expected) in [
        ("new", vec![pod("a", "volcano", as_it_is)], 1),
        (
            "twice at once",
            vec![pod("a", "volcano", as_it_is), pod("a", "volcano", as_it_is)],
            1,
        ),
        ("known", vec![pod("known", "volcano", as_it_is)], 0),
        (
            "another scheduler's",
            vec![pod("a", "default-scheduler", as_it_is)],
            0,
        ),
        (
            "with a node",
            vec![pod("a", "volcano", |pod| pod["spec"]["nodeName"] = "n".into())],
            0,
        ),
    ] {
        let watched = newly_watched(cluster.engine().model(), &deltas, ours);
        assert_eq!(watched.len(), expected, "{case}");
    }
}

#[test]
fn binds_are_told_when_their_pod_or_node_goes() {
    let mut cluster = cluster();
    cluster.apply(pod("a", "volcano", as_it_is));
    let told = |cluster: &Cluster, delta: &Delta| {
        told_to_binds(cluster.engine().model(), delta).map(|order| format!("{order:?}"))
    };
    let gone = Delta::gone(Kind::Pod, "ns", "a");
    assert_eq!(told(&cluster, &gone), None, "nothing is under way");
    let cycle = cluster.whole().unwrap().cycle(Time::EPOCH, &mut |_| {});
    assert!(
        cycle
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Bind { .. }))
    );
    let pod_gone = Some(r#"PodGone("uid-a")"#.to_owned());
    for (case, delta, expected) in [
        ("gone", gone, pod_gone.clone()),
        (
            "going",
            pod("a", "volcano", |pod| {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }),
            pod_gone.clone(),
        ),
        (
            "another one",
            pod("a", "volcano", |pod| pod["metadata"]["uid"] = "other".into()),
            pod_gone,
        ),
        ("the same", pod("a", "volcano", as_it_is), None),
        ("another name", Delta::gone(Kind::Pod, "ns", "b"), None),
        (
            "a node",
            Delta::gone(Kind::Node, "", "n"),
            Some(r#"NodeGone("n")"#.to_owned()),
        ),
    ] {
        assert_eq!(told(&cluster, &delta), expected, "{case}");
    }
}

#[test]
fn a_decision_names_the_latest_pause_that_is_known() {
    let mut cluster = cluster();
    cluster.apply(pod("a", "volcano", as_it_is));
    cluster.whole().unwrap().cycle(Time::EPOCH, &mut |_| {});
    let mut paused = BTreeMap::from([("ns/anew".into(), 3), ("ns/g".into(), 5), ("ns/gone".into(), 7)]);
    let bind = |job: &str| {
        Order::Bind(GangBind {
            job: job.into(),
            binds: Vec::new(),
            ends: None,
        })
    };
    let mut orders = [bind("ns/anew"), bind("ns/other")];
    let after = after_failures(&mut paused, cluster.engine(), &mut orders);
    let ends: Vec<Option<Pause>> = orders
        .iter()
        .filter_map(|order| match order {
            Order::Bind(gang) => Some(gang.ends),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [Some(3), None]);
    assert_eq!(
        format!("{after:?}"),
        r#"[Resume("ns/g", 5), Release("ns/gone", 7)]"#,
        "complete, and not there"
    );
    assert!(paused.is_empty());
}

fn shared(client: Client) -> Arc<Shared> {
    let names = vec!["volcano".to_owned()];
    let ownership = Ownership::new(&names, &[]);
    let options = Options {
        client: Default::default(),
        scheduler_names: names,
        scheduler_conf: None,
        disable_default_conf: false,
        schedule_period: Duration::from_secs(1),
        default_queue: "default".to_owned(),
        priority_class: true,
        csi_storage: true,
        node_selector: Vec::new(),
        features: Features::default(),
        feature_gates: FeatureGates::default(),
        serve: Default::default(),
        cache_dumper: false,
        cache_dump_dir: Default::default(),
        leader_election: None,
        event_qps: 0.0,
        logging: Default::default(),
        unused: Vec::new(),
        ignored: Vec::new(),
    };
    let conf = Conf {
        conf: conf(),
        text: CONF.to_owned(),
    };
    let (metrics, fence) = (Metrics::default(), Fence::open());
    Arc::new(Shared::new(options, client, metrics, ownership, fence, conf))
}

#[tokio::test]
async fn an_election_that_broke_off_ends_the_heart() {
    let shared = shared(Server::default().start().await);
    let (_feed, feed) = mpsc::channel(1);
    let (outcomes_to, outcomes) = mpsc::unbounded_channel();
    let (leads, leadership) = watch::channel(Leadership::default());
    let (_shutdown, shutdown) = watch::channel(false);
    let (_control, mut control) = mpsc::channel(1);
    let inputs = Inputs {
        feed,
        outcomes,
        outcomes_to,
        leadership,
        shutdown,
    };
    drop(leads);
    let run = Core::new(shared, conf()).run(inputs, &mut control);
    let end = tokio::time::timeout(Duration::from_secs(10), run).await;
    assert_eq!(end.expect("an end in time"), End::NoElection);
}
