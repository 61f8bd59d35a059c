//! Processes that end with this one, however it ends, and processes that stay.
//!
//! A test that is killed runs no destructors. So each program has a watcher, a shell that reads from a pipe which this
//! process holds open: when this process is gone, for whatever reason, the read ends and the watcher kills the program.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Becomes `"$@"`, after leaving behind a watcher that kills it when standard input ends. A line on standard input
/// dismisses the watcher: the id may belong to another process by then.
const SUPERVISE: &str = r#"
exec 3<&0 </dev/null
{ read -r _ <&3 || kill -KILL $$; } &
exec "$@" 3<&-
"#;

/// Removes the directory `$1` and the control groups named `$2` once standard input ends, each if it is named. Programs
/// that still write to the one or are in the others are about to be killed, hence the few tries.
const REMOVE: &str = r#"
read -r _
ungroup() {
    for group in "/sys/fs/cgroup/$1" /sys/fs/cgroup/*/"$1"; do
        if [ -d "$group" ]; then
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || return 1
        fi
    done
}
tries=0
until { [ -z "$2" ] || ungroup "$2"; } && { [ -z "$1" ] || rm -rf -- "$1" 2>/dev/null; } || [ $tries -ge 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
"#;

/// A program that stays when the terminal is closed.
const DETACH: &str = r#"trap '' HUP; exec "$@""#;

/// How long a killed process may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process may be without a command line.
const EXEC_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an ended process may stay in the list of processes.
const REAP_TIMEOUT: Duration = Duration::from_secs(2);
/// How often to look for something that happens by itself.
pub const POLL: Duration = Duration::from_millis(50);

/// A program that ends when this is dropped, or when this process ends in whatever way.
#[derive(Debug)]
pub struct Supervised {
    program: Child,
    lifeline: Option<ChildStdin>,
}

impl Supervised {
    /// Starts a program; its output goes to the end of the log file.
    pub fn start(program: &Path, arguments: &[String], log: &Path) -> anyhow::Result<Supervised> {
        let output = open_log(log)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", SUPERVISE, "supervise"])
            .arg(program)
            .args(arguments);
        let (program, lifeline) =
            with_lifeline(command, output).with_context(|| format!("starting {}", program.display()))?;
        Ok(Supervised { program, lifeline })
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.program.try_wait().ok().flatten();
        if status.is_some() {
            self.dismiss();
        }
        status
    }

    /// Lets the watcher go; there may be none any more.
    fn dismiss(&mut self) {
        if let Some(mut lifeline) = self.lifeline.take() {
            let _ = lifeline.write_all(b"\n");
        }
    }
}

impl Drop for Supervised {
    /// Kills the program rather than asks it to end: what it keeps is thrown away, or was written before.
    fn drop(&mut self) {
        self.dismiss();
        // Both fail only if it has ended and was waited for.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Who starts programs and knows of them until they end.
pub trait Keeper {
    /// Starts a program from the words of its command line; its output goes to the end of the log file. Its id.
    fn start(&mut self, name: &str, words: &[String], log: &Path) -> anyhow::Result<u32>;
}

/// Programs that end when this is dropped, or when this process ends in whatever way: the last to start ends first.
#[derive(Debug, Default)]
pub struct Supervisor(Vec<Supervised>);

impl Keeper for Supervisor {
    fn start(&mut self, _name: &str, words: &[String], log: &Path) -> anyhow::Result<u32> {
        let (program, arguments) = words.split_first().context("no program was named")?;
        let started = Supervised::start(Path::new(program), arguments, log)?;
        let id = started.program.id();
        self.0.push(started);
        Ok(id)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        while let Some(last) = self.0.pop() {
            drop(last);
        }
    }
}

/// Removes a directory and control groups when this is dropped, or when this process ends in whatever way.
#[derive(Debug)]
pub struct Remover {
    shell: Child,
    lifeline: Option<ChildStdin>,
}

impl Remover {
    /// Will remove this directory, and the control groups of this name.
    pub fn of(directory: Option<&Path>, group: Option<&str>) -> anyhow::Result<Remover> {
        let mut command = Command::new("sh");
        command
            .args(["-c", REMOVE, "remove"])
            .arg(directory.unwrap_or(Path::new("")))
            .arg(group.unwrap_or_default());
        let null = File::options().write(true).open("/dev/null");
        let null = null.context("opening /dev/null")?;
        let (shell, lifeline) = with_lifeline(command, null).context("starting the remover of the data")?;
        Ok(Remover { shell, lifeline })
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        self.lifeline = None;
        let _ = self.shell.wait();
    }
}

/// Starts a shell that notices the end of this process by the end of its standard input.
fn with_lifeline(mut command: Command, output: File) -> anyhow::Result<(Child, Option<ChildStdin>)> {
    let errors = output.try_clone()?;
    let mut shell = command
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(errors)
        // A Ctrl-C is for the tests; that they end is noticed.
        .process_group(0)
        .spawn()?;
    let lifeline = shell.stdin.take();
    Ok((shell, lifeline))
}

/// Starts a program that outlives this process, and returns its id.
pub fn start_detached(program: &Path, arguments: &[String], log: &Path) -> anyhow::Result<u32> {
    let output = open_log(log)?;
    let errors = output.try_clone().context("opening the log")?;
    let child = Command::new("sh")
        .args(["-c", DETACH, "detach"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    Ok(child.id())
}

/// A process that an earlier command may have started. Ids are used again, so it is known by its command line too.
#[derive(Clone, Debug)]
pub struct Detached {
    /// Its id.
    pub id: u32,
    /// Name of the file that it runs.
    pub name: String,
    /// A text that one of its arguments has and that no other process's have, such as the directory of its data.
    pub mark: String,
}

impl Detached {
    /// Whether the process of this id still is that program.
    pub fn is_running(&self) -> bool {
        let words = command_line(self.id);
        // Any word: for a moment it is an argument of the shell that becomes it.
        let named = |word: &String| {
            Path::new(word)
                .file_name()
                .is_some_and(|name| *name == *self.name)
        };
        words.iter().any(named) && words.iter().any(|word| word.contains(&self.mark))
    }

    /// Kills it if it still runs, and waits until it has ended.
    pub fn kill(&self) -> anyhow::Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        let id = self.id.to_string();
        let status = Command::new("sh")
            .args(["-c", r#"kill -KILL "$1""#, "kill", &id])
            .status()
            .context("starting kill")?;
        let began = Instant::now();
        while self.is_running() {
            ensure!(
                status.success() && began.elapsed() < KILL_TIMEOUT,
                "process {id} ({}) cannot be killed",
                self.name
            );
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until it is not listed any more: after its end it stays until its parent takes notice, which an init of a
    /// container does after a while, or never. `killed` is when that was; many are waited for no longer than one.
    pub fn wait_until_reaped(&self, killed: Instant) {
        while Path::new("/proc").join(self.id.to_string()).exists() && killed.elapsed() < REAP_TIMEOUT {
            thread::sleep(POLL);
        }
    }
}

/// The words of the command line of a process; none if there is no such process, or if it has ended.
fn command_line(id: u32) -> Vec<String> {
    if !Path::new("/proc/self/cmdline").exists() {
        let asked = Command::new("ps")
            .args(["-o", "command=", "-p", &id.to_string()])
            .output();
        return asked.map_or(Vec::new(), |output| words(&output.stdout, b' '));
    }
    let began = Instant::now();
    loop {
        let line = fs::read(format!("/proc/{id}/cmdline")).map_or(Vec::new(), |bytes| words(&bytes, 0));
        // A process that becomes another program, or that is about to end, has none for a moment.
        if !line.is_empty() || has_ended(id) || began.elapsed() > EXEC_TIMEOUT {
            return line;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn words(bytes: &[u8], separator: u8) -> Vec<String> {
    let words = bytes.split(|byte| *byte == separator);
    let words = words.map(|word| String::from_utf8_lossy(word).trim().to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Whether a process is not there, or only waits for its parent to take notice of its end.
pub fn has_ended(id: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{id}/stat")) else {
        return true;
    };
    // The state follows the name, which is in parentheses and may have some of its own.
    let state = text.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with(['Z', 'X'])
}

fn open_log(path: &Path) -> anyhow::Result<File> {
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))
}

/// The last lines of a file, or why there are none.
pub fn last_lines(path: &Path, count: usize) -> String {
    match fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(count)..].join("\n")
        }
        Err(error) => format!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    fn arguments(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Waits until the file has a line, and returns it.
    fn first_line(path: &Path) -> String {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(path).unwrap_or_default();
            if let Some((line, _)) = text.split_once('\n') {
                return line.to_owned();
            }
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "no line in {}",
                path.display()
            );
            thread::sleep(POLL);
        }
    }

    fn assert_gone(id: u32) {
        let began = Instant::now();
        while !command_line(id).is_empty() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "process {id} is still there"
            );
            thread::sleep(POLL);
        }
    }

    /// A program that says its id and then waits for a long time.
    fn sleeper() -> Vec<String> {
        arguments(&["-c", "echo $$; exec sleep 600"])
    }

    #[test]
    fn a_program_ends_when_it_is_dropped_and_its_output_is_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut running = Supervised::start(Path::new("/bin/sh"), &sleeper(), &log).unwrap();
        let id = first_line(&log).parse().unwrap();
        assert!(running.ended().is_none());
        drop(running);
        assert_gone(id);
    }

    #[test]
    fn a_program_ends_with_the_process_that_holds_its_lifeline() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut running = Supervised::start(Path::new("/bin/sh"), &sleeper(), &log).unwrap();
        let id = first_line(&log).parse().unwrap();
        // What the end of this process does: the pipe is closed, and nothing is written to it.
        running.lifeline = None;
        assert_gone(id);
        assert_eq!(running.ended().and_then(|status| status.signal()), Some(9));
    }

    #[test]
    fn the_end_of_a_program_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let exits = arguments(&["-c", "echo oops >&2; exit 3"]);
        let mut running = Supervised::start(Path::new("/bin/sh"), &exits, &log).unwrap();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = running.ended() {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it does not end");
            thread::sleep(POLL);
        };
        assert_eq!(status.code(), Some(3));
        assert!(running.lifeline.is_none(), "the watcher is dismissed");
        assert_eq!(last_lines(&log, 20), "oops");
    }

    #[test]
    fn a_directory_is_removed_with_its_remover() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("data with spaces");
        fs::create_dir_all(directory.join("etcd")).unwrap();
        let remover = Remover::of(Some(&directory), None).unwrap();
        assert!(directory.exists());
        drop(remover);
        assert!(!directory.exists());
    }

    #[test]
    fn a_detached_program_is_killed_by_its_id_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let id = start_detached(Path::new("/bin/sleep"), &arguments(&["654.25"]), &log).unwrap();
        let process = |name: &str, mark: &str| Detached {
            id,
            name: name.to_owned(),
            mark: mark.to_owned(),
        };
        let detached = process("sleep", "654.25");
        assert!(detached.is_running());
        for other in [process("other", "654.25"), process("sleep", "600")] {
            assert!(!other.is_running());
            other.kill().unwrap();
        }
        assert!(detached.is_running(), "an id that is used again is left alone");
        detached.kill().unwrap();
        assert!(!detached.is_running());
    }

    #[test]
    fn the_last_lines_are_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "1\n2\n3\n").unwrap();
        assert_eq!(last_lines(&path, 2), "2\n3");
        assert_eq!(last_lines(&path, 20), "1\n2\n3");
    }
}
