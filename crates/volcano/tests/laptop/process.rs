//! The binary as users start it: to its end, or with signals while it runs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// What stands before the path of the kubeconfig in the greeting of `up`.
const EXPORT: &str = "export KUBECONFIG=";

/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a command that has ended printed.
pub struct Done {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Done {
    /// Everything, for messages.
    pub fn all(&self) -> String {
        format!("exit {:?}\n{}\n[stderr]\n{}", self.code, self.out, self.err)
    }
}

/// `volcano`, with nothing of the user's.
pub fn command(words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volcano"));
    command
        .args(words)
        .current_dir(folder)
        .env("HOME", folder)
        // What one that was killed leaves goes with the folder.
        .env("TMPDIR", folder)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it to its end in a folder.
pub fn volcano(words: &[&str], folder: &Path) -> Done {
    volcano_reading(words, folder, "")
}

/// The same with standard input.
pub fn volcano_reading(words: &[&str], folder: &Path, input: &str) -> Done {
    let mut child = command(words, folder).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// One that runs. It is killed when dropped.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it.
    pub fn start(words: &[&str], folder: &Path) -> Running {
        let mut child = command(words, folder).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    /// Reads standard output until a line has this text. The line.
    pub fn wait_line(&mut self, text: &str) -> String {
        self.find_line(text).unwrap_or_else(|seen| {
            let mut err = String::new();
            let mut stderr = self.child.stderr.take().unwrap();
            stderr.read_to_string(&mut err).unwrap();
            panic!("it ended without {text:?}:\n{seen}\n{err}");
        })
    }

    /// The same for one that may end before; then what it printed is the error.
    pub fn find_line(&mut self, text: &str) -> Result<String, String> {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return Err(seen);
            }
            if line.contains(text) {
                return Ok(line.trim_end().to_owned());
            }
            seen.push_str(&line);
        }
    }

    /// Reads standard output of `up` until it names the kubeconfig.
    pub fn wait_kubeconfig(&mut self) -> PathBuf {
        let line = self.wait_line(EXPORT);
        kubeconfig_of(&line)
    }

    /// The same for one that may end before.
    pub fn find_kubeconfig(&mut self) -> Option<PathBuf> {
        let line = self.find_line(EXPORT).ok()?;
        Some(kubeconfig_of(&line))
    }

    /// Kills it with `kill -9` after some time, unless what this returns is dropped before.
    pub fn kill_after(&self, time: Duration) -> Sender<()> {
        let (keep, dropped) = std::sync::mpsc::channel::<()>();
        let id = self.child.id().to_string();
        std::thread::spawn(move || {
            if dropped.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id]).status(); // It may have ended by itself.
            }
        });
        keep
    }

    /// Reads standard error until a line has this text.
    pub fn wait_error(&mut self, text: &str) {
        let err = BufReader::new(self.child.stderr.as_mut().unwrap());
        let mut seen = Vec::new();
        for line in err.lines().map_while(Result::ok) {
            if line.contains(text) {
                return;
            }
            seen.push(line);
        }
        panic!("it ended without {text:?}: {seen:#?}");
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end. How it ended, and what it printed since.
    pub fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, rest);
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // It may have ended already.
        let _ = self.child.wait();
    }
}

fn kubeconfig_of(line: &str) -> PathBuf {
    line.trim().strip_prefix(EXPORT).unwrap().into()
}
