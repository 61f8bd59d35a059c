//! What a cycle decided, as lines, and how an expected line is held against them.

use std::fmt;

/// A pod as scenarios name it: its group (empty for a pod of no job) and its short name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Group.
    pub group: String,
    /// Short name.
    pub name: String,
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.group, self.name)
        }
    }
}

/// One line of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Pods that leave for another one.
    Evictions {
        /// `preempt` or `reclaim`.
        verb: &'static str,
        /// Who leaves.
        victims: Vec<PodName>,
        /// For whom.
        preemptor: PodName,
    },
    /// Pods of a group that got a node.
    Places {
        /// The group.
        group: String,
        /// `->` for a bind, `~>` for a place that others are leaving.
        arrow: &'static str,
        /// Pods with their nodes, in the order of the scenario.
        places: Vec<(String, String)>,
    },
    /// Anything else.
    Text(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Text(text) => f.write_str(text),
            Line::Evictions {
                verb,
                victims,
                preemptor,
            } => {
                f.write_str(verb)?;
                victims.iter().try_for_each(|victim| write!(f, " {victim}"))?;
                write!(f, " for {preemptor}")
            }
            Line::Places { group, arrow, places } => {
                let mut by_node: Vec<(&str, Vec<&str>)> = Vec::new();
                for (pod, node) in places {
                    match by_node.iter_mut().find(|(known, _)| known == node) {
                        Some((_, pods)) => pods.push(pod),
                        None => by_node.push((node, vec![pod])),
                    }
                }
                let parts: Vec<String> = by_node
                    .iter()
                    .map(|(node, pods)| format!("{} {arrow} {node}", pods.join(" ")))
                    .collect();
                write!(f, "{group}: {}", parts.join(", "))
            }
        }
    }
}

impl Line {
    /// The expected line describes this one.
    pub fn matches(&self, expected: &str) -> bool {
        if self.to_string() == expected {
            return true;
        }
        match self {
            Line::Text(_) => false,
            Line::Evictions {
                verb,
                victims,
                preemptor,
            } => evictions_match(expected, verb, victims, preemptor).unwrap_or(false),
            Line::Places { group, arrow, places } => {
                places_match(expected, group, arrow, places).unwrap_or(false)
            }
        }
    }
}

/// `VERB ITEM… for PREEMPTOR`, an item being a pod or `N of GROUP`.
fn evictions_match(expected: &str, verb: &str, victims: &[PodName], preemptor: &PodName) -> Option<bool> {
    let (items, wanted) = expected
        .strip_prefix(verb)?
        .strip_prefix(' ')?
        .split_once(" for ")?;
    if wanted != preemptor.to_string() && wanted != preemptor.group {
        return Some(false);
    }
    let mut left: Vec<&PodName> = victims.iter().collect();
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut words = items.split_whitespace();
    while let Some(word) = words.next() {
        if let Ok(count) = word.parse::<usize>() {
            let ("of", group) = (words.next()?, words.next()?) else {
                return None;
            };
            counts.push((group, count));
        } else {
            let at = left.iter().position(|victim| victim.to_string() == word)?;
            left.remove(at);
        }
    }
    for (group, count) in counts {
        let before = left.len();
        left.retain(|victim| victim.group != group);
        if before - left.len() != count {
            return Some(false);
        }
    }
    Some(left.is_empty())
}

/// `GROUP: PODS ARROW NODES, …`, pods being names or a number, nodes being `n1|n2` or `any`.
fn places_match(expected: &str, group: &str, arrow: &str, places: &[(String, String)]) -> Option<bool> {
    let rest = expected.strip_prefix(group)?.strip_prefix(": ")?;
    let mut left: Vec<&(String, String)> = places.iter().collect();
    let mut counts: Vec<(usize, &str)> = Vec::new();
    let among = |node: &str, nodes: &str| nodes == "any" || nodes.split('|').any(|n| n == node);
    for part in rest.split(", ") {
        let (pods, nodes) = part.split_once(&format!(" {arrow} "))?;
        if let Ok(count) = pods.parse() {
            counts.push((count, nodes));
            continue;
        }
        for pod in pods.split_whitespace() {
            let at = left
                .iter()
                .position(|(name, node)| name == pod && among(node, nodes))?;
            left.remove(at);
        }
    }
    for (count, nodes) in counts {
        let before = left.len();
        left.retain(|(_, node)| !among(node, nodes));
        if before - left.len() != count {
            return Some(false);
        }
    }
    Some(left.is_empty())
}

/// Holds the expected lines of a cycle against the real ones, in any order. `None` when they agree, else the expected
/// lines that did not come true and the real ones that were not expected.
pub fn difference(expected: &[String], actual: &[Line]) -> Option<(Vec<String>, Vec<String>)> {
    let mut missing: Vec<String> = expected
        .iter()
        .filter(|line| *line != "nothing")
        .cloned()
        .collect();
    let mut surplus = Vec::new();
    for line in actual {
        let exact = missing.iter().position(|wanted| *wanted == line.to_string());
        match exact.or_else(|| missing.iter().position(|wanted| line.matches(wanted))) {
            Some(at) => {
                missing.remove(at);
            }
            None => surplus.push(line.to_string()),
        }
    }
    let silent = expected.is_empty() && actual.is_empty();
    let contradicts = expected.len() > 1 && expected.iter().any(|line| line == "nothing");
    if contradicts || silent {
        missing.push("nothing".to_owned());
    }
    (!missing.is_empty() || !surplus.is_empty()).then_some((missing, surplus))
}

/// The lines of a cycle as they are written down.
pub fn written(lines: &[Line]) -> Vec<String> {
    if lines.is_empty() {
        vec!["nothing".to_owned()]
    } else {
        lines.iter().map(Line::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Line {
        let place = |pod: &str, node: &str| (pod.to_owned(), node.to_owned());
        let places = vec![place("p0", "n1"), place("p1", "n2"), place("p2", "n1")];
        Line::Places {
            group: "a".to_owned(),
            arrow: "->",
            places,
        }
    }

    #[test]
    fn places_are_named_or_counted() {
        let line = places();
        assert_eq!(line.to_string(), "a: p0 p2 -> n1, p1 -> n2");
        for good in [
            "a: p0 p2 -> n1, p1 -> n2",
            "a: p1 -> n2, p2 p0 -> n1",
            "a: 2 -> n1, 1 -> n2",
            "a: 3 -> any",
            "a: p1 -> n2|n3, 2 -> n1",
            "a: 3 -> n1|n2",
        ] {
            assert!(line.matches(good), "{good}");
        }
        for bad in [
            "a: p0 -> n1",
            "a: 1 -> n1, 1 -> n2",
            "b: 3 -> any",
            "a: 3 ~> any",
            "a: 3 -> n1",
            "a: 3",
            "",
        ] {
            assert!(!line.matches(bad), "{bad}");
        }
    }

    #[test]
    fn evictions_are_named_or_counted() {
        let pod = |group: &str, name: &str| PodName {
            group: group.to_owned(),
            name: name.to_owned(),
        };
        let victims = vec![pod("low", "p0"), pod("low", "p1")];
        let line = Line::Evictions {
            verb: "preempt",
            victims,
            preemptor: pod("high", "p0"),
        };
        for good in [
            "preempt low/p0 low/p1 for high/p0",
            "preempt 2 of low for high",
            "preempt low/p1 1 of low for high",
        ] {
            assert!(line.matches(good), "{good}");
        }
        for bad in [
            "reclaim 2 of low for high",
            "preempt 1 of low for high",
            "preempt 2 of low for mid",
            "preempt for",
        ] {
            assert!(!line.matches(bad), "{bad}");
        }
    }

    #[test]
    fn lines_are_compared_in_any_order_and_each_counts_once() {
        let text = |text: &str| Line::Text(text.to_owned());
        let wanted = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(difference(&wanted(&["b", "a"]), &[text("a"), text("b")]), None);
        assert_eq!(difference(&wanted(&["nothing"]), &[]), None);
        assert!(
            difference(&wanted(&[]), &[]).is_some(),
            "that nothing happens is said"
        );
        assert!(difference(&wanted(&["a", "nothing"]), &[text("a")]).is_some());
        assert!(difference(&wanted(&["a"]), &[text("a"), text("a")]).is_some());
    }
}
