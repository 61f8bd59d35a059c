//! Logs of containers: what they print, line by line with its time, in files of a bounded size.
//!
//! ```text
//! <directory>/<pod uid>/logs/<container>/<restart>.log      being written
//!                                        <restart>.log.old  what was written before
//! ```
//!
//! A line of a file is the time, `F` (or `P` if the line goes on in the next one), and the text.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use volcano_apiserver::{LogRequest, LogSource};

/// A file is put aside when it is this long; one such file is kept beside the one that is being written.
const FILE_BYTES: u64 = 10 << 20;
/// A longer line is written in parts.
const LINE_BYTES: usize = 16 << 10;
/// What is read of the end of a log for the last words of a container: more than a few of the longest lines.
const LAST_BYTES: u64 = 64 << 10;
/// How much of it they are at the most, in lines and in bytes, as with a kubelet.
const LAST_WORDS: (u64, usize) = (80, 2048);
/// Logs of so many runs of a container are kept: this one and the one before.
const RUNS: usize = 2;

/// How far a log has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    bytes: u64,
    /// How often a file was put aside.
    files: u64,
    done: bool,
}

/// Where the logs of all pods are.
pub(crate) struct Logs {
    directory: PathBuf,
    running: Mutex<HashMap<(String, String), watch::Receiver<Progress>>>,
}

impl Logs {
    pub fn new(directory: &Path) -> Self {
        Logs {
            directory: directory.to_owned(),
            running: Mutex::default(),
        }
    }

    fn place(&self, uid: &str, container: &str) -> PathBuf {
        self.directory.join(uid).join("logs").join(container)
    }

    /// A log for one more run of a container.
    pub fn begin(&self, uid: &str, container: &str, restart: i32) -> io::Result<LogWriter> {
        let place = self.place(uid, container);
        fs::create_dir_all(&place)?;
        let mut runs = runs(&place);
        runs.retain(|run| *run != restart);
        while runs.len() >= RUNS {
            let oldest = runs.remove(0);
            for path in [file(&place, oldest), put_aside(&file(&place, oldest))] {
                let _ = fs::remove_file(path);
            }
        }
        let path = file(&place, restart);
        let (sender, receiver) = watch::channel(Progress::default());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert((uid.to_owned(), container.to_owned()), receiver);
        Ok(LogWriter {
            file: File::create(&path)?,
            path,
            length: 0,
            line: Vec::new(),
            progress: sender,
        })
    }

    /// The end of the log of a run; none if it printed nothing.
    pub fn last_words(&self, uid: &str, container: &str, restart: i32) -> Option<String> {
        let path = file(&self.place(uid, container), restart);
        let mut lines = end_of(&put_aside(&path)).unwrap_or_default();
        lines.extend(end_of(&path).unwrap_or_default());
        let request = LogRequest {
            tail_lines: Some(LAST_WORDS.0),
            ..LogRequest::default()
        };
        let text = Selection::new(&request, Timestamp::now()).show(&lines);
        let text = &text[text.len().saturating_sub(LAST_WORDS.1)..];
        (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
    }

    /// Nothing of the pod is asked for any more.
    pub fn forget(&self, uid: &str) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(known, _), _| known != uid);
    }

    fn progress(&self, uid: &str, container: &str) -> Option<watch::Receiver<Progress>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&(uid.to_owned(), container.to_owned())).cloned()
    }
}

fn file(place: &Path, restart: i32) -> PathBuf {
    place.join(format!("{restart}.log"))
}

fn put_aside(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// The runs that have logs, the oldest first.
fn runs(place: &Path) -> Vec<i32> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut runs: Vec<i32> = names
        .filter_map(|name| name.strip_suffix(".log")?.parse().ok())
        .collect();
    runs.sort_unstable();
    runs
}

/// The last whole lines of a file.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(LAST_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if skipped > 0 {
        let begin = bytes.iter().position(|byte| *byte == b'\n');
        bytes.drain(..begin.map_or(bytes.len(), |at| at + 1));
    }
    Ok(bytes)
}

/// Writes the log of one run.
pub(crate) struct LogWriter {
    file: File,
    path: PathBuf,
    length: u64,
    line: Vec<u8>,
    progress: watch::Sender<Progress>,
}

impl LogWriter {
    /// Takes what was printed at a time.
    pub fn print(&mut self, mut bytes: &[u8], now: Timestamp) -> io::Result<()> {
        let mut text = Vec::with_capacity(bytes.len() + 64);
        while !bytes.is_empty() {
            let room = LINE_BYTES - self.line.len();
            let end = bytes.iter().take(room).position(|byte| *byte == b'\n');
            let (part, is_whole, rest) = match end {
                Some(end) => (&bytes[..end], true, &bytes[end + 1..]),
                None => {
                    let end = room.min(bytes.len());
                    (&bytes[..end], false, &bytes[end..])
                }
            };
            self.line.extend_from_slice(part);
            bytes = rest;
            if is_whole || self.line.len() >= LINE_BYTES {
                write_line(&mut text, &mut self.line, is_whole, now)?;
            }
        }
        self.append(&text)
    }

    /// Nothing more will be printed.
    pub fn end(mut self, now: Timestamp) {
        let mut text = Vec::new();
        if !self.line.is_empty() {
            // A line without an end is shown without one.
            let _ = write_line(&mut text, &mut self.line, false, now);
        }
        let _ = self.append(&text);
        self.progress.send_modify(|progress| progress.done = true);
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.length + text.len() as u64 > FILE_BYTES && self.length > 0 {
            fs::rename(&self.path, put_aside(&self.path))?;
            self.file = File::create(&self.path)?;
            self.length = 0;
            self.progress.send_modify(|progress| progress.files += 1);
        }
        self.file.write_all(text)?;
        self.length += text.len() as u64;
        self.progress
            .send_modify(|progress| progress.bytes += text.len() as u64);
        Ok(())
    }
}

fn write_line(to: &mut Vec<u8>, line: &mut Vec<u8>, is_whole: bool, now: Timestamp) -> io::Result<()> {
    write!(to, "{now:.9} {} ", if is_whole { 'F' } else { 'P' })?;
    to.append(line);
    to.push(b'\n');
    Ok(())
}

/// What is left out of a log, and how the rest is shown.
struct Selection {
    since: Option<Timestamp>,
    tail: Option<usize>,
    left: Option<u64>,
    timestamps: bool,
    /// The line before goes on.
    goes_on: bool,
}

impl Selection {
    fn new(request: &LogRequest, now: Timestamp) -> Self {
        let since = request.since_seconds.map(|seconds| {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(1 << 40);
            now.saturating_sub(jiff::SignedDuration::from_secs(seconds))
                .unwrap_or(Timestamp::MIN)
        });
        Selection {
            since,
            tail: request
                .tail_lines
                .map(|lines| usize::try_from(lines).unwrap_or(usize::MAX)),
            left: request.limit_bytes,
            timestamps: request.timestamps,
            goes_on: false,
        }
    }

    /// What is shown of a piece of a file, which consists of whole lines.
    fn show(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut lines: VecDeque<(&[u8], bool, &[u8])> = VecDeque::new();
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let Some((time, is_whole, text)) = parts(line) else {
                continue;
            };
            let is_late = |since: Timestamp| {
                let time = std::str::from_utf8(time).ok().and_then(|time| time.parse().ok());
                time.is_none_or(|time: Timestamp| time >= since)
            };
            if self.since.is_none_or(is_late) {
                lines.push_back((time, is_whole, text));
            }
        }
        if let Some(tail) = self.tail {
            let first = first_of_last(&lines, tail);
            lines.drain(..first);
        }
        let mut shown = Vec::with_capacity(piece.len());
        for (time, is_whole, text) in lines {
            if self.timestamps && !self.goes_on {
                shown.extend_from_slice(time);
                shown.push(b' ');
            }
            shown.extend_from_slice(text);
            if is_whole {
                shown.push(b'\n');
            }
            self.goes_on = !is_whole;
        }
        if let Some(left) = &mut self.left {
            shown.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= shown.len() as u64;
        }
        shown
    }
}

/// Where the last so many lines begin; parts of a line count as one.
fn first_of_last(lines: &VecDeque<(&[u8], bool, &[u8])>, tail: usize) -> usize {
    let mut count = 0;
    for index in (0..lines.len()).rev() {
        let begins = index == 0 || lines.get(index - 1).is_some_and(|(_, is_whole, _)| *is_whole);
        if count == tail {
            return index + 1;
        }
        if begins {
            count += 1;
        }
        if count == tail && begins {
            return index;
        }
    }
    if tail == 0 { lines.len() } else { 0 }
}

fn parts(line: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let line = line.strip_suffix(b"\n")?;
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let (time, rest) = (&line[..blank], &line[blank + 1..]);
    match rest {
        [b'F', b' ', text @ ..] => Some((time, true, text)),
        [b'P', b' ', text @ ..] => Some((time, false, text)),
        _ => None,
    }
}

/// Reads a log as it grows.
struct Reader {
    path: PathBuf,
    file: File,
    /// How many files had been put aside when this one was opened.
    files: u64,
    rest: Vec<u8>,
}

impl Reader {
    /// The whole lines that have come.
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.file.read_to_end(&mut self.rest)?;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        let rest = self.rest.split_off(whole);
        Ok(std::mem::replace(&mut self.rest, rest))
    }

    /// Goes on in the next file, when this one has been put aside.
    fn advance(&mut self, files: u64) -> io::Result<Vec<u8>> {
        let mut text = self.read()?;
        if files > self.files {
            self.files = files;
            self.file = File::open(&self.path)?;
            self.rest.clear();
            text.extend(self.read()?);
        }
        Ok(text)
    }
}

impl LogSource for Logs {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<BoxStream<'static, Bytes>, String>> {
        let place = self.place(&request.uid, &request.container);
        let progress = self.progress(&request.uid, &request.container);
        Box::pin(async move {
            let open = move || open(&place, progress, &request);
            let opened = tokio::task::spawn_blocking(open).await;
            opened.map_err(|error| error.to_string())?
        })
    }
}

fn open(
    place: &Path,
    progress: Option<watch::Receiver<Progress>>,
    request: &LogRequest,
) -> Result<BoxStream<'static, Bytes>, String> {
    let runs = runs(place);
    let (pod, container) = (&request.pod, &request.container);
    let run = match (runs.as_slice(), request.previous) {
        ([.., before, _], true) => *before,
        (_, true) => {
            return Err(format!(
                "previous terminated container {container:?} in pod {pod:?} not found"
            ));
        }
        ([.., last], false) => *last,
        ([], false) => {
            return Err(format!(
                "container {container:?} in pod {pod:?} is waiting to start: {}",
                request.waits_because
            ));
        }
    };
    let path = file(place, run);
    let problem = |error: io::Error| format!("log of container {container:?} in pod {pod:?}: {error}");
    let files = progress.as_ref().map_or(0, |progress| progress.borrow().files);
    let mut text = fs::read(put_aside(&path)).unwrap_or_default();
    let mut reader = Reader {
        file: File::open(&path).map_err(problem)?,
        path,
        files,
        rest: Vec::new(),
    };
    text.extend(reader.read().map_err(problem)?);
    let mut selection = Selection::new(request, Timestamp::now());
    let first = Bytes::from(selection.show(&text));
    selection.tail = None;
    let first = stream::iter([first]);
    let progress = progress.filter(|_| request.follow && !request.previous);
    Ok(match progress {
        None => first.boxed(),
        Some(progress) => first.chain(follow(reader, selection, progress)).boxed(),
    })
}

/// What comes later, until nothing will.
fn follow(
    reader: Reader,
    selection: Selection,
    progress: watch::Receiver<Progress>,
) -> impl futures::Stream<Item = Bytes> + Send {
    stream::unfold(
        (reader, selection, progress),
        |(mut reader, mut selection, mut progress)| async move {
            loop {
                if selection.left == Some(0) {
                    return None;
                }
                let seen = *progress.borrow_and_update();
                let text = reader.advance(seen.files).ok()?;
                let shown = selection.show(&text);
                if !shown.is_empty() {
                    return Some((Bytes::from(shown), (reader, selection, progress)));
                }
                if seen.done || progress.changed().await.is_err() {
                    return None;
                }
            }
        },
    )
}

/// Logs for the API server.
pub(crate) fn source(logs: &Arc<Logs>) -> Arc<dyn LogSource> {
    logs.clone()
}

#[cfg(test)]
mod tests;
