//! Namespaces of the kernel that programs of the nodes run in, so that nothing outlives them.
//!
//! A kubelet leaves its containers behind when it is killed, and so does containerd; with them stay shims, mounts,
//! bridges and rules. In a room they cannot: the room is a process, and with that the kernel ends every process inside
//! and takes away mounts and links. It works after a crash just as well.
//!
//! ```text
//! cluster's room   network, mounts, processes    bridges, kube-proxy, CoreDNS
//!   node's room    mounts, processes, host name  containerd, shims, containers, kubelet; network of the cluster
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::process::{self, Keeper};

/// Where programs are found in a room: that of a user may lack the directories of administrators.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where a node's room has the directory of the node, whatever the machine calls it.
pub const NODE: &str = "/run/node";
/// A file in a room's directory that says that the room is furnished.
const FURNISHED: &str = "furnished";
/// How long furnishing may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many lines of a log to show.
const LOG_LINES: usize = 20;

/// Furnishes the room of a cluster, and keeps it. `$1` is its directory.
const CLUSTER_SCRIPT: &str = r#"
set -e
mount -t tmpfs tmpfs /run
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
: > "$1/furnished"
sleep infinity &
wait
"#;

/// Furnishes the room of a node, and keeps it. `$1` is its directory, `$2` the node's name.
///
/// The node has its own `/run`; what it writes below `/var` stays in its directory. A kubelet wants some settings of the
/// kernel to be as it likes them and changes them otherwise: here it finds them so, and the machine's stay as they are.
const NODE_SCRIPT: &str = r#"
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/node
mount --bind "$1" /mnt/node
mount --no-mtab --move /mnt /run
mkdir -p /run/node/var /run/node/var.work
mount -t overlay -o lowerdir=/var,upperdir=/run/node/var,workdir=/run/node/var.work overlay /var
hostname "$2"
while read -r setting value; do
    echo "$value" > /run/setting.$value
    mount --bind /run/setting.$value "/proc/sys/$setting"
done <<'SETTINGS'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SETTINGS
: > /run/node/furnished
sleep infinity &
wait
"#;

/// A room, for as long as its process runs.
#[derive(Clone, Debug)]
pub struct Room {
    id: u32,
    kinds: &'static [&'static str],
    directory: PathBuf,
}

impl Room {
    /// Opens the room of a cluster, with a network of its own.
    pub fn of_cluster(keeper: &mut impl Keeper, directory: &Path) -> anyhow::Result<Room> {
        let words = unshare(&["--net"], CLUSTER_SCRIPT, directory, "cluster");
        Room::open(keeper, "network", &words, directory, &["net", "mnt", "pid"])
    }

    /// Opens the room of a node in the network of this room.
    pub fn of_node(&self, keeper: &mut impl Keeper, name: &str, directory: &Path) -> anyhow::Result<Room> {
        let network = format!("--net=/proc/{}/ns/net", self.id);
        let mut words = vec!["nsenter".to_owned(), network, "--".to_owned()];
        words.extend(unshare(&["--uts"], NODE_SCRIPT, directory, name));
        Room::open(keeper, name, &words, directory, &["net", "mnt", "pid", "uts"])
    }

    fn open(
        keeper: &mut impl Keeper,
        name: &str,
        words: &[String],
        directory: &Path,
        kinds: &'static [&'static str],
    ) -> anyhow::Result<Room> {
        let log = directory.join("room.log");
        let id = keeper.start(name, words, &log)?;
        let furnished = directory.join(FURNISHED);
        wait_for(name, id, &log, || furnished.exists())?;
        Ok(Room {
            id,
            kinds,
            directory: directory.to_owned(),
        })
    }

    /// Id of the process that holds it, which itself is inside of everything but the namespace of processes.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Command line that runs a program in it. The program ends when what waits for it here does.
    pub fn command(&self, program: &str, arguments: &[String]) -> Vec<String> {
        let mut words = vec!["nsenter".to_owned()];
        words.extend(self.kinds.iter().map(|kind| {
            let (flag, file) = match *kind {
                "mnt" => ("mount", "mnt"),
                "pid" => ("pid", "pid_for_children"),
                other => (other, other),
            };
            format!("--{flag}=/proc/{}/ns/{file}", self.id)
        }));
        let environment = [
            "--".to_owned(),
            "env".to_owned(),
            format!("PATH={PATH}"),
            // Marks the process as one of this cluster.
            format!("VOLCANO_ROOM={}", self.directory.display()),
        ];
        words.extend(environment);
        words.extend(["setpriv", "--pdeathsig", "KILL", program].map(str::to_owned));
        words.extend(arguments.iter().cloned());
        words
    }

    /// Starts a program in it that stays.
    pub fn start(
        &self,
        keeper: &mut impl Keeper,
        name: &str,
        program: &str,
        arguments: &[String],
        log: &Path,
    ) -> anyhow::Result<u32> {
        keeper.start(name, &self.command(program, arguments), log)
    }

    /// Runs a program in it to its end, and returns what it prints.
    pub fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        self.run_with(program, arguments, Stdio::null())
    }

    /// The same with something on standard input.
    pub fn run_with(&self, program: &str, arguments: &[&str], input: Stdio) -> anyhow::Result<String> {
        let owned: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let words = self.command(program, &owned);
        let output = Command::new(&words[0])
            .args(&words[1..])
            .stdin(input)
            .output()
            .with_context(|| format!("starting {program}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{program} {}: {}",
            arguments.join(" "),
            said.trim_end()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Command line of the process that holds a room, in new namespaces.
fn unshare(kinds: &[&str], script: &str, directory: &Path, name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec!["unshare".to_owned()];
    words.extend(kinds.iter().map(|kind| (*kind).to_owned()));
    // What it ends with: the first process of the namespace is killed with the one that started it.
    let always = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    words.extend(always.map(str::to_owned));
    words.extend(["env", &format!("PATH={PATH}"), "sh", "-c", script, "room"].map(str::to_owned));
    words.extend([directory.display().to_string(), name.to_owned()]);
    words
}

/// Waits for something that a program does once it is up. The end of its log says why it does not.
pub fn wait_for(name: &str, id: u32, log: &Path, mut is_there: impl FnMut() -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !is_there() {
        let end = || process::last_lines(log, LOG_LINES);
        if process::has_ended(id) {
            bail!("{name} ended; the end of {}:\n{}", log.display(), end());
        }
        if began.elapsed() > TIMEOUT {
            let waited = TIMEOUT.as_secs();
            bail!(
                "{name} was not ready after {waited} s; the end of {}:\n{}",
                log.display(),
                end()
            );
        }
        thread::sleep(process::POLL);
    }
    Ok(())
}
