//! How long a pod on a simulated node runs, and how it ends: what its annotations say, else what its commands do.

use super::pod::{Container, Pod};
use std::time::Duration;
use volcano_api::names::annotations;
use volcano_api::time::GoDuration;

/// Exit code of a shell's `false`, and of what cannot be told.
const FAILURE: i32 = 1;
/// Commands of a shell that take no time and succeed.
const QUICK: [&str; 12] = [
    "echo", "printf", "true", ":", "set", "cd", "export", "date", "hostname", "env", "mkdir", "touch",
];

/// How a pod lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// How long it runs; until it is deleted without.
    pub runs: Option<Duration>,
    /// How its containers end, in their order.
    pub exit_codes: Vec<i32>,
    /// How long it takes to end once it is deleted.
    pub termination: Duration,
}

impl Life {
    /// Of a pod; and what is wrong with its annotations. One that cannot be read counts as not there.
    pub fn of(pod: &Pod) -> (Life, Vec<String>) {
        let mut wrong = Vec::new();
        let text = |name: &str| pod.metadata.annotations.get(name).map(String::as_str);
        let mut duration = |name: &str| {
            let text = text(name)?;
            let parsed = GoDuration::parse(text).ok().and_then(GoDuration::to_std);
            if parsed.is_none() {
                wrong.push(format!(
                    "{name}: {text:?} is no duration and is ignored; write one such as 1.5s or 2m"
                ));
            }
            parsed
        };
        let given = duration(annotations::SIMULATED_DURATION);
        let termination = duration(annotations::SIMULATED_TERMINATION).unwrap_or_default();
        let code = text(annotations::SIMULATED_EXIT_CODE).and_then(|text| {
            let code = text.trim().parse().ok().filter(|code| (0..=255).contains(code));
            if code.is_none() {
                let name = annotations::SIMULATED_EXIT_CODE;
                wrong.push(format!(
                    "{name}: {text:?} is no number from 0 to 255 and is ignored"
                ));
            }
            code
        });
        let ends: Vec<Option<End>> = pod.spec.containers.iter().map(end).collect();
        // A pod runs as long as one of its containers does.
        let longest = ends.iter().map(|end| end.as_ref().map(|end| end.after));
        let runs = given.or_else(|| longest.collect::<Option<Vec<_>>>()?.into_iter().max());
        let code_of = |end: &Option<End>| code.unwrap_or_else(|| end.as_ref().map_or(0, |end| end.code));
        let life = Life {
            runs,
            exit_codes: ends.iter().map(code_of).collect(),
            termination,
        };
        (life, wrong)
    }

    /// Whether a container fails.
    pub fn fails(&self) -> bool {
        self.exit_codes.iter().any(|code| *code != 0)
    }
}

/// How a container ends by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct End {
    after: Duration,
    code: i32,
}

/// What can be told from a command; nothing of programs that are not known.
fn end(container: &Container) -> Option<End> {
    let words: Vec<&str> = container
        .command
        .iter()
        .chain(&container.args)
        .map(String::as_str)
        .collect();
    let (program, arguments) = words.split_first()?;
    match program.rsplit('/').next().unwrap_or_default() {
        "sh" | "bash" | "ash" | "dash" => {
            let (flag, rest) = arguments.split_first()?;
            let is_script = flag.starts_with('-') && flag.ends_with('c');
            is_script.then(|| script(rest.first().copied().unwrap_or_default()))?
        }
        "sleep" => Some(End {
            after: slept(arguments)?,
            code: 0,
        }),
        "true" | "echo" => Some(End::default()),
        "false" => Some(End {
            code: FAILURE,
            ..End::default()
        }),
        _ => None,
    }
}

/// What a script of simple commands does. One with other commands ends only if it sleeps or exits.
fn script(text: &str) -> Option<End> {
    let (mut end, mut is_known, mut ends) = (End::default(), true, false);
    for (joint, command) in commands(text) {
        let runs = match joint {
            Joint::Always => true,
            Joint::IfGood => end.code == 0,
            Joint::IfBad => end.code != 0,
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        let Some((name, arguments)) = words.split_first().filter(|_| runs) else {
            continue;
        };
        let name = name.rsplit('/').next().unwrap_or_default();
        match name {
            "sleep" => match slept(arguments) {
                Some(time) => {
                    end.after += time;
                    end.code = 0;
                    ends = true;
                }
                None => is_known = false,
            },
            "exit" => {
                let code = arguments.first().and_then(|text| text.parse::<i32>().ok());
                end.code = code.unwrap_or(end.code) & 0xff;
                return Some(end);
            }
            "false" => end.code = FAILURE,
            name if name.starts_with('#') => {}
            name if QUICK.contains(&name) => end.code = 0,
            _ => {
                is_known = false;
                end.code = 0;
            }
        }
    }
    (is_known || ends).then_some(end)
}

/// When a command of a script runs, by how the one before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    Always,
    IfGood,
    IfBad,
}

/// The commands of a script, with what joins each to the one before. Quotes hold what is in them together.
fn commands(text: &str) -> Vec<(Joint, String)> {
    let mut commands = vec![(Joint::Always, String::new())];
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        let joint = match (quote, letter) {
            (Some(open), letter) if open == letter => {
                quote = None;
                None
            }
            (None, '"' | '\'') => {
                quote = Some(letter);
                None
            }
            (None, ';' | '\n') => Some(Joint::Always),
            (None, '&') if rest.next_if_eq(&'&').is_some() => Some(Joint::IfGood),
            (None, '|') if rest.next_if_eq(&'|').is_some() => Some(Joint::IfBad),
            _ => None,
        };
        match (joint, commands.last_mut()) {
            (Some(joint), _) => commands.push((joint, String::new())),
            (None, Some((_, command))) => command.push(letter),
            (None, None) => {}
        }
    }
    commands
}

/// The sum of what `sleep` is told, as coreutils take it: seconds, or with s, m, h or d.
fn slept(arguments: &[&str]) -> Option<Duration> {
    if arguments.is_empty() {
        return None;
    }
    arguments.iter().map(|text| one_sleep(text)).sum()
}

fn one_sleep(text: &str) -> Option<Duration> {
    let text = text.trim_matches(['"', '\'']);
    let (number, unit) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86400.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn life(annotations: serde_json::Value, commands: &[&[&str]]) -> (Option<f64>, Vec<i32>, usize) {
        let containers: Vec<_> = commands
            .iter()
            .map(|command| json!({"name": "c", "command": command}))
            .collect();
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}});
        let (life, wrong) = Life::of(&serde_json::from_value(pod).unwrap());
        (
            life.runs.map(|runs| runs.as_secs_f64()),
            life.exit_codes,
            wrong.len(),
        )
    }

    #[test]
    fn commands_say_how_long_they_take_and_how_they_end() {
        for (command, runs, code) in [
            (&["sleep", "5"][..], Some(5.0), 0),
            (&["/bin/sleep", "1.5m"], Some(90.0), 0),
            (&["sleep", "1h", "2s"], Some(3602.0), 0),
            (&["sleep", "infinity"], None, 0),
            (&["sleep"], None, 0),
            (&["sh", "-c", "sleep 5"], Some(5.0), 0),
            (&["/bin/bash", "-ec", "sleep 2 && exit 3"], Some(2.0), 3),
            (&["sh", "-c", "exit 7"], Some(0.0), 7),
            (&["sh", "-c", "echo 'a; exit 9'; sleep 1\nsleep 2"], Some(3.0), 0),
            (&["sh", "-c", "false && sleep 9; exit"], Some(0.0), 1),
            (&["sh", "-c", "false || sleep 9"], Some(9.0), 0),
            (&["sh", "-c", "python train.py; sleep 4"], Some(4.0), 0),
            (&["sh", "-c", "python train.py"], None, 0),
            (&["sh", "-c", "sleep 1 & wait"], None, 0),
            (&["sh", "-c", "exit 300"], Some(0.0), 44),
            (&["sh", "train.sh"], None, 0),
            (&["nginx"], None, 0),
            (&["false"], Some(0.0), 1),
            (&[], None, 0),
        ] {
            assert_eq!(life(json!({}), &[command]), (runs, vec![code], 0), "{command:?}");
        }
    }

    #[test]
    fn a_pod_runs_as_long_as_its_longest_container() {
        let two: &[&[&str]] = &[&["sleep", "5"], &["sh", "-c", "sleep 9; exit 2"]];
        assert_eq!(life(json!({}), two), (Some(9.0), vec![0, 2], 0));
        let one_goes_on: &[&[&str]] = &[&["sleep", "5"], &["nginx"]];
        assert_eq!(life(json!({}), one_goes_on), (None, vec![0, 0], 0));
    }

    #[test]
    fn annotations_count_more_than_commands_and_wrong_ones_not_at_all() {
        for (annotations, expected) in [
            (
                json!({"volcano.sh/simulated-duration": "1.5s"}),
                (Some(1.5), vec![3], 0),
            ),
            (
                json!({"volcano.sh/simulated-duration": "2m"}),
                (Some(120.0), vec![3], 0),
            ),
            (
                json!({"volcano.sh/simulated-exit-code": "0"}),
                (Some(9.0), vec![0], 0),
            ),
            (
                json!({"volcano.sh/simulated-duration": "soon"}),
                (Some(9.0), vec![3], 1),
            ),
            (
                json!({"volcano.sh/simulated-duration": "-1s"}),
                (Some(9.0), vec![3], 1),
            ),
            (
                json!({"volcano.sh/simulated-exit-code": "256"}),
                (Some(9.0), vec![3], 1),
            ),
        ] {
            let told = format!("{annotations}");
            assert_eq!(
                life(annotations, &[&["sh", "-c", "sleep 9; exit 3"]]),
                expected,
                "{told}"
            );
        }
    }
}
