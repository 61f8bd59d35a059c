//! The purity rule: the crates that decide take values and return values, and nothing else.
//!
//! Replay, simulation, property tests and what-if are plain function calls only as long as no clock, random number,
//! file, variable, thread or socket can reach a decision. Two checks keep it so: of what the pure crates depend on
//! (`graph`), and of what their own code names (`source`).

mod graph;
mod source;
mod tokens;

use std::path::Path;

use anyhow::{Context as _, bail};
use cargo_metadata::MetadataCommand;

/// The crates that must stay pure, and their folders.
const PURE: [(&str, &str); 5] = [
    ("volcano-admission", "crates/admission"),
    ("volcano-api", "crates/api"),
    ("volcano-engine", "crates/engine"),
    ("volcano-plan", "crates/plan"),
    ("volcano-reconcile", "crates/reconcile"),
];

/// Checks the pure crates of the workspace.
///
/// # Errors
/// When a crate cannot be read, or when something impure is found; everything found is printed.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .context("reading the dependency graph")?;
    let graph = graph::Graph::new(&metadata)?;
    let mut found = Vec::new();
    for (name, folder) in PURE {
        let closure = graph.closure(name)?;
        found.extend(graph.impure(&closure));
        let files = source::read_crate(&root.join(folder).join("src"))?;
        for (path, text) in &files {
            let shown = path.strip_prefix(root).unwrap_or(path).display();
            let uses = source::impure(text).into_iter();
            found.extend(uses.map(|(line, what)| format!("{shown}:{line}: {what}")));
        }
        println!(
            "{name}: {} crates below it, {} files",
            closure.len() - 1,
            files.len()
        );
    }
    for what in &found {
        println!("{what}");
    }
    if !found.is_empty() {
        bail!("{} impure uses in crates that must be pure", found.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::process::workspace_root;

    #[test]
    fn the_pure_crates_of_this_workspace_are_pure() {
        super::run(&workspace_root()).unwrap();
    }
}
