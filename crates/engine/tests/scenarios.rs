//! Scheduling scenarios: `tests/scenarios/*.txt`, one test per file. The language is described in
//! `volcano_testkit::scenario`; with `UPDATE=1` in the environment expected parts are rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use volcano_testkit::scenario;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn check(file: &str) {
    let outcome = scenario::check_file(&folder().join(format!("{file}.txt")));
    assert!(
        outcome.is_ok(),
        "{}",
        outcome.as_ref().err().map_or("", String::as_str)
    );
    println!("{file}: {} scenarios", outcome.unwrap_or_default());
}

/// One test per file, and the list of them.
macro_rules! files {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        const FILES: &[&str] = &[$(stringify!($name)),*];
    };
}

files! {
    affinity, allocate, backfill, binpack, broken, capacity, classes, conformance, drf, enqueue, gang, hierarchy, messages,
    nodeorder, overcommit, pdb, predicates, preempt, priority, proportion, reclaim, schedulers, sla, subgroups, volumes, writes,
}

#[test]
fn every_file_is_run() {
    let there: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("a readable entry").path())
        .map(|path| {
            path.file_stem()
                .expect("a file has a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let listed: BTreeSet<String> = FILES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(there, listed);
}

#[test]
fn every_scenario_has_a_name_of_its_own() {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for file in FILES {
        let text = std::fs::read_to_string(folder().join(format!("{file}.txt"))).expect("a readable file");
        for name in scenario::names(&text) {
            if let Some(other) = seen.insert(name.clone(), file) {
                panic!("{file} and {other} both have: {name}");
            }
        }
    }
    println!("{} scenarios in {} files", seen.len(), FILES.len());
}
