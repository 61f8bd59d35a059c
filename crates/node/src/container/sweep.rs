//! Ends all descendants of this process. Without a namespace of processes the kernel does not do it: sessions and
//! process groups can be left, but orphans come to the nearest supervisor, and this is one.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::time::Duration;

pub(super) fn all() {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    loop {
        let descendants = descendants(&parents(), own);
        for pid in &descendants {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        while !matches!(
            waitpid(None, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::StillAlive) | Err(_)
        ) {}
        if descendants.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every process that is not a mere entry for its parent, with its parent.
fn parents() -> HashMap<i32, i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (state, parent) = state_and_parent(&stat)?;
            (state != 'Z').then_some((pid, parent))
        })
        .collect()
}

/// The name of a program may have blanks and brackets; what counts comes after the last one.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

fn descendants(parents: &HashMap<i32, i32>, of: i32) -> Vec<i32> {
    let descends = |mut pid: i32| {
        // As many steps as there are processes: the list was not read in one moment.
        for _ in 0..parents.len() {
            match parents.get(&pid) {
                Some(parent) if *parent == of => return true,
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(|pid| descends(*pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(state_and_parent("12 (a) S) R 7 12 12"), Some(('R', 7)));
        assert_eq!(state_and_parent("12"), None);
    }

    #[test]
    fn descendants_are_children_of_children_and_not_others() {
        let parents = HashMap::from([(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (30, 31), (31, 30)]);
        let mut found = descendants(&parents, 10);
        found.sort_unstable();
        assert_eq!(found, [11, 12]);
    }
}
