//! Arguments of job plugins, in the syntax of Go's flags: `--name=value`, `-name=value`, `--name value`; a switch may
//! stand alone.
//!
//! Reading stops at the first argument that cannot be read, and what was read before it holds. A job that was
//! submitted with a typing error runs as it always did, so this is a [problem](Arguments::problems), not an error.

use std::collections::BTreeMap;

/// Port numbers.
const PORTS: std::ops::RangeInclusive<i64> = 1..=65535;
/// How much of an argument is repeated in a message.
const SHOWN_CHARS: usize = 64;

/// An argument that a plugin knows.
pub struct Flag {
    name: &'static str,
    takes: Takes,
}

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Text,
    Number,
    Port,
    Switch,
}

impl Flag {
    /// An argument with any value.
    pub const fn text(name: &'static str) -> Self {
        let takes = Takes::Text;
        Flag { name, takes }
    }

    /// An argument with a whole number.
    pub const fn number(name: &'static str) -> Self {
        let takes = Takes::Number;
        Flag { name, takes }
    }

    /// An argument with the number of a port.
    pub const fn port(name: &'static str) -> Self {
        let takes = Takes::Port;
        Flag { name, takes }
    }

    /// An argument that is true or false.
    pub const fn switch(name: &'static str) -> Self {
        let takes = Takes::Switch;
        Flag { name, takes }
    }
}

#[cfg(test)]
impl Flag {
    /// Its name, without dashes.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Arguments that were given, by name.
#[derive(Default)]
pub struct Arguments {
    values: BTreeMap<&'static str, Given>,
    problems: Vec<String>,
}

enum Given {
    Text(String),
    Number(i64),
    Switch(bool),
}

impl Arguments {
    /// Reads the arguments of a plugin that knows these flags.
    pub fn parse(flags: &[Flag], given: &[String]) -> Self {
        let mut arguments = Arguments::default();
        let mut rest = given.iter();
        while let Some(argument) = rest.next() {
            match arguments.read(flags, argument, &mut rest) {
                Ok(true) => {}
                Ok(false) => break,
                Err(problem) => {
                    arguments.problems.push(problem);
                    break;
                }
            }
        }
        if rest.len() > 0 {
            let ignored = rest.len();
            arguments
                .problems
                .push(format!("the last {ignored} of the arguments are ignored"));
        }
        arguments
    }

    /// Reads one argument. Says whether there may be another.
    fn read(
        &mut self,
        flags: &[Flag],
        argument: &str,
        rest: &mut std::slice::Iter<'_, String>,
    ) -> Result<bool, String> {
        let Some(body) = argument.strip_prefix('-').filter(|body| !body.is_empty()) else {
            return Err(format!("argument {} does not start with a dash", shown(argument)));
        };
        let body = body.strip_prefix('-').unwrap_or(body);
        if body.is_empty() {
            return Ok(false);
        }
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let Some(flag) = flags.iter().find(|flag| flag.name == name) else {
            let known: Vec<_> = flags.iter().map(|flag| format!("--{}", flag.name)).collect();
            let known = if known.is_empty() {
                "there is none".to_owned()
            } else {
                format!("known are {}", known.join(", "))
            };
            return Err(format!("argument {} is not known; {known}", shown(argument)));
        };
        let value = match value {
            Some(value) => value,
            None if flag.takes == Takes::Switch => "true",
            None => rest
                .next()
                .ok_or_else(|| format!("argument --{name} needs a value"))?,
        };
        self.set(flag, value)?;
        Ok(true)
    }

    fn set(&mut self, flag: &Flag, value: &str) -> Result<(), String> {
        let bad = |what: &str| format!("value {} of --{} is not {what}", shown(value), flag.name);
        let given = match flag.takes {
            Takes::Text => Given::Text(value.to_owned()),
            Takes::Number => Given::Number(number(value).ok_or_else(|| bad("a number"))?),
            Takes::Port => {
                let port = number(value).ok_or_else(|| bad("a number"))?;
                if !PORTS.contains(&port) {
                    // The number was read, so reading goes on.
                    self.problems.push(bad("a port, 1 to 65535; the default is used"));
                    self.values.remove(flag.name);
                    return Ok(());
                }
                Given::Number(port)
            }
            Takes::Switch => Given::Switch(switch(value).ok_or_else(|| bad("true or false"))?),
        };
        self.values.insert(flag.name, given);
        Ok(())
    }

    /// What could not be read, and what that means.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }

    /// A text, also an empty one, or the default. No task has an empty name: `--chief=` says that there is no chief.
    pub fn text(&self, name: &str, default: &str) -> String {
        match self.values.get(name) {
            Some(Given::Text(text)) => text.clone(),
            _ => default.to_owned(),
        }
    }

    /// A text without which a pod would be refused: one that is not empty, or the default.
    pub fn needed_text(&self, name: &str, default: &str) -> String {
        match self.text(name, default) {
            text if text.is_empty() => default.to_owned(),
            text => text,
        }
    }

    /// A number, or the default.
    pub fn number(&self, name: &str, default: i64) -> i64 {
        match self.values.get(name) {
            Some(Given::Number(number)) => *number,
            _ => default,
        }
    }

    /// A switch, or the default.
    pub fn switch(&self, name: &str, default: bool) -> bool {
        match self.values.get(name) {
            Some(Given::Switch(on)) => *on,
            _ => default,
        }
    }
}

/// The start of an argument: one of them may be a private key.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// A whole number as Go writes it: decimal, or with a prefix for another base, and with `_` between digits.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.ends_with('_') || digits.contains("__") || digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// A switch as Go writes it.
fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[
        Flag::text("name"),
        Flag::number("count"),
        Flag::port("port"),
        Flag::switch("on"),
    ];

    /// What holds, as `name count port on`, and the problems.
    fn read(given: &[&str]) -> (String, Vec<String>) {
        let given: Vec<String> = given.iter().map(|argument| (*argument).to_owned()).collect();
        let arguments = Arguments::parse(FLAGS, &given);
        let shown = format!(
            "{} {} {} {}",
            arguments.text("name", "none"),
            arguments.number("count", 7),
            arguments.number("port", 80),
            arguments.switch("on", false),
        );
        (shown, arguments.problems().map(str::to_owned).collect())
    }

    #[test]
    fn arguments_are_read_as_go_reads_flags() {
        let cases: &[(&str, &[&str], &str)] = &[
            ("none: the defaults hold", &[], "none 7 80 false"),
            ("a dash or two", &["-name=a", "--count=1"], "a 1 80 false"),
            (
                "the value may follow",
                &["--name", "a", "-count", "-1"],
                "a -1 80 false",
            ),
            (
                "the value may start with a dash",
                &["--name", "--on"],
                "--on 7 80 false",
            ),
            ("a switch needs no value", &["--on", "--name=a"], "a 7 80 true"),
            ("a switch may have one", &["--on=T"], "none 7 80 true"),
            ("a value may contain the sign", &["--name=a=b"], "a=b 7 80 false"),
            (
                "the last one holds",
                &["--name=a", "--name=b", "--port=1", "--port=2"],
                "b 7 2 false",
            ),
            ("an empty text is one", &["--name="], " 7 80 false"),
            (
                "two dashes end the arguments",
                &["--name=a", "--"],
                "a 7 80 false",
            ),
            (
                "numbers may have a base",
                &["--count=0x1F", "--port=0b11"],
                "none 31 3 false",
            ),
            (
                "numbers may be octal",
                &["--count=017", "--port=0o17"],
                "none 15 15 false",
            ),
            (
                "numbers may have underscores",
                &["--count=+1_000", "--port=0"],
                "none 1000 80 false",
            ),
        ];
        for (name, given, expected) in cases {
            assert_eq!(read(given).0, *expected, "{name}");
        }
    }

    #[test]
    fn an_empty_text_is_none_where_one_is_needed() {
        let needed = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|argument| (*argument).to_owned()).collect();
            Arguments::parse(FLAGS, &given).needed_text("name", "none")
        };
        assert_eq!(needed(&["--name="]), "none");
        assert_eq!(needed(&["--name=a"]), "a");
        assert_eq!(needed(&[]), "none");
    }

    #[test]
    fn what_cannot_be_read_ends_the_reading_and_is_told() {
        let cases: &[(&[&str], &str, &[&str])] = &[
            (
                &["--name=a", "--nam=b", "--on"],
                "a 7 80 false",
                &[
                    "argument \"--nam=b\" is not known; known are --name, --count, --port, --on",
                    "the last 1 of the arguments are ignored",
                ],
            ),
            (
                &["--count=x"],
                "none 7 80 false",
                &["value \"x\" of --count is not a number"],
            ),
            (
                &["--count=1__0"],
                "none 7 80 false",
                &["value \"1__0\" of --count is not a number"],
            ),
            (
                &["--count=0x-1"],
                "none 7 80 false",
                &["value \"0x-1\" of --count is not a number"],
            ),
            (
                &["--count=9223372036854775808"],
                "none 7 80 false",
                &["value \"9223372036854775808\" of --count is not a number"],
            ),
            (
                &["--on=maybe"],
                "none 7 80 false",
                &["value \"maybe\" of --on is not true or false"],
            ),
            (&["--name"], "none 7 80 false", &["argument --name needs a value"]),
            (
                &["name=a"],
                "none 7 80 false",
                &["argument \"name=a\" does not start with a dash"],
            ),
            (
                &["-"],
                "none 7 80 false",
                &["argument \"-\" does not start with a dash"],
            ),
            (
                &[""],
                "none 7 80 false",
                &["argument \"\" does not start with a dash"],
            ),
            (
                &["---name=a"],
                "none 7 80 false",
                &["argument \"---name=a\" is not known; known are --name, --count, --port, --on"],
            ),
            (
                &["--", "--on"],
                "none 7 80 false",
                &["the last 1 of the arguments are ignored"],
            ),
            (
                &["--port=65536", "--on"],
                "none 7 80 true",
                &["value \"65536\" of --port is not a port, 1 to 65535; the default is used"],
            ),
        ];
        for (given, holds, problems) in cases {
            let (held, found) = read(given);
            assert_eq!(
                (held.as_str(), found.as_slice()),
                (
                    *holds,
                    &problems.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()[..]
                ),
                "{given:?}"
            );
        }
    }

    #[test]
    fn a_message_shows_the_start_of_a_long_argument_only() {
        let key = format!("-----BEGIN KEY-----{}", "x".repeat(1000));
        let (_, problems) = read(&[&key]);
        assert!(problems[0].len() < 200, "{}", problems[0]);
    }

    proptest::proptest! {
        #[test]
        fn any_arguments_are_read_without_a_panic(given: Vec<String>) {
            Arguments::parse(FLAGS, &given);
        }

        #[test]
        fn numbers_are_read_as_they_are_written(value: i64) {
            proptest::prop_assert_eq!(number(&value.to_string()), Some(value));
            if value >= 0 {
                proptest::prop_assert_eq!(number(&format!("0X{value:X}")), Some(value));
            }
        }
    }
}
