//! The first process of a container: sets up what it sees, starts its command, and reaps what that leaves behind.
//!
//! It stays the first process, unlike in Kubernetes, where the command is: so SIGTERM ends commands that do not handle it
//! (the kernel keeps it from first processes), and nobody has to reap but this.

use super::{Isolation, Order, Report, Spec, input, read_frame, report, root, sweep};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio, exit};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the exit code of a program says that could not be started.
const NOT_STARTED: u8 = 128;

pub(super) fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(message) => {
            report(&Report::Refused { message });
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn start() -> Result<ExitCode, String> {
    let mut orders = input().map_err(|error| error.to_string())?;
    let spec: Spec =
        read_frame(&mut orders).map_err(|error| format!("the container cannot be read: {error}"))?;
    let mut layered = false;
    if spec.isolation == Isolation::None {
        nix::sys::prctl::set_child_subreaper(true).map_err(|errno| format!("supervisor: {errno}"))?;
    } else {
        layered = root::assemble(&spec)?;
        nix::unistd::sethostname(&spec.hostname).map_err(|errno| format!("host name: {errno}"))?;
    }
    if spec.command.is_empty() {
        report(&Report::Ready { layered });
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&spec.directory).map_err(|error| {
        let path = spec.directory.display();
        format!("working directory {path}: {error}")
    })?;
    let children = Arc::new(Children::default());
    let spec = Arc::new(spec);
    let first = {
        let _guard = children.lock();
        spawn(&spec, &spec.command, true)?
    };
    report(&Report::Started);
    let lifeline = (spec.clone(), children.clone());
    std::thread::spawn(move || obey(orders, first, &lifeline.0, &lifeline.1));
    let (code, signal) = reap(first, &children);
    if spec.isolation == Isolation::None {
        sweep::all();
    }
    report(&Report::Ended { code, signal });
    Ok(ExitCode::SUCCESS)
}

/// Commands beside the first, by process id.
#[derive(Default)]
struct Children(Mutex<HashMap<i32, u64>>);

impl Children {
    /// A child is known before it can be reaped: whoever starts one holds this, and so does whoever looks one up.
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out orders until there is nobody who gives any.
fn obey(mut orders: File, first: Pid, spec: &Spec, children: &Children) {
    while let Ok(order) = read_frame::<Order>(&mut orders) {
        match order {
            Order::Signal(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    let _ = kill(first, signal);
                }
            }
            Order::Run { id, command } => {
                let mut known = children.lock();
                match spawn(spec, &command, false) {
                    Ok(pid) => {
                        known.insert(pid.as_raw(), id);
                    }
                    Err(_) => report(&Report::Ran { id, code: 126 }),
                }
            }
            Order::Stop { id } => {
                let known = children.lock();
                if let Some((pid, _)) = known.iter().find(|(_, one)| **one == id) {
                    let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
                }
            }
        }
    }
    // The agent wants the end, or is gone.
    if spec.isolation == Isolation::None {
        sweep::all();
    }
    exit(i32::from(NOT_STARTED) + 9);
}

/// Reaps whatever ends, until it is the first command.
fn reap(first: Pid, children: &Children) -> (i32, Option<i32>) {
    loop {
        let (pid, code, signal) = match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, code, None),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                (pid, i32::from(NOT_STARTED) + signal as i32, Some(signal as i32))
            }
            Ok(_) | Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return (i32::from(NOT_STARTED), None),
        };
        if pid == first {
            return (code, signal);
        }
        let id = children.lock().remove(&pid.as_raw());
        if let Some(id) = id {
            report(&Report::Ran { id, code });
        }
    }
}

fn spawn(spec: &Spec, words: &[String], speaks: bool) -> Result<Pid, String> {
    let [name, arguments @ ..] = words else {
        return Err("the command is empty".to_owned());
    };
    let program = find(name, spec)?;
    let output = || -> Result<Stdio, String> {
        if !speaks {
            return Ok(Stdio::null());
        }
        let log = std::io::stderr().as_fd().try_clone_to_owned();
        Ok(Stdio::from(log.map_err(|error| format!("log: {error}"))?))
    };
    let mut command = Command::new(&program);
    command
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.directory)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?);
    if let Some(group) = spec.group {
        command.gid(group);
    }
    if let Some(user) = spec.user {
        command.uid(user);
    }
    let child = command.spawn().map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "no such file or directory (the program, or its interpreter)".to_owned()
            }
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        format!("exec {name:?}: {hint}")
    })?;
    i32::try_from(child.id())
        .map(Pid::from_raw)
        .map_err(|error| error.to_string())
}

/// The file of a program, by the PATH of the container.
fn find(name: &str, spec: &Spec) -> Result<PathBuf, String> {
    if name.contains('/') {
        let path = spec.directory.join(name);
        return if path.exists() {
            Ok(path)
        } else {
            Err(format!(
                "exec: {name:?}: stat {}: no such file or directory",
                path.display()
            ))
        };
    }
    let path = spec.env.iter().rev().find(|(key, _)| key == "PATH");
    let folders = path.map_or("", |(_, folders)| folders.as_str());
    folders
        .split(':')
        .map(|folder| spec.directory.join(folder).join(name))
        .find(|file| is_program(file))
        .ok_or_else(|| format!("exec: {name:?}: executable file not found in $PATH"))
}

fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
