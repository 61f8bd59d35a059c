//! Dependencies between things with names.

use std::collections::BTreeMap;

/// What is wrong with a set of dependencies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault<'a> {
    /// Somebody waits for what is not there.
    Unknown(&'a str),
    /// Some wait for each other.
    Cycle,
}

/// Looks for faults in `(name, names that it waits for)`. Of a name that is there twice all dependencies count.
pub(crate) fn fault<'a>(nodes: &[(&'a str, &'a [String])]) -> Option<Fault<'a>> {
    let mut waits_for: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, targets) in nodes {
        *waits_for.entry(name).or_default() += targets.len();
    }
    for (name, targets) in nodes {
        for target in *targets {
            if !waits_for.contains_key(target.as_str()) {
                return Some(Fault::Unknown(target));
            }
            waiting.entry(target).or_default().push(name);
        }
    }
    let mut free: Vec<&str> = waits_for
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| *name)
        .collect();
    let mut done = 0;
    while let Some(name) = free.pop() {
        done += 1;
        for next in waiting.remove(name).unwrap_or_default() {
            let count = waits_for.entry(next).or_default();
            *count -= 1;
            if *count == 0 {
                free.push(next);
            }
        }
    }
    (done < waits_for.len()).then_some(Fault::Cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, and the names that each waits for.
    type Graph<'a> = &'a [(&'a str, &'a [&'a str])];

    #[test]
    fn graphs_with_and_without_faults() {
        let cases: &[(&str, Graph<'_>, Option<Fault<'_>>)] = &[
            ("nothing at all", &[], None),
            ("a chain", &[("a", &[]), ("b", &["a"]), ("c", &["b"])], None),
            (
                "a diamond",
                &[("d", &["b", "c"]), ("b", &["a"]), ("c", &["a"]), ("a", &[])],
                None,
            ),
            ("the same target twice", &[("a", &[]), ("b", &["a", "a"])], None),
            ("a name twice", &[("a", &[]), ("b", &["a"]), ("b", &[])], None),
            ("itself", &[("a", &["a"])], Some(Fault::Cycle)),
            (
                "each other",
                &[("a", &["b"]), ("b", &["a"]), ("c", &[])],
                Some(Fault::Cycle),
            ),
            (
                "a long way round",
                &[("a", &["c"]), ("b", &["a"]), ("c", &["b"])],
                Some(Fault::Cycle),
            ),
            ("nobody", &[("a", &["x"])], Some(Fault::Unknown("x"))),
        ];
        for (name, graph, expected) in cases {
            let owned: Vec<(&str, Vec<String>)> = graph
                .iter()
                .map(|(node, targets)| (*node, targets.iter().map(|t| (*t).to_owned()).collect()))
                .collect();
            let nodes: Vec<(&str, &[String])> = owned.iter().map(|(n, t)| (*n, t.as_slice())).collect();
            assert_eq!(fault(&nodes), *expected, "{name}");
        }
    }
}
