//! How Jobs without policies end: by how many of their pods succeeded.

use crate::count;
use crate::field::{Case, Field, Outcome, all, case, job, pool, same, task};
use serde_json::Value;

/// A Job of two tasks: how many of the pods of each fail, and what it asks for.
#[derive(Clone, Copy, Debug)]
struct Shape {
    replicas: [u32; 2],
    fails: [u32; 2],
    task_minimum: [Option<u32>; 2],
    minimum: u32,
    min_success: Option<u32>,
}

impl Shape {
    /// The end, as the documentation has it.
    fn end(&self) -> &'static str {
        let total: u32 = self.replicas.iter().sum();
        let succeeded = total - self.fails.iter().sum::<u32>();
        if self.min_success.is_some_and(|wanted| succeeded >= wanted) {
            return "Completed";
        }
        let minimum_of = |task: usize| self.task_minimum[task].unwrap_or(self.replicas[task]);
        let tasks_count = self.minimum >= minimum_of(0) + minimum_of(1);
        let misses = |task: usize| {
            let succeeded = self.replicas[task] - self.fails[task];
            self.task_minimum[task].is_some_and(|minimum| succeeded < minimum)
        };
        let is_bad = tasks_count && (misses(0) || misses(1)) || self.min_success.is_some();
        match !is_bad && succeeded >= self.minimum {
            true => "Completed",
            false => "Failed",
        }
    }

    fn object(&self, name: &str) -> Value {
        // The pods of a task are equal, and by their index some of them fail: each task of the shape is two of the Job
        // unless all of its pods end the same way.
        let mut object = job(name, self.minimum, &[]);
        for (at, task_name) in ["a", "b"].into_iter().enumerate() {
            let script = format!("sleep {}", 5 + at);
            let mut one = task(task_name, self.replicas[at], &script);
            if self.fails[at] > 0 {
                one["template"]["spec"]["containers"][0]["command"][2] = format!("{script}; exit 1").into();
            }
            if let Some(minimum) = self.task_minimum[at] {
                one["minAvailable"] = minimum.into();
            }
            object["spec"]["tasks"].as_array_mut().unwrap().push(one);
        }
        if let Some(wanted) = self.min_success {
            object["spec"]["minSuccess"] = wanted.into();
        }
        object
    }
}

/// All shapes with a few pods: a task succeeds or fails as a whole.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for replicas in [[1, 1], [2, 1], [3, 2]] {
        for failing in [[false, false], [true, false], [false, true], [true, true]] {
            let fails = [0, 1].map(|at| if failing[at] { replicas[at] } else { 0 });
            for task_minimum in [[None, None], [Some(1), None], [Some(replicas[0]), Some(1)]] {
                let total: u32 = replicas.iter().sum();
                for minimum in [1, total] {
                    for min_success in [None, Some(1), Some(total)] {
                        let minima = (0..2).map(|at| task_minimum[at].unwrap_or(replicas[at]));
                        // Admission wants the gang to be no larger than its tasks allow.
                        if minimum > minima.sum() && min_success.is_some() {
                            continue;
                        }
                        shapes.push(Shape {
                            replicas,
                            fails,
                            task_minimum,
                            minimum,
                            min_success,
                        });
                    }
                }
            }
        }
    }
    shapes
}

async fn play(field: &Field, name: String, shape: Shape) -> Outcome {
    field.submit(&shape.object(&name)).await?;
    field
        .until("ended", async || {
            let phase = field.job(&name).await["status"]["state"]["phase"].take();
            (matches!(phase.as_str(), Some("Completed" | "Failed")), phase)
        })
        .await?;
    let job = field.job(&name).await;
    same("end", job["status"]["state"]["phase"].as_str(), Some(shape.end()))?;
    // All pods that ended by themselves are still there to be looked at, unless others were ended with the Job.
    let retries = job["status"]["retryCount"].as_i64().unwrap_or_default();
    same("retries", retries, 0)
}

#[tokio::test(start_paused = true)]
async fn jobs_end_by_how_many_of_their_pods_succeeded() {
    let field = Field::new(vec![pool("all", 100, 16)]).await;
    let shapes = shapes();
    let cases: Vec<Case<'_>> = shapes
        .into_iter()
        .enumerate()
        .map(|(at, shape)| {
            let name = format!("end-{at}");
            case(format!("{name} {shape:?}"), play(&field, name, shape))
        })
        .collect();
    all(cases).await;
    field.stop(count::ENDS).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_through_its_phases_and_keeps_its_pods() {
    let field = Field::new(vec![pool("all", 2, 8)]).await;
    let ends = async {
        field
            .submit(&job("plain", 3, &[task("a", 3, "sleep 30")]))
            .await?;
        field.reaches("plain", "Running").await?;
        same(
            "pods that run",
            field.job("plain").await["status"]["running"].take(),
            3.into(),
        )?;
        field.reaches("plain", "Completed").await?;
        same(
            "phases",
            field.history("plain").await,
            ["Pending", "Running", "Completed"].map(str::to_owned).to_vec(),
        )?;
        let status = field.job("plain").await["status"].take();
        same("succeeded", status["succeeded"].clone(), 3.into())?;
        same("pods", field.phases("plain").await.len(), 3)?;
        let took = status["runningDuration"].as_str().unwrap_or_default().to_owned();
        same(
            "it took half a minute",
            took.starts_with("30") || took.starts_with("31"),
            true,
        )
    };
    all(vec![case("plain", ends)]).await;
    field.stop(count::PHASES).await;
}
