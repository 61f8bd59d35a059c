//! Commands: suspend, resume, restart, terminate, complete.

use crate::count;
use crate::field::{Field, all, case, holds, job, pool, same, task, text};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn orders_are_carried_out_once() {
    let field = Field::new(vec![pool("all", 40, 16)]).await;
    let mut cases = Vec::new();
    // An order at any time before the end, by what it leads to.
    for (action, end) in [
        ("AbortJob", "Aborted"),
        ("TerminateJob", "Terminated"),
        ("CompleteJob", "Completed"),
    ] {
        for when in ["Pending", "Running"] {
            let field = &field;
            let name = format!("{}-{}", action.to_lowercase(), when.to_lowercase());
            let told = name.clone();
            cases.push(case(told, async move {
                let mut one = task("a", 2, "sleep 100000");
                if when == "Pending" {
                    one["template"]["spec"]["nodeSelector"] = json!({"pool": "nowhere"});
                }
                field.submit(&job(&name, 2, &[one])).await?;
                field.reaches(&name, when).await?;
                field.pass(5.0).await;
                field.command(&name, action).await?;
                field.reaches(&name, end).await?;
                field.pass(60.0).await;
                let phase = field.job(&name).await["status"]["state"]["phase"].take();
                same("phase a minute later", text(&phase), end.to_owned())?;
                same("pods that are left", field.phases(&name).await, Vec::new())
            }));
        }
    }
    cases.push(case("suspend-resume", async {
        let tasks = [task("done", 1, "sleep 5"), task("long", 2, "sleep 200")];
        field.submit(&job("suspend-resume", 3, &tasks)).await?;
        field.reaches("suspend-resume", "Running").await?;
        field.pass(20.0).await;
        let done = field.pod("suspend-resume-done-0").await["metadata"]["uid"].take();
        field.command("suspend-resume", "AbortJob").await?;
        field.reaches("suspend-resume", "Aborted").await?;
        let left = field.phases("suspend-resume").await;
        same(
            "pods of the suspended Job",
            left,
            vec![("suspend-resume-done-0".to_owned(), "Succeeded".to_owned())],
        )?;
        field.pass(600.0).await;
        field.command("suspend-resume", "ResumeJob").await?;
        field.reaches("suspend-resume", "Running").await?;
        let again = field.pod("suspend-resume-done-0").await["metadata"]["uid"].take();
        same("what succeeded is not run again", again, done)?;
        field.reaches("suspend-resume", "Completed").await?;
        let retries = field.job("suspend-resume").await["status"]["retryCount"].take();
        same("resuming costs a retry", retries, json!(1))
    }));
    cases.push(case("restart", async {
        field
            .submit(&job("restart", 2, &[task("a", 2, "sleep 300")]))
            .await?;
        field.runs("restart", 2).await?;
        let before = field.uids("restart").await;
        field.command("restart", "RestartJob").await?;
        field
            .until("restarted", async || {
                let after = field.uids("restart").await;
                let is_new = after.len() == 2 && after.iter().all(|pod| !before.contains(pod));
                (is_new, after)
            })
            .await?;
        field.reaches("restart", "Completed").await?;
        let retries = field.job("restart").await["status"]["retryCount"].take();
        same("retries", retries, json!(1))
    }));
    cases.push(case("too-late", async {
        field
            .submit(&job("too-late", 1, &[task("a", 1, "sleep 5")]))
            .await?;
        field.reaches("too-late", "Completed").await?;
        for action in ["AbortJob", "RestartJob", "ResumeJob", "TerminateJob"] {
            field.command("too-late", action).await?;
            field.pass(20.0).await;
        }
        let phase = field.job("too-late").await["status"]["state"]["phase"].take();
        same(
            "an order after the end changes nothing",
            phase,
            json!("Completed"),
        )
    }));
    cases.push(case("spent", async {
        // With one retry a Job that is resumed has none left.
        let mut object = job("spent", 1, &[task("a", 1, "sleep 100000")]);
        object["spec"]["maxRetry"] = 1.into();
        field.submit(&object).await?;
        field.reaches("spent", "Running").await?;
        field.command("spent", "AbortJob").await?;
        field.reaches("spent", "Aborted").await?;
        field.command("spent", "ResumeJob").await?;
        field.reaches("spent", "Failed").await
    }));
    cases.push(case("commands-go", async {
        field.pass(300.0).await;
        field
            .until("without Commands", async || {
                let left = field.list("/apis/bus.volcano.sh/v1alpha1/commands").await;
                (left.is_empty(), left)
            })
            .await?;
        holds("time has passed", field.seconds() >= 300.0)
    }));
    all(cases).await;
    field.stop(count::ORDERS).await;
}
