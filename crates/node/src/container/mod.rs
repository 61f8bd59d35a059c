//! The program that becomes a container: this binary, started again with a hidden first word.
//!
//! A process can be put into namespaces only from within, and between `fork` and `exec` nothing may be done safely. So the
//! agent starts its own binary, which does it in the open:
//!
//! ```text
//! agent ──> outer: namespaces ──> inner (pid 1): file systems, hostname ──> the command
//!   │ orders on its standard input ──────> │        (where nothing is isolated, outer does the work of inner)
//!   │ <────── reports on its standard output
//!   │ <────── what the command prints, on its standard error
//! ```
//!
//! Nothing of it is on a command line, which everybody could read: environments have secrets. The input also is the
//! lifeline: when the agent is gone, however it went, the input ends, `inner` exits, and with the first process of its
//! namespace the kernel ends all others.

mod inner;
mod outer;
mod root;
mod sweep;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The hidden first word of the command line.
pub(crate) const ENTRY: &str = "container-init";
/// The second word of the first process of a container's namespaces.
const INNER: &str = "inner";

/// A frame larger than this is not ours: environments and mounts come from objects of at most a few MiB.
const LONGEST_FRAME: u32 = 64 << 20;

/// How far containers are set apart from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Root: file systems, processes, host name; networks too where the kernel allows it.
    Root,
    /// A namespace of an ordinary user: mounts, processes, host name. What is written goes to the host's files.
    User,
    /// Nothing: ordinary processes under a supervisor.
    None,
}

/// What is decided before the first process of the container exists.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outer {
    pub isolation: Isolation,
    /// The network namespace of the pod, if it has one of its own.
    pub network: Option<PathBuf>,
}

/// A container.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub isolation: Isolation,
    pub hostname: String,
    /// A directory for what the container writes into the host's files, and for its root.
    pub scratch: PathBuf,
    pub mounts: Vec<Mount>,
    /// Size of /dev/shm.
    pub shm_bytes: u64,
    /// Empty: everything is set up, reported, and taken down again.
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    pub directory: PathBuf,
    pub user: Option<u32>,
    pub group: Option<u32>,
}

/// Something that is at a path of the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub source: Source,
    pub target: PathBuf,
    pub read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Source {
    /// A file or a directory of the host.
    Path(PathBuf),
    /// Memory.
    Memory { bytes: Option<u64> },
}

/// What the agent asks of a container that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// A signal for the command.
    Signal(i32),
    /// One more command, beside the first: hooks and probes.
    Run { id: u64, command: Vec<String> },
    /// Ends such a command.
    Stop { id: u64 },
}

/// What became of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Everything is set up. Whether what is written stays with the container.
    Ready { layered: bool },
    /// The command runs.
    Started,
    /// It cannot be started.
    Refused { message: String },
    /// A further command has ended.
    Ran { id: u64, code: i32 },
    /// The command has ended; all that it left has been killed.
    Ended { code: i32, signal: Option<i32> },
}

/// Does the work of the hidden command, if this process was started for that. To be called before anything else.
pub fn main() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != ENTRY) {
        return None;
    }
    Some(if words.next().is_some_and(|word| word == INNER) {
        inner::main()
    } else {
        outer::main()
    })
}

/// Writes a value with its length before it.
pub(crate) fn frame<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The length that is written before a value.
pub(crate) fn frame_length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head);
    if length > LONGEST_FRAME {
        return Err(io::Error::other(format!("a frame of {length} bytes")));
    }
    usize::try_from(length).map_err(io::Error::other)
}

fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let mut bytes = vec![0; frame_length(head)?];
    from.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn report(report: &Report) {
    let Ok(bytes) = frame(report) else { return };
    let mut out = io::stdout().lock();
    // Nobody listens any more when the agent is gone, and then the input ends too.
    let _ = out.write_all(&bytes).and_then(|()| out.flush());
}

/// Standard input without a buffer, which would take what is meant for the next program.
fn input() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written_and_no_further() {
        let order = Order::Run {
            id: 7,
            command: vec!["a".to_owned()],
        };
        let mut bytes = frame(&order).unwrap();
        bytes.extend(frame(&Order::Signal(15)).unwrap());
        let mut rest = bytes.as_slice();
        assert_eq!(read_frame::<Order>(&mut rest).unwrap(), order);
        assert_eq!(read_frame::<Order>(&mut rest).unwrap(), Order::Signal(15));
        assert!(read_frame::<Order>(&mut rest).is_err());
    }

    #[test]
    fn a_length_beyond_all_reason_is_refused() {
        assert!(frame_length(u32::MAX.to_le_bytes()).is_err());
        assert_eq!(frame_length([3, 0, 0, 0]).unwrap(), 3);
    }
}
