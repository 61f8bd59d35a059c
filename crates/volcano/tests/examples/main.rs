//! The examples: their manifests are what the API takes, their descriptions are complete, and they run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod documentation;
#[path = "../support/machine.rs"]
mod machine;
mod manifests;
mod readmes;
mod runs;
mod scenarios;
mod taken;

use std::path::{Path, PathBuf};

/// The folder of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

/// The folders of the examples.
fn folders() -> Vec<PathBuf> {
    let mut found = entries(&examples());
    found.retain(|path| path.is_dir());
    found
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
