//! What became of it: for each Job and pod how it ended, how long it waited and ran, and where its pods were.

use super::Settings;
use super::record::{PodRecord, Record};
use crate::commands::job::wait::End;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Column, Out, Table};
use std::io::Write as _;
use std::time::Duration;

/// Pods of a Job that are listed at the most.
const MOST_PODS: usize = 50;
/// Containers of a Job of which it is told what they returned, at the most.
const MOST_FAILURES: usize = 10;

/// Prints it.
pub fn print(records: &[Record], settings: &Settings, out: &mut Out) -> Result<(), Failure> {
    for record in records {
        writeln!(out)?;
        writeln!(out, "{}", headline(record, settings))?;
        pods(record, out)?;
    }
    Ok(out.flush()?)
}

/// The exit code: that of the first that did not complete.
pub fn exit_code(records: &[Record]) -> u8 {
    let ends = records.iter().filter_map(|record| record.end.as_ref());
    let mut codes = ends.map(|(end, _)| end.exit_code());
    codes
        .find(|code| *code != exit::JOB_COMPLETED)
        .unwrap_or(exit::JOB_COMPLETED)
}

fn headline(record: &Record, settings: &Settings) -> String {
    let (waited, ran) = record.took();
    let times = match ran {
        Some(ran) => format!("waited {}, ran {}", short(waited), short(ran)),
        None => format!("waited {}", short(waited)),
    };
    let end = record.end.as_ref().map(|(end, _)| end);
    let how = match end {
        Some(End::Phase(phase)) => phase.clone(),
        Some(End::Deleted) => "was deleted".to_owned(),
        Some(End::Stuck) if record.started.is_some() => "does not go on".to_owned(),
        Some(End::Stuck) => "does not start".to_owned(),
        Some(End::TimedOut(limit)) if settings.is_own => format!("was not over after {}", short(*limit)),
        Some(End::TimedOut(limit)) => {
            format!("was not over after {} and goes on", short(*limit))
        }
        None => "goes on".to_owned(),
    };
    format!("{record} {how}: {times}")
}

fn pods(record: &Record, out: &mut Out) -> Result<(), Failure> {
    let mut pods: Vec<&PodRecord> = record.pods.values().collect();
    if pods.is_empty() {
        return Ok(());
    }
    pods.sort_by_key(|pod| natural(&pod.name));
    let mut table = Table::new(vec![
        Column::longest("Pod", 3),
        Column::longest("Status", 3).state(),
        Column::longest("Node", 3),
        Column::longest("Waited", 3),
        Column::longest("Ran", 0),
    ]);
    for pod in pods.iter().take(MOST_PODS) {
        let waited = pod.started.map(|started| started.duration_since(record.created));
        let ran = pod
            .started
            .zip(pod.ended)
            .map(|(started, ended)| ended.duration_since(started));
        let shown = |time: Option<Duration>| time.map_or_else(|| "-".to_owned(), short);
        let node = if pod.node.is_empty() { "-" } else { &pod.node };
        table.push(vec![
            pod.name.clone(),
            pod.status.clone(),
            node.to_owned(),
            shown(waited),
            shown(ran),
        ]);
    }
    table.print(out)?;
    if pods.len() > MOST_PODS {
        writeln!(out, "and {} more pods", pods.len() - MOST_PODS)?;
    }
    let failures = pods
        .iter()
        .flat_map(|pod| pod.failures.iter().map(|failure| (&pod.name, failure)));
    for (pod, (container, code)) in failures.take(MOST_FAILURES) {
        writeln!(out, "pod {pod}: container {container} exited with {code}")?;
    }
    Ok(())
}

/// Names in the order of the numbers in them: `w-2` before `w-10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    name.split('-')
        .map(|part| match part.parse() {
            Ok(number) => (String::new(), number),
            Err(_) => (part.to_owned(), 0),
        })
        .collect()
}

/// A time in two units at the most.
fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(end: End) -> Record {
        let mut record = Record::new(true, json!({"metadata": {"name": "j"}}));
        record.end_with(end);
        record
    }

    #[test]
    fn the_first_that_did_not_complete_decides() {
        let phase = |phase: &str| ended(End::Phase(phase.to_owned()));
        assert_eq!(exit_code(&[phase("Completed"), phase("Succeeded")]), 0);
        assert_eq!(
            exit_code(&[phase("Completed"), phase("Aborted"), phase("Failed")]),
            4
        );
        assert_eq!(exit_code(&[ended(End::Stuck), phase("Failed")]), 6);
    }

    #[test]
    fn times_and_names_are_for_people() {
        assert_eq!(short(Duration::from_millis(1240)), "1.2s");
        assert_eq!(short(Duration::from_secs(125)), "2m5s");
        assert_eq!(short(Duration::from_secs(7384)), "2h3m");
        let mut names = ["w-10", "w-2", "v-3"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["v-3", "w-2", "w-10"]);
    }
}
