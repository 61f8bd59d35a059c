//! An image of Debian with packages: for programs that are more than one file.
//!
//! Packages come from the mirror that this machine is set up with. One image has all of them, as most of the time goes
//! into what any such image starts with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::{Config, run};

/// What pods use.
const PACKAGES: [&str; 5] = [
    "openmpi-bin",
    "openssh-server",
    "openssh-client",
    "hostname",
    "python3",
];
/// Has the headers for the program that says hello.
const HEADERS: &str = "libopenmpi-dev";
/// The program that says hello, under the name that examples use.
const HELLO: &str = "usr/local/bin/mpi_hello_world";
/// Its source.
const HELLO_SOURCE: &str = include_str!("hello.c");
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
    let parts = [&release, &PACKAGES.join(" "), HELLO_SOURCE, &NEEDLESS.join(" ")];
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
    make_hello(workshop, rootfs)?;
    for path in NEEDLESS {
        let path = rootfs.join(path);
        fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(Config {
        entrypoint: Vec::new(),
        command: vec!["/bin/sh".to_owned()],
    })
}

/// Compiles the program here against the libraries of the image: a compiler would double its size.
fn make_hello(workshop: &Path, rootfs: &Path) -> anyhow::Result<()> {
    run(Command::new("apt-get")
        .args(["-qq", "download", HEADERS])
        // Else a user of apt's own, who may not write here, would have to fetch it.
        .args(["-o", "APT::Sandbox::User=root"])
        .current_dir(workshop))?;
    let package = find(workshop, |name| name.starts_with(HEADERS))?;
    let headers = workshop.join("headers");
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .arg(package)
        .arg(&headers))?;
    let triplet = run(Command::new("gcc").arg("-print-multiarch"))?;
    let libraries = Path::new("usr/lib").join(triplet.trim());
    let library = find(&rootfs.join(&libraries), |name| name.starts_with("libmpi.so."))?;
    let source = workshop.join("hello.c");
    fs::write(&source, HELLO_SOURCE).context("writing hello.c")?;
    run(Command::new("gcc")
        // What the library itself needs is in the image, where the compiler does not look.
        .args([
            "-O1",
            "-Wall",
            "-Wl,--unresolved-symbols=ignore-in-shared-libs",
            "-o",
        ])
        .arg(rootfs.join(HELLO))
        .arg(source)
        .arg("-I")
        .arg(headers.join(&libraries).join("openmpi/include"))
        .arg(library))
    .map(drop)
}

/// The first file of a folder, by name, with such a name.
fn find(folder: &Path, fits: impl Fn(&str) -> bool) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        fits(&name)
    };
    let found = paths.filter(fits).min();
    found.with_context(|| format!("{} lacks a file that was expected", folder.display()))
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
