//! Scenario files as lines: where each scenario begins and ends, its settings, its objects, what it expects.

use std::fmt;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A line that describes an object or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Line, counted from 1.
    pub line: usize,
    /// The cycle before which it happens, counted from 1.
    pub cycle: usize,
    /// Its words, ranges written out.
    pub words: Vec<String>,
}

/// What to print besides decisions and phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// PodGroup conditions.
    pub conditions: bool,
    /// Pod conditions.
    pub pods: bool,
    /// Events of PodGroups.
    pub events: bool,
    /// What queues use.
    pub queues: bool,
    /// Reports: why a job was not admitted, is invalid, or has a full queue.
    pub reasons: bool,
}

/// One scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The sentence after `##`.
    pub name: String,
    /// The line of its heading.
    pub line: usize,
    /// The text after `conf:` with its line.
    pub conf: (usize, String),
    /// Cycles to run.
    pub cycles: usize,
    /// Seconds since the beginning of time, at the first cycle.
    pub now: i64,
    /// What to print.
    pub show: Show,
    /// Objects and events, in order.
    pub inputs: Vec<Input>,
    /// Expected lines for each cycle.
    pub expected: Vec<Vec<String>>,
    /// Lines of the expected part, `---` excluded: first, and one past the last.
    pub expected_lines: (usize, usize),
}

/// A file of scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// Reads a file of scenarios.
///
/// # Errors
/// Every line that cannot be read.
pub fn parse(text: &str) -> Result<File, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut shared = Draft::default();
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut current: Option<Draft> = None;
    let last = text.lines().count();
    for (at, raw) in text.lines().enumerate() {
        let line = at + 1;
        if let Some(name) = raw.strip_prefix("## ") {
            finish(current.take(), at, &mut scenarios, &mut problems);
            current = Some(Draft {
                name: name.trim().to_owned(),
                line,
                ..shared.clone()
            });
            continue;
        }
        let outcome = current.as_mut().unwrap_or(&mut shared).take_line(line, raw);
        problems.extend(outcome.err().map(|message| Problem { line, message }));
    }
    finish(current, last, &mut scenarios, &mut problems);
    if problems.is_empty() {
        Ok(File { scenarios })
    } else {
        Err(problems)
    }
}

fn finish(draft: Option<Draft>, end: usize, scenarios: &mut Vec<Scenario>, problems: &mut Vec<Problem>) {
    let Some(draft) = draft else { return };
    let line = draft.line;
    match draft.finish(end) {
        Ok(scenario) => scenarios.push(scenario),
        Err(message) => problems.push(Problem { line, message }),
    }
}

/// A scenario as far as it has been read.
#[derive(Clone, Debug)]
struct Draft {
    name: String,
    line: usize,
    conf: (usize, String),
    cycles: usize,
    now: i64,
    show: Show,
    inputs: Vec<Input>,
    expected: Option<(usize, Vec<(usize, String)>)>,
}

impl Default for Draft {
    fn default() -> Self {
        Draft {
            name: String::new(),
            line: 0,
            conf: (0, "default".to_owned()),
            cycles: 1,
            now: 1000,
            show: Show::default(),
            inputs: Vec::new(),
            expected: None,
        }
    }
}

impl Draft {
    fn take_line(&mut self, line: usize, raw: &str) -> Result<(), String> {
        if let Some((_, expected)) = &mut self.expected {
            if !raw.trim().is_empty() && !raw.starts_with('#') {
                expected.push((line, raw.trim().to_owned()));
            }
            return Ok(());
        }
        if raw.trim() == "---" {
            if self.line == 0 {
                return Err("an expected part before the first scenario".to_owned());
            }
            self.expected = Some((line, Vec::new()));
            return Ok(());
        }
        let text = without_comment(raw);
        if text.is_empty() {
            return Ok(());
        }
        match text.split_once(": ") {
            Some(("conf", conf)) => self.conf = (line, conf.trim().to_owned()),
            Some(("cycles", count)) => self.cycles = number(count)?,
            Some(("now", seconds)) => self.now = number(seconds)?,
            Some(("show", list)) => self.show = read_show(list)?,
            _ => self.inputs.extend(read_input(line, text)?),
        }
        Ok(())
    }

    fn finish(self, end: usize) -> Result<Scenario, String> {
        let (dashes, lines) = self.expected.ok_or("no `---`: nothing is expected of it")?;
        if !(1..=100).contains(&self.cycles) {
            return Err(format!("{} cycles are not a number from 1 to 100", self.cycles));
        }
        let mut expected: Vec<Vec<String>> = Vec::new();
        if self.cycles == 1 {
            expected.push(lines.into_iter().map(|(_, text)| text).collect());
        } else {
            for (line, text) in lines {
                match text.strip_prefix("cycle ") {
                    Some(count) if count.parse() == Ok(expected.len() + 1) => expected.push(Vec::new()),
                    Some(_) => return Err(format!("line {line}: expected `cycle {}`", expected.len() + 1)),
                    None => match expected.last_mut() {
                        Some(list) => list.push(text),
                        None => return Err(format!("line {line}: expected `cycle 1` first")),
                    },
                }
            }
            expected.resize(self.cycles.max(expected.len()), Vec::new());
        }
        Ok(Scenario {
            name: self.name,
            line: self.line,
            conf: self.conf,
            cycles: self.cycles,
            now: self.now,
            show: self.show,
            inputs: self.inputs,
            expected,
            expected_lines: (dashes + 1, end + 1),
        })
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("`{text}` is not a number"))
}

fn read_show(list: &str) -> Result<Show, String> {
    let mut show = Show::default();
    for word in list.split_whitespace() {
        match word {
            "conditions" => show.conditions = true,
            "pods" => show.pods = true,
            "events" => show.events = true,
            "queues" => show.queues = true,
            "reasons" => show.reasons = true,
            _ => {
                return Err(format!(
                    "`{word}` cannot be shown: conditions, pods, events, queues or reasons"
                ));
            }
        }
    }
    Ok(show)
}

/// `#` at the beginning, or after a blank outside of quotes, begins a comment.
fn without_comment(raw: &str) -> &str {
    let mut quoted = false;
    let mut before = ' ';
    for (at, c) in raw.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted && before.is_whitespace() => return raw[..at].trim(),
            _ => {}
        }
        before = c;
    }
    raw.trim()
}

fn read_input(line: usize, text: &str) -> Result<Vec<Input>, String> {
    let (cycle, text) = match text.strip_prefix('@') {
        Some(rest) => {
            let (cycle, rest) = rest.split_once(' ').ok_or("nothing after `@`")?;
            (number(cycle)?, rest.trim())
        }
        None => (1, text),
    };
    if let Some(json) = text.strip_prefix("object ") {
        return Ok(vec![Input {
            line,
            cycle,
            words: vec!["object".to_owned(), json.to_owned()],
        }]);
    }
    let (text, patch) = match text.split_once(" with {") {
        Some((text, patch)) => (text, Some(["with".to_owned(), format!("{{{patch}")])),
        None => (text, None),
    };
    let words = split_words(text)?;
    let rows = expand(&words)?;
    let input = |mut words: Vec<String>| {
        words.extend(patch.iter().flatten().cloned());
        Input { line, cycle, words }
    };
    Ok(rows.into_iter().map(input).collect())
}

/// Words are parted by blanks; quotes keep blanks in a word.
fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    for c in text.chars() {
        match c {
            '"' => (quoted, begun) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if quoted {
        return Err("a quote without its end".to_owned());
    }
    if begun {
        words.push(word);
    }
    Ok(words)
}

/// Writes the ranges of a line out: one line per value, several ranges in step.
fn expand(words: &[String]) -> Result<Vec<Vec<String>>, String> {
    let mut length = None;
    let mut parts: Vec<Vec<String>> = Vec::new();
    for word in words {
        let Some((before, values, after)) = range(word)? else {
            parts.push(vec![word.clone()]);
            continue;
        };
        if length.is_some_and(|n| n != values.len()) {
            return Err("ranges of different lengths".to_owned());
        }
        length = Some(values.len());
        parts.push(
            values
                .iter()
                .map(|value| format!("{before}{value}{after}"))
                .collect(),
        );
    }
    let pick = |part: &Vec<String>, at: usize| part[if part.len() == 1 { 0 } else { at }].clone();
    Ok((0..length.unwrap_or(1))
        .map(|at| parts.iter().map(|part| pick(part, at)).collect())
        .collect())
}

/// The range in a word: what is before it, its values, and what is after it.
type Range<'a> = (&'a str, Vec<String>, &'a str);

fn range(word: &str) -> Result<Option<Range<'_>>, String> {
    let Some((before, rest)) = word.split_once('{') else {
        return Ok(None);
    };
    let (inside, after) = rest
        .split_once('}')
        .ok_or_else(|| format!("`{word}` has no `}}`"))?;
    if after.contains('{') {
        return Err(format!("`{word}` has two ranges"));
    }
    let values: Vec<String> = match inside.split_once("..") {
        Some((first, last)) => {
            let (first, last): (usize, usize) = (number(first)?, number(last)?);
            (first..=last).map(|value| value.to_string()).collect()
        }
        None => inside.split(',').map(|value| value.trim().to_owned()).collect(),
    };
    if values.is_empty() || values.len() > 10_000 {
        return Err(format!("`{{{inside}}}` has {} values", values.len()));
    }
    Ok(Some((before, values, after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_out_in_step() {
        let inputs = read_input(1, "pod a/p{0..1} on n{x,y} cpu=1").unwrap();
        let lines: Vec<String> = inputs.iter().map(|input| input.words.join(" ")).collect();
        assert_eq!(lines, ["pod a/p0 on nx cpu=1", "pod a/p1 on ny cpu=1"]);
        assert!(read_input(1, "pod a/p{0..1} on n{1..3}").is_err());
    }

    #[test]
    fn lines_before_the_first_scenario_are_shared_and_comments_are_not_read() {
        let text = "conf: allocate / gang\nnode n1 cpu=1 # one\n## a\n---\nnothing\n## b\nconf: helm\n---\n# why\nnothing\n";
        let file = parse(text).unwrap();
        assert_eq!(file.scenarios.len(), 2);
        assert_eq!(file.scenarios[0].conf.1, "allocate / gang");
        assert_eq!(file.scenarios[1].conf.1, "helm");
        assert_eq!(file.scenarios[1].inputs[0].words, ["node", "n1", "cpu=1"]);
        assert_eq!(file.scenarios[1].expected, [["nothing"]]);
        assert_eq!(file.scenarios[0].expected_lines, (5, 6));
    }

    #[test]
    fn a_problem_has_its_line() {
        let problems = parse("## a\nshow: all\n---\n").unwrap_err();
        assert_eq!(problems[0].line, 2);
        assert_eq!(parse("## a\nnode n1\n").unwrap_err()[0].line, 1);
    }
}
