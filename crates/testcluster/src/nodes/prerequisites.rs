//! What real nodes need of the machine: root, and packages of Debian.
//!
//! Nothing is installed unless somebody asked for it: with a flag, or with a variable where nobody can be asked.

use std::env;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::binaries;

/// Variable that lets packages be installed without a flag, for machines that nobody sits at.
pub const PACKAGES_VARIABLE: &str = "VOLCANO_CLUSTER_PACKAGES";
/// The value of the variable that does so.
pub const INSTALL: &str = "install";

/// Packages, each with what it is for in its line.
const PACKAGES: [&str; 9] = [
    "containerd",                  // starts containers, and has ctr
    "runc",                        // is what it starts them with
    "containernetworking-plugins", // bridge, host-local, loopback
    "iptables",                    // what kube-proxy writes
    "iproute2",                    // the links between nodes and this machine
    "busybox-static",              // the busybox image
    "debootstrap",                 // images with packages of Debian
    "gcc",                         // the programs of the pause and MPI images
    "libc6-dev",                   // the same
];

/// What to do about packages that are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packages {
    /// Say which.
    #[default]
    Check,
    /// Install them.
    Install,
}

impl Packages {
    /// What the variable says.
    pub fn from_environment() -> Packages {
        match env::var(PACKAGES_VARIABLE) {
            Ok(value) if value == INSTALL => Packages::Install,
            _ => Packages::Check,
        }
    }
}

/// Whether this machine can have real nodes, after installing packages if that is wished.
///
/// # Errors
/// When it cannot; the message says what to do.
pub fn prepare(packages: Packages) -> anyhow::Result<()> {
    check_root()?;
    let missing = missing_packages()?;
    if !missing.is_empty() && packages == Packages::Install {
        install(&missing)?;
    }
    check()
}

/// Whether a program of a package is there, after installing the package if that is wished.
///
/// # Errors
/// When it is not; the message says what to do.
pub fn ensure_program(program: &str, package: &str, packages: Packages) -> anyhow::Result<()> {
    let is_there = || {
        let paths = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&paths).any(|folder| folder.join(program).is_file())
    };
    if !is_there() && packages == Packages::Install {
        install(&[package])?;
    }
    ensure!(
        is_there(),
        "{program} is not installed\n\
         install it with `apt-get install -y --no-install-recommends {package}`,\n\
         or let it be done: {PACKAGES_VARIABLE}={INSTALL}"
    );
    Ok(())
}

/// Whether this machine can have real nodes as it is.
///
/// # Errors
/// When it cannot; the message says what to do.
pub fn check() -> anyhow::Result<()> {
    check_root()?;
    let missing = missing_packages()?;
    ensure!(missing.is_empty(), "{}", hint(&missing));
    Ok(())
}

fn hint(missing: &[&str]) -> String {
    format!(
        "real nodes need packages that are not installed: {names}\n\
         install them with `apt-get install -y --no-install-recommends {names}`,\n\
         or let it be done: `cargo xtask cluster up --install-packages`, in tests {PACKAGES_VARIABLE}={INSTALL}",
        names = missing.join(" ")
    )
}

fn check_root() -> anyhow::Result<()> {
    let output = Command::new("id").arg("-u").output().context("starting id")?;
    let id = String::from_utf8_lossy(&output.stdout);
    ensure!(
        id.trim() == "0",
        "real nodes need root, for containers, networks and cgroups: this is user {}",
        id.trim()
    );
    Ok(())
}

/// Those packages that are not installed, in the order of the list.
fn missing_packages() -> anyhow::Result<Vec<&'static str>> {
    let asked = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .args(PACKAGES)
        .output();
    let Ok(output) = asked else {
        bail!("real nodes need a machine with Debian's packages: there is no dpkg-query here");
    };
    // It fails if one is unknown, and prints the others nevertheless.
    Ok(missing_of(&String::from_utf8_lossy(&output.stdout)))
}

fn missing_of(listing: &str) -> Vec<&'static str> {
    let is_installed = |package: &str| {
        let line = format!("{package} installed");
        listing.lines().any(|there| there.trim() == line)
    };
    PACKAGES
        .into_iter()
        .filter(|package| !is_installed(package))
        .collect()
}

/// Installs packages, one caller at a time: apt-get gives up when another one is at work, which tests beside each other are.
fn install(packages: &[&str]) -> anyhow::Result<()> {
    let _held = binaries::lock(&binaries::cache_directory()?.join("packages"))?;
    binaries::say(&format!("installing {} ...\n", packages.join(", ")));
    apt_get(&["update"])?;
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("apt-get")
        .args(["-qq", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .context("starting apt-get")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "apt-get {} failed:\n{}",
        arguments.join(" "),
        said.trim_end()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_only_when_it_is_installed() {
        let all: String = PACKAGES.map(|name| format!("{name} installed\n")).concat();
        assert!(missing_of(&all).is_empty());
        let removed = all.replace("runc installed", "runc config-files");
        assert_eq!(missing_of(&removed), ["runc"]);
        assert_eq!(missing_of(""), PACKAGES);
        // One name is the beginning of another.
        assert!(missing_of("containerd.io installed\n").contains(&"containerd"));
    }

    #[test]
    fn the_message_names_the_packages_and_the_command() {
        let text = hint(&["runc", "debootstrap"]);
        assert!(
            text.contains("apt-get install -y --no-install-recommends runc debootstrap`"),
            "{text}"
        );
        assert!(text.contains("--install-packages"), "{text}");
    }
}
