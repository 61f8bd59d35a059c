use super::*;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::subscriber::with_default;
use tracing::{Level as Severity, debug, error, trace, warn};
use volcano_api::time::Time;

/// Lines in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

fn in_memory(verbosity: i32, skip_headers: bool) -> (impl tracing::Subscriber + Send + Sync, Level, Memory) {
    let memory = Memory::default();
    let settings = Settings {
        verbosity,
        skip_headers,
    };
    let writer = memory.clone();
    let (subscriber, level) = subscriber(&settings, move || writer.clone());
    (subscriber, level, memory)
}

/// What a piece of code logs, without headers.
fn logged(verbosity: i32, code: impl FnOnce()) -> String {
    let (subscriber, _, memory) = in_memory(verbosity, true);
    with_default(subscriber, code);
    memory.take()
}

#[test]
fn each_verbosity_logs_what_the_table_says() {
    // Ours, then libraries: the finest severity that is logged.
    let cases = [
        (-1, Some(Severity::INFO), None),
        (0, Some(Severity::INFO), None),
        (3, Some(Severity::INFO), None),
        (4, Some(Severity::DEBUG), None),
        (5, Some(Severity::TRACE), None),
        (6, Some(Severity::TRACE), Some(Severity::DEBUG)),
        (7, Some(Severity::TRACE), Some(Severity::DEBUG)),
        (10, Some(Severity::TRACE), Some(Severity::TRACE)),
    ];
    let all = [
        Severity::ERROR,
        Severity::WARN,
        Severity::INFO,
        Severity::DEBUG,
        Severity::TRACE,
    ];
    let finest = |verbosity: i32, target: &str| {
        let targets = targets(verbosity);
        let logged = all
            .into_iter()
            .filter(|severity| targets.would_enable(target, severity));
        logged.max()
    };
    for (verbosity, ours, libraries) in cases {
        for target in ["volcano_runtime::lease", "volcano_engine", "volcano"] {
            assert_eq!(finest(verbosity, target), ours, "{target} at {verbosity}");
        }
        for target in ["kube_client::client", "hyper::proto", "tower::buffer", "h2"] {
            assert_eq!(finest(verbosity, target), libraries, "{target} at {verbosity}");
        }
    }
}

#[test]
fn an_event_is_one_line_whatever_it_holds() {
    type Case = (&'static str, Box<dyn FnOnce()>);
    let cases: [Case; 5] = [
        (
            "became leader transitions=3 holder=host-1_ab\n",
            Box::new(|| info!(transitions = 3, holder = "host-1_ab", "became leader")),
        ),
        (
            "refused error=\"line 1\\nline 2\" empty=\"\"\n",
            Box::new(|| warn!(error = %"line 1\nline 2", empty = "", "refused")),
        ),
        (
            "two words text=\"a b\" quoted=\"a b\"\n",
            Box::new(|| info!(text = "a b", quoted = ?"a b", "two words")),
        ),
        (
            "a message\\nof two lines\n",
            Box::new(|| error!("a message\n{}", "of two lines")),
        ),
        ("sum=1=2 more\n", Box::new(|| info!("sum=1=2 more"))),
    ];
    for (expected, code) in cases {
        assert_eq!(logged(0, code), expected);
    }
}

#[test]
fn a_line_begins_with_time_and_level() {
    let (subscriber, _, memory) = in_memory(0, false);
    with_default(subscriber, || warn!(after_s = 10, "late"));
    let line = memory.take();
    let (time, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, "WARN  late after_s=10\n");
    assert!(Time::parse(time).is_ok() && time.len() == 27, "{time}");
}

#[test]
fn what_libraries_say_is_marked_as_theirs() {
    let from_a_library = || debug!(target: "hyper::proto", "parsed");
    assert_eq!(logged(5, from_a_library), "");
    assert_eq!(logged(6, from_a_library), "hyper::proto: parsed\n");
}

#[tokio::test(start_paused = true)]
async fn a_level_is_changed_for_a_while_and_a_newer_change_replaces_an_older_one() {
    let (subscriber, level, memory) = in_memory(2, true);
    let _logging = tracing::subscriber::set_default(subscriber);
    let second = Duration::from_secs(1);
    let deep = |memory: &Memory| {
        trace!("a step");
        memory.take() == "a step\n"
    };
    assert!(!deep(&memory));
    level.set_for(5, 10 * second);
    assert_eq!(level.verbosity(), 5);
    assert!(deep(&memory));
    tokio::time::sleep(9 * second).await;
    level.set_for(7, 10 * second);
    tokio::time::sleep(9 * second).await;
    assert_eq!(
        level.verbosity(),
        7,
        "the time of the first change does not end the second"
    );
    tokio::time::sleep(2 * second).await;
    assert_eq!(level.verbosity(), 2);
    assert_eq!(
        memory.take(),
        "the log level is that of the start again verbosity=2\n"
    );
    assert!(!deep(&memory));
}

async fn ask(path: &std::path::Path, target: &str) -> (u16, String) {
    let mut stream = tokio::net::UnixStream::connect(path).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[tokio::test]
async fn the_socket_tells_and_changes_the_level() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("socks");
    let path = directory.join("klog-klog.sock");
    // An earlier process left its socket behind.
    std::fs::create_dir(&directory).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let (_subscriber, level, _) = in_memory(2, true);
    let serving = tokio::spawn(socket(level.clone(), directory.clone()));
    while tokio::net::UnixStream::connect(&path).await.is_err() {
        tokio::task::yield_now().await;
    }
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let current = |level: i32| (200, format!("Current klog log level: {level}\n"));
    assert_eq!(ask(&path, "/getlevel").await, current(2));
    assert_eq!(ask(&path, "/setlevel?level=5&duration=1h").await.0, 200);
    assert_eq!(ask(&path, "/getlevel").await, current(5));
    for wrong in [
        "/setlevel",
        "/setlevel?level=5",
        "/setlevel?duration=1s",
        "/setlevel?level=0&duration=1s",
        "/setlevel?level=-1&duration=1s",
        "/setlevel?level=x&duration=1s",
        "/setlevel?level=5&duration=1",
        "/setlevel?level=5&duration=-1s",
        "/setlevel?level=5&duration=1us",
    ] {
        assert_eq!(ask(&path, wrong).await.0, 400, "{wrong}");
    }
    assert_eq!(ask(&path, "/getlevel").await, current(5));
    assert_eq!(ask(&path, "/other").await.0, 404);
    serving.abort();
}

#[tokio::test]
async fn a_socket_that_cannot_be_made_is_one_warning() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let (subscriber, level, memory) = in_memory(0, true);
    let _logging = tracing::subscriber::set_default(subscriber);
    socket(level, in_the_way).await;
    let lines = memory.take();
    assert!(
        lines.starts_with("the log level cannot be changed while running path="),
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 1, "{lines}");
}
