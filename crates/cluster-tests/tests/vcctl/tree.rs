//! No command without a transcript.

use crate::transcript::Transcript;
use crate::world;
use insta::assert_snapshot;
use std::path::Path;
use volcano_cli::Tool;

/// The commands below one that do something, each as it is typed.
fn leaves(shown: &str, command: &clap::Command) -> Vec<String> {
    let below: Vec<_> = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .collect();
    if below.is_empty() {
        return vec![shown.to_owned()];
    }
    below
        .iter()
        .flat_map(|command| leaves(&format!("{shown} {}", command.get_name()), command))
        .collect()
}

#[test]
fn every_command_has_a_transcript() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vcctl/snapshots");
    let mut typed = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
        typed.extend(lines.map(|line| format!("{line} ")));
    }
    let all = Tool::ALL
        .iter()
        .flat_map(|tool| leaves(tool.name(), &tool.command()));
    let missing: Vec<_> = all
        .filter(|command| !typed.iter().any(|line| line.starts_with(&format!("{command} "))))
        .collect();
    assert!(missing.is_empty(), "no snapshot has {missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_and_the_scripts_of_shells() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl version");
    script.run("vcctl completion bash");
    script.run("vcctl completion zsh");
    script.run("vcctl completion fish");
    script.run("vcctl completion csh");
    script.run("vcctl completion");
    assert_snapshot!(script.text());
}
