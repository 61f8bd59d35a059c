use super::build::range;
use super::*;
use volcano_engine::figures::{Amounts, UNLIMITED};

/// The lines of `/metrics` that are about metrics whose names start like this, without comments.
fn lines(metrics: &Metrics, prefix: &str) -> Vec<String> {
    let text = metrics.text();
    let wanted = text.lines().filter(|line| line.starts_with(prefix));
    wanted.map(str::to_owned).collect()
}

fn amounts(list: &[(&str, i64)]) -> Amounts {
    list.iter().map(|&(name, amount)| (name.into(), amount)).collect()
}

/// One of everything.
fn filled() -> Metrics {
    let metrics = Metrics::default();
    let (ms, at) = (Duration::from_millis(3), Time::from_unix_seconds(1_700_000_000));
    metrics.cycle_took(ms);
    metrics.open_session_took(ms);
    metrics.plugin_took("gang", ms);
    metrics.action_took("allocate", ms);
    for stage in [
        TaskStage::Watched,
        TaskStage::Assumed,
        TaskStage::PreBound,
        TaskStage::Bound,
    ] {
        metrics.task_stage(stage, ms.into());
    }
    for stage in [Stage::Predicate, Stage::Scoring, Stage::PreBind, Stage::Bind] {
        metrics.stage_took(stage, ms);
    }
    metrics.preemption_victims(2);
    metrics.preemption_attempts(3);
    metrics.evictions_committed("reclaim", 1);
    metrics.job_created("ns", "train", "q", at);
    metrics.job_scheduled("ns", "train", "q", ms.into(), at);
    metrics.unschedulable("ns", "train", 4);
    metrics.unschedulable_jobs(1);
    metrics.job_retried("ns", "train");
    metrics.job_share("ns", "train", 0.5);
    metrics.queue(&QueueFigures {
        queue: "q".into(),
        allocated: amounts(&[("cpu", 1_500), ("memory", 1 << 30), ("nvidia.com/gpu", 2_000)]),
        request: amounts(&[("cpu", 2_000)]),
        deserved: Some(amounts(&[("cpu", 3_000)])),
        capacity: Some(amounts(&[("cpu", UNLIMITED)])),
        real_capacity: Some(amounts(&[("cpu", 4_000)])),
        inqueue: Some(amounts(&[("cpu", 500)])),
        share: Some(0.25),
        weight: 7,
        overused: Some(true),
    });
    metrics.process().api_write("bind", "ok");
    metrics.process().pending_writes("pod-status", 9);
    metrics.binds_in_flight(5);
    metrics.process().events_dropped(6);
    metrics.config_loaded();
    metrics.config_reloaded(false);
    metrics.process().watch_restarted("pods", "expired");
    metrics.process().leading(true);
    metrics
}

#[test]
fn names_types_and_labels_are_those_that_dashboards_know() {
    let text = filled().text();
    // Name, type and the labels of one line; all names start with volcano_.
    let expected = [
        ("e2e_scheduling_latency_milliseconds", "histogram", ""),
        ("open_session_duration_milliseconds", "histogram", ""),
        ("e2e_job_scheduling_latency_milliseconds", "histogram", ""),
        (
            "e2e_job_scheduling_duration",
            "gauge",
            r#"{job_name="train",job_namespace="ns",queue="q"} 3"#,
        ),
        (
            "e2e_job_scheduling_start_time",
            "gauge",
            r#"{job_name="train",job_namespace="ns",queue="q"} 1700000000"#,
        ),
        (
            "e2e_job_scheduling_last_time",
            "gauge",
            r#"{job_name="train",job_namespace="ns",queue="q"} 1700000000"#,
        ),
        (
            "plugin_scheduling_latency_milliseconds",
            "histogram",
            r#"_count{OnSession="OnSessionOpen",plugin="gang"} 1"#,
        ),
        (
            "action_scheduling_latency_milliseconds",
            "histogram",
            r#"_count{action="allocate"} 1"#,
        ),
        (
            "task_scheduling_latency_milliseconds",
            "histogram",
            r#"_count{stage="PreBound"} 1"#,
        ),
        (
            "scheduling_stage_duration_milliseconds",
            "histogram",
            r#"_count{stage="Bind"} 1"#,
        ),
        ("pod_preemption_victims", "gauge", " 2"),
        ("total_preemption_attempts", "counter", " 3"),
        (
            "eviction_transactions_total",
            "counter",
            r#"{action="reclaim"} 1"#,
        ),
        ("unschedule_task_count", "gauge", r#"{job_id="train"} 4"#),
        ("unschedule_job_count", "gauge", " 1"),
        ("job_share", "gauge", r#"{job_id="train",job_ns="ns"} 0.5"#),
        ("job_retry_counts", "counter", r#"{job_id="train"} 1"#),
        ("queue_allocated_milli_cpu", "gauge", r#"{queue_name="q"} 1500"#),
        (
            "queue_allocated_memory_bytes",
            "gauge",
            r#"{queue_name="q"} 1073741824"#,
        ),
        (
            "queue_allocated_scalar_resources",
            "gauge",
            r#"{queue_name="q",resource="nvidia.com/gpu"} 2000"#,
        ),
        ("queue_request_milli_cpu", "gauge", r#"{queue_name="q"} 2000"#),
        ("queue_deserved_milli_cpu", "gauge", r#"{queue_name="q"} 3000"#),
        ("queue_capacity_milli_cpu", "gauge", r#"{queue_name="q"} inf"#),
        ("queue_capacity_memory_bytes", "gauge", r#"{queue_name="q"} 0"#),
        (
            "queue_real_capacity_milli_cpu",
            "gauge",
            r#"{queue_name="q"} 4000"#,
        ),
        ("queue_inqueue_milli_cpu", "gauge", r#"{queue_name="q"} 500"#),
        ("queue_share", "gauge", r#"{queue_name="q"} 0.25"#),
        ("queue_weight", "gauge", r#"{queue_name="q"} 7"#),
        ("queue_overused", "gauge", r#"{queue_name="q"} 1"#),
        ("api_writes_total", "counter", r#"{kind="bind",result="ok"} 1"#),
        ("config_reload_total", "counter", r#"{result="failure"} 1"#),
        ("config_last_reload_successful", "gauge", " 0"),
        (
            "watch_restarts_total",
            "counter",
            r#"{kind="pods",reason="expired"} 1"#,
        ),
        ("cycles_total", "counter", " 1"),
        ("leader", "gauge", " 1"),
        ("events_dropped_total", "counter", " 6"),
        ("binds_in_flight", "gauge", " 5"),
        ("pending_writes", "gauge", r#"{kind="pod-status"} 9"#),
        (
            "build_info",
            "gauge",
            concat!(r#"{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        ),
    ];
    for (name, kind, sample) in expected {
        let declared = format!("# TYPE volcano_{name} {kind}\n");
        assert!(text.contains(&declared), "{declared}{text}");
        let line = format!("volcano_{name}{sample}");
        assert!(text.contains(&format!("\n{line}")), "{line}\n{text}");
    }
    assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
}

#[test]
fn what_volcano_declares_and_never_sets_is_not_served() {
    let metrics = filled();
    assert!(lines(&metrics, "volcano_namespace").is_empty());
    assert!(lines(&metrics, names::ATTEMPTS).is_empty());
}

#[test]
fn buckets_grow_by_one_factor_from_the_first_to_the_last() {
    // (5000/1)^(1/19) = 1.565606…
    let buckets = range(1.0, 5_000.0, 20);
    assert_eq!(buckets.len(), 20);
    assert_eq!(buckets[0], 1.0);
    assert!((buckets[1] - 1.565_606_6).abs() < 1e-5, "{}", buckets[1]);
    assert!((buckets[19] - 5_000.0).abs() < 1e-6, "{}", buckets[19]);
    let metrics = filled();
    let cases = [
        (names::CYCLE, 20),
        (names::OPEN_SESSION, 20),
        (names::JOB_LATENCY, 30),
        (names::ACTION, 20),
    ];
    for (name, count) in cases {
        // One more for those above all bounds.
        let served = lines(&metrics, &format!("{name}_bucket")).len();
        assert_eq!(served, count + 1, "{name}");
    }
    let per_label = [
        (names::PLUGIN, 15, 1),
        (names::TASK, 30, 4),
        (names::STAGE, 20, 4),
    ];
    for (name, count, labels) in per_label {
        let served = lines(&metrics, &format!("{name}_bucket")).len();
        assert_eq!(served, (count + 1) * labels, "{name}");
    }
}

#[test]
fn clocks_that_differ_give_no_negative_times() {
    let metrics = Metrics::default();
    let at = Time::from_unix_seconds(0);
    metrics.task_stage(TaskStage::Bound, GoDuration::from_seconds(-5));
    metrics.job_scheduled("ns", "j", "q", GoDuration::from_seconds(-5), at);
    let sum = r#"volcano_task_scheduling_latency_milliseconds_sum{stage="Bound"} 0"#;
    assert_eq!(lines(&metrics, &format!("{}_sum", names::TASK)), [sum]);
    assert_eq!(
        lines(&metrics, names::JOB_DURATION),
        [r#"volcano_e2e_job_scheduling_duration{job_name="j",job_namespace="ns",queue="q"} 0"#]
    );
}

#[test]
fn labels_of_jobs_are_escaped() {
    let metrics = Metrics::default();
    let at = Time::from_unix_seconds(0);
    metrics.job_scheduled("ns", "j", "a\"b\\c\nd", GoDuration::from_seconds(1), at);
    assert_eq!(
        lines(&metrics, names::JOB_DURATION),
        [r#"volcano_e2e_job_scheduling_duration{job_name="j",job_namespace="ns",queue="a\"b\\c\nd"} 1000"#]
    );
}

#[test]
fn a_scalar_that_a_queue_no_longer_names_is_zero() {
    let metrics = Metrics::default();
    let figures = |deserved| QueueFigures {
        queue: "q".into(),
        deserved,
        ..QueueFigures::default()
    };
    metrics.queue(&figures(Some(amounts(&[("cpu", 1), ("gpu", 2), ("rdma", 3)]))));
    metrics.queue(&figures(Some(amounts(&[("rdma", 4)]))));
    assert_eq!(
        lines(&metrics, "volcano_queue_deserved"),
        [
            r#"volcano_queue_deserved_memory_bytes{queue_name="q"} 0"#,
            r#"volcano_queue_deserved_milli_cpu{queue_name="q"} 0"#,
            r#"volcano_queue_deserved_scalar_resources{queue_name="q",resource="gpu"} 0"#,
            r#"volcano_queue_deserved_scalar_resources{queue_name="q",resource="rdma"} 4"#,
        ]
    );
    metrics.queue(&figures(None));
    assert!(
        lines(&metrics, "volcano_queue_deserved").is_empty(),
        "what is not known any more has no series"
    );
}

#[test]
fn series_of_queues_and_jobs_go_with_them() {
    let metrics = filled();
    metrics.forget_queue("q");
    metrics.forget_queue("never seen");
    assert!(lines(&metrics, "volcano_queue").is_empty());
    metrics.forget_job("ns", "never seen");
    metrics.forget_job("ns", "train");
    let text = metrics.text();
    assert!(!text.contains("train"), "{text}");
    let at = Time::EPOCH;
    for round in 0..100 {
        let name = format!("job-{round}");
        metrics.job_created("ns", &name, "q", at);
        metrics.job_scheduled("ns", &name, "q", GoDuration::ZERO, at);
        metrics.unschedulable("ns", &name, 1);
        metrics.job_retried("ns", &name);
        metrics.job_share("ns", &name, 0.1);
        metrics.forget_job("ns", &name);
        metrics.queue(&QueueFigures {
            queue: format!("queue-{round}").into(),
            allocated: amounts(&[("gpu", 1)]),
            share: Some(1.0),
            ..QueueFigures::default()
        });
        metrics.forget_queue(&format!("queue-{round}"));
    }
    let text = metrics.text();
    assert!(!text.contains("job-") && !text.contains("queue-"), "{text}");
}

#[test]
fn namesakes_of_several_namespaces_share_what_has_no_namespace() {
    let metrics = Metrics::default();
    metrics.unschedulable("a", "train", 3);
    metrics.unschedulable("b", "train", 4);
    metrics.job_retried("a", "train");
    let waiting = |metrics: &Metrics| lines(metrics, names::UNSCHEDULABLE_TASKS);
    assert_eq!(
        waiting(&metrics),
        [r#"volcano_unschedule_task_count{job_id="train"} 7"#]
    );
    metrics.forget_job("a", "train");
    assert_eq!(
        waiting(&metrics),
        [r#"volcano_unschedule_task_count{job_id="train"} 4"#]
    );
    assert_eq!(lines(&metrics, names::JOB_RETRIES).len(), 1);
    metrics.forget_job("b", "train");
    assert!(waiting(&metrics).is_empty());
    assert!(lines(&metrics, names::JOB_RETRIES).is_empty());
}

#[test]
fn a_job_that_moves_to_another_queue_leaves_nothing_in_the_old_one() {
    let metrics = Metrics::default();
    let at = Time::from_unix_seconds(5);
    metrics.job_created("ns", "train", "old", at);
    metrics.job_created("ns", "train", "new", at);
    assert_eq!(
        lines(&metrics, names::JOB_START),
        [r#"volcano_e2e_job_scheduling_start_time{job_name="train",job_namespace="ns",queue="new"} 5"#]
    );
}
