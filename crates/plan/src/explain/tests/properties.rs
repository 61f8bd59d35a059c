//! Whatever the cluster is like: no panic, and every change that is suggested starts the job.

use super::*;
use proptest::prelude::*;
use volcano_testkit::generate::{Gang, TaskTemplate, Workload};

#[derive(Clone, Debug)]
struct Scene {
    nodes: Vec<(u32, u8)>,
    queue: (u8, u32, u32),
    running: Vec<(usize, u32, bool)>,
    waiting: Vec<(u32, u32, bool, i32)>,
    job: (u32, u32, u32, u8),
    quota: Option<u32>,
    conf: bool,
}

fn scene() -> impl Strategy<Value = Scene> {
    let nodes = prop::collection::vec((1_u32..9, 0_u8..6), 0..5);
    let queue = (0_u8..4, 1_u32..4, 1_u32..12);
    let running = prop::collection::vec((0_usize..5, 1_u32..4, any::<bool>()), 0..4);
    let waiting = prop::collection::vec((1_u32..4, 1_u32..4, any::<bool>(), 0_i32..3), 0..3);
    let job = (1_u32..7, 0_u32..8, 1_u32..6, 0_u8..6);
    let quota = prop::option::of(0_u32..8);
    (nodes, queue, running, waiting, job, quota, any::<bool>()).prop_map(
        |(nodes, queue, running, waiting, job, quota, conf)| Scene {
            nodes,
            queue,
            running,
            waiting,
            job,
            quota,
            conf,
        },
    )
}

impl Scene {
    fn objects(&self) -> Vec<String> {
        let mut objects = vec![class("c0", 0), class("c1", 10), class("c2", 20), class("c3", 30)];
        for (at, (cpu, kind)) in self.nodes.iter().enumerate() {
            let rest = match kind {
                0 => "taints: [{key: a, value: b, effect: NoSchedule}]",
                1 => "unschedulable: true",
                _ => "",
            };
            objects.push(node(&format!("n{at}"), *cpu, rest));
        }
        let (kind, weight, capability) = self.queue;
        let state = if kind == 0 { "Closed" } else { "Open" };
        let limit = if kind == 1 {
            format!("capability: {{cpu: {capability}}},")
        } else {
            String::new()
        };
        objects.push(queue("q", &format!("{limit} weight: {weight}"), state));
        objects.push(queue("r", "weight: 2", "Open"));
        let of = |mine: bool| if mine { "q" } else { "r" };
        for (at, (place, cpu, mine)) in self.running.iter().enumerate() {
            if self.nodes.is_empty() {
                break;
            }
            let name = format!("run{at}");
            objects.push(group(&name, of(*mine), 1, "Running", ""));
            objects.push(pod(
                &name,
                0,
                &cpu.to_string(),
                &format!("n{}", place % self.nodes.len()),
                "",
            ));
        }
        for (at, (pods, cpu, mine, class)) in self.waiting.iter().enumerate() {
            let name = format!("wait{at}");
            let priority = format!("priorityClassName: c{class}");
            objects.push(group(&name, of(*mine), *pods, "Inqueue", &priority));
            objects.extend(
                (0..*pods).map(|index| pod(&name, index, &cpu.to_string(), "", &format!("{priority},"))),
            );
        }
        if let Some(pods) = self.quota {
            objects.push(format!(
                "{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: small, namespace: ns}}, \
                 spec: {{hard: {{pods: {pods}}}}}, status: {{hard: {{pods: {pods}}}, used: {{pods: 0}}}}}}"
            ));
        }
        let (replicas, minimum, cpu, kind) = self.job;
        let spec = if kind == 0 {
            "nodeSelector: {kubernetes.io/hostname: n0},"
        } else {
            ""
        };
        let mut tasks = vec![task("w", replicas, &cpu.to_string(), "", spec)];
        if kind == 1 {
            tasks.push(task("late", 1, "1", "dependsOn: {name: [w]},", ""));
        }
        objects.push(job("train", minimum, "queue: q, priorityClassName: c1,", &tasks));
        objects
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn every_suggestion_starts_the_job(scene in scene()) {
        let conf = match scene.conf {
            true => conf(),
            false => conf_of(
                "actions: enqueue, allocate, preempt, reclaim, backfill\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
                 - plugins: [{name: overcommit}, {name: predicates}, {name: capacity}, {name: nodeorder}]",
            ),
        };
        let explanation = checked(&scene.objects(), &conf, "train");
        prop_assert!(explanation.state != State::Waiting || !explanation.reasons.is_empty(), "{explanation}");
        prop_assert!(!explanation.to_string().is_empty());
    }
}

#[test]
fn generated_clusters_are_explained() {
    let workload = Workload::full(20);
    let mut objects: Vec<_> = workload.deltas().collect();
    objects.extend(Workload::urgent("urgent", "waiting", 30).deltas());
    let huge = Gang::new("batch", "huge", "waiting", NOW).task(TaskTemplate::new("worker", 10, "100", "1Gi"));
    objects.extend(huge.deltas());
    let mut cluster = Cluster {
        objects,
        ..Cluster::default()
    };
    cluster.complete(queues::DEFAULT);
    let groups: Vec<String> = cluster
        .objects
        .iter()
        .filter_map(|object| match object {
            volcano_engine::model::delta::Delta::PodGroup(group) => Some(group.metadata.name.clone()),
            _ => None,
        })
        .collect();
    let conf = conf();
    for name in groups {
        let key = JobKey::new("batch", &name);
        let explanation = explain(&cluster, &conf, &key).unwrap();
        check_suggestions(&cluster, &conf, &key, &explanation);
    }
}
