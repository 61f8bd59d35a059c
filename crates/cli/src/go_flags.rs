//! Command lines as Go programs take them, made into what clap takes.
//!
//! Charts, manifests and scripts that start Volcano's programs are written for Go's flags: `--log_dir` and `--log-dir`
//! are the same, a switch takes its value only after `=`, a flag takes what follows whatever it looks like, the last of
//! several counts, and what is no flag is ignored (the charts end every list with a literal `2>&1`). The servers take
//! `-logtostderr` for `--logtostderr`; the tools of the command line do not, since there one dash is for letters.

use clap::Command;
use std::ffi::OsString;
use std::time::Duration;
use volcano_api::time::GoDuration;
use volcano_runtime::gates;

/// Flags whose value has this name may stand alone, and take a value only after `=`.
pub const BOOL: &str = "BOOL";

/// How many dashes a long flag may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dashes {
    /// One or two.
    Any,
    /// Two; after one come letters.
    Two,
}

/// Rewrites arguments; those of the program itself are not among them.
pub fn normalise(
    command: &Command,
    dashes: Dashes,
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut rest = arguments.into_iter();
    let mut normal = Vec::new();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            normal.push(argument);
            normal.extend(rest);
            return normal;
        }
        let Some((flag, value)) = argument
            .to_str()
            .and_then(|text| long_flag(command, dashes, text))
        else {
            normal.push(argument);
            continue;
        };
        let mut text = OsString::from(format!("--{}", flag.name));
        let value = match (value, flag.value) {
            (Some(value), _) => Some(OsString::from(value)),
            (None, Value::None) => None,
            (None, Value::Bool) => Some("true".into()),
            // What follows is the value, whatever it looks like.
            (None, Value::Any) => rest.next(),
        };
        if let Some(value) = value {
            text.push("=");
            text.push(value);
        }
        normal.push(text);
    }
    normal
}

struct Flag {
    name: String,
    value: Value,
}

enum Value {
    None,
    /// Only after `=`; true without.
    Bool,
    Any,
}

/// The flag that an argument is, if it is one of the command's long flags, and the value after `=`.
fn long_flag<'a>(command: &Command, dashes: Dashes, argument: &'a str) -> Option<(Flag, Option<&'a str>)> {
    let name = argument.strip_prefix("--").or_else(|| {
        // One letter is a short flag.
        let name = argument.strip_prefix('-')?;
        (dashes == Dashes::Any && name.split('=').next()?.len() > 1).then_some(name)
    })?;
    let (name, value) = match name.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (name, None),
    };
    let name = name.replace('_', "-");
    let found = command
        .get_arguments()
        .find(|known| known.get_long() == Some(&name))?;
    let is_bool = |names: &[clap::builder::Str]| names.iter().any(|name| name == BOOL);
    let kind = if !found.get_action().takes_values() {
        Value::None
    } else if found.get_value_names().is_some_and(is_bool) {
        Value::Bool
    } else {
        Value::Any
    };
    Some((Flag { name, value: kind }, value))
}

/// A truth value in Go's spelling.
///
/// # Errors
/// When it is none.
pub fn boolean(text: &str) -> Result<bool, String> {
    gates::go_bool(text).ok_or_else(|| "not a truth value such as true or false".to_owned())
}

/// A duration in Go's spelling, not a negative one.
///
/// # Errors
/// When it is none.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed =
        GoDuration::parse(text).map_err(|error| format!("{error}; write one such as 1s, 500ms or 1m30s"))?;
    parsed
        .to_std()
        .ok_or_else(|| "a duration must not be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn command() -> Command {
        Command::new("x").args([
            Arg::new("log-dir").long("log-dir"),
            Arg::new("v").long("v").short('v'),
            Arg::new("on").long("on").value_name(BOOL),
            Arg::new("help").long("help").action(ArgAction::Help),
        ])
    }

    #[test]
    fn arguments_in_go_style_become_those_of_clap() {
        let cases: [(&[&str], &[&str]); 11] = [
            (&["--log_dir=/tmp/a_b"], &["--log-dir=/tmp/a_b"]),
            (&["--log_dir", "/tmp"], &["--log-dir=/tmp"]),
            (&["-log_dir", "-x"], &["--log-dir=-x"]),
            (&["-v=3"], &["-v=3"]),
            (&["-v", "3", "-v3"], &["-v", "3", "-v3"]),
            (&["--v", "-3"], &["--v=-3"]),
            (&["-on", "false"], &["--on=true", "false"]),
            (&["--on=false", "2>&1"], &["--on=false", "2>&1"]),
            (&["--help", "x"], &["--help", "x"]),
            (
                &["--unknown_flag=1", "-unknown"],
                &["--unknown_flag=1", "-unknown"],
            ),
            (&["--", "--log_dir=1"], &["--", "--log_dir=1"]),
        ];
        for (given, expected) in cases {
            let given = given.iter().map(OsString::from);
            let expected: Vec<_> = expected.iter().map(OsString::from).collect();
            assert_eq!(normalise(&command(), Dashes::Any, given), expected);
        }
    }

    #[test]
    fn one_dash_is_for_letters_in_the_tools() {
        let given = ["-log_dir=/tmp", "--log_dir", "-x", "--on"].map(OsString::from);
        let expected = ["-log_dir=/tmp", "--log-dir=-x", "--on=true"].map(OsString::from);
        assert_eq!(normalise(&command(), Dashes::Two, given), expected);
    }

    #[test]
    fn durations_and_truth_values_are_those_of_go() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["5", "-1s", "", "1 s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!((boolean("T"), boolean("0")), (Ok(true), Ok(false)));
        assert!(boolean("yes").is_err());
    }
}
