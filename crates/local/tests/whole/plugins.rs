//! What job plugins add: objects, environment, and that they go with the Job's run.

use crate::count;
use crate::field::{Field, Outcome, all, case, holds, job, pool, same, task, text, with};
use serde_json::{Value, json};

/// The value of an environment variable of a pod's first container.
fn env(pod: &Value, name: &str) -> Option<Value> {
    let all = pod["spec"]["containers"][0]["env"].as_array()?;
    all.iter()
        .find(|one| one["name"] == name)
        .map(|one| one["value"].clone())
}

async fn there(field: &Field, path: &str, is_there: bool) -> Outcome {
    same(path, field.get(path).await.is_some(), is_there)
}

#[tokio::test(start_paused = true)]
async fn plugins_give_jobs_what_they_need() {
    let field = Field::new(vec![pool("all", 10, 16)]).await;
    let mut cases = Vec::new();
    cases.push(case("env", async {
        let mut object = job("env", 2, &[task("a", 2, "sleep 50")]);
        object["spec"]["plugins"] = json!({"env": []});
        field.submit(&object).await?;
        field.runs("env", 2).await?;
        for index in ["0", "1"] {
            let pod = field.pod(&format!("env-a-{index}")).await;
            for name in ["VC_TASK_INDEX", "VK_TASK_INDEX"] {
                same(name, env(&pod, name), Some(json!(index)))?;
            }
        }
        field.reaches("env", "Completed").await
    }));
    cases.push(case("svc", async {
        let mut object = job(
            "svc",
            3,
            &[task("ps", 1, "sleep 50"), task("worker", 2, "sleep 50")],
        );
        object["spec"]["plugins"] = json!({"svc": []});
        field.submit(&object).await?;
        field.runs("svc", 3).await?;
        let base = "/api/v1/namespaces/default";
        let map = field
            .get(&format!("{base}/configmaps/svc-svc"))
            .await
            .unwrap_or_default();
        same(
            "hosts",
            map["data"]["VC_WORKER_HOSTS"].clone(),
            json!("svc-worker-0.svc,svc-worker-1.svc"),
        )?;
        same("number", map["data"]["VC_PS_NUM"].clone(), json!("1"))?;
        let service = field
            .get(&format!("{base}/services/svc"))
            .await
            .unwrap_or_default();
        same("clusterIP", service["spec"]["clusterIP"].clone(), json!("None"))?;
        there(
            &field,
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/svc",
            true,
        )
        .await?;
        let pod = field.pod("svc-worker-1").await;
        same("hostname", pod["spec"]["hostname"].clone(), json!("svc-worker-1"))?;
        same("subdomain", pod["spec"]["subdomain"].clone(), json!("svc"))?;
        field
            .until("its endpoints known", async || {
                let endpoints = field
                    .get(&format!("{base}/endpoints/svc"))
                    .await
                    .unwrap_or_default();
                let count = endpoints["subsets"][0]["addresses"]
                    .as_array()
                    .map_or(0, Vec::len);
                (count == 3, endpoints)
            })
            .await?;
        field.reaches("svc", "Completed").await?;
        field
            .until("without its objects", async || {
                let left = field.get(&format!("{base}/services/svc")).await.is_some()
                    || field.get(&format!("{base}/configmaps/svc-svc")).await.is_some();
                (!left, left)
            })
            .await
    }));
    cases.push(case("ssh", async {
        let mut object = job("ssh", 2, &[task("a", 2, "sleep 50")]);
        object["spec"]["plugins"] = json!({"ssh": [], "svc": []});
        field.submit(&object).await?;
        field.runs("ssh", 2).await?;
        let secret = field
            .get("/api/v1/namespaces/default/secrets/ssh-ssh")
            .await
            .unwrap_or_default();
        for key in ["id_rsa", "id_rsa.pub", "authorized_keys", "config"] {
            holds(key, !text(&secret["data"][key]).is_empty())?;
        }
        let pod = field.pod("ssh-a-0").await;
        let mounts = pod["spec"]["containers"][0]["volumeMounts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        holds(
            "the keys are mounted",
            mounts.iter().any(|one| one["mountPath"] == "/root/.ssh"),
        )?;
        field.reaches("ssh", "Completed").await
    }));
    cases.push(case("mpi", async {
        let tasks = [task("master", 1, "sleep 50"), task("worker", 2, "sleep 100000")];
        let mut object = job("mpi", 3, &tasks);
        object["spec"]["plugins"] =
            json!({"mpi": ["--master=master", "--worker=worker", "--port=22"], "svc": []});
        object["spec"]["tasks"][0]["policies"] = json!([{"event": "TaskCompleted", "action": "CompleteJob"}]);
        field.submit(&object).await?;
        field.runs("mpi", 3).await?;
        let hosts = env(&field.pod("mpi-master-0").await, "MPI_HOST");
        same(
            "MPI_HOST",
            hosts,
            Some(json!("mpi-worker-0.mpi,mpi-worker-1.mpi")),
        )?;
        field.reaches("mpi", "Completed").await
    }));
    cases.push(case("pytorch", async {
        let tasks = [task("master", 1, "sleep 50"), task("worker", 2, "sleep 50")];
        let mut object = job("pytorch", 3, &tasks);
        object["spec"]["plugins"] = json!({"pytorch": ["--port=23456"], "svc": []});
        field.submit(&object).await?;
        field.runs("pytorch", 3).await?;
        for (pod, rank) in [("master-0", "0"), ("worker-0", "1"), ("worker-1", "2")] {
            let pod = field.pod(&format!("pytorch-{pod}")).await;
            same("RANK", env(&pod, "RANK"), Some(json!(rank)))?;
            same("WORLD_SIZE", env(&pod, "WORLD_SIZE"), Some(json!("3")))?;
            same(
                "MASTER_ADDR",
                env(&pod, "MASTER_ADDR"),
                Some(json!("pytorch-master-0.pytorch")),
            )?;
            same("MASTER_PORT", env(&pod, "MASTER_PORT"), Some(json!("23456")))?;
        }
        field.reaches("pytorch", "Completed").await
    }));
    cases.push(case("tensorflow", async {
        let tasks = [task("ps", 1, "sleep 50"), task("worker", 2, "sleep 50")];
        let mut object = job("tensorflow", 3, &tasks);
        object["spec"]["plugins"] = json!({"tensorflow": ["--port=5000"], "svc": []});
        field.submit(&object).await?;
        field.runs("tensorflow", 3).await?;
        let config = env(&field.pod("tensorflow-worker-1").await, "TF_CONFIG").unwrap_or_default();
        let config: Value = serde_json::from_str(&text(&config)).unwrap_or_default();
        same(
            "task",
            config["task"].clone(),
            json!({"type": "worker", "index": 1}),
        )?;
        same(
            "ps",
            config["cluster"]["ps"].clone(),
            json!(["tensorflow-ps-0.tensorflow:5000"]),
        )?;
        field.reaches("tensorflow", "Completed").await
    }));
    cases.push(case("ray", async {
        let mut tasks = [task("head", 1, ""), task("worker", 2, "")];
        for one in &mut tasks {
            one["template"]["spec"]["containers"][0]["name"] = one["name"].clone();
            one["template"]["metadata"] = json!({"annotations": {"volcano.sh/simulated-duration": "50s"}});
        }
        let object = with(
            job("ray", 3, &tasks),
            "/spec/plugins",
            json!({"ray": [], "svc": []}),
        );
        field.submit(&object).await?;
        field.runs("ray", 3).await?;
        there(&field, "/api/v1/namespaces/default/services/ray-head-svc", true).await?;
        for (pod, words) in [
            ("ray-head-0", "--head"),
            ("ray-worker-1", "--address=ray-head-0.ray:6379"),
        ] {
            let command = field.pod(pod).await["spec"]["containers"][0].to_string();
            holds(&format!("{words} in {command}"), command.contains(words))?;
        }
        field.reaches("ray", "Completed").await
    }));
    cases.push(case("hcclrank", async {
        let tasks = [task("master", 1, "sleep 50"), task("worker", 2, "sleep 50")];
        let object = with(job("hccl", 3, &tasks), "/spec/plugins", json!({"hcclrank": []}));
        field.submit(&object).await?;
        field.runs("hccl", 3).await?;
        for (pod, rank) in [("master-0", "0"), ("worker-0", "1"), ("worker-1", "2")] {
            let pod = field.pod(&format!("hccl-{pod}")).await;
            same(
                "rank",
                &pod["metadata"]["annotations"]["hccl/rankIndex"],
                &json!(rank),
            )?;
        }
        field.reaches("hccl", "Completed").await
    }));
    cases.push(case("unknown", async {
        let mut object = job("unknown", 1, &[task("a", 1, "sleep 5")]);
        object["spec"]["plugins"] = json!({"nonsense": []});
        let refused = field.submit(&object).await.err().unwrap_or_default();
        holds(
            &format!("the refusal names it: {refused}"),
            refused.contains("nonsense"),
        )
    }));
    all(cases).await;
    field.stop(count::PLUGINS).await;
}
