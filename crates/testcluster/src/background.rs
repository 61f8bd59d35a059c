//! A control plane that stays when the command that started it ends: for trying things out by hand.
//!
//! One per cache directory. Its state is in `<cache>/running/`: data, logs, the kubeconfig, and `processes`, which has a
//! line for each program in the order in which they were started.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::binaries::{self, Binaries, Program};
use crate::cluster::{self, blocking};
use crate::components::Layout;
use crate::images::Image;
use crate::nodes::{self, Nodes, Packages};
use crate::objects;
use crate::process::{self, Detached, Keeper, Remover};

/// Folder below the cache directory.
const FOLDER: &str = "running";
/// File with the programs that were started.
const PROCESSES: &str = "processes";

/// The control plane of a cache directory, running or not.
#[derive(Clone, Debug)]
pub struct Background {
    binaries: Binaries,
    cache: PathBuf,
    directory: PathBuf,
}

/// How [`Background::up`] starts it.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// CRDs to install.
    pub crds: Vec<Value>,
    /// How many real nodes.
    pub nodes: usize,
    /// Images for them.
    pub images: Vec<Image>,
    /// What to do about missing packages.
    pub packages: Packages,
}

/// What there was to do for [`Background::up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It was started.
    Now,
    /// It was running.
    Before,
}

/// A program that was started.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name, and that of its node.
    pub title: String,
    /// Its process id if it runs.
    pub id: Option<u32>,
    detached: Detached,
}

impl Background {
    /// The control plane of the user's cache directory.
    ///
    /// # Errors
    /// When there is no cache directory.
    pub fn locate() -> anyhow::Result<Background> {
        let cache = binaries::cache_directory()?;
        Ok(Background {
            binaries: Binaries::locate()?,
            directory: cache.join(FOLDER),
            cache,
        })
    }

    /// Path of the kubeconfig, which is there while it runs.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Directory of data and logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Each program that was started, in that order.
    pub fn processes(&self) -> Vec<Process> {
        let text = fs::read_to_string(self.directory.join(PROCESSES)).unwrap_or_default();
        let mark = self.directory.display().to_string();
        text.lines().filter_map(|line| read_line(line, &mark)).collect()
    }

    /// Whether every program runs.
    pub fn is_running(&self) -> bool {
        let processes = self.processes();
        !processes.is_empty() && processes.iter().all(|process| process.id.is_some())
    }

    /// How many real nodes it was started with.
    pub fn nodes(&self) -> usize {
        let kubelets = |process: &&Process| process.title.starts_with("kubelet of ");
        self.processes().iter().filter(kubelets).count()
    }

    /// Builds and starts it unless it runs. Blocks until it is ready.
    ///
    /// # Errors
    /// When something cannot be built or does not start; nothing is left running then. When it runs with another number
    /// of nodes.
    pub fn up(&self, wanted: &Wanted) -> anyhow::Result<Started> {
        if wanted.nodes > 0 {
            nodes::prepare(wanted.packages)?;
            self.binaries.ensure_all(&Program::NODES)?;
        }
        self.binaries.ensure_all(&Program::CONTROL_PLANE)?;
        let _held = binaries::lock(&self.cache)?;
        if self.is_running() {
            let there = self.nodes();
            ensure!(
                wanted.nodes == there,
                "it is running with {there} real nodes: stop it first with `cargo xtask cluster down`"
            );
            return Ok(Started::Before);
        }
        // What a crash of the machine or of a program left behind.
        self.stop()?;
        let started = self.start(wanted);
        if started.is_err() {
            self.stop()?;
        }
        started.map(|()| Started::Now)
    }

    /// Stops it and removes its data. Whether there was anything to stop or to remove.
    ///
    /// # Errors
    /// When a process cannot be killed, or the data cannot be removed.
    pub fn down(&self) -> anyhow::Result<bool> {
        let _held = binaries::lock(&self.cache)?;
        let was_there = self.directory.exists();
        self.stop()?;
        Ok(was_there)
    }

    fn start(&self, wanted: &Wanted) -> anyhow::Result<()> {
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("creating {}", self.directory.display()))?;
        let mut record = Record(self.directory.join(PROCESSES));
        let nodes = match wanted.nodes {
            0 => None,
            count => Some(Nodes::lay_out(&mut record, &self.directory, count)?),
        };
        let layout = Layout::create(&self.directory, nodes.as_ref())?;
        self.run(&mut record, &layout, Program::Etcd)?;
        self.run(&mut record, &layout, Program::ApiServer)?;
        let ended = || {
            let ended = |program: &Program| {
                let mut processes = self.processes().into_iter();
                processes.any(|process| process.title == program.name() && process.id.is_none())
            };
            [Program::Etcd, Program::ApiServer].into_iter().find(ended)
        };
        cluster::wait_until_ready(&layout, ended)?;
        self.run(&mut record, &layout, Program::ControllerManager)?;
        if let Some(nodes) = nodes {
            nodes.run(&mut record, &self.binaries, &layout, &wanted.images)?;
        }
        blocking(|| async { objects::install_crds(&cluster::client(&layout)?, &wanted.crds).await })?
    }

    fn run(&self, record: &mut Record, layout: &Layout, program: Program) -> anyhow::Result<()> {
        let mut words = vec![self.binaries.path(program).display().to_string()];
        words.extend(layout.arguments(program, &[]));
        record
            .start(program.name(), &words, &layout.log(program))
            .map(drop)
    }

    /// The last to start ends first.
    fn stop(&self) -> anyhow::Result<()> {
        let processes = self.processes();
        for process in processes.iter().rev() {
            process.detached.kill()?;
        }
        let killed = Instant::now();
        for process in &processes {
            process.detached.wait_until_reaped(killed);
        }
        if !self.directory.exists() {
            return Ok(());
        }
        let group = nodes::group(&self.directory);
        drop(Remover::of(Some(&self.directory), Some(&group))?);
        ensure!(
            !self.directory.exists(),
            "{} cannot be removed",
            self.directory.display()
        );
        Ok(())
    }
}

/// Starts programs that stay, and writes down which.
struct Record(PathBuf);

impl Keeper for Record {
    fn start(&mut self, name: &str, words: &[String], log: &Path) -> anyhow::Result<u32> {
        let (program, arguments) = words.split_first().context("no program was named")?;
        let id = process::start_detached(Path::new(program), arguments, log)?;
        let line = format!("{id} {} {name}\n", lasting_name(words));
        let written = File::options()
            .create(true)
            .append(true)
            .open(&self.0)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        written.with_context(|| format!("writing {}", self.0.display()))?;
        Ok(id)
    }
}

/// The file name that the process keeps. `nsenter` becomes what it starts, unless that is in a namespace of processes.
fn lasting_name(words: &[String]) -> String {
    let program = words.iter().find(|word| *word == "unshare").or(words.first());
    let name = program
        .map(Path::new)
        .and_then(Path::file_name)
        .unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A line is the id, the name of the file and the title. Name and directory mark a process, not the path of its file: the
/// versions may have changed since.
fn read_line(line: &str, mark: &str) -> Option<Process> {
    let mut parts = line.splitn(3, ' ');
    let detached = Detached {
        id: parts.next()?.parse().ok()?,
        name: parts.next()?.to_owned(),
        mark: mark.to_owned(),
    };
    Some(Process {
        title: parts.next()?.to_owned(),
        id: detached.is_running().then_some(detached.id),
        detached,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_is_read_again_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("data").display().to_string();
        let mut record = Record(folder.path().join(PROCESSES));
        let words = ["sh", "-c", "sleep 600", &mark].map(str::to_owned);
        let id = record
            .start("shell of node-1", &words, &folder.path().join("log"))
            .unwrap();
        let text = fs::read_to_string(folder.path().join(PROCESSES)).unwrap();
        let line = text.trim_end();
        let process = read_line(line, &mark).unwrap();
        assert_eq!(
            (process.title.as_str(), process.id),
            ("shell of node-1", Some(id))
        );
        assert_eq!(read_line(line, "/another").unwrap().id, None);
        assert!(read_line("", &mark).is_none() && read_line("x sh y", &mark).is_none());
        process.detached.kill().unwrap();
        assert_eq!(read_line(line, &mark).unwrap().id, None);
    }
}
