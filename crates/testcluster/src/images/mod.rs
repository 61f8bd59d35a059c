//! Images of containers, made on this machine: there is no registry that a test could rely on.
//!
//! ```text
//! recipe (programs, packages, scripts) ──> rootfs ──tar──> <cache>/images/<name>-<hash>.tar ──> containerd of each node
//! ```
//!
//! The hash is that of everything in the recipe, so that an archive which is there is the right one.

mod archive;
mod debian;
pub mod mpi;
mod small;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use uuid::Uuid;

use self::archive::Config;
use crate::binaries::{self, say};
use crate::modules::Fnv;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// What holds the namespaces of a pod.
    Pause,
    /// Shell and tools in one static program.
    Busybox,
    /// Debian with Open MPI, ssh, a program that says hello from every rank, and Python.
    Debian,
    /// The `volcano` program of this path, as the images of an installation.
    Volcano(PathBuf),
}

impl Image {
    /// The name that pods use.
    pub fn reference(&self) -> String {
        self.references().swap_remove(0)
    }

    /// All its names. None ends in `latest`, which kubelet would look for in a registry.
    pub fn references(&self) -> Vec<String> {
        let names: &[&str] = match self {
            Image::Pause => &["docker.io/volcanosh/test-pause:1"],
            Image::Busybox => &["docker.io/library/busybox:1"],
            Image::Debian => &[
                "docker.io/volcanosh/example-mpi:0.0.1",
                "docker.io/library/python:3",
            ],
            Image::Volcano(_) => &[
                "docker.io/volcanosh/vc-scheduler:test",
                "docker.io/volcanosh/vc-controller-manager:test",
                "docker.io/volcanosh/vc-webhook-manager:test",
            ],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn name(&self) -> &'static str {
        match self {
            Image::Pause => "pause",
            Image::Busybox => "busybox",
            Image::Debian => "debian",
            Image::Volcano(_) => "volcano",
        }
    }

    /// Everything that decides what is in it.
    fn recipe(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Image::Pause => Ok(small::PAUSE_SOURCE.into()),
            Image::Busybox => read(Path::new(small::BUSYBOX)),
            Image::Debian => debian::recipe(),
            Image::Volcano(program) => read(program),
        }
    }

    /// The archive of the image, made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made; the message has what the failing program said.
    pub fn ensure(&self) -> anyhow::Result<PathBuf> {
        let folder = binaries::cache_directory()?.join("images");
        let mut hash = Fnv::new();
        hash.add(&self.recipe()?);
        hash.add(self.references().join(" ").as_bytes());
        let path = folder.join(format!("{}-{:016x}.tar", self.name(), hash.value()));
        if path.is_file() {
            return Ok(path);
        }
        let _held = binaries::lock(&folder)?;
        // Another process may have made it while this one waited.
        if !path.is_file() {
            self.make(&folder, &path)
                .with_context(|| format!("making the image {}", self.name()))?;
        }
        Ok(path)
    }

    fn make(&self, folder: &Path, path: &Path) -> anyhow::Result<()> {
        let began = Instant::now();
        say(&format!("making the image {} ... ", self.name()));
        let workshop = Workshop::open(folder)?;
        let rootfs = workshop.0.join("rootfs");
        fs::create_dir_all(&rootfs).context("creating the root of the image")?;
        let config = match self {
            Image::Pause => small::pause(&rootfs)?,
            Image::Busybox => small::busybox(&rootfs)?,
            Image::Debian => debian::make(&workshop.0, &rootfs)?,
            Image::Volcano(program) => small::volcano(&rootfs, program)?,
        };
        let unfinished = archive::write(&workshop.0, &rootfs, &config, &self.references())?;
        self.forget_older(folder);
        fs::rename(&unfinished, path).with_context(|| format!("moving to {}", path.display()))?;
        say(&format!("{:.0} s\n", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// A developer's `volcano` changes all day long; only the newest image of it is of use.
    fn forget_older(&self, folder: &Path) {
        let start = format!("{}-", self.name());
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with(&start) {
                // Whoever has it open reads on; whoever comes later makes it again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// A folder to make an image in, which goes when it is done with. It may have devices in it, so it is not in `/tmp`.
struct Workshop(PathBuf);

impl Workshop {
    fn open(folder: &Path) -> anyhow::Result<Workshop> {
        let path = folder.join(format!(".unfinished-{}", Uuid::new_v4().simple()));
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Workshop(path))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// Runs a program to its end and returns what it prints.
fn run(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("starting {name}"))?;
    let (said, printed) = (
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout),
    );
    let tail = |text: &str| {
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    };
    ensure!(
        output.status.success(),
        "{name} failed with {}:\n{}\n{}",
        output.status,
        tail(&printed),
        tail(&said)
    );
    Ok(printed.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_registry_and_a_tag_that_is_not_pulled_anew() {
        let images = [
            Image::Pause,
            Image::Busybox,
            Image::Debian,
            Image::Volcano(PathBuf::new()),
        ];
        for name in images.iter().flat_map(Image::references) {
            let (repository, tag) = name.rsplit_once(':').unwrap();
            assert!(repository.starts_with("docker.io/"), "{name}");
            assert_ne!(tag, "latest");
        }
    }
}
