//! The server itself: what is not a review, and what happens when it is away.

use crate::{Scene, job, pod};
use serde_json::{Value, json};
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::tls;
use volcano_cluster_tests::webhooks::{self, HOST, Manager, health};
use volcano_testcluster::objects::Progress;

#[tokio::test]
async fn what_is_no_review_is_answered_all_the_same() {
    let scene = Scene::set().await;
    let (manager, authority) = scene.manager(&[]).await;
    let ask = async |path: &str, content_type: &str, body: &[u8]| {
        let mut stream = tls::connect(manager.port, HOST, &authority).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: {content_type}");
        tls::ask(&mut stream, &head, body).await.unwrap()
    };
    let json = "application/json";
    assert_eq!(ask("/nowhere", json, b"{}").await.0, 404);
    let too_large = vec![b' '; 3 * 1024 * 1024 + 1];
    assert_eq!(
        ask("/jobs/validate", json, &too_large).await,
        (413, "request body too large".to_owned())
    );
    for (content_type, body, code) in [(json, "{", 400), (json, "null", 400), ("text/plain", "{}", 415)] {
        let (status, answer) = ask("/jobs/validate", content_type, body.as_bytes()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (status, &answer["kind"]),
            (200, &json!("AdmissionReview")),
            "{body}"
        );
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["status"]["code"], code, "{body}");
    }
    // A client that says nothing is let go of, and nobody else notices.
    let _silent = tokio::net::TcpStream::connect(("127.0.0.1", manager.port))
        .await
        .unwrap();
    scene.apply(&job("meanwhile")).unwrap();
    let (status, body) = health(manager.health_port, "/healthz", &authority).await.unwrap();
    assert_eq!((status, body.as_str()), (200, "ok"));
}

#[tokio::test]
async fn foreign_pods_do_not_depend_on_the_manager_and_it_comes_back() {
    let scene = Scene::set().await;
    let (manager, authority) = scene.manager(&[]).await;
    let port = manager.port;
    drop(manager); // As kill -9 and the kernel do.
    let budget = json!({"volcano.sh/jdb-min-available": "1"});
    scene
        .apply(&pod("foreign", "default-scheduler", &budget))
        .unwrap();
    scene.apply(&pod("ours", "volcano", &json!({}))).unwrap();
    let said = scene.apply(&pod("judged", "volcano", &budget)).unwrap_err();
    assert!(
        said.contains("failed calling webhook \"validatepod.volcano.sh\""),
        "{said}"
    );
    let said = scene.apply(&job("waits")).unwrap_err();
    assert!(
        said.contains("failed calling webhook \"mutatejob.volcano.sh\""),
        "{said}"
    );

    let files = webhooks::files(&scene.folder.join("certificate"));
    let mut again = Manager::launch(port, &files).await.unwrap();
    again.ready(&authority).await.unwrap();
    scene.apply(&job("waits")).unwrap();
    scene.apply(&pod("judged", "volcano", &budget)).unwrap();
}

#[tokio::test]
async fn a_request_that_is_under_way_is_finished_at_the_end() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let scene = Scene::set().await;
    let (mut manager, authority) = scene.manager(&[]).await;
    let mut stream = tls::connect(manager.port, HOST, &authority).await.unwrap();
    let head = "POST /jobs/validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    // A later connection is answered, so the head of the first has been read.
    let mut other = tls::connect(manager.port, HOST, &authority).await.unwrap();
    tls::ask(&mut other, "GET / HTTP/1.1", b"").await.unwrap();
    manager.terminate().unwrap();
    until("nobody is let in any more", || async {
        Ok(match tls::connect(manager.port, HOST, &authority).await {
            Ok(_) => Progress::Waiting("it listens".to_owned()),
            Err(_) => Progress::Done(()),
        })
    })
    .await;
    stream.write_all(b"}").await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("AdmissionReview"),
        "{answer}"
    );
    assert!(manager.wait().await.unwrap().success());
}
