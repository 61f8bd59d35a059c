//! `volcano man`: the manual, a page for each command, made from the command lines themselves.

use crate::failure::Failure;
use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use volcano_cli::Tool;

/// Write the manual: a page for each command
///
/// Read one with `man ./vcctl-job-run.1`, or install all: `volcano man --output /usr/local/share/man/man1`.
#[derive(Clone, Debug, clap::Args)]
pub struct ManArgs {
    /// The folder for the pages, made if it is not there
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// Runs the command; `volcano` is the whole command line.
///
/// # Errors
/// When a page cannot be written.
pub fn run(args: &ManArgs, volcano: clap::Command) -> Result<ExitCode, Failure> {
    let wrong = |path: &Path, error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&args.output).map_err(|error| wrong(&args.output, error))?;
    let mut count = 0;
    for (name, command) in pages(volcano) {
        let path = args.output.join(format!("{name}.1"));
        let mut page = Vec::new();
        Man::new(command)
            .title(name.to_uppercase())
            .render(&mut page)
            .and_then(|()| std::fs::write(&path, page))
            .map_err(|error| wrong(&path, error))?;
        count += 1;
    }
    super::print(&format!("{count} pages in {}\n", args.output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Every command with the name of its page. The tools are pages of their own, not parts of `volcano`.
fn pages(volcano: clap::Command) -> Vec<(String, clap::Command)> {
    let mut pages = Vec::new();
    add("", volcano, &mut pages);
    for tool in Tool::ALL {
        add("", tool.command(), &mut pages);
    }
    pages
}

fn add(before: &str, mut command: clap::Command, pages: &mut Vec<(String, clap::Command)>) {
    let name = match before {
        "" => command.get_name().to_owned(),
        before => format!("{before}-{}", command.get_name()),
    };
    if before.is_empty() {
        command.build();
    }
    let is_own = |command: &&clap::Command| {
        let name = command.get_name();
        !command.is_hide_set() && name != "help" && Tool::named(name).is_none()
    };
    let below: Vec<_> = command.get_subcommands().filter(is_own).cloned().collect();
    for part in below {
        add(&name, part, pages);
    }
    pages.push((name, command));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs {
            output: folder.path().join("man1"),
        };
        run(&args, crate::command()).unwrap();
        for name in [
            "volcano",
            "volcano-plan",
            "vcctl",
            "vcctl-job-run",
            "vcctl-top",
            "vsub",
        ] {
            let page = std::fs::read_to_string(args.output.join(format!("{name}.1"))).unwrap();
            assert!(page.contains(&format!(".TH {}", name.to_uppercase())), "{page}");
        }
        let page = std::fs::read_to_string(args.output.join("vcctl-job-run.1")).unwrap();
        assert!(page.contains("replicas"), "{page}");
    }
}
