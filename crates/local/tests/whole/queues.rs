//! Queues: weights, capabilities, open and closed; priorities, preemption, reclaim, gangs that wait, backfill.

use crate::count;
use crate::field::{Field, Outcome, QUEUES, all, case, holds, job, pool, same, task, text};
use serde_json::{Value, json};

/// All actions, and the plugins that they ask.
const CONF: &str = r#"
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"#;

fn in_queue(mut object: Value, queue: &str) -> Value {
    object["spec"]["queue"] = queue.into();
    object
}

fn with_priority(mut object: Value, class: &str) -> Value {
    object["spec"]["priorityClassName"] = class.into();
    object
}

async fn running(field: &Field, job: &str) -> usize {
    let phases = field.phases(job).await;
    phases.iter().filter(|(_, phase)| phase == "Running").count()
}

/// Jobs of a queue with one pod each.
const SINGLES: usize = 12;

async fn submit_singles(field: &Field, queue: &str) -> Outcome {
    for at in 0..SINGLES {
        let object = job(&format!("{queue}-{at}"), 1, &[task("t", 1, "sleep 100000")]);
        field.submit(&in_queue(object, queue)).await?;
    }
    Ok(())
}

/// Those of them that run.
async fn singles(field: &Field, queue: &str) -> usize {
    let mut count = 0;
    for at in 0..SINGLES {
        count += running(field, &format!("{queue}-{at}")).await;
    }
    count
}

#[tokio::test(start_paused = true)]
async fn queues_share_by_weight() {
    let cases: [_; count::WEIGHTS] = [((1, 1), (6, 6)), ((1, 2), (4, 8)), ((1, 5), (2, 10))];
    for (weights, shares) in cases {
        let field = Field::with_conf(vec![pool("all", 3, 4)], Some(CONF)).await;
        let share = async {
            field.queue("a", json!({"weight": weights.0})).await?;
            field.queue("b", json!({"weight": weights.1})).await?;
            for queue in ["a", "b"] {
                submit_singles(&field, queue).await?;
            }
            field.pass(120.0).await;
            let found = (singles(&field, "a").await, singles(&field, "b").await);
            same("pods that run", found, shares)
        };
        all(vec![case(format!("weights {weights:?}"), share)]).await;
        field.stop(count::SHARING).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_takes_back_what_is_its_share_from_those_that_are_reclaimable() {
    for (reclaimable, left) in [(true, (6, 6)), (false, (12, 0))] {
        let field = Field::with_conf(vec![pool("all", 3, 4)], Some(CONF)).await;
        let reclaims = async {
            let giving = json!({"weight": 1, "reclaimable": reclaimable});
            field.queue("a", giving).await?;
            field.queue("b", json!({"weight": 1})).await?;
            let first = job("first", 1, &[task("t", 12, "sleep 100000")]);
            field.submit(&in_queue(first, "a")).await?;
            field.runs("first", 12).await?;
            // Only Jobs that lack their gang take something back.
            submit_singles(&field, "b").await?;
            field.pass(300.0).await;
            let found = (running(&field, "first").await, singles(&field, "b").await);
            same("pods that run", found, left)
        };
        all(vec![case(format!("reclaimable: {reclaimable}"), reclaims)]).await;
        field.stop(count::RECLAIMING).await;
    }
}

#[tokio::test(start_paused = true)]
async fn more_important_jobs_take_the_place_of_others() {
    let field = Field::with_conf(vec![pool("all", 2, 4)], Some(CONF)).await;
    let preempts = async {
        field.priority_class("high", 1000).await?;
        field.priority_class("low", 10).await?;
        let low = job("low", 1, &[task("t", 8, "sleep 100000")]);
        field.submit(&with_priority(low, "low")).await?;
        field.runs("low", 8).await?;
        let high = job("high", 3, &[task("t", 3, "sleep 50")]);
        field.submit(&with_priority(high, "high")).await?;
        field.runs("high", 3).await?;
        same("pods that are left of the other", running(&field, "low").await, 5)?;
        field.reaches("high", "Completed").await?;
        field.runs("low", 8).await
    };
    all(vec![case("preemption", preempts)]).await;
    field.stop(count::PREEMPTING).await;
}

#[tokio::test(start_paused = true)]
async fn the_more_important_of_two_that_wait_goes_first() {
    let field = Field::with_conf(vec![pool("all", 1, 4)], Some(CONF)).await;
    let order = async {
        field.priority_class("high", 1000).await?;
        field.priority_class("low", 10).await?;
        let holds_all = job("holds-all", 4, &[task("t", 4, "sleep 100")]);
        field.submit(&with_priority(holds_all, "high")).await?;
        field.runs("holds-all", 4).await?;
        for class in ["low", "high"] {
            let name = format!("waits-{class}");
            let waits = job(&name, 4, &[task("t", 4, "sleep 100")]);
            field.submit(&with_priority(waits, class)).await?;
            field.pass(5.0).await;
        }
        field.runs("waits-high", 4).await?;
        same("of the less important", running(&field, "waits-low").await, 0)?;
        field.reaches("waits-low", "Completed").await
    };
    all(vec![case("priorities", order)]).await;
    field.stop(count::WAITING).await;
}

#[tokio::test(start_paused = true)]
async fn a_gang_waits_until_it_fits_as_a_whole() {
    let field = Field::new(vec![pool("all", 2, 4)]).await;
    let waits = async {
        field
            .submit(&job("small", 3, &[task("t", 3, "sleep 100")]))
            .await?;
        field.runs("small", 3).await?;
        field
            .submit(&job("large", 8, &[task("t", 8, "sleep 50")]))
            .await?;
        field.pass(60.0).await;
        same(
            "pods of the large one that run",
            running(&field, "large").await,
            0,
        )?;
        let phase = field.job("large").await["status"]["state"]["phase"].take();
        same("its phase", text(&phase), "Pending".to_owned())?;
        field.runs("large", 8).await?;
        holds("the small one is over", field.seconds() > 100.0)?;
        field.reaches("large", "Completed").await
    };
    let never = async {
        field
            .submit(&job("too-large", 9, &[task("t", 9, "sleep 5")]))
            .await?;
        field.pass(900.0).await;
        same("pods that run", running(&field, "too-large").await, 0)
    };
    let part = async {
        // The gang is a part of the Job: the rest comes when there is room.
        field.pass(400.0).await;
        field
            .submit(&job("elastic", 4, &[task("t", 12, "sleep 100")]))
            .await?;
        field.runs("elastic", 8).await?;
        field.reaches("elastic", "Completed").await?;
        let succeeded = field.job("elastic").await["status"]["succeeded"].as_u64();
        same("succeeded", succeeded, Some(12))
    };
    all(vec![
        case("waits", waits),
        case("never", never),
        case("part", part),
    ])
    .await;
    field.stop(count::GANGS).await;
}

#[tokio::test(start_paused = true)]
async fn pods_without_requests_fill_what_is_left() {
    let field = Field::new(vec![pool("all", 1, 2)]).await;
    let fills = async {
        field
            .submit(&job("full", 2, &[task("t", 2, "sleep 100")]))
            .await?;
        field.runs("full", 2).await?;
        let mut free = task("t", 3, "sleep 20");
        free["template"]["spec"]["containers"][0]["resources"] = json!({});
        field.submit(&job("free", 1, &[free])).await?;
        field.runs("free", 3).await?;
        same("pods of the full one", running(&field, "full").await, 2)?;
        field.reaches("free", "Completed").await
    };
    all(vec![case("backfill", fills)]).await;
    field.stop(count::BEST_EFFORT).await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_has_no_more_than_its_capability() {
    let field = Field::with_conf(vec![pool("all", 3, 4)], Some(CONF)).await;
    let limited = async {
        field
            .queue("limited", json!({"weight": 1, "capability": {"cpu": "3"}}))
            .await?;
        let first = job("first", 2, &[task("t", 2, "sleep 100")]);
        field.submit(&in_queue(first, "limited")).await?;
        field.runs("first", 2).await?;
        let second = job("second", 2, &[task("t", 2, "sleep 50")]);
        field.submit(&in_queue(second, "limited")).await?;
        field.pass(60.0).await;
        same("pods beyond the capability", running(&field, "second").await, 0)?;
        field.reaches("first", "Completed").await?;
        field.reaches("second", "Completed").await
    };
    all(vec![case("capability", limited)]).await;
    field.stop(count::CAPPED).await;
}

#[tokio::test(start_paused = true)]
async fn closed_queues_take_no_jobs() {
    let field = Field::new(vec![pool("all", 3, 4)]).await;
    let state = async |queue: &str| {
        let queue = field.get(&format!("{QUEUES}/{queue}")).await.unwrap_or_default();
        text(&queue["status"]["state"])
    };
    let closes = async {
        field.queue("q", json!({"weight": 1})).await?;
        field
            .until("open", async || {
                let state = state("q").await;
                (state == "Open", state)
            })
            .await?;
        let runs = job("runs", 1, &[task("t", 1, "sleep 100")]);
        field.submit(&in_queue(runs, "q")).await?;
        field.runs("runs", 1).await?;
        field.command_queue("q", "CloseQueue").await?;
        field
            .until("closing", async || {
                let state = state("q").await;
                (state == "Closing", state)
            })
            .await?;
        let late = job("late", 1, &[task("t", 1, "sleep 5")]);
        let refused = field
            .submit(&in_queue(late.clone(), "q"))
            .await
            .err()
            .unwrap_or_default();
        holds(
            &format!("refused because of its queue: {refused}"),
            refused.contains("queue"),
        )?;
        field.reaches("runs", "Completed").await?;
        field
            .until("closed", async || {
                let state = state("q").await;
                (state == "Closed", state)
            })
            .await?;
        field.command_queue("q", "OpenQueue").await?;
        field
            .until("open again", async || {
                let state = state("q").await;
                (state == "Open", state)
            })
            .await?;
        field.submit(&in_queue(late, "q")).await?;
        field.reaches("late", "Completed").await
    };
    let unknown = async {
        let object = job("nowhere", 1, &[task("t", 1, "sleep 5")]);
        let refused = field
            .submit(&in_queue(object, "nowhere"))
            .await
            .err()
            .unwrap_or_default();
        holds(&format!("refused: {refused}"), refused.contains("nowhere"))
    };
    let at_once = async {
        // What was written before a request counts for it.
        field.queue("fresh", json!({"weight": 1})).await?;
        let object = job("fresh", 1, &[task("t", 1, "sleep 5")]);
        field.submit(&in_queue(object, "fresh")).await?;
        field.reaches("fresh", "Completed").await
    };
    let cases = vec![
        case("closes", closes),
        case("unknown", unknown),
        case("at once", at_once),
    ];
    all(cases).await;
    field.stop(count::CLOSED).await;
}
