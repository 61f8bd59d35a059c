//! A container as the agent sees it: starts it, takes its reports and its output, gives it orders.

use crate::container::{ENTRY, Order, Outer, Report, Spec, frame, frame_length};
use crate::logs::LogWriter;
use jiff::Timestamp;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A container that is not set up by then never will be: a mount of the host does not answer, say. Long enough for a machine
/// that starts hundreds at a time.
const SET_UP_LIMIT: Duration = Duration::from_secs(120);
/// What the end of a container that was killed looks like.
pub(crate) const KILLED: i32 = 137;
/// Output that somebody else still holds is not waited for longer.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// One read of output.
const CHUNK: usize = 64 << 10;

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited {
        code: i32,
        signal: Option<i32>,
    },
    /// It was never started.
    Refused {
        message: String,
    },
}

/// A container that runs. Dropping it ends it at once, with everything that it started.
pub(crate) struct Process {
    orders: Arc<Orders>,
}

/// Orders to a container, for probes and hooks too.
pub(crate) struct Orders {
    sender: mpsc::UnboundedSender<Order>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, oneshot::Sender<i32>>,
}

impl Process {
    /// Starts a container. `Ok` when its command runs; its end is told by what `ended` is called with.
    pub async fn start(
        program: &Path,
        outer: &Outer,
        spec: &Spec,
        log: LogWriter,
        ended: impl FnOnce(End) + Send + 'static,
    ) -> Result<Process, String> {
        Process::start_within(SET_UP_LIMIT, program, outer, spec, log, ended).await
    }

    async fn start_within(
        limit: Duration,
        program: &Path,
        outer: &Outer,
        spec: &Spec,
        log: LogWriter,
        ended: impl FnOnce(End) + Send + 'static,
    ) -> Result<Process, String> {
        let mut child = launch(program).map_err(|error| format!("{}: {error}", program.display()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(mut reports), Some(output)) = pipes else {
            return Err("the container has no pipes".to_owned());
        };
        let mut text = frame(outer).map_err(|error| error.to_string())?;
        text.extend(frame(spec).map_err(|error| error.to_string())?);
        // It may have ended already, with a report why.
        let _ = input.write_all(&text).await;
        let logging = tokio::spawn(copy(output, log));
        let Ok(first) = tokio::time::timeout(limit, next(&mut reports)).await else {
            // It may hang in the kernel, so that its end is not waited for. If it comes back, its orders have ended.
            let _ = child.start_kill();
            return Err(format!(
                "the container was not set up within {} s: does a volume, or another file system of this machine, not answer?",
                limit.as_secs()
            ));
        };
        match first {
            Some(Report::Started) => {}
            Some(Report::Refused { message }) => {
                drop(input);
                let _ = child.wait().await;
                return Err(message);
            }
            other => {
                drop(input);
                let status = child.wait().await;
                return Err(format!("the container did not start: {other:?}, {status:?}"));
            }
        }
        let (sender, mut receiver) = mpsc::unbounded_channel::<Order>();
        let orders = Arc::new(Orders {
            sender,
            waiting: Mutex::default(),
        });
        tokio::spawn(async move {
            while let Some(order) = receiver.recv().await {
                let Ok(bytes) = frame(&order) else { continue };
                if input.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        });
        let weak = Arc::downgrade(&orders);
        tokio::spawn(async move {
            let answer = |id, code| {
                if let Some(orders) = weak.upgrade() {
                    orders.answer(id, code);
                }
            };
            let end = follow(child, reports, logging, answer).await;
            ended(end);
        });
        Ok(Process { orders })
    }

    /// Sends a signal to the command.
    pub fn signal(&self, number: i32) {
        let _ = self.orders.sender.send(Order::Signal(number));
    }

    /// Orders for hooks and probes. They do not keep the container alive.
    pub fn orders(&self) -> std::sync::Weak<Orders> {
        Arc::downgrade(&self.orders)
    }
}

impl Orders {
    /// Runs one more command in the container. Its exit code; `None` if it takes too long or the container ends.
    pub async fn run(orders: std::sync::Weak<Orders>, command: Vec<String>, limit: Duration) -> Option<i32> {
        let (id, answer) = {
            let orders = orders.upgrade()?;
            let (sender, receiver) = oneshot::channel();
            let mut waiting = orders.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.next += 1;
            let id = waiting.next;
            waiting.answers.insert(id, sender);
            drop(waiting);
            orders.sender.send(Order::Run { id, command }).ok()?;
            (id, receiver)
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(code) => code.ok(),
            Err(_) => {
                if let Some(orders) = orders.upgrade() {
                    let _ = orders.sender.send(Order::Stop { id });
                }
                None
            }
        }
    }

    fn answer(&self, id: u64, code: i32) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.answers.remove(&id) {
            let _ = sender.send(code);
        }
    }
}

/// Sets everything up for a container without a command: whether it is possible, and whether with layers.
pub(crate) async fn attempt(program: &Path, outer: &Outer, spec: &Spec) -> Result<bool, String> {
    let mut child = launch(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let (Some(mut input), Some(mut reports)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the container has no pipes".to_owned());
    };
    for text in [frame(outer), frame(spec)] {
        let text = text.map_err(|error| error.to_string())?;
        let _ = input.write_all(&text).await;
    }
    let report = next(&mut reports).await;
    let _ = child.wait().await;
    match report {
        Some(Report::Ready { layered }) => Ok(layered),
        Some(Report::Refused { message }) => Err(message),
        other => Err(format!("no answer: {other:?}")),
    }
}

fn launch(program: &Path) -> io::Result<Child> {
    Command::new(program)
        .arg(ENTRY)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

async fn follow(
    mut child: Child,
    mut reports: ChildStdout,
    mut logging: JoinHandle<()>,
    answer: impl Fn(u64, i32),
) -> End {
    let mut end = End::Exited {
        code: KILLED,
        signal: Some(9),
    };
    while let Some(report) = next(&mut reports).await {
        match report {
            Report::Ended { code, signal } => end = End::Exited { code, signal },
            Report::Ran { id, code } => answer(id, code),
            Report::Refused { message } => end = End::Refused { message },
            Report::Ready { .. } | Report::Started => {}
        }
    }
    let _ = child.wait().await;
    if tokio::time::timeout(LAST_OUTPUT, &mut logging).await.is_err() {
        logging.abort();
    }
    end
}

async fn next(reports: &mut ChildStdout) -> Option<Report> {
    let mut head = [0; 4];
    reports.read_exact(&mut head).await.ok()?;
    let mut bytes = vec![0; frame_length(head).ok()?];
    reports.read_exact(&mut bytes).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Copies output into the log. A disk that is full must not stop the container, which would wait for its output.
async fn copy(mut output: ChildStderr, mut log: LogWriter) {
    let mut chunk = vec![0; CHUNK];
    let mut told = false;
    loop {
        match output.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                if let Err(error) = log.print(&chunk[..count], Timestamp::now())
                    && !told
                {
                    tracing::warn!(%error, "output of a container is lost");
                    told = true;
                }
            }
        }
    }
    log.end(Timestamp::now());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Isolation;
    use crate::logs::Logs;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_container_that_is_never_set_up_is_given_up() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("hangs");
        std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let outer = Outer {
            isolation: Isolation::None,
            network: None,
        };
        let spec = Spec {
            isolation: Isolation::None,
            hostname: "h".to_owned(),
            scratch: place.path().to_owned(),
            mounts: Vec::new(),
            shm_bytes: 1 << 20,
            command: vec!["true".to_owned()],
            env: Vec::new(),
            directory: "/".into(),
            user: None,
            group: None,
        };
        let log = Logs::new(place.path()).begin("u", "c", 0).unwrap();
        let limit = Duration::from_millis(50);
        let started = Process::start_within(limit, &program, &outer, &spec, log, drop).await;
        let problem = started.err().unwrap();
        assert!(problem.contains("was not set up within 0 s"), "{problem}");
    }
}
