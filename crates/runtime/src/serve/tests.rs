use super::*;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn ask(address: &str, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn ask_over_tls(address: &str, certificate: &rcgen::Certificate) -> String {
    let mut roots = tokio_rustls::rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = tokio_rustls::rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector
        .connect("localhost".try_into().unwrap(), stream)
        .await
        .unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn each_endpoint_answers_on_its_address() {
    let settings = Settings {
        listen_address: free_address().await,
        healthz_address: free_address().await,
        metrics: true,
        healthz: true,
        pprof: true,
        tls: None,
    };
    let health = Arc::new(Health::default());
    let mut tasks = JoinSet::new();
    let snapshot = || async { Some(b"{\"objects\":[]}".to_vec()) };
    start(&settings, &Metrics::default(), &health, snapshot, &mut tasks)
        .await
        .unwrap();
    let cases = [
        (&settings.listen_address, "/metrics", "200 OK", "volcano_"),
        (
            &settings.listen_address,
            "/debug/snapshot",
            "200 OK",
            "{\"objects\":[]}",
        ),
        (
            &settings.listen_address,
            "/debug/pprof/profile",
            "501",
            "no Go profiles",
        ),
        (&settings.listen_address, "/other", "404", ""),
        (&settings.healthz_address, "/healthz", "200 OK", "ok"),
        (&settings.healthz_address, "/healthz/ping", "200 OK", "ok"),
        (&settings.healthz_address, "/readyz", "503", "starting"),
    ];
    for (address, path, status, text) in cases {
        let answer = ask(address, path).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{path}: {answer}"
        );
        assert!(answer.contains(text), "{path}: {answer}");
    }
    health.missing(Vec::new());
    assert!(ask(&settings.healthz_address, "/readyz").await.ends_with("ok"));
    let again = start(
        &settings,
        &Metrics::default(),
        &health,
        || async { None },
        &mut tasks,
    )
    .await;
    let error = again.unwrap_err().to_string();
    assert!(error.starts_with("--listen-address 127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn health_is_served_over_tls_with_the_files_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path("cert"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    let mut settings = Settings {
        healthz_address: free_address().await,
        healthz: true,
        tls: Some(TlsFiles {
            ca: path("cert"),
            cert: path("cert"),
            key: path("key"),
        }),
        ..Settings::default()
    };
    let health = Arc::new(Health::default());
    let mut tasks = JoinSet::new();
    let nothing = || async { None };
    start(&settings, &Metrics::default(), &health, nothing, &mut tasks)
        .await
        .unwrap();
    let answer = ask_over_tls(&settings.healthz_address, &made.cert).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    settings.tls = Some(TlsFiles {
        ca: path("cert"),
        cert: path("none"),
        key: path("key"),
    });
    settings.healthz_address = free_address().await;
    let error = start(&settings, &Metrics::default(), &health, nothing, &mut tasks)
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("--tls-cert-file "), "{error}");
}

#[tokio::test]
async fn clients_that_say_nothing_do_not_keep_others_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path("cert"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    let settings = Settings {
        healthz_address: free_address().await,
        healthz: true,
        tls: Some(TlsFiles {
            ca: path("cert"),
            cert: path("cert"),
            key: path("key"),
        }),
        ..Settings::default()
    };
    let mut tasks = JoinSet::new();
    let health = Arc::new(Health::default());
    start(
        &settings,
        &Metrics::default(),
        &health,
        || async { None },
        &mut tasks,
    )
    .await
    .unwrap();
    // Accepted first, and silent before their handshake.
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(
            tokio::net::TcpStream::connect(&settings.healthz_address)
                .await
                .unwrap(),
        );
    }
    // One after the other, the silent ones would take 50 s.
    let answer = ask_over_tls(&settings.healthz_address, &made.cert);
    let answer = tokio::time::timeout(Duration::from_secs(25), answer).await;
    assert!(
        answer
            .expect("an answer meanwhile")
            .starts_with("HTTP/1.1 200 OK")
    );
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(server::serve(listener, None, Router::new()));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"),
        "the connection is closed"
    );
    serving.abort();
}

#[tokio::test]
async fn a_loop_that_does_not_turn_is_a_failed_probe() {
    for (silence_s, status, text) in [(60, "200", "ok"), (125, "500", "has not turned for 12")] {
        let health = Arc::new(Health::silent_for(Duration::from_secs(silence_s)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(server::serve(listener, None, health_routes(health)));
        let answer = ask(&address, "/healthz").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains(text), "{answer}");
        serving.abort();
    }
}
