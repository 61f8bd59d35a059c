//! Runs files of scenarios and reports all that differ, with what to look at.

use super::outcome::{difference, written};
use super::text::{Problem, Scenario, parse};
use super::world;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Runs all scenarios of a file and gives their number. With `UPDATE=1` in the environment, the expected parts of those
/// that differ are rewritten in the file instead.
///
/// # Errors
/// A report of all scenarios that differ or cannot be read.
pub fn check_file(path: &Path) -> Result<usize, String> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    match check_text(&name, &text) {
        Ok(count) => Ok(count),
        Err(failure) => match failure
            .rewritten
            .filter(|_| std::env::var("UPDATE").is_ok_and(|v| v == "1"))
        {
            Some(rewritten) => {
                std::fs::write(path, rewritten).map_err(|error| format!("{name}: {error}"))?;
                Ok(failure.scenarios)
            }
            None => Err(failure.report),
        },
    }
}

/// What is wrong with a file of scenarios.
#[derive(Clone, Debug)]
pub struct Failure {
    /// All that differs, for a person.
    pub report: String,
    /// The file with the expected parts as they came out; `None` when it cannot be read at all.
    pub rewritten: Option<String>,
    /// Scenarios in the file.
    pub scenarios: usize,
}

/// Runs all scenarios of a text and gives their number.
///
/// # Errors
/// A report of all scenarios that differ or cannot be read.
pub fn check_text(file: &str, text: &str) -> Result<usize, Failure> {
    let scenarios = match parse(text) {
        Ok(parsed) => parsed.scenarios,
        Err(problems) => {
            return Err(Failure {
                report: describe(file, &problems),
                rewritten: None,
                scenarios: 0,
            });
        }
    };
    let mut report = String::new();
    let (mut failed, mut readable) = (0, true);
    let mut replacements: Vec<((usize, usize), Vec<String>)> = Vec::new();
    for scenario in &scenarios {
        match run_caught(scenario) {
            Ok(cycles) => {
                if let Some(text) = compare(file, scenario, &cycles) {
                    failed += 1;
                    report.push_str(&text);
                    replacements.push((scenario.expected_lines, block(&cycles)));
                }
            }
            Err(text) => {
                (failed, readable) = (failed + 1, false);
                writeln!(report, "\n{file}:{}: {}\n{text}", scenario.line, scenario.name)
                    .expect("a String takes any text");
            }
        }
    }
    for line in twins(&scenarios) {
        (failed, readable) = (failed + 1, false);
        writeln!(report, "\n{file}: {line}").expect("a String takes any text");
    }
    if failed == 0 {
        return Ok(scenarios.len());
    }
    writeln!(
        report,
        "\n{failed} of {} scenarios of {file} differ",
        scenarios.len()
    )
    .expect("a String takes any text");
    let rewritten = readable.then(|| rewrite(text, replacements));
    Err(Failure {
        report,
        rewritten,
        scenarios: scenarios.len(),
    })
}

/// The names of the scenarios of a text, in order.
pub fn names(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|name| name.trim().to_owned())
        .collect()
}

fn describe(file: &str, problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("{file}:{}: {}\n", problem.line, problem.message))
        .collect()
}

/// A panic of the engine is the failure of one scenario, not of all that come after it.
fn run_caught(scenario: &Scenario) -> Result<Vec<Vec<super::Line>>, String> {
    match catch_unwind(AssertUnwindSafe(|| world::run(scenario))) {
        Ok(Ok(cycles)) => Ok(cycles),
        Ok(Err(problems)) => Err(problems.iter().map(|problem| format!("  {problem}\n")).collect()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("without a message");
            Err(format!("  panicked: {text}\n"))
        }
    }
}

/// `None` when all cycles came out as expected.
fn compare(file: &str, scenario: &Scenario, cycles: &[Vec<super::Line>]) -> Option<String> {
    let mut text = String::new();
    for (at, lines) in cycles.iter().enumerate() {
        let expected = scenario.expected.get(at).map(Vec::as_slice).unwrap_or_default();
        let Some((missing, surplus)) = difference(expected, lines) else {
            continue;
        };
        if cycles.len() > 1 {
            writeln!(text, "  cycle {}", at + 1).expect("a String takes any text");
        }
        for line in missing {
            writeln!(text, "  - {line}").expect("a String takes any text");
        }
        for line in surplus {
            writeln!(text, "  + {line}").expect("a String takes any text");
        }
    }
    if scenario.expected.len() > cycles.len() {
        text.push_str("  - more cycles than there are\n");
    }
    (!text.is_empty()).then(|| format!("\n{file}:{}: {}\n{text}", scenario.line, scenario.name))
}

fn twins(scenarios: &[Scenario]) -> Vec<String> {
    let mut lines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for scenario in scenarios {
        lines.entry(&scenario.name).or_default().push(scenario.line);
    }
    let twins = lines.into_iter().filter(|(_, lines)| lines.len() > 1);
    twins
        .map(|(name, lines)| format!("lines {lines:?} have the same name: {name}"))
        .collect()
}

/// The expected part of a scenario as it came out.
fn block(cycles: &[Vec<super::Line>]) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, cycle) in cycles.iter().enumerate() {
        if cycles.len() > 1 {
            lines.push(format!("cycle {}", at + 1));
        }
        lines.extend(written(cycle));
    }
    lines
}

/// The text with some ranges of lines replaced; comments and blank lines at their ends stay.
fn rewrite(text: &str, replacements: Vec<((usize, usize), Vec<String>)>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for ((first, end), block) in replacements.into_iter().rev() {
        let old: Vec<String> = lines[first - 1..end - 1].to_vec();
        let blank = old.iter().rev().take_while(|line| line.trim().is_empty()).count();
        let comments = old.iter().filter(|line| line.starts_with('#')).cloned();
        let new: Vec<String> = comments.chain(block).chain(vec![String::new(); blank]).collect();
        lines.splice(first - 1..end - 1, new);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: &str = "conf: allocate\nnode n1 cpu=2\n";

    #[test]
    fn a_scenario_that_comes_true_counts() {
        let text = format!("{SHARED}## one pod\ngroup a\npod a/p0 cpu=1\n---\na: p0 -> n1\n");
        assert_eq!(check_text("t", &text).map_err(|f| f.report), Ok(1));
    }

    #[test]
    fn one_that_does_not_is_shown_and_can_be_rewritten() {
        let text = format!(
            "{SHARED}## one pod\ngroup a\npod a/p0 cpu=1\n---\n# why\nnothing\n\n## none\n---\nnothing\n"
        );
        let failure = check_text("t", &text).unwrap_err();
        assert!(failure.report.contains("t:3: one pod"), "{}", failure.report);
        assert!(failure.report.contains("  + a: p0 -> n1"), "{}", failure.report);
        let rewritten = failure.rewritten.unwrap();
        assert_eq!(
            rewritten,
            text.replacen("# why\nnothing\n", "# why\na: p0 -> n1\n", 1)
        );
        assert_eq!(check_text("t", &rewritten).map_err(|f| f.report), Ok(2));
    }

    #[test]
    fn a_word_that_means_nothing_is_an_error_with_its_line() {
        for (line, message) in [
            ("node n2 cores=2", "`cores` means nothing on a node line"),
            ("pod a/p0 cpu=1", "no group `a` above"),
            ("group a min=x", "`x` is not a whole number"),
            ("robot r", "`robot` is no kind of line"),
            ("object {\"kind\": \"Pod\"}", "an object needs"),
            ("node n2 cpu=2 with {\"spec\"}", "expected `:`"),
            ("gone node n1 with {}", "only an object can be `with` more"),
        ] {
            let failure = check_text("t", &format!("{SHARED}## a\n{line}\n---\nnothing\n")).unwrap_err();
            assert!(failure.report.contains("line 4"), "{}", failure.report);
            assert!(failure.report.contains(message), "{}", failure.report);
        }
    }

    #[test]
    fn what_has_no_word_is_added_as_json() {
        let node = r#"node n{2..3} cpu=2 with {"metadata": {"labels": {"disk": "ssd"}}}"#;
        let pod = r#"pod a/p{0..1} cpu=1 selector disk=ssd with {"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}}"#;
        let text = format!("{SHARED}## two nodes\n{node}\ngroup a min=2\n{pod}\n---\na: 1 -> n2, 1 -> n3\n");
        assert_eq!(
            check_text("t", &text.replace("allocate", "allocate / gang / predicates")).map_err(|f| f.report),
            Ok(1)
        );
    }

    #[test]
    fn two_scenarios_of_one_name_are_an_error() {
        let failure = check_text("t", "## a\n---\nnothing\n## a\n---\nnothing\n").unwrap_err();
        assert!(failure.report.contains("the same name: a"), "{}", failure.report);
    }
}
