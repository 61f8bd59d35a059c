//! What the other tests stand on: pods run on the nodes that they should, end as they do, print, and find each other.

use volcano_cluster_tests::field::{Field, cluster, exit_code};
use volcano_testcluster::images::Image;

/// A pod of busybox that runs a script once, on a node if one is named.
fn pod(name: &str, node: &str, script: &str) -> String {
    let node = match node {
        "" => String::new(),
        name => format!("nodeName: {name}"),
    };
    let script = script.replace('\n', "\n      ");
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  {node}
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  hostname: {name}
  subdomain: together
  containers:
  - name: c
    image: busybox:1
    command:
    - sh
    - -c
    - |
      {script}
---
"
    )
}

/// A headless Service over all pods of a label.
fn headless(app: &str) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: together}}
spec: {{clusterIP: None, publishNotReadyAddresses: true, selector: {{app: {app}}}, ports: [{{port: 80}}]}}
---
"
    )
}

#[tokio::test]
async fn a_pod_ends_with_the_exit_code_of_its_program_and_its_output_is_its_log() {
    let field = Field::new().await;
    field
        .apply(&(pod("good", "", "echo all is well") + &pod("bad", "", "echo oops >&2; exit 42")))
        .await;
    let good = field.wait_pod("good", "Succeeded").await;
    assert_eq!(exit_code(&good), Some(0));
    assert_eq!(field.log("good").await, "all is well\n");
    let bad = field.wait_pod("bad", "Failed").await;
    assert_eq!(exit_code(&bad), Some(42));
    assert_eq!(field.log("bad").await, "oops\n");
}

#[tokio::test]
async fn pods_on_different_nodes_find_each_other_by_name() {
    let field = Field::new().await;
    let server = pod(
        "server",
        "node-1",
        "echo hello from $(hostname) > /tmp/index.html\nexec httpd -f -h /tmp",
    );
    let client = pod(
        "client",
        "node-2",
        "until wget -q -O /tmp/out http://server.together; do sleep 0.1; done\ncat /tmp/out",
    );
    field.apply(&(headless("server") + &server + &client)).await;
    field.wait_pod("client", "Succeeded").await;
    // Before that it may have said that the name was not there yet.
    let log = field.log("client").await;
    assert!(log.ends_with("hello from server\n"), "{log}");
    let on = |pod: &serde_json::Value| pod["status"]["hostIP"].as_str().unwrap().to_owned();
    let (server, client) = (
        field.wait_pod("server", "Running").await,
        field.wait_pod("client", "Succeeded").await,
    );
    assert_ne!(on(&server), on(&client));
}

#[tokio::test]
async fn a_service_has_an_address_that_leads_to_its_pods() {
    let field = Field::new().await;
    let service = "apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: behind}, ports: [{port: 8080, targetPort: 80}]}
---
";
    let server = pod(
        "behind",
        "node-1",
        "echo found > /tmp/index.html\nexec httpd -f -h /tmp",
    );
    // From the same node as well: the answer must come from whom was asked.
    // A connection that is begun before kube-proxy knows the Service is never answered.
    let ask = "until timeout 2 wget -q -O- http://web:8080; do sleep 0.1; done";
    let clients = pod("near", "node-1", ask) + &pod("far", "node-2", ask);
    field.apply(&(service.to_owned() + &server + &clients)).await;
    for name in ["near", "far"] {
        field.wait_pod(name, "Succeeded").await;
        assert!(field.log(name).await.ends_with("found\n"), "{name}");
    }
}

#[tokio::test]
async fn commands_run_in_a_container() {
    let field = Field::new().await;
    field.apply(&pod("host", "", "exec sleep 3600")).await;
    field.wait_pod("host", "Running").await;
    assert_eq!(field.kubectl(&["exec", "host", "--", "hostname"]).await, "host\n");
}

#[tokio::test]
async fn a_pod_talks_to_the_api_server_as_its_account_and_may_do_no_more() {
    let field = Field::new().await;
    tokio::task::spawn_blocking(|| cluster().load_image(&Image::Debian))
        .await
        .unwrap()
        .unwrap();
    let manifest = "apiVersion: v1
kind: Pod
metadata: {name: account}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: python:3
    command:
    - python3
    - -c
    - |
      import json, ssl, urllib.error, urllib.request
      folder = '/var/run/secrets/kubernetes.io/serviceaccount/'
      token = open(folder + 'token').read()
      trust = ssl.create_default_context(cafile=folder + 'ca.crt')
      def ask(path, body=None):
          request = urllib.request.Request('https://kubernetes.default.svc' + path, data=body)
          request.add_header('Authorization', 'Bearer ' + token)
          request.add_header('Content-Type', 'application/json')
          return json.load(urllib.request.urlopen(request, context=trust, timeout=20))
      review = {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'SelfSubjectReview'}
      answer = ask('/apis/authentication.k8s.io/v1/selfsubjectreviews', json.dumps(review).encode())
      print(answer['status']['userInfo']['username'])
      try:
          ask('/api/v1/nodes')
      except urllib.error.HTTPError as refused:
          print(refused.code)
";
    field.apply(manifest).await;
    field.wait_pod("account", "Succeeded").await;
    let expected = format!("system:serviceaccount:{}:default\n403\n", field.namespace);
    assert_eq!(field.log("account").await, expected);
}
