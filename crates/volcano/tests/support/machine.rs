//! What tests need of the machine: root, and programs of Debian's packages. What cannot be had is said; where everything is to
//! be tested, it is a failure.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use volcano_testcluster::nodes::{Packages, ensure_program};

/// Whether pods have files, names and networks of their own here, and these programs, each with its package. They are
/// installed if that is wished.
pub fn can_run(programs: &[(&str, &str)]) -> bool {
    let why = missing(programs);
    if let Some(why) = &why {
        not_run(why);
    }
    why.is_none()
}

fn missing(programs: &[(&str, &str)]) -> Option<String> {
    let user = Path::new("/proc/self").metadata();
    if !user.is_ok_and(|process| process.uid() == 0) {
        return Some("files, names and networks of pods need root".to_owned());
    }
    let packages = Packages::from_environment();
    let failed = |(program, package): &(&str, &str)| ensure_program(program, package, packages).err();
    let error = programs.iter().find_map(failed)?;
    Some(format!("{error:#}"))
}

/// Says why it cannot be done here; where everything is to be tested, that is a failure.
pub fn not_run(why: &str) {
    let required = std::env::var("VOLCANO_CLUSTER_TESTS").is_ok_and(|value| value == "required");
    assert!(!required, "{why}");
    eprintln!("NOT RUN: {why}");
}
