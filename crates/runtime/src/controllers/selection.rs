//! Which controllers run: `--controllers`.

use std::collections::BTreeMap;
use thiserror::Error;

/// Jobs: their pods, PodGroups, claims and plugin objects.
pub const JOB: &str = "job-controller";
/// PodGroups of pods that have no Job.
pub const POD_GROUP: &str = "pg-controller";
/// Queues: states, orders, numbers.
pub const QUEUE: &str = "queue-controller";
/// Deletes Jobs some time after their end.
pub const GC: &str = "gc-controller";

/// Controllers that run here.
pub const AVAILABLE: [&str; 4] = [JOB, POD_GROUP, QUEUE, GC];
/// Controllers of Volcano that are not here yet.
pub const UNAVAILABLE: [&str; 6] = [
    "jobflow-controller",
    "jobtemplate-controller",
    "cronjob-controller",
    "hyperNode-controller",
    "sharding-controller",
    "colocation-config-controller",
];
/// What runs if nothing is said.
pub const DEFAULT: &str = "*,-sharding-controller";

/// Why a list makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("controllers option {0} cannot have both '-' and '+' prefixes")]
pub struct Contradiction(String);

/// Which controllers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    entries: Vec<String>,
}

impl Selection {
    /// Reads a list: `*` for all, `name` or `+name` for one, `-name` for all but one.
    ///
    /// # Errors
    /// When a controller is named twice.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Contradiction> {
        let entries = entries
            .into_iter()
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        let entries: Vec<String> = entries.map(str::to_owned).collect();
        let mut named = BTreeMap::new();
        for entry in &entries {
            let name = entry.trim_start_matches(['+', '-']);
            if named.insert(name.to_owned(), ()).is_some() {
                return Err(Contradiction(entry.clone()));
            }
        }
        Ok(Selection { entries })
    }

    /// Whether a controller runs.
    pub fn has(&self, name: &str) -> bool {
        if self.entries.is_empty() {
            return true;
        }
        let mut by_default = false;
        for entry in &self.entries {
            match entry.strip_prefix('-') {
                Some(off) if off == name => return false,
                Some(_) => {}
                None if entry.strip_prefix('+').unwrap_or(entry) == name => return true,
                None => by_default |= entry == "*",
            }
        }
        by_default
    }

    /// Controllers that are wanted and not here.
    pub fn lacking(&self) -> Vec<&'static str> {
        UNAVAILABLE.into_iter().filter(|name| self.has(name)).collect()
    }

    /// Names that no controller has: a typing mistake.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let names = self
            .entries
            .iter()
            .map(|entry| entry.trim_start_matches(['+', '-']));
        names.filter(|name| *name != "*" && !AVAILABLE.contains(name) && !UNAVAILABLE.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_order() {
        let cases: [(&[&str], [bool; 2]); 8] = [
            (&[], [true, true]),
            (&["*"], [true, true]),
            (&["*", "-job-controller"], [false, true]),
            (&["-job-controller", "*"], [false, true]),
            (&["job-controller"], [true, false]),
            (&["+job-controller"], [true, false]),
            (&["-gc-controller"], [false, false]),
            (&["+gc-controller", "-sharding-controller"], [false, true]),
        ];
        for (entries, expected) in cases {
            let selection = Selection::parse(entries.iter().copied()).unwrap();
            assert_eq!([selection.has(JOB), selection.has(GC)], expected, "{entries:?}");
        }
    }

    #[test]
    fn a_controller_is_named_once() {
        for (entries, wrong) in [(["+a", "-a"], "-a"), (["a", "+a"], "+a"), (["a", "a"], "a")] {
            let error = Selection::parse(entries).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("controllers option {wrong} cannot have both '-' and '+' prefixes")
            );
        }
    }

    #[test]
    fn what_is_not_here_and_what_is_nowhere_is_told() {
        let default = Selection::parse(DEFAULT.split(',')).unwrap();
        assert!(AVAILABLE.iter().all(|name| default.has(name)));
        assert_eq!(default.lacking().len(), UNAVAILABLE.len() - 1);
        let wrong = Selection::parse(["job-controller", "-pg-contoller"]).unwrap();
        assert_eq!(wrong.unknown().collect::<Vec<_>>(), ["pg-contoller"]);
        assert!(wrong.lacking().is_empty());
    }
}
