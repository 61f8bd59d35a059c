//! Exit codes, in one place: scripts act on them.

/// Wrong flags, or an unknown command.
pub const USAGE: u8 = 1;
/// The command failed; Go's `os.Exit(-1)`.
pub const FAILED: u8 = 255;
/// Interrupted, as a shell reports it.
pub const INTERRUPTED: u8 = 130;

// What became of the Job that `vcctl job run --wait` waited for.
/// It is complete.
pub const JOB_COMPLETED: u8 = 0;
/// It failed.
pub const JOB_FAILED: u8 = 2;
/// It was terminated.
pub const JOB_TERMINATED: u8 = 3;
/// It was aborted, and may be resumed.
pub const JOB_ABORTED: u8 = 4;
/// It was deleted.
pub const JOB_DELETED: u8 = 5;
/// It was not over in time, as `timeout` reports it.
pub const TIMED_OUT: u8 = 124;

/// `vcctl plan`: the Job would wait. `volcano run`: it waits, and nothing that goes on would change that.
pub const WOULD_WAIT: u8 = 6;
