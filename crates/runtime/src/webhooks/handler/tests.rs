use super::*;
use crate::webhooks::cache::Cache;
use proptest::prelude::*;
use serde_json::{Value, json};
use volcano_api::core::Labels;
use volcano_api::scheduling::Queue;

/// A cluster that cannot be looked at.
struct Broken;

impl Lookups for Broken {
    fn queue(&self, _: &str) -> Option<Arc<Queue>> {
        panic!("the cluster is broken")
    }
    fn queues(&self) -> Vec<Arc<Queue>> {
        panic!("the cluster is broken")
    }
    fn namespace_annotations(&self, _: &str) -> Option<Labels> {
        panic!("the cluster is broken")
    }
    fn has_time_zone(&self, _: &str) -> bool {
        panic!("the cluster is broken")
    }
}

fn handler<L>(cache: L, paths: &str) -> (Handler<L>, mpsc::Receiver<Event>) {
    let (events, waiting) = mpsc::channel(4);
    let handler = Handler {
        enabled: volcano_admission::webhooks::enabled(paths).unwrap(),
        cache: Arc::new(cache),
        rules: watch::channel(Arc::default()).1,
        events,
        panics: AtomicU64::new(0),
    };
    (handler, waiting)
}

fn post(path: &str, content_type: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::post(path);
    if !content_type.is_empty() {
        request = request.header(CONTENT_TYPE, content_type);
    }
    request.body(Full::new(body.into())).unwrap()
}

async fn read(response: Response<Full<Bytes>>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn pod_review(annotations: &Value) -> Vec<u8> {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": "ns",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"metadata": {"name": "p", "namespace": "ns", "annotations": annotations}, "spec": {"schedulerName": "volcano"}},
        },
    })
    .to_string()
    .into_bytes()
}

#[tokio::test]
async fn what_is_wrong_as_http_is_told() {
    let (handler, _events) = handler(Cache::default(), "/pods/validate");
    let ask = async |request| read(handler.answer(request).await).await;
    assert_eq!(
        ask(post("/pods/mutate", JSON, "{}")).await,
        (404, "404 page not found\n".to_owned()),
        "not enabled"
    );
    let too_large = vec![b' '; MAX_BODY_BYTES + 1];
    assert_eq!(
        ask(post("/pods/validate", JSON, too_large)).await,
        (413, "request body too large".to_owned())
    );
    let just_fits = vec![b' '; MAX_BODY_BYTES];
    let (status, answer) = ask(post("/pods/validate", JSON, just_fits)).await;
    assert_eq!(status, 200, "{answer}");
    for content_type in ["", "text/plain", "application/yaml"] {
        let (status, answer) = ask(post("/pods/validate", content_type, "{}")).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (status, &answer["response"]["status"]["code"]),
            (200, &json!(415)),
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn a_refused_pod_is_answered_and_recorded() {
    let (handler, mut events) = handler(Cache::default(), "/pods/validate");
    let body = pod_review(&json!({"volcano.sh/jdb-min-available": "0"}));
    let (status, answer) = read(
        handler
            .answer(post("/pods/validate", "application/json; charset=utf-8", body))
            .await,
    )
    .await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, &answer["response"]["uid"]), (200, &json!("u-1")));
    assert_eq!(answer["response"]["allowed"], false);
    let event = events.try_recv().unwrap();
    assert_eq!((event.name.as_str(), event.reason), ("p", "Admit"));
    let good = pod_review(&json!({}));
    let (_, answer) = read(handler.answer(post("/pods/validate", JSON, good)).await).await;
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn a_panic_in_a_review_costs_nobody_else_an_answer() {
    let (handler, _events) = handler(Broken, "/queues/validate,/pods/validate");
    let queue = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-2", "operation": "DELETE", "name": "q",
            "resource": {"group": "scheduling.volcano.sh", "version": "v1beta1", "resource": "queues"},
        },
    });
    let (status, answer) = read(
        handler
            .answer(post("/queues/validate", JSON, queue.to_string()))
            .await,
    )
    .await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        answer["response"],
        json!({"uid": "u-2", "allowed": false, "status": {"message": FAILED, "code": 500}})
    );
    assert_eq!(handler.panics.load(Ordering::Relaxed), 1);
    let (_, answer) = read(
        handler
            .answer(post("/pods/validate", JSON, pod_review(&json!({}))))
            .await,
    )
    .await;
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Whatever bytes and content types arrive, there is an answer, and it is a review or a plain error.
    #[test]
    fn every_body_is_answered(
        body in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            // A review with a few bytes changed or cut off.
            (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>()).prop_map(|(at, byte, end)| {
                let mut body = pod_review(&json!({"volcano.sh/jdb-min-available": "x%"}));
                let at = at.index(body.len());
                body[at] = byte;
                if byte % 4 == 0 {
                    body.truncate(end.index(body.len()));
                }
                body
            }),
        ],
        content_type in prop_oneof![Just(JSON.to_owned()), "[ -~]{0,30}"],
        path in prop::sample::select(vec!["/pods/validate", "/pods/mutate", "/jobs/validate", "/nowhere", "/"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (handler, _events) = handler(Cache::default(), "/pods/validate,/pods/mutate,/jobs/validate");
        let (status, answer) = runtime.block_on(async { read(handler.answer(post(path, &content_type, body)).await).await });
        prop_assert_eq!(handler.panics.load(Ordering::Relaxed), 0);
        match status {
            200 => {
                let answer: Value = serde_json::from_str(&answer).unwrap();
                prop_assert_eq!(&answer["kind"], "AdmissionReview");
                prop_assert!(answer["response"]["allowed"].is_boolean());
            }
            404 => prop_assert!(["/nowhere", "/"].contains(&path)),
            other => prop_assert!(false, "status {other}"),
        }
    }
}
