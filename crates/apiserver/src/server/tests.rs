use super::*;
use crate::chores;
use crate::verbs::{Call, Caller, DeleteOptions};
use ::http::{Method, Request};
use bytes::Bytes;
use futures::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use redb::backends::InMemoryBackend;
use redb::{Database, StorageBackend};
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn clock() -> Clock {
    Arc::new(|| "2026-01-01T00:00:00Z".parse().unwrap())
}

fn caller() -> Caller {
    Caller {
        user: "somebody".to_owned(),
        groups: Vec::new(),
    }
}

async fn ask(server: &Arc<Server>, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method.clone()).uri(path);
    let request = match method {
        Method::PATCH => request.header("content-type", "application/merge-patch+json"),
        _ => request,
    };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let answer = crate::http::handle(server, &caller(), request).await;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (code, serde_json::from_str(&text).unwrap_or_else(|_| text.into()))
}

/// Stores an object without waiting for anything.
fn put(server: &Server, plural: &str, key: &str, mut value: Value) -> u64 {
    let registry = server.registry();
    let resource = registry.all().iter().find(|one| one.plural == plural).unwrap();
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    value["kind"] = resource.kind.as_str().into();
    value["apiVersion"] = resource.api_version().into();
    value["metadata"]["name"] = name.into();
    value["metadata"]["namespace"] = namespace.into();
    value["metadata"]["uid"] = format!("{plural}-{name}").into();
    let event = server.put(resource, key, Expect::Absent, value).unwrap();
    event.revision()
}

#[tokio::test]
async fn no_answer_is_founded_on_what_is_not_on_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let opened = File::open(&directory.path().join("data")).unwrap();
    let (server, _to_do) = Server::with(clock(), None, Some(opened));
    put(&server, "namespaces", "default", json!({}));
    put(&server, "configmaps", "default/a", json!({"data": {"k": "1"}}));
    let ending = json!({"metadata": {"finalizers": ["example.com/f"], "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0}});
    put(&server, "configmaps", "default/ending", ending);
    put(
        &server,
        "deployments",
        "default/d",
        json!({"spec": {"replicas": 1}}),
    );
    let revision = put(&server, "configmaps", "default/gone", json!({}));
    let maps = server.registry().of_nature(Nature::ConfigMap).clone();
    server
        .remove(&maps, "default/gone", Expect::At(revision), json!({}))
        .unwrap();
    let last = server.revision();
    let a = format!("{MAPS}/a");
    let requests = [
        (
            "a change of nothing",
            Method::PATCH,
            a.clone(),
            json!({"data": {"k": "1"}}),
            200,
        ),
        (
            "the same, tried",
            Method::PATCH,
            format!("{a}?dryRun=All"),
            json!({"data": {"k": "2"}}),
            200,
        ),
        (
            "a deletion again",
            Method::DELETE,
            format!("{MAPS}/ending"),
            Value::Null,
            200,
        ),
        (
            "a deletion, tried",
            Method::DELETE,
            format!("{a}?dryRun=All"),
            Value::Null,
            200,
        ),
        (
            "a scale",
            Method::GET,
            "/apis/apps/v1/namespaces/default/deployments/d/scale".to_owned(),
            Value::Null,
            200,
        ),
        (
            "what was deleted",
            Method::GET,
            format!("{MAPS}/gone"),
            Value::Null,
            404,
        ),
        (
            "its deletion",
            Method::DELETE,
            format!("{MAPS}/gone"),
            Value::Null,
            404,
        ),
        (
            "a name that is taken",
            Method::POST,
            MAPS.to_owned(),
            json!({"metadata": {"name": "a"}}),
            409,
        ),
    ];
    for (what, method, path, body, _) in &requests {
        let answer = ask(&server, method.clone(), path, body).now_or_never();
        assert!(answer.is_none(), "{what}: {answer:?}");
    }
    server.run_file();
    for (what, method, path, body, code) in &requests {
        let answer = ask(&server, method.clone(), path, body).await;
        assert_eq!(answer.0, *code, "{what}: {answer:?}");
    }
    assert_eq!(server.revision(), last, "none of them wrote");
}

/// A disk that breaks.
#[derive(Debug)]
struct Disk {
    memory: InMemoryBackend,
    is_broken: Arc<AtomicBool>,
}

impl Disk {
    fn works(&self) -> std::io::Result<()> {
        match self.is_broken.load(Ordering::Acquire) {
            true => Err(std::io::Error::other("the disk is broken")),
            false => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.works()?;
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.works()?;
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.works()?;
        self.memory.write(offset, data)
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_to_everybody() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let disk = Disk {
        memory: InMemoryBackend::new(),
        is_broken: is_broken.clone(),
    };
    let database = Database::builder().create_with_backend(disk).unwrap();
    let (server, _to_do) = Server::with(clock(), None, Some(File::over(database).unwrap()));
    server.run_file();
    put(&server, "namespaces", "default", json!({}));
    let map = |name: &str| json!({"metadata": {"name": name}});
    assert_eq!(ask(&server, Method::POST, MAPS, &map("a")).await.0, 201);
    let mut failed = Box::pin(server.failed());
    assert_eq!(failed.as_mut().now_or_never(), None);
    assert_eq!(ask(&server, Method::GET, "/readyz", &Value::Null).await.0, 200);

    is_broken.store(true, Ordering::Release);
    assert_eq!(ask(&server, Method::POST, MAPS, &map("b")).await.0, 500);
    let problem = failed.await;
    assert!(
        problem.starts_with("the data file cannot be written: "),
        "{problem}"
    );
    for path in ["/healthz", "/livez", "/readyz"] {
        let (code, text) = ask(&server, Method::GET, path, &Value::Null).await;
        assert_eq!(code, 500, "{path}");
        assert!(text.as_str().unwrap().contains("data-file failed"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_to_follow_from_a_write_follows_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let (server, to_do) = Server::new(clock(), None, Some(&path)).unwrap();
    let caller = caller();
    let registry = server.registry();
    let namespaces = registry.of_nature(Nature::Namespace);
    for name in ["ending", "staying"] {
        let call = Call::own(namespaces, "", name, &caller);
        server
            .create(&call, json!({"metadata": {"name": name}}))
            .await
            .unwrap();
    }
    let call = Call::own(registry.of_nature(Nature::ConfigMap), "ending", "m", &caller);
    server
        .create(&call, json!({"metadata": {"name": "m"}}))
        .await
        .unwrap();
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}});
    let call = Call::own(registry.of_nature(Nature::Service), "staying", "s", &caller);
    server.create(&call, service).await.unwrap();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "staying", "name": "p"}});
    let call = Call::own(registry.of_nature(Nature::Event), "staying", "e", &caller);
    server.create(&call, event).await.unwrap();
    let call = Call::own(namespaces, "", "ending", &caller);
    server.delete(&call, &DeleteOptions::default()).await.unwrap();
    // Nobody has done any of the chores.
    drop((server, to_do));

    let mut tries = 0;
    let (server, to_do) = loop {
        match Server::new(clock(), None, Some(&path)) {
            Ok(opened) => break opened,
            // The thread that writes lets go of the file in a moment.
            Err(_) if tries < 1000 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    };
    tokio::spawn(chores::run(server.clone(), to_do));
    let registry = server.registry();
    let there = |nature, key: &str| server.get(registry.of_nature(nature).table, key).is_some();
    for _ in 0..1000 {
        let is_done = !there(Nature::Namespace, "ending")
            && there(Nature::ServiceAccount, "staying/default")
            && there(Nature::Endpoints, "staying/s");
        if is_done {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        // The file is written by a thread that has its own time.
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!there(Nature::Namespace, "ending"), "it ends");
    assert!(
        there(Nature::ServiceAccount, "staying/default"),
        "it gets its account"
    );
    assert!(
        there(Nature::Endpoints, "staying/s"),
        "the service gets its endpoints"
    );
    assert!(there(Nature::Event, "staying/e"));
    tokio::time::sleep(chores::events::KEPT + Duration::from_secs(1)).await;
    for _ in 0..1000 {
        if !there(Nature::Event, "staying/e") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!there(Nature::Event, "staying/e"), "events expire still");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_far_behind_gets_every_change_once_and_in_order() {
    let (server, _to_do) = Server::with(clock(), Some(1), None);
    let began = server.revision();
    let text = "x".repeat(1000);
    let names: Vec<String> = (0..1200).map(|at| format!("map-{at:04}")).collect();
    for name in &names {
        let key = format!("default/{name}");
        put(&server, "configmaps", &key, json!({"data": {"text": text}}));
    }
    let path = format!("{MAPS}?watch=true&resourceVersion={began}&timeoutSeconds=1");
    let (code, events) = ask(&server, Method::GET, &path, &Value::Null).await;
    assert_eq!(code, 200);
    let told: Vec<String> = events
        .as_str()
        .unwrap()
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["type"], "ADDED");
            event["object"]["metadata"]["name"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(told, names);
}
