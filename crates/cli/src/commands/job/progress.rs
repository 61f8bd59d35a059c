//! How a Job gets on, for people: one line that changes on a terminal, a line per change elsewhere.

use crate::output::{tell, times};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal as _;
use std::time::Duration;

/// How a Job is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Its phase; empty before the controllers have seen it.
    pub phase: String,
    /// Its queue, and where it waits in it.
    pub queue: Option<(String, Position)>,
    /// Pods by their status.
    pub pods: BTreeMap<String, usize>,
    /// What of it cannot be read for now, and why.
    pub trouble: Option<String>,
}

/// A place in the line of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The place, from 1.
    pub at: usize,
    /// How many wait.
    pub of: usize,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = if self.phase.is_empty() {
            "submitted"
        } else {
            &self.phase
        };
        write!(f, "job {}: {phase}", self.name)?;
        if let Some((queue, position)) = &self.queue {
            write!(f, ", {} of {} waiting in queue {queue}", position.at, position.of)?;
        }
        let pods: Vec<_> = self
            .pods
            .iter()
            .map(|(status, count)| format!("{count} {status}"))
            .collect();
        match pods.is_empty() {
            true => write!(f, ", no pods yet")?,
            false => write!(f, ", pods: {}", pods.join(", "))?,
        }
        match &self.trouble {
            Some(trouble) => write!(f, " ({trouble})"),
            None => Ok(()),
        }
    }
}

/// Where lines of progress are shown: standard error.
pub struct Board {
    /// A terminal, on which lines change.
    lines: Option<MultiProgress>,
}

impl Board {
    /// On standard error.
    pub fn new() -> Self {
        Board {
            lines: std::io::stderr().is_terminal().then(MultiProgress::new),
        }
    }

    /// A line of its own.
    pub fn line(&self) -> Progress {
        let bar = self.lines.as_ref().map(|lines| {
            let bar = lines.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} [{elapsed_precise}]") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Progress { bar, last: None }
    }

    /// Prints something else while the lines are out of the way.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.lines {
            Some(lines) => lines.suspend(print),
            None => print(),
        }
    }
}

/// A line of progress.
pub struct Progress {
    bar: Option<ProgressBar>,
    last: Option<String>,
}

impl Progress {
    /// Shows how it is now; the same again is not shown.
    pub fn show(&mut self, text: String) {
        if self.last.as_ref() == Some(&text) {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(text.clone()),
            None => tell(&format!("{} {text}\n", times::clock(times::now()))),
        }
        self.last = Some(text);
    }

    /// Takes the line away again.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_says_phase_place_and_pods() {
        let mut snapshot = Snapshot {
            name: "train".to_owned(),
            ..Snapshot::default()
        };
        assert_eq!(snapshot.to_string(), "job train: submitted, no pods yet");
        snapshot.phase = "Pending".to_owned();
        snapshot.queue = Some(("research".to_owned(), Position { at: 2, of: 5 }));
        snapshot.pods = [("Pending".to_owned(), 3), ("Running".to_owned(), 1)].into();
        assert_eq!(
            snapshot.to_string(),
            "job train: Pending, 2 of 5 waiting in queue research, pods: 3 Pending, 1 Running"
        );
        snapshot.queue = None;
        snapshot.trouble = Some("the job cannot be read: Unauthorized".to_owned());
        assert_eq!(
            snapshot.to_string(),
            "job train: Pending, pods: 3 Pending, 1 Running (the job cannot be read: Unauthorized)"
        );
    }
}
