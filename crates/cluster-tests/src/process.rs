//! The programs as users run them: processes of their own, with flags, signals, logs and endpoints.

use anyhow::{Context as _, bail, ensure};
use std::io::{Read as _, Write as _};
use std::marker::PhantomData;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use volcano_testcluster::ports;

/// How long a program may take to start.
const START: Duration = Duration::from_secs(60);

/// The binary, built as the tests are.
pub(crate) static BINARY: LazyLock<PathBuf> =
    LazyLock::new(|| build().expect("without the binary there is nothing to test"));

fn build() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("VOLCANO_BINARY") {
        return Ok(path.into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = volcano_testcluster::cargo()
        // All packages, as the tests are built: with one alone, dependencies have other features.
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--all-features",
            "--bin",
            "volcano",
        ])
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "building the volcano binary failed");
    let test = std::env::current_exe()?;
    let folder = test
        .ancestors()
        .nth(2)
        .context("a test runs below the target folder")?;
    Ok(folder.join("volcano"))
}

/// `volcano`, to be started with arguments of the test's own.
pub fn binary() -> &'static Path {
    &BINARY
}

/// Runs `volcano` with arguments to its end, well or not.
///
/// # Errors
/// When it cannot be started.
pub fn output(arguments: &[&str]) -> anyhow::Result<Output> {
    let run = Command::new(&*BINARY).args(arguments).output();
    run.context("starting volcano")
}

/// Runs `volcano` with arguments to its end, and returns what it prints.
///
/// # Errors
/// When it fails; the message has what it said.
pub fn volcano(arguments: &[&str]) -> anyhow::Result<String> {
    let output = output(arguments)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "volcano {}: {}",
        arguments.join(" "),
        said.trim_end()
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// A program that can be run.
pub trait Program {
    /// The subcommand of `volcano` that it is.
    const SUBCOMMAND: &'static str;
}

/// A running program. It is killed when dropped.
pub struct Process<P: Program> {
    child: Child,
    log: PathBuf,
    metrics_port: u16,
    health_port: u16,
    program: PhantomData<P>,
}

impl<P: Program> Process<P> {
    /// Starts one with a kubeconfig and more flags, and does not wait. Its log goes into the folder.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn launch(kubeconfig: &Path, folder: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        let [metrics_port, health_port] = ports::free()?;
        let log = folder.join(format!("{}-{metrics_port}.log", P::SUBCOMMAND));
        let output = std::fs::File::create(&log)?;
        let child = Command::new(&*BINARY)
            .arg(P::SUBCOMMAND)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--listen-address=127.0.0.1:{metrics_port}"))
            .arg(format!("--healthz-address=127.0.0.1:{health_port}"))
            .args([
                "--enable-metrics",
                "--enable-healthz",
                "--lock-object-namespace=default",
            ])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting the {}", P::SUBCOMMAND))?;
        Ok(Process {
            child,
            log,
            metrics_port,
            health_port,
            program: PhantomData,
        })
    }

    /// Starts one and waits until it has read the whole cluster.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start(kubeconfig: &Path, folder: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        let mut process = Self::launch(kubeconfig, folder, flags)?;
        let began = Instant::now();
        while !process.is_ready() {
            if let Some(status) = process.child.try_wait()? {
                bail!("the {} ended with {status}:\n{}", P::SUBCOMMAND, process.log());
            }
            if began.elapsed() > START {
                bail!("the {} does not get ready:\n{}", P::SUBCOMMAND, process.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has read the whole cluster.
    pub fn is_ready(&self) -> bool {
        ask(self.health_port, "/readyz").is_ok_and(|(status, _)| status == 200)
    }

    /// Whether it leads.
    pub fn leads(&self) -> bool {
        self.metric("volcano_leader").is_ok_and(|value| value == 1.0)
    }

    /// Status and body of a path of the metrics endpoint.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        ask(self.metrics_port, path)
    }

    /// Status and body of a path of the health endpoint.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn health(&self, path: &str) -> anyhow::Result<(u16, String)> {
        ask(self.health_port, path)
    }

    /// The sum over all series of a metric whose line starts so (`name` or `name{label="x"`).
    ///
    /// # Errors
    /// When it does not answer.
    pub fn metric(&self, start: &str) -> anyhow::Result<f64> {
        let (_, text) = self.get("/metrics")?;
        let lines = text.lines().filter_map(|line| line.strip_prefix(start));
        let values = lines.filter(|rest| rest.starts_with([' ', '{', ',', '}']));
        Ok(values
            .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
            .sum())
    }

    /// Sends a signal by name, such as `TERM`.
    ///
    /// # Errors
    /// When `kill` fails.
    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()?;
        ensure!(status.success(), "kill -{name} failed");
        Ok(())
    }

    /// Ends it without a warning, as `kill -9` and the kernel do.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end and waits for that.
    ///
    /// # Errors
    /// When it does not end within 30 seconds.
    pub fn stop(mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM")?;
        self.wait(Duration::from_secs(30))
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// When the process cannot be asked about.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if began.elapsed() > within {
                bail!("the {} does not end:\n{}", P::SUBCOMMAND, self.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl<P: Program> Drop for Process<P> {
    fn drop(&mut self) {
        let _ = self.child.kill(); // It may have ended already.
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the {}:\n{}", P::SUBCOMMAND, self.log());
        }
    }
}

fn ask(port: u16, path: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.context("an answer has a status")?, body.to_owned()))
}
