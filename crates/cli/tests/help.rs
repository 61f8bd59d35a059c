//! The whole help tree as one golden file: every command, flag, letter and default.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use volcano_cli::Tool;

fn add(text: &mut String, command: &mut clap::Command) {
    let shown = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.clone().term_width(100).render_long_help();
    writeln!(text, "{:=<100}\n$ {shown} --help\n\n{help}", "").unwrap();
    let names: Vec<_> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect();
    for name in names.iter().filter(|name| *name != "help") {
        add(text, command.find_subcommand_mut(name).unwrap());
    }
}

#[test]
fn the_help_of_everything() {
    let mut text = String::new();
    for tool in Tool::ALL {
        let mut command = tool.command().bin_name(tool.name());
        command.build();
        add(&mut text, &mut command);
    }
    let trimmed: Vec<_> = text.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(trimmed.join("\n"));
}

#[test]
fn the_command_lines_are_consistent() {
    for tool in Tool::ALL {
        tool.command().debug_assert();
    }
}
