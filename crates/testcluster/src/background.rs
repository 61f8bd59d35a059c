//! A control plane that stays when the command that started it ends: for trying things out by hand.
//!
//! One per cache directory. Its state is in `<cache>/running/`: data, logs, the kubeconfig, and a `.pid` file for each
//! program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use crate::binaries::{self, Binaries, Program};
use crate::cluster::{self, blocking};
use crate::components::Layout;
use crate::objects;
use crate::process::{self, Detached};

/// Folder below the cache directory.
const FOLDER: &str = "running";
/// The order in which programs start; they stop in the opposite one.
const PROGRAMS: [Program; 3] = Program::CONTROL_PLANE;

/// The control plane of a cache directory, running or not.
#[derive(Clone, Debug)]
pub struct Background {
    binaries: Binaries,
    cache: PathBuf,
    directory: PathBuf,
}

/// What there was to do for [`Background::up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It was started.
    Now,
    /// It was running.
    Before,
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

    /// Each program, and its process id if it runs.
    pub fn processes(&self) -> Vec<(Program, Option<u32>)> {
        let id = |program| {
            let process = self.process(program)?;
            process.is_running().then_some(process.id)
        };
        PROGRAMS
            .into_iter()
            .map(|program| (program, id(program)))
            .collect()
    }

    /// Whether every program runs.
    pub fn is_running(&self) -> bool {
        self.processes().iter().all(|(_, id)| id.is_some())
    }

    /// Builds and starts it unless it runs, and installs CRDs. Blocks until it is ready.
    ///
    /// # Errors
    /// When something cannot be built or does not start; nothing is left running then.
    pub fn up(&self, crds: &[Value]) -> anyhow::Result<Started> {
        self.binaries.ensure_all(&PROGRAMS)?;
        let _held = binaries::lock(&self.cache)?;
        if self.is_running() {
            return Ok(Started::Before);
        }
        // What a crash of the machine or of a program left behind.
        self.stop()?;
        let started = self.start(crds);
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

    fn start(&self, crds: &[Value]) -> anyhow::Result<()> {
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("creating {}", self.directory.display()))?;
        let layout = Layout::create(&self.directory)?;
        self.run(&layout, Program::Etcd)?;
        self.run(&layout, Program::ApiServer)?;
        let ended = || {
            let mut processes = self.processes().into_iter().take(2);
            processes.find(|(_, id)| id.is_none()).map(|(program, _)| program)
        };
        cluster::wait_until_ready(&layout, ended)?;
        self.run(&layout, Program::ControllerManager)?;
        blocking(|| async { objects::install_crds(&cluster::client(&layout)?, crds).await })?
    }

    fn run(&self, layout: &Layout, program: Program) -> anyhow::Result<()> {
        let arguments = layout.arguments(program, &[]);
        let id = process::start_detached(&self.binaries.path(program), &arguments, &layout.log(program))?;
        let path = self.pid_file(program);
        fs::write(&path, format!("{id}\n")).with_context(|| format!("writing {}", path.display()))
    }

    fn stop(&self) -> anyhow::Result<()> {
        let processes = PROGRAMS
            .into_iter()
            .rev()
            .filter_map(|program| self.process(program));
        let processes: Vec<Detached> = processes.filter(Detached::is_running).collect();
        for process in &processes {
            process.kill()?;
        }
        for process in &processes {
            process.wait_until_reaped();
        }
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.directory.display()))
            }
            _ => Ok(()),
        }
    }

    fn pid_file(&self, program: Program) -> PathBuf {
        self.directory.join(format!("{}.pid", program.name()))
    }

    /// The process that was started for a program. The name of its file and the directory of its data mark it, not the
    /// path of its file: the versions may have changed since.
    fn process(&self, program: Program) -> Option<Detached> {
        let text = fs::read_to_string(self.pid_file(program)).ok()?;
        Some(Detached {
            id: text.trim().parse().ok()?,
            name: program.name().to_owned(),
            mark: self.directory.display().to_string(),
        })
    }
}
