//! What can follow on a command line: asked by the scripts of `vcctl completion`, and by kubectl.
//!
//! ```text
//! shell ─> TOOL __complete WORDS… ─> commands, flags, or names that the cluster has
//! ```
//!
//! What a flag's value is follows from its name in the help (`JOB`, `QUEUE`, …). The cluster is asked for a moment only:
//! a shell that waits is worse than one that offers nothing.

use crate::Tool;
use crate::api::{Api, Meta, Scope};
use crate::args::{ConnectArgs, DEFAULT_NAMESPACE};
use crate::output::Out;
use clap::{Arg, Command};
use serde::Deserialize;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use volcano_api::names::{Kind, kinds};

/// The hidden word that asks.
pub const HIDDEN: &str = "__complete";
/// How long the cluster may take to answer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Names that are offered at most.
const MOST: usize = 1000;

const NAMESPACE: Kind = Kind {
    kind: "Namespace",
    plural: "namespaces",
    namespaced: false,
    ..kinds::POD
};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Our own scripts: one candidate per line.
    Shell,
    /// kubectl: candidates, then a line with what to do about files.
    Kubectl,
}

/// What can stand at the place of the last word.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// Words that are known, each with what it does.
    Words(Vec<(String, String)>),
    /// Names of objects.
    Names(Kind),
    /// Contexts of the kubeconfig.
    Contexts,
    /// Files, which the shell knows best.
    Files,
}

/// Answers, on standard output.
pub fn answer(tool: Tool, words: &[OsString], style: Style) -> ExitCode {
    let words: Vec<String> = joined(words.iter().map(|word| word.to_string_lossy().into_owned()));
    let mut command = tool.command();
    command.build();
    let asked = Asked::of(&command, &words);
    let candidates = match asked.wanted {
        Wanted::Words(words) => words,
        Wanted::Files => Vec::new(),
        Wanted::Names(kind) => plain(names(kind, &asked.settings)),
        Wanted::Contexts => plain(contexts(&asked.settings)),
    };
    let mut out = Out::standard();
    for (word, about) in candidates {
        if word.starts_with(&asked.start) {
            let _ = writeln!(out, "{}{word}\t{about}", asked.before);
        }
    }
    if style == Style::Kubectl {
        // Cobra's directives: 4 for no files, 0 for whatever the shell does.
        let _ = writeln!(out, ":{}", if asked.is_file { 0 } else { 4 });
    }
    let _ = out.flush();
    ExitCode::SUCCESS
}

/// Bash takes `--flag=value` for three words.
fn joined(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut glue = false;
    for word in words {
        let is_sign = word == "=" && joined.last().is_some_and(|last| last.starts_with("--"));
        match joined.last_mut() {
            Some(last) if is_sign || glue => last.push_str(&word),
            _ => joined.push(word),
        }
        glue = is_sign;
    }
    joined
}

fn plain(names: Vec<String>) -> Vec<(String, String)> {
    names.into_iter().map(|name| (name, String::new())).collect()
}

/// A question.
struct Asked {
    wanted: Wanted,
    is_file: bool,
    /// What the word begins with.
    start: String,
    /// What stands before it in the same word: `--flag=`.
    before: String,
    settings: Settings,
}

/// Flags that are given already and that say where to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    master: String,
    kubeconfig: String,
    context: String,
    namespace: Option<String>,
}

impl Asked {
    fn of(root: &Command, words: &[String]) -> Self {
        let (last, before) = match words.split_last() {
            Some((last, before)) => (last.clone(), before),
            None => (String::new(), words),
        };
        let mut command = root;
        let mut group = "";
        let mut settings = Settings::default();
        let mut open: Option<&Arg> = None;
        for word in before {
            if let Some(flag) = open.take() {
                settings.note(flag, word);
            } else if let Some((flag, value)) = flag_of(command, word) {
                match value {
                    Some(value) => settings.note(flag, value),
                    None if takes_word(flag) => open = Some(flag),
                    None => {}
                }
            } else if let Some(found) = command.find_subcommand(word) {
                group = command.get_name();
                command = found;
            }
        }
        let (wanted, start, prefix) = match (open, flag_of(command, &last)) {
            (Some(flag), _) => (value_of(flag, group), last, String::new()),
            (None, Some((flag, Some(value)))) if last.starts_with("--") => {
                let prefix = last[..last.len() - value.len()].to_owned();
                (value_of(flag, group), value.to_owned(), prefix)
            }
            _ if last.starts_with('-') => (Wanted::Words(flags(command)), last, String::new()),
            _ => (positional(command), last, String::new()),
        };
        Asked {
            is_file: wanted == Wanted::Files,
            wanted,
            start,
            before: prefix,
            settings,
        }
    }
}

impl Settings {
    fn note(&mut self, flag: &Arg, value: &str) {
        let field = match flag.get_long() {
            Some("master") => &mut self.master,
            Some("kubeconfig") => &mut self.kubeconfig,
            Some("context") => &mut self.context,
            Some("namespace") => self.namespace.get_or_insert_default(),
            _ => return,
        };
        value.clone_into(field);
    }

    fn connect(&self) -> ConnectArgs {
        ConnectArgs {
            master: self.master.clone(),
            kubeconfig: self.kubeconfig.clone().into(),
            context: self.context.clone(),
        }
    }
}

/// The flag that a word is, and the value in it.
fn flag_of<'a, 'w>(command: &'a Command, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
    let find = |is: &dyn Fn(&Arg) -> bool| command.get_arguments().find(|argument| is(argument));
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let name = name.replace('_', "-");
        return find(&|argument| argument.get_long() == Some(&name)).map(|flag| (flag, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let flag = find(&|argument| argument.get_short() == Some(letter))?;
    let rest = letters.as_str();
    Some((flag, Some(rest).filter(|rest| !rest.is_empty())))
}

/// Whether the next word is the flag's value.
fn takes_word(flag: &Arg) -> bool {
    flag.get_action().takes_values() && !flag.is_require_equals_set()
}

/// What a value is.
fn value_of(flag: &Arg, group: &str) -> Wanted {
    let possible = flag.get_possible_values();
    if !possible.is_empty() {
        let about =
            |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
        let words = possible
            .iter()
            .map(|value| (value.get_name().to_owned(), about(value.get_help())));
        return Wanted::Words(words.collect());
    }
    let name = flag
        .get_value_names()
        .and_then(|names| names.first())
        .map_or("", |name| name.as_str());
    match (name, group) {
        ("JOB", _) => Wanted::Names(kinds::JOB),
        ("QUEUE", _) => Wanted::Names(kinds::QUEUE),
        ("PODGROUP", _) => Wanted::Names(kinds::POD_GROUP),
        ("NAMESPACE", _) => Wanted::Names(NAMESPACE),
        ("NAME", "jobflow") => Wanted::Names(kinds::JOB_FLOW),
        ("NAME", "jobtemplate") => Wanted::Names(kinds::JOB_TEMPLATE),
        ("CONTEXT", _) => Wanted::Contexts,
        ("FILE", _) => Wanted::Files,
        ("ACTION", _) => Wanted::Words(plain(["open", "close", "update"].map(str::to_owned).into())),
        _ => Wanted::Words(Vec::new()),
    }
}

/// Commands, or what a command takes besides flags.
fn positional(command: &Command) -> Wanted {
    if command.has_subcommands() {
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
        return Wanted::Words(shown.map(|c| (c.get_name().to_owned(), about(c))).collect());
    }
    let mut positionals = command
        .get_positionals()
        .filter(|argument| !argument.is_hide_set());
    match positionals.next() {
        Some(argument) => value_of(argument, ""),
        None => Wanted::Words(Vec::new()),
    }
}

fn flags(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let named = shown.filter_map(|argument| {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        Some((format!("--{}", argument.get_long()?), help))
    });
    named.collect()
}

#[derive(Deserialize)]
struct Named {
    metadata: Meta,
}

/// The names that there are. None when the cluster does not answer at once.
fn names(kind: Kind, settings: &Settings) -> Vec<String> {
    let namespace = settings.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let scope = Scope::new(kind, if kind.namespaced { namespace } else { "" });
    let mut names = Vec::new();
    let asked = crate::block_on(async {
        let ask = async {
            let api = Api::connect(&settings.connect()).await?;
            let mut pages = api.pages::<Named>(scope, None);
            while let Ok(Some(page)) = pages.next().await {
                names.extend(page.into_iter().map(|item| item.metadata.name));
                if names.len() >= MOST {
                    break;
                }
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, ask).await.unwrap_or(Ok(()))
    });
    // Whatever has come is offered; a failure has no place to be told.
    drop(asked);
    names
}

fn contexts(settings: &Settings) -> Vec<String> {
    volcano_runtime::client::contexts(&settings.connect().options())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: Tool, words: &[&str]) -> Asked {
        let mut command = tool.command();
        command.build();
        let words = joined(words.iter().map(|word| (*word).to_owned()));
        Asked::of(&command, &words)
    }

    fn words(tool: Tool, given: &[&str]) -> Vec<String> {
        let asked = asked(tool, given);
        match asked.wanted {
            Wanted::Words(words) => words
                .into_iter()
                .map(|(word, _)| word)
                .filter(|word| word.starts_with(&asked.start))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_and_flags_are_offered() {
        assert_eq!(words(Tool::Vcctl, &["jobf"]), ["jobflow"]);
        assert_eq!(
            words(Tool::Vcctl, &["queue", ""]),
            ["create", "delete", "operate", "list", "get"]
        );
        assert_eq!(words(Tool::Vcctl, &["job", "list", "--sel"]), ["--selector"]);
        assert_eq!(
            words(Tool::Vcctl, &["job", "list", "-o", ""]),
            ["json", "yaml", "name", "wide"]
        );
        assert_eq!(words(Tool::Vcctl, &["completion", ""]), ["bash", "zsh", "fish"]);
        assert_eq!(words(Tool::Vcctl, &["queue", "operate", "-a", "c"]), ["close"]);
    }

    #[test]
    fn names_are_of_the_kind_that_the_flag_is_for() {
        let cases: [(Tool, &[&str], Kind); 8] = [
            (Tool::Vcctl, &["job", "view", "-N", ""], kinds::JOB),
            (Tool::Vcctl, &["job", "logs", ""], kinds::JOB),
            (Tool::Vcctl, &["job", "list", "--queue", "r"], kinds::QUEUE),
            (Tool::Vcctl, &["queue", "get", "--name", "="], kinds::QUEUE),
            (Tool::Vcctl, &["jobflow", "get", "-N", ""], kinds::JOB_FLOW),
            (
                Tool::Vcctl,
                &["jobtemplate", "get", "--name", ""],
                kinds::JOB_TEMPLATE,
            ),
            (Tool::Vcctl, &["podgroup", "view", "-N", ""], kinds::POD_GROUP),
            (Tool::Vcancel, &["-N", "ns", "-n", ""], kinds::JOB),
        ];
        for (tool, given, kind) in cases {
            assert_eq!(asked(tool, given).wanted, Wanted::Names(kind), "{given:?}");
        }
        assert_eq!(
            asked(Tool::Vcctl, &["job", "run", "-f", ""]).wanted,
            Wanted::Files
        );
    }

    #[test]
    fn flags_that_are_given_say_where_to_ask() {
        let asked = asked(
            Tool::Vcancel,
            &[
                "-N",
                "ns",
                "--kubeconfig",
                "=",
                "/k",
                "-s",
                "http://x",
                "-n",
                "tr",
            ],
        );
        let expected = Settings {
            master: "http://x".to_owned(),
            kubeconfig: "/k".to_owned(),
            context: String::new(),
            namespace: Some("ns".to_owned()),
        };
        assert_eq!((asked.settings, asked.start.as_str()), (expected, "tr"));
    }
}
