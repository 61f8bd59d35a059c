//! Networks and names of pods.

use crate::machine::{can_run, not_run};
use crate::stage::{Stage, container};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use serde_json::{Value, json};
use volcano_node::Isolation;

/// Answers one connection with the name of the pod.
const SERVER: &str = r#"exec perl -MIO::Socket::INET -e '
    my $server = IO::Socket::INET->new(LocalPort => 7000, Listen => 5, ReuseAddr => 1) or die;
    $| = 1; print "up\n";
    while (my $client = $server->accept) { print $client "I am $ENV{HOSTNAME}\n"; close $client; }'"#;
/// Asks a host, again until it answers.
const CLIENT: &str = r#"exec perl -MIO::Socket::INET -e '
    for (1..200) {
        my $socket = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 7000, Timeout => 2);
        if ($socket) { print <$socket>; exit 0; }
        select(undef, undef, undef, 0.05);
    }
    die "no answer\n"' "#;

fn member(script: &str, hostname: &str) -> Value {
    json!({"hostname": hostname, "subdomain": "gang", "containers": [container(script)]})
}

async fn service(stage: &Stage) {
    let service = json!({"metadata": {"name": "gang"}, "spec": {
        "clusterIP": "None", "publishNotReadyAddresses": true, "selector": {},
    }});
    let mut service = service;
    service["spec"]["selector"] = json!({"gang": "yes"});
    let _: Service = stage.create(service).await;
}

async fn labelled(stage: &Stage, name: &str, mut spec: Value) {
    spec["nodeName"] = crate::stage::NODE.into();
    spec["restartPolicy"] = "Never".into();
    let pod = json!({"metadata": {"name": name, "labels": {"gang": "yes"}}, "spec": spec});
    let _: k8s_openapi::api::core::v1::Pod = stage.create(pod).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_find_and_reach_each_other_by_name() {
    if !can_run(&[]) {
        return;
    }
    let mut stage = Stage::start().await;
    assert!(
        stage.agent().gateway().is_some(),
        "{}",
        stage.agent().isolation_message()
    );
    service(&stage).await;
    labelled(&stage, "worker-0", member(SERVER, "worker-0")).await;
    labelled(&stage, "worker-1", member(SERVER, "worker-1")).await;
    for (name, target) in [
        ("short", "worker-0.gang"),
        ("long", "worker-1.gang.default.svc.cluster.local"),
    ] {
        labelled(&stage, name, member(&format!("{CLIENT}{target}"), name)).await;
        stage.phase(name, "Succeeded").await;
        let server = target.split('.').next().unwrap();
        assert_eq!(stage.log(name).await, format!("I am {server}\n"));
    }
    let address = |pod: &Value| pod["status"]["podIP"].as_str().unwrap().to_owned();
    let (first, second) = (
        stage.phase("worker-0", "Running").await,
        stage.phase("worker-1", "Running").await,
    );
    assert_ne!(address(&first), address(&second));
    let answer = tokio::net::TcpStream::connect((address(&first), 7000)).await;
    assert!(answer.is_ok(), "the host reaches the pod: {answer:?}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_appears_in_pods_that_run_already_and_goes_with_its_pod() {
    let mut stage = Stage::start().await;
    if stage.agent().isolation() == Isolation::None {
        return not_run("names need namespaces");
    }
    service(&stage).await;
    let script = "until getent hosts late.gang >/dev/null; do sleep 0.05; done; echo found; \
        while getent hosts late.gang >/dev/null; do sleep 0.05; done; echo lost; getent hosts early.gang.default.svc | wc -l";
    labelled(&stage, "early", member(script, "early")).await;
    stage.phase("early", "Running").await;
    labelled(&stage, "late", member("sleep 1000", "late")).await;
    stage.log_with("early", "found").await;
    stage.delete("late").await;
    stage.phase("early", "Succeeded").await;
    assert_eq!(stage.log("early").await, "found\nlost\n1\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_of_a_pod_share_its_network_and_pods_may_have_the_hosts() {
    if !can_run(&[]) {
        return;
    }
    let mut stage = Stage::start().await;
    let mut client = container(&format!("{CLIENT}127.0.0.1"));
    client["name"] = "client".into();
    stage
        .pod("p", json!({"containers": [container(SERVER), client]}))
        .await;
    let pod = stage
        .until("p", "answered", |pod| {
            let all = pod["status"]["containerStatuses"].as_array();
            all.is_some_and(|all| {
                all.iter()
                    .any(|one| one["name"] == "client" && one["state"]["terminated"]["exitCode"] == 0)
            })
        })
        .await;
    assert_eq!(pod["status"]["phase"], "Running");
    stage.pod("h", json!({"hostNetwork": true, "containers": [container("ls /sys/class/net; ls -l /proc/self/ns/net")]})).await;
    let pod = stage.phase("h", "Succeeded").await;
    assert_eq!(pod["status"]["podIP"], pod["status"]["hostIP"]);
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let log = stage.log("h").await;
    assert!(log.contains(own.to_str().unwrap()), "{log}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_says_what_it_has_and_how_pods_are_set_apart() {
    let mut stage = Stage::with(|options| {
        options.isolation = Some(Isolation::None);
        options
            .capacity
            .insert("nvidia.com/gpu".to_owned(), "8".to_owned());
        options.capacity.insert("cpu".to_owned(), "64".to_owned());
        options.labels.insert("zone".to_owned(), "a".to_owned());
    })
    .await;
    let nodes: Api<Node> = Api::all(stage.plane.client());
    let node = serde_json::to_value(nodes.get(crate::stage::NODE).await.unwrap()).unwrap();
    let status = &node["status"];
    assert_eq!(
        (
            &status["allocatable"]["nvidia.com/gpu"],
            &status["capacity"]["cpu"]
        ),
        (&json!("8"), &json!("64"))
    );
    assert!(
        status["capacity"]["memory"].as_str().unwrap().ends_with("Ki"),
        "{status}"
    );
    assert_eq!(
        (
            &node["metadata"]["labels"]["zone"],
            &node["metadata"]["labels"]["kubernetes.io/hostname"]
        ),
        (&json!("a"), &json!("here"))
    );
    let conditions = status["conditions"].as_array().unwrap();
    let of = |kind: &str| conditions.iter().find(|one| one["type"] == kind).unwrap();
    assert_eq!(of("Ready")["status"], "True");
    assert_eq!(
        (&of("PodIsolation")["status"], &of("PodIsolation")["reason"]),
        (&json!("False"), &json!("NoNamespaces"))
    );
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(stage.plane.client(), "kube-node-lease");
    let begin = std::time::Instant::now();
    while leases.get_opt(crate::stage::NODE).await.unwrap().is_none() {
        assert!(begin.elapsed().as_secs() < 60, "the node has no lease");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    stage.stop().await;
}
