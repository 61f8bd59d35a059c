//! An explanation for people.

use super::{Change, Explanation, How, State};
use crate::cluster::counted;
use std::collections::BTreeMap;
use std::fmt;

/// Nodes that are named before the rest is counted.
const NAMED: usize = 6;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        let gang = self.gang;
        writeln!(
            f,
            "  queue {}, priority {}; gang {}/{} ready, {} of {} made",
            self.queue,
            self.priority,
            gang.ready,
            gang.minimum,
            gang.total,
            counted(gang.wanted as usize, "pod", "pods")
        )?;
        if !self.reasons.is_empty() {
            let why = if self.state == State::Running {
                "Why some of its pods wait:"
            } else {
                "Why:"
            };
            writeln!(f, "\n{why}")?;
        }
        for (at, reason) in self.reasons.iter().enumerate() {
            writeln!(f, "  {}. {reason}", at + 1)?;
        }
        if !self.holders.is_empty() {
            writeln!(f, "\nWho holds it:")?;
        }
        for holder in &self.holders {
            let holds: Vec<String> = holder
                .holds
                .iter()
                .map(|(name, amount)| format!("{amount} {name}"))
                .collect();
            let pods = counted(holder.pods as usize, "pod", "pods");
            match holder.job.as_str() {
                "" => writeln!(f, "  {} ({pods} without a PodGroup)", holds.join(", "))?,
                job => writeln!(
                    f,
                    "  {} {job} ({pods}, queue {}, priority {})",
                    holds.join(", "),
                    holder.queue,
                    holder.priority
                )?,
            }
        }
        self.changes(f)
    }
}

impl Explanation {
    fn headline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} {}", self.kind, self.job);
        match &self.state {
            State::Finished => writeln!(f, "{name} has ended: {}", self.phase),
            State::Running if self.reasons.is_empty() => writeln!(f, "{name} runs"),
            State::Running => writeln!(f, "{name} runs, but not all of it"),
            State::Waiting => writeln!(f, "{name} waits"),
            State::Starting { binds, evicts } => {
                writeln!(
                    f,
                    "{name} starts by itself in the next cycles: {} on {}",
                    counted(binds.len(), "pod", "pods"),
                    spread(binds)
                )?;
                for evicted in evicts {
                    let of = evicted
                        .job
                        .as_ref()
                        .map(|job| format!(" of {job}"))
                        .unwrap_or_default();
                    writeln!(f, "  evicts {}{of} ({})", evicted.pod, evicted.action)?;
                }
                Ok(())
            }
        }
    }

    fn changes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.state != State::Waiting {
            return Ok(());
        }
        if self.suggestions.is_empty() {
            return writeln!(f, "\nNo single change that was tried would start it.");
        }
        writeln!(
            f,
            "\nWhat would start it (each was tried on this state of the cluster):"
        )?;
        for (at, suggestion) in self.suggestions.iter().enumerate() {
            writeln!(f, "  {}. {}", at + 1, suggestion.text)?;
            if !suggestion.evicts.is_empty() {
                writeln!(
                    f,
                    "     evicts {}",
                    counted(suggestion.evicts.len(), "running pod", "running pods")
                )?;
            }
            if let Some(command) = &suggestion.command {
                writeln!(f, "     {command}")?;
            } else if let Some(where_to) = suggestion.changes.iter().find_map(in_manifest) {
                writeln!(f, "     ({where_to})")?;
            }
        }
        Ok(())
    }
}

/// What is said of a change that is made in what the user wrote.
fn in_manifest(change: &Change) -> Option<&'static str> {
    match change.how {
        How::Recreate => Some("in the manifest: the field cannot change while the Job exists"),
        How::Manifest => Some("in the manifest"),
        How::Patch | How::PatchStatus | How::Resume => None,
    }
}

/// `node-1 x2, node-2`.
fn spread(binds: &BTreeMap<String, String>) -> String {
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    for node in binds.values() {
        *nodes.entry(node).or_default() += 1;
    }
    let count = nodes.len();
    let named: Vec<String> = nodes
        .into_iter()
        .take(NAMED)
        .map(|(node, pods)| {
            if pods == 1 {
                node.to_owned()
            } else {
                format!("{node} x{pods}")
            }
        })
        .collect();
    match count.saturating_sub(NAMED) {
        0 => named.join(", "),
        rest => format!("{} and {rest} more", named.join(", ")),
    }
}
