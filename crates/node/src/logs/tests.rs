use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn request(change: impl FnOnce(&mut LogRequest)) -> LogRequest {
    let mut request = LogRequest {
        uid: "u".to_owned(),
        container: "c".to_owned(),
        ..LogRequest::default()
    };
    change(&mut request);
    request
}

async fn text(logs: &Logs, request: LogRequest) -> Result<String, String> {
    let parts: Vec<Bytes> = logs.open(request).await?.collect().await;
    Ok(String::from_utf8(parts.concat()).unwrap())
}

#[tokio::test]
async fn a_log_is_shown_as_it_was_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let logs = Logs::new(place.path());
    let mut writer = logs.begin("u", "c", 0).unwrap();
    writer.print(b"one\ntw", at(10)).unwrap();
    writer.print(b"o\nthree", at(20)).unwrap();
    writer.end(at(30));
    let all = text(&logs, request(|_| ())).await.unwrap();
    assert_eq!(all, "one\ntwo\nthree");
    let tail = text(&logs, request(|request| request.tail_lines = Some(2)))
        .await
        .unwrap();
    assert_eq!(tail, "two\nthree");
    let none = text(&logs, request(|request| request.tail_lines = Some(0)))
        .await
        .unwrap();
    assert_eq!(none, "");
    let limited = text(&logs, request(|request| request.limit_bytes = Some(5)))
        .await
        .unwrap();
    assert_eq!(limited, "one\nt");
    let timed = text(&logs, request(|request| request.timestamps = true))
        .await
        .unwrap();
    assert!(
        timed.starts_with("1970-01-01T00:00:10.000000000Z one\n1970-01-01T00:00:20.000000000Z two\n"),
        "{timed}"
    );
    let late = text(&logs, request(|request| request.since_seconds = Some(60)))
        .await
        .unwrap();
    assert_eq!(late, "");
}

#[tokio::test]
async fn a_long_line_is_one_line() {
    let place = tempfile::tempdir().unwrap();
    let logs = Logs::new(place.path());
    let mut writer = logs.begin("u", "c", 0).unwrap();
    let line = "x".repeat(LINE_BYTES * 2 + 7);
    writer.print(format!("a\n{line}\n").as_bytes(), at(1)).unwrap();
    writer.end(at(1));
    let tail = text(&logs, request(|request| request.tail_lines = Some(1)))
        .await
        .unwrap();
    assert_eq!(tail, format!("{line}\n"));
}

#[tokio::test]
async fn following_ends_with_the_run_and_crosses_files() {
    let place = tempfile::tempdir().unwrap();
    let logs = Logs::new(place.path());
    let mut writer = logs.begin("u", "c", 0).unwrap();
    writer.print(b"first\n", at(1)).unwrap();
    let follow = logs.open(request(|request| request.follow = true)).await.unwrap();
    let reading = tokio::spawn(follow.collect::<Vec<Bytes>>());
    let line = format!("{}\n", "y".repeat(1000));
    let count = usize::try_from(FILE_BYTES).unwrap() / 1000 + 100;
    for index in 0..count {
        writer.print(line.as_bytes(), at(2)).unwrap();
        if index % 1000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    writer.end(at(3));
    let read = reading.await.unwrap().concat();
    assert_eq!(read.len(), "first\n".len() + count * line.len());
}

#[tokio::test]
async fn files_are_bounded_and_the_last_two_runs_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let logs = Logs::new(place.path());
    for restart in 0..4 {
        let mut writer = logs.begin("u", "c", restart).unwrap();
        writer
            .print(format!("run {restart}\n").as_bytes(), at(1))
            .unwrap();
        for _ in 0..3 {
            writer.print(&vec![b'z'; 8 << 20], at(1)).unwrap();
        }
        writer.end(at(1));
    }
    let folder = place.path().join("u/logs/c");
    assert_eq!(runs(&folder), [2, 3]);
    let bytes: u64 = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 4 * FILE_BYTES, "{bytes}");
    let waiting = request(|request| {
        (request.pod, request.container) = ("p".to_owned(), "d".to_owned());
        request.waits_because = "ContainerCreating".to_owned();
    });
    assert_eq!(
        text(&logs, waiting).await.unwrap_err(),
        "container \"d\" in pod \"p\" is waiting to start: ContainerCreating"
    );
}

#[test]
fn the_last_words_are_the_end_of_the_log() {
    let place = tempfile::tempdir().unwrap();
    let logs = Logs::new(place.path());
    let said = |text: &str| {
        let mut writer = logs.begin("u", "c", 0).unwrap();
        writer.print(text.as_bytes(), at(1)).unwrap();
        writer.end(at(1));
        logs.last_words("u", "c", 0)
    };
    assert_eq!(said(""), None);
    assert_eq!(said("one\ntwo").as_deref(), Some("one\ntwo"));
    let many: String = (0..100).map(|number| format!("{number}\n")).collect();
    let words = said(&many).unwrap();
    assert!(
        words.starts_with("20\n21\n") && words.ends_with("99\n"),
        "{words}"
    );
    let long = format!("{}end\n", "x".repeat(200_000));
    let words = said(&long).unwrap();
    assert!(
        words.len() == 2048 && words.ends_with("xend\n"),
        "{}",
        words.len()
    );
    assert_eq!(logs.last_words("u", "c", 1), None, "another run");
}

#[tokio::test]
async fn the_run_before_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let logs = Logs::new(place.path());
    let previous = || request(|request| request.previous = true);
    for restart in 0..2 {
        assert!(text(&logs, previous()).await.is_err());
        let mut writer = logs.begin("u", "c", restart).unwrap();
        writer
            .print(format!("run {restart}\n").as_bytes(), at(1))
            .unwrap();
        writer.end(at(1));
    }
    assert_eq!(text(&logs, previous()).await.unwrap(), "run 0\n");
}
