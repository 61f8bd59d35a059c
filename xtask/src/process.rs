//! Running cargo: found as cargo itself says, from the root of the workspace, each command printed before it runs.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// A cargo command: its arguments, and the variables that it needs.
pub struct Cargo {
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Cargo {
    /// A command from the words of its command line.
    pub fn new<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        Cargo {
            arguments,
            variables: Vec::new(),
        }
    }

    /// Sets a variable, unless it is set already.
    pub fn default_variable(mut self, name: &'static str, value: &str) -> Self {
        if env::var_os(name).is_none() {
            self.variables.push((name, value.to_owned()));
        }
        self
    }

    /// The command as one would type it.
    pub fn line(&self) -> String {
        let quote = |text: &str| {
            if text.contains(' ') {
                format!("{text:?}")
            } else {
                text.to_owned()
            }
        };
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={}", quote(value)));
        let words = std::iter::once("cargo".to_owned()).chain(self.arguments.iter().map(|word| quote(word)));
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let mut command = volcano_testcluster::cargo();
        command.args(&self.arguments).current_dir(workspace_root());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When it cannot be started or does not end well.
    pub fn run(&self) -> anyhow::Result<()> {
        let status = self.command().status().context("starting cargo")?;
        if !status.success() {
            bail!("`{}` failed with {status}", self.line());
        }
        Ok(())
    }

    /// Runs the command and hands on each line of its standard output while printing it.
    ///
    /// # Errors
    /// When it cannot be started, its output cannot be read, or it does not end well.
    pub fn run_watching(&self, mut watch: impl FnMut(&str)) -> anyhow::Result<()> {
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .context("starting cargo")?;
        let output = child.stdout.take().context("the output is piped")?;
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("reading the output of cargo")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            watch(&line);
        }
        let status = child.wait().context("waiting for cargo")?;
        if !status.success() {
            bail!("`{}` failed with {status}", self.line());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_as_one_would_type_it() {
        let command = Cargo {
            arguments: vec!["doc".into(), "--no-deps".into()],
            variables: vec![("RUSTDOCFLAGS", "-D warnings".into())],
        };
        assert_eq!(
            command.line(),
            r#"RUSTDOCFLAGS="-D warnings" cargo doc --no-deps"#
        );
    }

    #[test]
    fn the_root_is_the_folder_of_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }
}
