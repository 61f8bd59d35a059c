//! The programs of the control plane, built from pinned Go modules into a cache outside the checkout.
//!
//! ```text
//! <cache>/<versions>-<hash>-<platform>/lock       held while building
//!                                     /module/    the Go module, written from this crate
//!                                     /bin/       what was built; a file that is there is whole
//! ```
//!
//! There is one such place for each Go module. The hash is that of the module's files, so that a change of a pinned
//! version is a new place and never a mix of both.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use crate::modules::{self, Module};
pub use crate::modules::{COREDNS_VERSION, ETCD_VERSION, KUBERNETES_VERSION};

/// Variable that names the cache directory.
pub const CACHE_VARIABLE: &str = "VOLCANO_CLUSTER_CACHE";

/// Folder below the user's cache directory.
const CACHE_FOLDER: &str = "volcano-testcluster";
/// The oldest Go that builds this version of Kubernetes.
const OLDEST_GO: (u32, u32) = (1, 26);

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API.
    ApiServer,
    /// Garbage collection, namespaces, service accounts, the built-in workloads.
    ControllerManager,
    /// The command line.
    Kubectl,
    /// Kubernetes' own scheduler, for pods that name no other.
    Scheduler,
    /// Runs the pods of a node.
    Kubelet,
    /// Makes the addresses of Services work.
    KubeProxy,
    /// Names of Services and pods.
    CoreDns,
}

impl Program {
    /// What a cluster needs.
    pub const CONTROL_PLANE: [Program; 3] = [Program::Etcd, Program::ApiServer, Program::ControllerManager];
    /// What it needs besides for real nodes.
    pub const NODES: [Program; 4] = [
        Program::Kubelet,
        Program::KubeProxy,
        Program::Scheduler,
        Program::CoreDns,
    ];

    /// Name of the file, and of the program in messages.
    pub fn name(self) -> &'static str {
        match self {
            Program::Etcd => "etcd",
            Program::ApiServer => "kube-apiserver",
            Program::ControllerManager => "kube-controller-manager",
            Program::Kubectl => "kubectl",
            Program::Scheduler => "kube-scheduler",
            Program::Kubelet => "kubelet",
            Program::KubeProxy => "kube-proxy",
            Program::CoreDns => "coredns",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Program::Etcd => ETCD_VERSION,
            Program::CoreDns => COREDNS_VERSION,
            _ => KUBERNETES_VERSION,
        }
    }

    fn module(self) -> &'static Module {
        match self {
            Program::CoreDns => &modules::COREDNS,
            _ => &modules::KUBERNETES,
        }
    }

    fn package(self) -> String {
        match self {
            Program::Etcd => "./etcd".to_owned(),
            Program::CoreDns => ".".to_owned(),
            _ => format!("k8s.io/kubernetes/cmd/{}", self.name()),
        }
    }
}

/// Where the programs of the pinned versions are.
#[derive(Clone, Debug)]
pub struct Binaries {
    cache: PathBuf,
}

impl Binaries {
    /// The places of the pinned versions in the cache directory. Nothing is built yet.
    ///
    /// # Errors
    /// When there is no cache directory.
    pub fn locate() -> anyhow::Result<Binaries> {
        Ok(Binaries::within(&cache_directory()?))
    }

    fn within(cache: &Path) -> Binaries {
        Binaries {
            cache: cache.to_owned(),
        }
    }

    /// The file of a program, built if it is not there.
    ///
    /// # Errors
    /// When Go is missing or too old, or when the build fails.
    pub fn ensure(&self, program: Program) -> anyhow::Result<PathBuf> {
        self.ensure_all(&[program])?;
        Ok(self.path(program))
    }

    /// Builds those programs that are not there. One process builds at a time; others wait for it.
    ///
    /// # Errors
    /// When Go is missing or too old, or when a build fails.
    pub fn ensure_all(&self, programs: &[Program]) -> anyhow::Result<()> {
        for module in Module::all() {
            let ours = programs.iter().filter(|program| program.module() == module);
            self.ensure_module(module, &ours.copied().collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn ensure_module(&self, module: &Module, programs: &[Program]) -> anyhow::Result<()> {
        let missing = |program: &&Program| !self.path(**program).is_file();
        if !programs.iter().any(|program| missing(&program)) {
            return Ok(());
        }
        check_go()?;
        let place = self.place(module);
        let _held = lock(&place)?;
        // Another process may have built them while this one waited.
        let to_build: Vec<Program> = programs.iter().filter(missing).copied().collect();
        if to_build.is_empty() {
            return Ok(());
        }
        let folder = place.join("module");
        module.write(&folder)?;
        for program in to_build {
            self.build(&folder, program)?;
        }
        Ok(())
    }

    fn place(&self, module: &Module) -> PathBuf {
        self.cache.join(module.key())
    }

    /// Where the file of a program is, or will be.
    pub fn path(&self, program: Program) -> PathBuf {
        self.place(program.module()).join("bin").join(program.name())
    }

    fn build(&self, module: &Path, program: Program) -> anyhow::Result<()> {
        let path = self.path(program);
        let folder = path.parent().unwrap_or(module);
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let unfinished = folder.join(format!(".{}.unfinished", program.name()));
        let began = Instant::now();
        say(&format!(
            "building {} {} (minutes the first time, seconds later) ... ",
            program.name(),
            program.version()
        ));
        let output = Command::new("go")
            .args(["build", "-ldflags", &modules::linker_flags(), "-o"])
            .arg(&unfinished)
            .arg(program.package())
            .current_dir(module)
            .output()
            .context("starting go build")?;
        let took = began.elapsed().as_secs_f64();
        if !output.status.success() {
            say(&format!("failed after {took:.0} s\n"));
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("go build {} failed:\n{}", program.package(), said.trim_end());
        }
        fs::rename(&unfinished, &path).with_context(|| format!("moving to {}", path.display()))?;
        say(&format!("{took:.0} s\n"));
        Ok(())
    }
}

/// The directory that programs and the background cluster are kept in: `$VOLCANO_CLUSTER_CACHE`, or
/// `volcano-testcluster` in `$XDG_CACHE_HOME` or `~/.cache`.
///
/// # Errors
/// When none of the variables is set, `HOME` included.
pub fn cache_directory() -> anyhow::Result<PathBuf> {
    cache_directory_from(|name| env::var_os(name))
}

fn cache_directory_from(variable: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    let set = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let cache = set(CACHE_VARIABLE)
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join(CACHE_FOLDER)))
        .or_else(|| Some(set("HOME")?.join(".cache").join(CACHE_FOLDER)))
        .with_context(|| format!("no cache directory: set {CACHE_VARIABLE} or HOME"))?;
    std::path::absolute(&cache).with_context(|| format!("cache directory {}", cache.display()))
}

/// Whether a Go is there that can build the control plane.
///
/// # Errors
/// When there is none, or it is too old; the message says what to do.
pub fn check_go() -> anyhow::Result<()> {
    let needed = format!(
        "Go {}.{} or newer is needed to build the control plane",
        OLDEST_GO.0, OLDEST_GO.1
    );
    let hint = "install it from https://go.dev/dl/ and put it on the PATH";
    // Without the local toolchain's word, an old Go would download a new one.
    let asked = Command::new("go")
        .args(["env", "GOVERSION"])
        .env("GOTOOLCHAIN", "local")
        .output();
    let Ok(output) = asked else {
        bail!("{needed}: no `go` found; {hint}");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = go_version(&text)
        .with_context(|| format!("{needed}: `go env GOVERSION` answered {:?}; {hint}", text.trim()))?;
    ensure!(version >= OLDEST_GO, "{needed}: found {}; {hint}", text.trim());
    Ok(())
}

/// Major and minor version of `go1.26.8`, `go1.27rc1` or `devel go1.28-abcdef`.
fn go_version(text: &str) -> Option<(u32, u32)> {
    let (_, version) = text.split_once("go")?;
    let mut parts = version.trim().split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Holds the lock of a folder until the file is dropped; waits if another process holds it.
pub(crate) fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("lock");
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => say(&format!(
            "waiting for {}, another process holds it\n",
            path.display()
        )),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("locking {}", path.display()));
        }
    }
    file.lock()
        .with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}

/// Straight to standard error, past the capture of the test harness: a build of minutes must be seen.
pub(crate) fn say(text: &str) {
    let mut stderr = std::io::stderr();
    // Nobody to tell when standard error is closed.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_module_requires_the_go_that_messages_name() {
        let line = format!("go {}.{}.0", OLDEST_GO.0, OLDEST_GO.1);
        let module = include_str!("../go/go.mod");
        assert!(module.lines().any(|there| there.trim() == line), "{line}");
    }

    #[test]
    fn the_cache_is_where_the_most_specific_variable_says() {
        let with = |variables: &'static [(&str, &str)]| {
            cache_directory_from(move |name| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let all = &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), (CACHE_VARIABLE, "/v")];
        assert_eq!(with(all).unwrap(), Path::new("/v"));
        let without = &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), (CACHE_VARIABLE, "")];
        assert_eq!(with(without).unwrap(), Path::new("/x/volcano-testcluster"));
        let home = &[("HOME", "/h")];
        assert_eq!(with(home).unwrap(), Path::new("/h/.cache/volcano-testcluster"));
        assert!(with(&[]).unwrap_err().to_string().contains(CACHE_VARIABLE));
    }

    #[test]
    fn versions_of_go_are_read_in_all_their_forms() {
        assert_eq!(go_version("go1.26.8\n"), Some((1, 26)));
        assert_eq!(go_version("go1.27rc1"), Some((1, 27)));
        assert_eq!(go_version("devel go1.28-abcdef"), Some((1, 28)));
        assert_eq!(go_version("go2.0"), Some((2, 0)));
        assert_eq!(go_version(""), None);
        assert!((1, 25) < OLDEST_GO && (2, 0) > OLDEST_GO);
    }

    #[test]
    fn a_lock_is_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let (tell, told) = mpsc::channel();
        let path = folder.path().to_owned();
        let waiting = std::thread::spawn(move || {
            let second = lock(&path).unwrap();
            tell.send(()).unwrap();
            drop(second);
        });
        assert!(
            told.recv_timeout(Duration::from_millis(50)).is_err(),
            "two hold it"
        );
        drop(first);
        told.recv_timeout(Duration::from_secs(10))
            .expect("the second gets it once the first lets go");
        waiting.join().unwrap();
    }

    #[test]
    fn what_is_there_needs_no_go() {
        let cache = tempfile::tempdir().unwrap();
        let binaries = Binaries::within(cache.path());
        let path = binaries.path(Program::Kubectl);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "built").unwrap();
        assert_eq!(binaries.ensure(Program::Kubectl).unwrap(), path);
        let place = binaries.place(Program::Kubectl.module());
        assert!(!place.join("module").exists(), "nothing was built");
    }
}
