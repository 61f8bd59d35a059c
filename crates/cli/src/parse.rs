//! From the words of the user to a command and its flags, with the manners of Volcano's tools.
//!
//! A group of commands that is not followed by one of them shows its help, an unknown first word is an error, what
//! follows a command and is no flag is ignored, and mistakes in flags are told in the words that users of Go's tools
//! know.

use crate::go_flags::{self, Dashes};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::fmt::Write as _;

/// What the words mean.
pub enum Parsed {
    /// A command is to be run.
    Run {
        /// Its flags.
        matches: ArgMatches,
        /// Its words, without the tool's name.
        path: Vec<String>,
    },
    /// Help was asked for.
    Help(String),
    /// They mean nothing; what to tell the user.
    Wrong(String),
}

/// Reads the words after the tool's name.
pub fn parse(mut root: Command, arguments: Vec<OsString>) -> Parsed {
    root = take_any_value(root);
    root.build();
    let (path, rest) = descend(&root, &arguments);
    let Some(command) = at(&mut root, &path) else {
        return Parsed::Wrong("Error: no such command\n".to_owned());
    };
    let is_group = command.has_subcommands() && path.first().is_none_or(|word| word != "help");
    if is_group {
        return group(command, path.is_empty(), rest);
    }
    let normal = go_flags::normalise(command, Dashes::Two, rest.iter().cloned());
    let name = root.get_name().to_owned();
    let words = [name].into_iter().chain(path.iter().cloned()).map(OsString::from);
    match root.clone().try_get_matches_from(words.chain(normal)) {
        Ok(matches) => Parsed::Run { matches, path },
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Parsed::Help(error.render().to_string())
        }
        Err(error) => match at(&mut root, &path) {
            Some(command) => {
                let problem = problem(command, &error);
                Parsed::Wrong(wrong(command, &problem))
            }
            None => Parsed::Wrong(error.render().to_string()),
        },
    }
}

/// Every flag takes the word that follows it, whatever that looks like, as Go's do.
pub fn take_any_value(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let is_flag = !argument.is_positional() && argument.get_action().takes_values();
            argument.allow_hyphen_values(is_flag)
        })
        .mut_subcommands(take_any_value)
}

/// The words that name a command, and those that follow.
fn descend<'a>(root: &Command, arguments: &'a [OsString]) -> (Vec<String>, &'a [OsString]) {
    let (mut command, mut path) = (root, Vec::new());
    for word in arguments {
        let found = word.to_str().and_then(|word| command.find_subcommand(word));
        let Some(found) = found else { break };
        path.push(found.get_name().to_owned());
        command = found;
        if found.get_name() == "help" {
            break;
        }
    }
    let rest = &arguments[path.len()..];
    (path, rest)
}

fn at<'a>(root: &'a mut Command, path: &[String]) -> Option<&'a mut Command> {
    path.iter()
        .try_fold(root, |command, word| command.find_subcommand_mut(word))
}

/// A group that is not followed by one of its commands.
fn group(command: &mut Command, is_root: bool, rest: &[OsString]) -> Parsed {
    let Some(word) = rest.first().map(|word| word.to_string_lossy()) else {
        return Parsed::Help(command.render_help().to_string());
    };
    match &*word {
        "--help" => Parsed::Help(command.render_long_help().to_string()),
        "-h" => Parsed::Help(command.render_help().to_string()),
        flag if flag.starts_with('-') && flag.len() > 1 => {
            let problem = unknown(flag);
            Parsed::Wrong(wrong(command, &problem))
        }
        word if is_root => Parsed::Wrong(unknown_command(command, word)),
        _ => Parsed::Help(command.render_help().to_string()),
    }
}

fn unknown_command(command: &Command, word: &str) -> String {
    let shown = command.get_bin_name().unwrap_or(command.get_name());
    let mut text = format!("Error: unknown command {word:?} for {shown:?}\n");
    let near = command
        .get_subcommands()
        .filter(|known| !known.is_hide_set())
        .map(|known| {
            (
                strsim::damerau_levenshtein(known.get_name(), word),
                known.get_name(),
            )
        })
        .min()
        .filter(|(distance, _)| *distance <= 2);
    if let Some((_, name)) = near {
        let _ = write!(text, "\nDid you mean this?\n\t{name}\n\n");
    }
    let _ = writeln!(text, "Run '{shown} --help' for usage.");
    text
}

fn wrong(command: &mut Command, problem: &str) -> String {
    let usage = command.render_usage();
    let shown = command.get_bin_name().unwrap_or_default().to_owned();
    format!("Error: {problem}\n{usage}\n\nRun '{shown} --help' for its flags.\n")
}

/// A mistake, in the words of Go's flags.
fn problem(command: &Command, error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg);
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    match (error.kind(), argument) {
        (ErrorKind::UnknownArgument, Some(flag)) => match text(ContextKind::SuggestedArg) {
            Some(near) => format!("{} (did you mean {near}?)", unknown(&flag)),
            None => unknown(&flag),
        },
        (ErrorKind::InvalidValue | ErrorKind::TooFewValues, Some(flag)) if value.is_empty() => {
            let name = flag_name(&flag);
            format!("flag needs an argument: {name}")
        }
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Some(flag)) => {
            let name = flag_name(&flag);
            let cause = std::error::Error::source(error).map(ToString::to_string);
            let cause = cause.or_else(|| valid_values(error)).unwrap_or_default();
            match name.starts_with('-') {
                true => format!("invalid argument {value:?} for {name:?} flag: {cause}"),
                false => format!("invalid argument {value:?} for {name}: {cause}"),
            }
        }
        (ErrorKind::MissingRequiredArgument, _) => missing(command, error),
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}

/// The name in what clap shows of a flag: `--queue <QUEUE>`, `--watch[=<BOOL>]`.
fn flag_name(shown: &str) -> &str {
    let name = shown.split([' ', '=']).next().unwrap_or_default();
    name.trim_end_matches('[')
}

fn valid_values(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => Some(one_of(values)),
        _ => None,
    }
}

fn one_of(values: &[String]) -> String {
    format!("must be one of {}", values.join(", "))
}

/// What has to be given and is not, each with what it can be.
fn missing(command: &Command, error: &clap::Error) -> String {
    let Some(ContextValue::Strings(names)) = error.get(ContextKind::InvalidArg) else {
        return "an argument is missing".to_owned();
    };
    let parts = names.iter().map(|name| {
        let known = command
            .get_arguments()
            .find(|argument| argument.to_string() == *name);
        let values = known.map(clap::Arg::get_possible_values).unwrap_or_default();
        let values: Vec<_> = values.iter().map(|value| value.get_name().to_owned()).collect();
        match values.is_empty() {
            true => format!("missing argument {name}"),
            false => format!("missing argument {name}: {}", one_of(&values)),
        }
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn unknown(flag: &str) -> String {
    if let Some(name) = flag.strip_prefix("--") {
        let name = name.split('=').next().unwrap_or_default();
        return format!("unknown flag: --{name}");
    }
    let letter = flag.trim_start_matches('-').chars().next().unwrap_or('-');
    format!("unknown shorthand flag: '{letter}' in {flag}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;

    fn parsed(tool: Tool, words: &[&str]) -> Parsed {
        let command = tool.command().bin_name(tool.name());
        parse(command, words.iter().map(OsString::from).collect())
    }

    fn wrong(tool: Tool, words: &[&str]) -> String {
        match parsed(tool, words) {
            Parsed::Wrong(text) => text.lines().next().unwrap().to_owned(),
            Parsed::Help(_) => panic!("{words:?} is no question for help"),
            Parsed::Run { path, .. } => panic!("{words:?} runs {path:?}"),
        }
    }

    fn help(tool: Tool, words: &[&str]) -> String {
        match parsed(tool, words) {
            Parsed::Help(text) => text,
            Parsed::Wrong(text) => panic!("{words:?}: {text}"),
            Parsed::Run { path, .. } => panic!("{words:?} runs {path:?}"),
        }
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_go() {
        let cases: [(&[&str], &str); 11] = [
            (
                &["completion"],
                "Error: missing argument <SHELL>: must be one of bash, zsh, fish",
            ),
            (
                &["completion", "csh"],
                "Error: invalid argument \"csh\" for <SHELL>: must be one of bash, zsh, fish",
            ),
            (
                &["job", "list", "--watch=maybe"],
                "Error: invalid argument \"maybe\" for \"--watch\" flag: not a truth value such as true or false",
            ),
            (&["jop"], "Error: unknown command \"jop\" for \"vcctl\""),
            (&["--what"], "Error: unknown flag: --what"),
            (
                &["job", "list", "--what"],
                "Error: unknown flag: --what (did you mean --watch?)",
            ),
            (&["job", "list", "--zzz=1"], "Error: unknown flag: --zzz"),
            (&["job", "list", "-x"], "Error: unknown shorthand flag: 'x' in -x"),
            (
                &["job", "list", "--queue"],
                "Error: flag needs an argument: --queue",
            ),
            (
                &["job", "run", "--min", "x"],
                "Error: invalid argument \"x\" for \"--min\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
            ),
            (
                &["job", "list", "-o", "xml"],
                "Error: invalid argument \"xml\" for \"--output\" flag: must be one of json, yaml, name, wide",
            ),
        ];
        for (words, expected) in cases {
            assert_eq!(wrong(Tool::Vcctl, words), expected, "{words:?}");
        }
    }

    #[test]
    fn switches_take_a_value_after_the_sign_alone() {
        let cases: [(&[&str], &str, bool); 10] = [
            (&["job", "list", "--watch"], "watch", true),
            (&["job", "list", "-w"], "watch", true),
            (&["job", "list", "-Aw"], "watch", true),
            (&["job", "list", "-wA"], "all_namespaces", true),
            (&["job", "list", "--watch=true"], "watch", true),
            (&["job", "list", "-w=false"], "watch", false),
            (&["job", "list"], "watch", false),
            (&["job", "run", "--wait=true"], "wait", true),
            (&["job", "logs", "j", "--follow=true"], "follow", true),
            (&["job", "logs", "-f", "j", "--timestamps=1"], "timestamps", true),
        ];
        for (words, id, expected) in cases {
            let Parsed::Run { matches, .. } = parsed(Tool::Vcctl, words) else {
                panic!("{words:?} is a command");
            };
            let (_, group) = matches.subcommand().unwrap();
            let (_, leaf) = group.subcommand().unwrap();
            assert_eq!(leaf.get_one::<bool>(id), Some(&expected), "{words:?}");
        }
    }

    #[test]
    fn the_version_takes_the_flags_of_every_command() {
        let words = [
            "version",
            "-s",
            "http://x",
            "-k",
            "/k",
            "--master=y",
            "--kubeconfig",
            "z",
        ];
        assert!(matches!(parsed(Tool::Vcctl, &words), Parsed::Run { .. }));
    }

    #[test]
    fn groups_show_their_help() {
        for words in [
            &["job"] as &[&str],
            &["job", "what"],
            &["job", "-h"],
            &["job", "--help"],
        ] {
            let text = help(Tool::Vcctl, words);
            assert!(text.contains("Usage: vcctl job"), "{words:?}: {text}");
        }
        assert!(help(Tool::Vcctl, &[]).contains("Usage: vcctl"));
        assert!(help(Tool::Vcctl, &["help", "job", "run"]).contains("Usage: vcctl job run"));
        assert!(help(Tool::Vjobs, &["--help"]).contains("Usage: vjobs"));
    }

    #[test]
    fn flags_are_taken_as_go_takes_them() {
        let cases: [(&[&str], &str, &str); 6] = [
            (&["job", "list", "--queue=q"], "queue", "q"),
            (&["job", "list", "-qq"], "queue", "q"),
            (&["job", "list", "-q", "-x", "ignored"], "queue", "-x"),
            (&["job", "list", "-q", "a", "-q", "b"], "queue", "b"),
            (
                &["job", "list", "--queue", "--all-namespaces"],
                "queue",
                "--all-namespaces",
            ),
            (
                &["job", "list", "--all_namespaces=false", "words", "that", "are"],
                "queue",
                "",
            ),
        ];
        for (words, id, expected) in cases {
            let Parsed::Run { matches, path } = parsed(Tool::Vcctl, words) else {
                panic!("{words:?} is a command");
            };
            assert_eq!(path, ["job", "list"]);
            let (_, group) = matches.subcommand().unwrap();
            let (_, list) = group.subcommand().unwrap();
            assert_eq!(list.get_one::<String>(id).unwrap(), expected, "{words:?}");
        }
    }
}
