//! An image of Debian with packages: for programs that are more than one file.
//!
//! Packages come from the mirror that this machine is set up with. One image has all of them, as most of the time goes
//! into what any such image starts with.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::{Config, mpi, run};

/// What pods use.
const PACKAGES: [&str; 5] = [
    "openmpi-bin",
    "openssh-server",
    "openssh-client",
    "hostname",
    "python3",
];
/// Where the program of the MPI example is.
const HELLO: &str = "usr/local/bin";
/// What containers have no use for.
const NEEDLESS: [&str; 6] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/cache/apt",
    "var/lib/apt/lists",
];

/// A mirror and the release that this machine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    address: String,
    release: String,
}

/// Everything that decides what is in the image.
pub fn recipe() -> anyhow::Result<Vec<u8>> {
    let release = release()?;
    let parts = [&release, &PACKAGES.join(" "), mpi::SOURCE, &NEEDLESS.join(" ")];
    Ok(parts.join("\n").into_bytes())
}

/// Makes it.
pub fn make(workshop: &Path, rootfs: &Path) -> anyhow::Result<Config> {
    let mirror = mirror()?;
    run(Command::new("debootstrap")
        .args(["--variant=minbase", &format!("--include={}", PACKAGES.join(","))])
        .arg(&mirror.release)
        .arg(rootfs)
        .arg(&mirror.address)
        .env("DEBIAN_FRONTEND", "noninteractive"))?;
    mpi::compile(workshop, rootfs, &rootfs.join(HELLO).join(mpi::PROGRAM))?;
    for path in NEEDLESS {
        let path = rootfs.join(path);
        fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(Config {
        entrypoint: Vec::new(),
        command: vec!["/bin/sh".to_owned()],
    })
}

/// The code name of the release that this machine runs.
fn release() -> anyhow::Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = line.context("/etc/os-release has no VERSION_CODENAME")?;
    Ok(name.trim_matches('"').to_owned())
}

/// The mirror that apt is set up with.
fn mirror() -> anyhow::Result<Mirror> {
    let release = release()?;
    let targets = run(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Identifier: Packages",
    ]))?;
    let address = mirror_of(&targets, &release);
    let address = address.with_context(|| format!("apt has no mirror for {release} main"))?;
    Ok(Mirror { address, release })
}

/// The address of the first target that is the main part of the release itself.
fn mirror_of(targets: &str, release: &str) -> Option<String> {
    let mut lines = targets
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.len() == 3 && words[1] == release && words[2] == "main")?;
    Some(found[0].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_release_itself() {
        let targets = "https://example.com/tools/ stable main\n\
            http://mirror.example/security/ bookworm-security main\n\
            http://mirror.example/debian/ bookworm contrib\n\
            http://mirror.example/debian/ bookworm main\n";
        let address = mirror_of(targets, "bookworm").unwrap();
        assert_eq!(address, "http://mirror.example/debian/");
        assert_eq!(mirror_of(targets, "trixie"), None);
    }
}
