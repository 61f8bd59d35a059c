//! A plan for people: a table of PodGroups, what is evicted for whom, and a summary.

use crate::cluster::counted;
use crate::outcome::{CycleOutcome, GroupOutcome, Outcome};
use crate::output::Timing;
use crate::submit::Submitted;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Space between columns.
const GAP: usize = 2;
/// The narrowest last column that text is wrapped to; below it lines run over.
const MIN_WRAP: usize = 24;
/// Where the last column begins when it has to go below the others.
const INDENT: usize = 4;
/// Nodes that are named before the rest is counted.
const MAX_NODES: usize = 6;

/// A plan as text. `width` is that of the terminal; `None` when there is none.
pub fn render(
    outcome: &Outcome,
    submitted: &[Submitted],
    timing: Option<Timing>,
    width: Option<usize>,
) -> String {
    let mut text = String::new();
    for job in submitted {
        let answer = outcome
            .groups
            .get(&job.group)
            .map_or_else(|| "no: it has no PodGroup".to_owned(), answer);
        line(
            &mut text,
            &format!("{} would start now: {answer}", job.job),
            width,
        );
    }
    if !submitted.is_empty() {
        text.push('\n');
    }
    groups(&mut text, outcome, width);
    if outcome.cycles.len() > 1 {
        cycles(&mut text, outcome, width);
    }
    evictions(&mut text, outcome, width);
    for (queue, why) in &outcome.invalid_queues {
        line(&mut text, &format!("Queue {queue} takes no part: {why}"), width);
    }
    text.push_str(&summary(outcome));
    if let Some(timing) = timing {
        text.push_str(&timings(outcome, timing));
    }
    text
}

/// Whether a submitted Job would start, and where or why not.
fn answer(group: &GroupOutcome) -> String {
    if group.is_ready() {
        return format!("yes: {}", verdict(group));
    }
    let verdict = verdict(group);
    format!("no: {}", verdict.strip_prefix("waits: ").unwrap_or(&verdict))
}

/// What happens to a group, in words.
pub fn verdict(group: &GroupOutcome) -> String {
    let mut parts = Vec::new();
    let bound: u32 = group.binds.values().sum();
    if bound > 0 && group.is_ready() {
        let more = if group.ready > bound { "more " } else { "" };
        let pods = format!("{bound} {more}{}", if bound == 1 { "pod" } else { "pods" });
        parts.push(format!("starts: {pods} on {}", spread(&group.binds)));
    } else if bound > 0 {
        parts.push(format!(
            "{} placed on {}, too few for the gang",
            counted(bound as usize, "pod", "pods"),
            spread(&group.binds)
        ));
    }
    if !group.pipelined.is_empty() {
        parts.push(format!(
            "waits for room being freed on {}",
            spread(&group.pipelined)
        ));
    } else if let Some(why) = &group.why {
        let pending = group.states.get("Pending").copied().unwrap_or(0) as usize;
        parts.push(match (group.is_ready(), pending) {
            (true, 1..) => format!("{}: {why}", counted(pending, "pod waits", "pods wait")),
            _ => format!("waits: {why}"),
        });
    }
    if group.evicted > 0 {
        parts.push(format!(
            "loses {}",
            counted(group.evicted as usize, "pod", "pods")
        ));
    }
    if parts.is_empty() {
        return match group.phase {
            "Completed" => "has ended",
            _ if group.is_ready() => "runs",
            _ => "nothing changes",
        }
        .to_owned();
    }
    parts.join("; ")
}

/// `n1 x2, n2`, and a count of the nodes beyond the first few.
fn spread(nodes: &BTreeMap<String, u32>) -> String {
    let name = |(node, &count): (&String, &u32)| {
        if count == 1 {
            node.clone()
        } else {
            format!("{node} x{count}")
        }
    };
    let mut names: Vec<_> = nodes.iter().take(MAX_NODES).map(name).collect();
    if nodes.len() > MAX_NODES {
        let rest: u32 = nodes.values().skip(MAX_NODES).sum();
        names.push(format!("{rest} on {} other nodes", nodes.len() - MAX_NODES));
    }
    names.join(", ")
}

fn groups(text: &mut String, outcome: &Outcome, width: Option<usize>) {
    if outcome.groups.is_empty() {
        text.push_str("No PodGroups.\n\n");
        return;
    }
    let mut rows = vec![
        ["PODGROUP", "QUEUE", "PHASE", "GANG", "WHAT HAPPENS"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (name, group) in &outcome.groups {
        let phase = if group.phase_before == group.phase {
            group.phase.to_owned()
        } else {
            format!("{} -> {}", group.phase_before, group.phase)
        };
        let gang = format!("{}/{} of {}", group.ready, group.minimum, group.total);
        rows.push(vec![
            name.clone(),
            group.queue.clone(),
            phase,
            gang,
            verdict(group),
        ]);
    }
    columns(text, &rows, width);
    text.push('\n');
}

fn cycles(text: &mut String, outcome: &Outcome, width: Option<usize>) {
    let mut rows = vec![vec!["CYCLE".to_owned(), "WHAT CHANGED".to_owned()]];
    for (index, cycle) in outcome.cycles.iter().enumerate() {
        rows.push(vec![(index + 1).to_string(), changes(cycle)]);
    }
    columns(text, &rows, width);
    text.push('\n');
}

fn changes(cycle: &CycleOutcome) -> String {
    let mut parts = Vec::new();
    let pairs = |map: &BTreeMap<String, String>| {
        let shown = map
            .iter()
            .take(MAX_NODES)
            .map(|(pod, node)| format!("{pod} on {node}"));
        let mut shown: Vec<_> = shown.collect();
        if map.len() > MAX_NODES {
            shown.push(format!("{} more", map.len() - MAX_NODES));
        }
        shown.join(", ")
    };
    if !cycle.binds.is_empty() {
        parts.push(format!("bound {}", pairs(&cycle.binds)));
    }
    if !cycle.evictions.is_empty() {
        let nodes: BTreeMap<_, _> = cycle
            .evictions
            .iter()
            .map(|(pod, eviction)| (pod.clone(), eviction.node.clone()))
            .collect();
        parts.push(format!("evicted {}", pairs(&nodes)));
    }
    if !cycle.pipelined.is_empty() {
        parts.push(format!("waiting for room: {}", pairs(&cycle.pipelined)));
    }
    for (group, (before, after)) in &cycle.phases {
        parts.push(format!("{group} {before} -> {after}"));
    }
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join("; ")
    }
}

fn evictions(text: &mut String, outcome: &Outcome, width: Option<usize>) {
    let evictions = outcome.evictions();
    if evictions.is_empty() {
        return;
    }
    let mut rows = vec![
        ["EVICTED", "OF", "FROM NODE", "BY", "FOR"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (pod, eviction) in evictions {
        let group = eviction.group.clone().unwrap_or_else(|| "-".to_owned());
        rows.push(vec![
            pod.to_owned(),
            group,
            eviction.node.clone(),
            eviction.kind.to_owned(),
            eviction.preemptor.clone(),
        ]);
    }
    columns(text, &rows, width);
    text.push('\n');
}

fn summary(outcome: &Outcome) -> String {
    let groups = outcome.groups.values();
    let starts = groups
        .clone()
        .filter(|group| !group.binds.is_empty() && group.is_ready())
        .count();
    let room = groups.clone().filter(|group| !group.pipelined.is_empty()).count();
    let waits = groups
        .filter(|group| group.pipelined.is_empty() && !group.is_ready() && group.why.is_some())
        .count();
    let evicted = outcome.evictions().len();
    format!(
        "{}: {}, {}, {}; {} bound, {evicted} evicted.\n",
        counted(outcome.groups.len(), "PodGroup", "PodGroups"),
        counted(starts, "starts", "start"),
        counted(room, "waits for room being freed", "wait for room being freed"),
        counted(waits, "waits", "wait"),
        counted(outcome.binds().len(), "pod", "pods"),
    )
}

fn timings(outcome: &Outcome, timing: Timing) -> String {
    let steps: Vec<_> = outcome
        .steps
        .iter()
        .map(|(name, took_ms)| format!("{name} {took_ms:.3}"))
        .collect();
    format!(
        "Took (ms): load {:.3}, cycle {:.3} ({}).\n",
        timing.load_ms,
        timing.cycle_ms,
        steps.join(", ")
    )
}

/// Rows with aligned columns. The last column is wrapped to the width, below its own beginning; where the others
/// leave too little room for that, it goes below them.
pub fn columns(text: &mut String, rows: &[Vec<String>], width: Option<usize>) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; count];
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            widths[at] = widths[at].max(cell.chars().count());
        }
    }
    let last = count.saturating_sub(1);
    let beside: usize = widths.iter().take(last).map(|w| w + GAP).sum();
    let widest = widths.last().copied().unwrap_or(0);
    let below =
        width.is_some_and(|width| beside + widest.min(MIN_WRAP) > width && width >= INDENT + MIN_WRAP);
    let indent = if below { INDENT } else { beside };
    let room = width
        .map(|width| width.saturating_sub(indent))
        .filter(|room| *room >= MIN_WRAP);
    for row in rows {
        let mut out = String::new();
        for (cell, width) in row.iter().zip(&widths).take(last) {
            write!(out, "{cell:<width$}", width = width + GAP).expect("a String takes any text");
        }
        let parts = wrap(row.get(last).map_or("", String::as_str), room);
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 || below {
                out.truncate(out.trim_end().len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
            }
            out.push_str(&part);
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
}

fn line(text: &mut String, content: &str, width: Option<usize>) {
    text.push_str(&wrap(content, width.filter(|width| *width >= MIN_WRAP)).join("\n  "));
    text.push('\n');
}

/// Text in lines of at most `room` characters, broken at blanks; a longer word stays whole.
fn wrap(content: &str, room: Option<usize>) -> Vec<String> {
    let Some(room) = room else {
        return vec![content.to_owned()];
    };
    let mut lines = vec![String::new()];
    for word in content.split(' ') {
        let last = lines.last_mut().expect("there is always a line");
        let used = last.chars().count();
        if used > 0 && used + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            if used > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> GroupOutcome {
        GroupOutcome {
            minimum: 2,
            total: 3,
            ..GroupOutcome::default()
        }
    }

    fn nodes(pairs: &[(&str, u32)]) -> BTreeMap<String, u32> {
        pairs
            .iter()
            .map(|(node, count)| ((*node).to_owned(), *count))
            .collect()
    }

    #[test]
    fn what_happens_is_told_in_words() {
        let cases = [
            (GroupOutcome { ready: 2, ..group() }, "runs"),
            (
                GroupOutcome {
                    phase: "Completed",
                    ..group()
                },
                "has ended",
            ),
            (
                GroupOutcome {
                    ready: 3,
                    binds: nodes(&[("n1", 2), ("n2", 1)]),
                    ..group()
                },
                "starts: 3 pods on n1 x2, n2",
            ),
            (
                GroupOutcome {
                    ready: 3,
                    binds: nodes(&[("n1", 1)]),
                    ..group()
                },
                "starts: 1 more pod on n1",
            ),
            (
                GroupOutcome {
                    pipelined: nodes(&[("n1", 2)]),
                    ..group()
                },
                "waits for room being freed on n1 x2",
            ),
            (
                GroupOutcome {
                    why: Some("p: 0/1 nodes".into()),
                    ..group()
                },
                "waits: p: 0/1 nodes",
            ),
            (
                GroupOutcome {
                    ready: 2,
                    why: Some("x".into()),
                    states: [("Pending", 1)].into(),
                    ..group()
                },
                "1 pod waits: x",
            ),
            (
                GroupOutcome {
                    ready: 2,
                    evicted: 1,
                    ..group()
                },
                "loses 1 pod",
            ),
            (
                GroupOutcome {
                    ready: 9,
                    binds: (0..9).map(|i| (format!("n{i}"), 1)).collect(),
                    ..group()
                },
                "starts: 9 pods on n0, n1, n2, n3, n4, n5, 3 on 3 other nodes",
            ),
        ];
        for (group, expected) in cases {
            assert_eq!(verdict(&group), expected);
        }
    }

    #[test]
    fn the_last_column_is_wrapped_to_the_terminal() {
        let rows = [
            vec!["A".to_owned(), "B".to_owned()],
            vec!["a".to_owned(), "one two three four five six".to_owned()],
        ];
        let mut text = String::new();
        columns(&mut text, &rows, Some(28));
        assert_eq!(text, "A  B\na  one two three four five\n   six\n");
        text.clear();
        columns(&mut text, &rows, None);
        assert_eq!(text, "A  B\na  one two three four five six\n");
        text.clear();
        columns(&mut text, &rows, Some(10));
        assert_eq!(text, "A  B\na  one two three four five six\n");
        let wide = [
            vec!["A".repeat(30), "B".to_owned()],
            vec!["a".to_owned(), "one two three four five six".to_owned()],
        ];
        text.clear();
        columns(&mut text, &wide, Some(28));
        assert_eq!(
            text,
            format!(
                "{}\n    B\na\n    one two three four five\n    six\n",
                "A".repeat(30)
            )
        );
    }
}
