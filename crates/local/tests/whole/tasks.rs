//! Tasks of a Job: order, scaling, retries, minSuccess, the end of finished Jobs.

use crate::count;
use crate::field::{Field, all, case, holds, job, pool, same, task, text};
use serde_json::{Value, json};

fn started(pod: &Value) -> String {
    text(&pod["metadata"]["creationTimestamp"])
}

#[tokio::test(start_paused = true)]
async fn tasks_wait_for_those_that_they_depend_on() {
    let field = Field::new(vec![pool("all", 40, 16)]).await;
    let mut cases = Vec::new();
    cases.push(case("chain", async {
        let mut first = task("first", 1, "sleep 10");
        first["minAvailable"] = 1.into();
        let mut second = task("second", 1, "sleep 10");
        second["dependsOn"] = json!({"name": ["first"]});
        field.submit(&job("chain", 1, &[first, second])).await?;
        field.runs("chain", 2).await?;
        let (a, b) = (
            field.pod("chain-first-0").await,
            field.pod("chain-second-0").await,
        );
        holds("the second is not older", started(&a) <= started(&b))?;
        field.reaches("chain", "Completed").await
    }));
    for (iteration, waits_for) in [("all", 2), ("any", 1)] {
        let field = &field;
        let name = format!("depends-{iteration}");
        cases.push(case(name.clone(), async move {
            // The first that is depended on is ready after a while, the second never.
            let mut ready = task("ready", 1, "sleep 500");
            ready["minAvailable"] = 1.into();
            let mut never = task("never", 1, "sleep 500");
            never["minAvailable"] = 1.into();
            never["template"]["spec"]["nodeSelector"] = json!({"pool": "nowhere"});
            let mut last = task("last", 1, "sleep 500");
            last["dependsOn"] = json!({"name": ["ready", "never"], "iteration": iteration});
            field.submit(&job(&name, 1, &[ready, never, last])).await?;
            field.pass(60.0).await;
            let is_made = !field.pod(&format!("{name}-last-0")).await.is_null();
            same("the last is made", is_made, waits_for == 1)?;
            field.command(&name, "TerminateJob").await?;
            field.reaches(&name, "Terminated").await
        }));
    }
    all(cases).await;
    field.stop(count::DEPENDING).await;
}

#[tokio::test(start_paused = true)]
async fn jobs_are_scaled_while_they_run() {
    let field = Field::new(vec![pool("all", 40, 16)]).await;
    let names = async |name: &str| -> Vec<String> {
        field.phases(name).await.into_iter().map(|(pod, _)| pod).collect()
    };
    let mut cases = Vec::new();
    for (from, to) in [(2, 5), (5, 2), (3, 1), (1, 8)] {
        let (field, names) = (&field, &names);
        let name = format!("scale-{from}-{to}");
        cases.push(case(name.clone(), async move {
            let mut one = task("a", from, "sleep 400");
            one["minAvailable"] = 1.into();
            field.submit(&job(&name, 1, &[one])).await?;
            field.runs(&name, from as usize).await?;
            let before = field.uids(&name).await;
            let mut current = field.job(&name).await;
            current["spec"]["tasks"][0]["replicas"] = to.into();
            let path = format!("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{name}");
            field.send("PUT", &path, &current).await?;
            field.runs(&name, to as usize).await?;
            let expected: Vec<String> = (0..to).map(|index| format!("{name}-a-{index}")).collect();
            // Those that are one too many may take a moment to go.
            let is_scaled = async || {
                let found = names(&name).await;
                (found == expected, found)
            };
            field.until("scaled", is_scaled).await?;
            let after = field.uids(&name).await;
            let kept = before.iter().filter(|pod| after.contains(pod)).count();
            same("pods that ran on", kept, from.min(to) as usize)?;
            field.reaches(&name, "Completed").await?;
            let retries = field.job(&name).await["status"]["retryCount"].as_i64();
            same("retries", retries.unwrap_or_default(), 0)
        }));
    }
    all(cases).await;
    field.stop(count::SCALED).await;
}

#[tokio::test(start_paused = true)]
async fn retries_success_and_the_end_of_finished_jobs() {
    let field = Field::new(vec![pool("all", 40, 16)]).await;
    let mut cases = Vec::new();
    for max_retry in [1, 2, 3, 5] {
        let field = &field;
        let name = format!("retries-{max_retry}");
        cases.push(case(name.clone(), async move {
            let mut object = job(&name, 2, &[task("a", 2, "sleep 5; exit 1")]);
            object["spec"]["maxRetry"] = max_retry.into();
            object["spec"]["policies"] = json!([{"event": "PodFailed", "action": "RestartJob"}]);
            field.submit(&object).await?;
            field.reaches(&name, "Failed").await?;
            let status = field.job(&name).await["status"].take();
            same("retryCount", status["retryCount"].as_i64(), Some(max_retry))
        }));
    }
    for (replicas, wanted) in [(4_u32, 1_u32), (4, 3), (4, 4)] {
        let field = &field;
        let name = format!("success-{wanted}-of-{replicas}");
        cases.push(case(name.clone(), async move {
            // One pod after the other succeeds; the rest would take long.
            let tasks: Vec<Value> = (0..replicas)
                .map(|at| task(&format!("t{at}"), 1, &format!("sleep {}", 100 * (at + 1))))
                .collect();
            let mut object = job(&name, replicas, &tasks);
            object["spec"]["minSuccess"] = wanted.into();
            field.submit(&object).await?;
            field.reaches(&name, "Completed").await?;
            let succeeded = field.job(&name).await["status"]["succeeded"].as_u64();
            same("succeeded", succeeded, Some(u64::from(wanted)))
        }));
    }
    for (ttl, script, end) in [
        (0, "sleep 5", "Completed"),
        (60, "sleep 5", "Completed"),
        (30, "sleep 5; exit 1", "Failed"),
    ] {
        let field = &field;
        let name = format!("ttl-{ttl}");
        cases.push(case(name.clone(), async move {
            let mut object = job(&name, 1, &[task("a", 1, script)]);
            object["spec"]["ttlSecondsAfterFinished"] = ttl.into();
            field.submit(&object).await?;
            if ttl > 0 {
                field.reaches(&name, end).await?;
                field.pass(f64::from(ttl) - 5.0).await;
                holds(
                    "it is there until its time is over",
                    !field.job(&name).await.is_null(),
                )?;
            }
            field
                .until("gone", async || {
                    let object = field.job(&name).await;
                    (
                        object.is_null() && field.phases(&name).await.is_empty(),
                        object["status"].clone(),
                    )
                })
                .await
        }));
    }
    cases.push(case("claims", async {
        let mut object = job("claims", 1, &[task("a", 1, "sleep 5")]);
        object["spec"]["volumes"] = json!([{
            "mountPath": "/out",
            "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }]);
        field.submit(&object).await?;
        field
            .until("a claim made", async || {
                let claims = field
                    .list("/api/v1/namespaces/default/persistentvolumeclaims")
                    .await;
                let is_ours =
                    claims.len() == 1 && text(&claims[0]["metadata"]["name"]).starts_with("claims-pvc-");
                (is_ours, claims.len())
            })
            .await?;
        let named = field.job("claims").await["spec"]["volumes"][0]["volumeClaimName"].take();
        holds("its name is in the Job", text(&named).starts_with("claims-pvc-"))?;
        field.reaches("claims", "Completed").await
    }));
    cases.push(case("deleted", async {
        field
            .submit(&job("deleted", 2, &[task("a", 2, "sleep 100000")]))
            .await?;
        field.runs("deleted", 2).await?;
        let path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/deleted";
        field.send("DELETE", path, &Value::Null).await?;
        field
            .until("gone with its pods", async || {
                let pods = field.phases("deleted").await;
                (pods.is_empty() && field.job("deleted").await.is_null(), pods)
            })
            .await
    }));
    all(cases).await;
    field.stop(count::FINISHED).await;
}
