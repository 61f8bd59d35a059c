//! An API server for tests: it answers by path, and what it streams goes on.

use crate::Tool;
use crate::api::Api;
use crate::args::ConnectArgs;
use crate::failure::Failure;
use crate::output::Out;
use crate::parse::{self, Parsed};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is answered.
pub struct Answer {
    code: u16,
    body: String,
    /// The connection stays open after it.
    stays: bool,
}

impl Answer {
    /// An object.
    pub fn object(object: &Value) -> Self {
        Answer {
            code: 200,
            body: object.to_string(),
            stays: false,
        }
    }

    /// A list.
    pub fn list(items: &[Value]) -> Self {
        Answer::object(&json!({"metadata": {"resourceVersion": "1"}, "items": items}))
    }

    /// A text, such as a log.
    pub fn text(text: &str) -> Self {
        Answer {
            body: text.to_owned(),
            ..Answer::object(&Value::Null)
        }
    }

    /// A watch that has these events, and goes on: `ADDED`, `MODIFIED`, `DELETED`, each with an object.
    pub fn stream(events: &[(&str, Value)]) -> Self {
        let mut body = String::new();
        for (kind, object) in events {
            writeln!(body, "{}", json!({"type": kind, "object": object})).unwrap();
        }
        Answer {
            code: 200,
            body,
            stays: true,
        }
    }

    /// A refusal.
    pub fn refused(code: u16, message: &str) -> Self {
        Answer {
            code,
            ..Answer::object(
                &json!({"kind": "Status", "status": "Failure", "code": code, "message": message}),
            )
        }
    }
}

/// The server.
pub struct Fake {
    kubeconfig: tempfile::NamedTempFile,
}

impl Fake {
    /// Answers every question, of which it is told path and parameters.
    pub async fn serve(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(attend(stream, answer.clone()));
            }
        });
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]});
        let mut kubeconfig = tempfile::NamedTempFile::new().unwrap();
        kubeconfig.write_all(config.to_string().as_bytes()).unwrap();
        Fake { kubeconfig }
    }

    /// A connection to it.
    pub async fn api(&self) -> Api {
        let args = ConnectArgs {
            kubeconfig: self.kubeconfig.path().as_os_str().to_owned(),
            ..ConnectArgs::default()
        };
        Api::connect(&args).await.unwrap()
    }

    /// Runs `vcctl` to its end. What it prints, and how it ends.
    pub async fn vcctl(&self, words: &[&str]) -> (String, Result<u8, Failure>) {
        let sink = Sink::default();
        let outcome = self.start(words, sink.clone()).await;
        (sink.text(), outcome)
    }

    /// Runs `vcctl`, which goes on, until it has printed this. What it has printed then.
    pub async fn vcctl_until(&self, words: &[&str], end: &str) -> String {
        let sink = Sink::default();
        tokio::select! {
            ended = self.start(words, sink.clone()) => panic!("{words:?} ended: {ended:?}: {}", sink.text()),
            () = sink.until(end) => sink.text(),
        }
    }

    async fn start(&self, words: &[&str], sink: Sink) -> Result<u8, Failure> {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        words.extend([
            "--kubeconfig".into(),
            self.kubeconfig.path().as_os_str().to_owned(),
        ]);
        let Parsed::Run { matches, .. } = parse::parse(Tool::Vcctl.command(), words) else {
            panic!("not a command");
        };
        let mut out = Out::to(sink);
        let outcome = crate::commands::run(Tool::Vcctl, &matches, &mut out).await;
        out.flush().unwrap();
        outcome
    }
}

async fn attend(mut stream: TcpStream, answer: Arc<impl Fn(&str) -> Answer>) {
    let mut asked = Vec::new();
    // With its body, or the end of the connection would cut off the answer.
    while !is_whole(&asked) {
        if stream.read_buf(&mut asked).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let answer = answer(asked.split(' ').nth(1).unwrap());
    let head = "Content-Type: application/json\r\nConnection: close";
    let text = format!("HTTP/1.1 {} X\r\n{head}\r\n\r\n{}", answer.code, answer.body);
    let _ = stream.write_all(text.as_bytes()).await; // Who asked may have gone.
    if answer.stays {
        std::future::pending::<()>().await;
    }
}

fn is_whole(asked: &[u8]) -> bool {
    let text = String::from_utf8_lossy(asked).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// What was printed.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    async fn until(&self, end: &str) {
        let wait = async {
            while !self.text().contains(end) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let limit = tokio::time::timeout(Duration::from_secs(20), wait).await;
        limit.unwrap_or_else(|_| panic!("no {end:?} in {}", self.text()));
    }
}

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
