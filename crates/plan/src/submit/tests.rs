//! Jobs and what they are expanded to.

use super::*;
use volcano_api::names::queues;

const NOW: Time = Time::from_unix_seconds(1_700_000_000);

fn cluster(text: &str) -> Cluster {
    let mut cluster = Cluster::exactly(&Source::from_text("cluster", text)).unwrap();
    cluster.complete(queues::DEFAULT);
    cluster
}

fn expand(cluster: &mut Cluster, job: &str) -> Result<Submitted, String> {
    let mut submitted = None;
    input::read(&Source::from_text("job", job), &mut |entry| {
        let job = read_job(&entry)?;
        submitted = Some(add(cluster, &entry.title(), job, "volcano", NOW)?);
        Ok(())
    })
    .map_err(|fault| fault.to_string())?;
    Ok(submitted.unwrap())
}

fn group(cluster: &Cluster) -> &PodGroup {
    let group = cluster.objects.iter().find_map(|object| match object {
        Delta::PodGroup(group) => Some(&**group),
        _ => None,
    });
    group.unwrap()
}

fn resources(group: &PodGroup) -> Vec<String> {
    let list = group.spec.min_resources.as_ref().unwrap();
    list.iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect()
}

const JOB: &str = "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
  labels: {team: a, volcano.sh/preemptable: 'true'}
  annotations: {volcano.sh/sla-waiting-time: 1h, volcano.sh/jdb-min-available: '2', volcano.sh/revocable-zone: '*'}
spec:
  priorityClassName: high
  tasks:
  - name: ps
    replicas: 1
    template:
      metadata: {labels: {app: x}, annotations: {a: b}, name: dropped}
      spec:
        containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2}}}]
  - name: worker
    replicas: 4
    minAvailable: 2
    partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1, networkTopology: {mode: hard, highestTierAllowed: 1}}
    topologyPolicy: restricted
    template:
      spec:
        schedulerName: other
        containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2, cpu: 500m}, requests: {nvidia.com/gpu: 2}}}]
";

#[test]
fn a_job_becomes_a_pod_group_and_its_pods() {
    let mut cluster =
        cluster("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 9}");
    let submitted = expand(&mut cluster, JOB).unwrap();
    assert_eq!(submitted.job, "default/train");
    assert_eq!(submitted.group, "default/train-default-train");
    let group = group(&cluster);
    assert_eq!(group.spec.min_member, 3);
    assert_eq!(
        group.spec.min_task_member,
        [("ps".to_owned(), 1), ("worker".to_owned(), 2)].into()
    );
    assert_eq!(
        (group.spec.queue.as_str(), group.spec.priority_class_name.as_str()),
        ("default", "high")
    );
    assert_eq!(group.status.phase, PodGroupPhase::Pending);
    assert_eq!(group.metadata.label("team"), Some("a"));
    assert_eq!(
        group.metadata.annotation("volcano.sh/sla-waiting-time"),
        Some("1h")
    );
    assert_eq!(
        resources(group),
        [
            "count/pods=3",
            // One of ps; half a core each of two workers, which have a limit and so ask for it.
            "cpu=2",
            "limits.cpu=3",
            "memory=1Gi",
            "nvidia.com/gpu=4",
            "pods=3",
            "requests.cpu=2",
            "requests.memory=1Gi",
            "requests.nvidia.com/gpu=4"
        ]
    );
    let policy = &group.spec.sub_group_policy[0];
    assert_eq!(
        (policy.name.as_str(), policy.sub_group_size, policy.min_sub_groups),
        ("worker", Some(2), Some(1))
    );
    assert_eq!(policy.match_label_keys, ["volcano.sh/partition-id"]);
    let topology = policy.network_topology.as_ref().unwrap();
    assert_eq!(
        (topology.highest_tier_allowed, topology.highest_tier_name.as_str()),
        (Some(1), "")
    );

    let pods: Vec<_> = cluster.pods().collect();
    let names: Vec<_> = pods.iter().map(|pod| pod.metadata.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "train-ps-0",
            "train-worker-0",
            "train-worker-1",
            "train-worker-2",
            "train-worker-3"
        ]
    );
    let ps = pods[0];
    assert_eq!(
        (ps.spec.scheduler_name.as_str(), ps.spec.priority),
        ("volcano", Some(9))
    );
    for (key, value) in [
        ("a", "b"),
        ("scheduling.k8s.io/group-name", "train-default-train"),
        ("volcano.sh/task-spec", "ps"),
        ("volcano.sh/task-index", "0"),
        ("volcano.sh/job-version", "0"),
        ("volcano.sh/job-retry-count", "0"),
        ("volcano.sh/template-uid", "train-ps"),
        ("volcano.sh/queue-name", "default"),
        ("volcano.sh/jdb-min-available", "2"),
        ("volcano.sh/revocable-zone", "*"),
    ] {
        assert_eq!(
            ps.metadata.annotations.get(key).map(String::as_str),
            Some(value),
            "{key}"
        );
    }
    for (key, value) in [
        ("app", "x"),
        ("volcano.sh/job-namespace", "default"),
        ("volcano.sh/job-name", "train"),
        ("volcano.sh/preemptable", "true"),
    ] {
        assert_eq!(
            ps.metadata.labels.get(key).map(String::as_str),
            Some(value),
            "{key}"
        );
    }
    let last = pods[4];
    assert_eq!(last.metadata.labels["volcano.sh/partition-id"], "1");
    assert_eq!(
        last.metadata.annotations["volcano.sh/numa-topology-policy"],
        "restricted"
    );
    assert_eq!(last.spec.scheduler_name, "other");
    assert_eq!(
        last.spec.containers[0].resources.requests["cpu"].to_string(),
        "500m"
    );
    assert_eq!(last.metadata.creation_timestamp, Some(NOW));
}

#[test]
fn the_smallest_gang_takes_the_most_important_tasks_first() {
    let task = |name: &str, replicas: i32, minimum: &str, class: &str, cpu: i32| {
        format!(
            "{{name: {name}, replicas: {replicas}, {minimum} template: {{spec: {{priorityClassName: {class}, \
             containers: [{{resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}"
        )
    };
    let job = |minimum: i32, tasks: &[String]| {
        format!(
            "{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: j}}, \
             spec: {{minAvailable: {minimum}, tasks: [{}]}}}}",
            tasks.join(", ")
        )
    };
    let cases = [
        // Fewer than the tasks' minimums: greedily by priority, up to the replicas.
        (
            job(3, &[task("a", 2, "", "low", 1), task("b", 2, "", "high", 10)]),
            "cpu=21",
        ),
        // Enough for the minimums: these first, the rest by priority.
        (
            job(
                4,
                &[
                    task("a", 3, "minAvailable: 1,", "low", 1),
                    task("b", 4, "minAvailable: 1,", "high", 10),
                ],
            ),
            "cpu=31",
        ),
        (
            job(
                2,
                &[
                    task("a", 3, "minAvailable: 1,", "low", 1),
                    task("b", 4, "minAvailable: 1,", "high", 10),
                ],
            ),
            "cpu=11",
        ),
    ];
    for (job, expected) in cases {
        let mut cluster = cluster(
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 9}\n---\n\
             {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1}",
        );
        expand(&mut cluster, &job).unwrap();
        assert!(
            resources(group(&cluster)).contains(&expected.to_owned()),
            "{:?}",
            resources(group(&cluster))
        );
    }
}

#[test]
fn tasks_that_depend_on_others_have_no_pods_yet() {
    let mut cluster = cluster("");
    let job = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}, spec: {tasks: [\
               {name: a, replicas: 1, template: {spec: {containers: [{}]}}}, \
               {name: b, replicas: 2, dependsOn: {name: [a]}, template: {spec: {containers: [{}]}}}]}}";
    expand(&mut cluster, job).unwrap();
    let names: Vec<_> = cluster.pods().map(|pod| pod.metadata.name.as_str()).collect();
    assert_eq!(names, ["j-a-0"]);
    assert_eq!(
        cluster.notes,
        ["job: document 1 (Job j): task b waits for a to run (dependsOn): its 2 pods are not made yet"]
    );
}

#[test]
fn volumes_become_claims_of_every_pod() {
    let mut cluster = cluster("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}");
    let job = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}, spec: {\
               volumes: [{mountPath: /d, volumeClaimName: data}, {mountPath: /e, volumeClaimName: data}, \
               {mountPath: /f, volumeClaim: {storageClassName: fast}}], \
               tasks: [{name: a, replicas: 2, template: {spec: {containers: [{}]}}}]}}";
    expand(&mut cluster, job).unwrap();
    let pod = cluster.pods().next().unwrap();
    let claims: Vec<_> = pod
        .spec
        .volumes
        .iter()
        .map(|v| v.persistent_volume_claim.as_ref().unwrap().claim_name.as_str())
        .collect();
    let made = claims[1];
    assert_eq!(claims[0], "data");
    let controller: Job =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "j", "uid": "default-j"},
            "spec": {"volumes": [{"mountPath": "/d", "volumeClaimName": "data"},
                {"mountPath": "/e", "volumeClaimName": "data"}, {"mountPath": "/f", "volumeClaim": {}}]}}))
        .unwrap();
    assert_eq!(
        made,
        reconcile::claims_of(&controller)[2],
        "the name that the controller gives"
    );
    assert!(cluster.has(Kind::Claim, "default", made));
    let mounted: Vec<_> = cluster
        .pods()
        .map(|pod| {
            pod.spec
                .volumes
                .iter()
                .map(|v| v.name.clone())
                .collect::<Vec<_>>()
        })
        .collect();
    for (at, names) in mounted.iter().enumerate() {
        let own = reconcile::mounts(&controller, &format!("j-a-{at}"));
        let own: Vec<_> = own
            .iter()
            .map(|(volume, _)| volume["name"].as_str().unwrap())
            .collect();
        assert_eq!(*names, own, "each pod has names of its own");
    }
}

#[test]
fn jobs_that_cannot_be_planned_say_why() {
    let job = |rest: &str| {
        format!("{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: j}}, {rest}}}")
    };
    let task = "{name: a, replicas: 1, template: {spec: {containers: [{}]}}}";
    let cases = [
        (
            job("spec: {tasks: [{name: a, replicas: 1}]}"),
            "job: document 1 (Job j): spec.tasks[0].template.spec.containers: required",
        ),
        (
            job(
                "spec: {tasks: [{name: a, replicas: 1, template: {spec: {containers: [{resources: {requests: {cpu: x}}}]}}}]}",
            ),
            "spec.tasks[0].template.spec.containers[0].resources.requests.cpu: ",
        ),
        (
            job("spec: {tasks: [{replicas: many}]}"),
            "(Job j): spec.tasks[0].replicas: invalid type: string \"many\", expected i32",
        ),
        (
            job("spec: {queue: q}"),
            "the Job would be refused: No task specified in job spec",
        ),
        (
            job(&format!(
                "spec: {{volumes: [{{mountPath: /a, volumeClaimName: no}}], tasks: [{task}]}}"
            )),
            "pvc no is not found",
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: p}}".to_owned(),
            "v1 Pod is not a batch.volcano.sh/v1alpha1 Job",
        ),
        (
            job("spec: {tasks: [{name: a, replicas: 2000000}]}"),
            "2000000 pods; at most 1000000 are planned",
        ),
    ];
    for (job, expected) in cases {
        let error = expand(&mut cluster(""), &job).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let mut cluster = cluster("");
    let good = job(&format!("spec: {{tasks: [{task}]}}"));
    expand(&mut cluster, &good).unwrap();
    let error = expand(&mut cluster, &good).unwrap_err();
    assert!(
        error.contains("PodGroup default/j-default-j is in the cluster already"),
        "{error}"
    );
}
