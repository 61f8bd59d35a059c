//! The directory of a system: one that stays, or a temporary one, which goes with the process. One that was killed cannot
//! remove its own, with the Secrets of its pods in it, so that the next start does.

use crate::failure::Failure;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What is locked for as long as a process uses the directory. In one that stays it says which process.
const LOCK: &str = "lock";
/// What it is called until it is locked: nobody takes the directory for one that is left.
const NEW_LOCK: &str = "lock.new";
/// How the names of temporary directories begin; process id and a number follow.
const PREFIX: &str = "volcano-";

/// The directory of a system, which nobody else uses while this is there.
pub struct Home {
    /// Where it is.
    pub path: PathBuf,
    /// Held until the end, however that comes.
    _lock: File,
    is_kept: bool,
}

impl Home {
    /// A data directory, or a temporary one, which goes with this.
    ///
    /// # Errors
    /// When somebody uses it, or when it cannot be written to.
    pub fn of(data_dir: Option<&Path>) -> Result<Home, Failure> {
        match data_dir {
            Some(path) => Home::take(path),
            None => Home::temporary(&std::env::temp_dir()),
        }
    }

    /// Whether it stays.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn temporary(place: &Path) -> Result<Home, Failure> {
        sweep(place);
        // Process ids come again.
        let number = fastrand::u32(..);
        let name = format!("{PREFIX}{}-{number:08x}", std::process::id());
        let path = place.join(name);
        let told = |error: io::Error| {
            Failure::new(format!("temporary directory {}: {error}", path.display()))
                .hint("TMPDIR names a directory that can be written to")
        };
        // For nobody else, and not one that somebody has put there.
        DirBuilder::new().mode(0o700).create(&path).map_err(told)?;
        let lock = new_lock(&path).map_err(told)?;
        Ok(Home {
            path,
            _lock: lock,
            is_kept: false,
        })
    }

    fn take(path: &Path) -> Result<Home, Failure> {
        let told = |error: io::Error| {
            Failure::new(format!("data directory {}: {error}", path.display()))
                .hint("--data-dir names a directory that can be written to")
        };
        // It gets Secrets. One that is there already is its owner's to close.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(told)?;
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(told)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut who = String::new();
                let _ = lock.read_to_string(&mut who); // It is only for the message.
                return Err(Failure::new(format!(
                    "data directory {} is in use by process {}",
                    path.display(),
                    who.trim()
                ))
                .hint("stop that one, or name another directory with --data-dir"));
            }
            Err(TryLockError::Error(error)) => return Err(told(error)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(told)?;
        Ok(Home {
            path: std::path::absolute(path).map_err(told)?,
            _lock: lock,
            is_kept: true,
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path); // There is nobody left to tell.
        }
    }
}

fn new_lock(directory: &Path) -> io::Result<File> {
    let path = directory.join(NEW_LOCK);
    let lock = File::create_new(&path)?;
    lock.try_lock()?;
    fs::rename(path, directory.join(LOCK))?;
    Ok(lock)
}

/// Removes what processes of this user left that were killed. What cannot be removed is in nobody's way.
fn sweep(place: &Path) {
    // A process belongs to who it acts for.
    let Ok(me) = fs::metadata("/proc/self") else {
        return;
    };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_named_so = entry.file_name().to_str().is_some_and(is_temporary);
        // Of the entry itself: a link leads to what is somebody's.
        let is_ours = |about: &fs::Metadata| about.is_dir() && about.uid() == me.uid();
        if is_named_so && entry.metadata().is_ok_and(|about| is_ours(&about)) {
            let _ = remove_if_left(&entry.path());
        }
    }
}

/// Whether a directory is named as temporary ones are.
fn is_temporary(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(id, number)| {
        let is_number = number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number && id.parse::<u32>().is_ok()
    })
}

/// Removes a directory if nobody holds its lock. The ids of processes would not do: they come again, and containers that
/// share a directory have ids of their own. One without a lock is left alone, since somebody may be about to make it.
fn remove_if_left(directory: &Path) -> io::Result<()> {
    let path = directory.join(LOCK);
    if !fs::symlink_metadata(&path)?.is_file() {
        return Ok(());
    }
    let lock = File::open(&path)?;
    lock.try_lock()?;
    // The lock goes last: who ends half way leaves the rest to the next.
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_name() == LOCK {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir_all(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_killed_process_left_is_removed_at_the_next_start() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let left = place.join("volcano-4242-0123abcd");
        fs::create_dir(&left).unwrap();
        fs::create_dir(left.join("node")).unwrap();
        fs::write(left.join("node/secret"), "s").unwrap();
        let lock = new_lock(&left).unwrap();
        let other = Home::temporary(place).unwrap();
        assert!(left.exists(), "it is in use");
        // What ends with a process, and nothing else.
        drop(lock);
        let next = Home::temporary(place).unwrap();
        assert!(!left.exists());
        assert!(other.path.join(LOCK).exists(), "it is in use");
        let paths = [other.path.clone(), next.path.clone()];
        drop((other, next));
        assert!(paths.iter().all(|path| !path.exists()));
    }

    #[test]
    fn only_directories_of_that_form_with_a_lock_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let make = |name: &str| {
            let path = place.join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(LOCK), "").unwrap();
            path
        };
        let others = [
            make("volcano-1-abc"),
            make("volcano-x-0123abcd"),
            make("other-1-0123abcd"),
            make("volcano-testcluster"),
        ];
        let unlocked = make("volcano-1-00000001");
        fs::remove_file(unlocked.join(LOCK)).unwrap();
        let linked = place.join("volcano-1-00000002");
        symlink(&others[0], &linked).unwrap();
        let odd = make("volcano-1-00000003");
        fs::remove_file(odd.join(LOCK)).unwrap();
        symlink(others[0].join(LOCK), odd.join(LOCK)).unwrap();
        let left = make("volcano-1-00000004");
        fs::write(others[0].join("kept"), "").unwrap();
        symlink(&others[0], left.join("link")).unwrap();
        sweep(place);
        assert!(!left.exists());
        assert!(others.iter().all(|path| path.join(LOCK).exists()));
        assert!(others[0].join("kept").exists());
        assert!(unlocked.exists() && linked.exists() && odd.exists());
    }
}
