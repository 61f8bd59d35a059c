//! What a pod prints, over all runs of its first container: one that is started again has a new log each time.
//!
//! ```text
//! run seen ─> what the run before it printed ─> what it prints, to its end ─> (the next run is seen)
//!             └─ without what has been shown, by the times of the lines
//! ```

use crate::api::Api;
use crate::commands::job::logs::following;
use crate::commands::pod::status::PodItem;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use volcano_runtime::client::{CallError, Frames};

/// How long to wait before asking again for the log of a container that is about to start.
const AGAIN: Duration = Duration::from_millis(500);
/// Lines that wait to be printed.
const WAITING: usize = 1000;

/// What comes of the pods that are followed.
pub enum News {
    /// A line, without its end.
    Line {
        /// The pod.
        pod: String,
        /// The line.
        line: Vec<u8>,
    },
    /// A run of a pod is over, or there is no log.
    End {
        /// The pod's identity.
        uid: String,
        /// The time of the last line that was shown.
        shown: Vec<u8>,
    },
}

/// Logs that are followed.
pub struct Output {
    pods: BTreeMap<String, Followed>,
    open: usize,
    sender: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
}

/// A pod whose log is followed.
struct Followed {
    pod: PodItem,
    /// Runs whose logs have been asked for.
    asked: i64,
    is_open: bool,
    shown: Vec<u8>,
}

impl Output {
    /// None so far.
    pub fn new() -> Self {
        let (sender, news) = mpsc::channel(WAITING);
        Output {
            pods: BTreeMap::new(),
            open: 0,
            sender,
            news,
        }
    }

    /// Whether something may still come.
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// What comes next.
    pub async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// A pod is like this now: its log is followed if it has started, and again when its container has been started again.
    pub fn see(&mut self, api: &Api, pod: PodItem, tasks: &mut JoinSet<()>) {
        let uid = pod.metadata.uid.clone();
        let followed = self.pods.entry(uid.clone()).or_insert_with(|| Followed {
            pod: pod.clone(),
            asked: 0,
            is_open: false,
            shown: Vec::new(),
        });
        followed.pod = pod;
        self.ask(api, &uid, tasks);
    }

    /// A run is over. There may have been another one since.
    pub fn ended(&mut self, api: &Api, uid: &str, shown: Vec<u8>, tasks: &mut JoinSet<()>) {
        self.open = self.open.saturating_sub(1);
        if let Some(followed) = self.pods.get_mut(uid) {
            followed.is_open = false;
            followed.shown = shown;
        }
        self.ask(api, uid, tasks);
    }

    fn ask(&mut self, api: &Api, uid: &str, tasks: &mut JoinSet<()>) {
        let Some(followed) = self.pods.get_mut(uid) else {
            return;
        };
        let runs = followed.pod.runs_of(first_container(&followed.pod));
        if followed.is_open || runs <= followed.asked {
            return;
        }
        followed.asked = runs;
        followed.is_open = true;
        self.open += 1;
        let (pod, shown) = (followed.pod.clone(), followed.shown.clone());
        tasks.spawn(follow(api.clone(), pod, shown, self.sender.clone()));
    }
}

fn first_container(pod: &PodItem) -> &str {
    let first = pod.spec.containers.first();
    first.map_or("", |container| container.name.as_str())
}

/// Shows what the run before printed, as far as it was not shown, and follows the one that goes on to its end. A container
/// that is about to start is waited for.
async fn follow(api: Api, pod: PodItem, shown: Vec<u8>, news: mpsc::Sender<News>) {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let log = format!("{}&timestamps=true", following(&pod));
    let mut teller = Teller {
        pod: name,
        shown,
        news: &news,
    };
    // It may have ended before it was seen to run. Mostly there is none.
    if let Ok(lines) = api.log(namespace, name, &format!("{log}&previous=true")).await {
        teller.tell_all(lines).await;
    }
    loop {
        match api.log(namespace, name, &log).await {
            Ok(lines) => {
                teller.tell_all(lines).await;
                break;
            }
            Err(error) if is_not_started(&error) && !pod.is_over() => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                teller.send(format!("(no log: {error})").into_bytes()).await;
                break;
            }
        }
    }
    let shown = teller.shown;
    let uid = pod.metadata.uid;
    let _ = news.send(News::End { uid, shown }).await; // Nobody may listen any more.
}

fn is_not_started(error: &CallError) -> bool {
    error.code() == 400
}

/// Tells lines that have not been told.
struct Teller<'a> {
    pod: &'a str,
    /// The time of the last line that was.
    shown: Vec<u8>,
    news: &'a mpsc::Sender<News>,
}

impl Teller<'_> {
    async fn tell_all(&mut self, mut lines: Frames) {
        // Lines that were printed together have the same time: what is left out is what the runs before had.
        let before = self.shown.clone();
        while let Ok(Some(line)) = lines.next().await {
            self.tell(&line, &before).await;
        }
        let rest = lines.rest();
        if !rest.is_empty() {
            self.tell(&rest, &before).await;
        }
    }

    async fn tell(&mut self, line: &[u8], before: &[u8]) {
        let (time, text) = timed(line);
        if time.is_empty() || time > before {
            if !time.is_empty() {
                self.shown = time.to_vec();
            }
            self.send(text.to_vec()).await;
        }
    }

    async fn send(&self, line: Vec<u8>) {
        let pod = self.pod.to_owned();
        let _ = self.news.send(News::Line { pod, line }).await; // Nobody may listen any more.
    }
}

/// The time of a line, and the rest. Times of one log have one form, so that they compare as they are.
fn timed(line: &[u8]) -> (&[u8], &[u8]) {
    let blank = line.iter().position(|byte| *byte == b' ');
    let (time, text) = match blank {
        Some(blank) => (&line[..blank], &line[blank + 1..]),
        None => (line, &[][..]),
    };
    let is_time = time.len() >= 20 && time[0].is_ascii_digit() && time[10] == b'T';
    if is_time { (time, text) } else { (&[], line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_time_before_it() {
        let split = |line: &'static str| {
            let (time, text) = timed(line.as_bytes());
            (
                std::str::from_utf8(time).unwrap(),
                std::str::from_utf8(text).unwrap(),
            )
        };
        let time = "2026-01-01T00:00:00.000000001Z";
        assert_eq!(split("2026-01-01T00:00:00.000000001Z a b"), (time, "a b"));
        assert_eq!(split("2026-01-01T00:00:00.000000001Z "), (time, ""));
        assert_eq!(split("unable to read the log"), ("", "unable to read the log"));
        assert_eq!(split(""), ("", ""));
    }
}
