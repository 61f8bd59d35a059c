//! Archives that container runtimes load: a layer, a configuration, and a list of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::run;

/// What a container of the image runs unless its pod says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The program.
    pub entrypoint: Vec<String>,
    /// Its arguments, or program and arguments.
    pub command: Vec<String>,
}

/// Where programs are found in every image.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Packs a root directory into an archive in the workshop, and returns its path.
pub fn write(
    workshop: &Path,
    rootfs: &Path,
    config: &Config,
    references: &[String],
) -> anyhow::Result<PathBuf> {
    let layer = workshop.join("layer.tar");
    run(Command::new("tar")
        .args(["--create", "--numeric-owner", "--sort=name"])
        .arg("--file")
        .arg(&layer)
        .arg("--directory")
        .arg(rootfs)
        .arg("."))?;
    let config = image_config(config, &sha256(&layer)?);
    fs::write(workshop.join("config.json"), config.to_string()).context("writing config.json")?;
    let manifest = json!([{"Config": "config.json", "RepoTags": references, "Layers": ["layer.tar"]}]);
    fs::write(workshop.join("manifest.json"), manifest.to_string()).context("writing manifest.json")?;
    let archive = workshop.join("image.tar");
    run(Command::new("tar")
        .args(["--create", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(workshop)
        .args(["manifest.json", "config.json", "layer.tar"]))?;
    Ok(archive)
}

fn image_config(config: &Config, layer: &str) -> Value {
    json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Env": [format!("PATH={PATH}")],
            "Entrypoint": config.entrypoint,
            "Cmd": config.command,
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
    })
}

/// This machine's processor in the words of images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn sha256(path: &Path) -> anyhow::Result<String> {
    let printed = run(Command::new("sha256sum").arg(path))?;
    let sum = printed.split_whitespace().next();
    Ok(sum.context("sha256sum prints a sum")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_a_layer_whose_sum_is_in_the_configuration() {
        let workshop = tempfile::tempdir().unwrap();
        let rootfs = workshop.path().join("rootfs");
        fs::create_dir_all(rootfs.join("bin")).unwrap();
        fs::write(rootfs.join("bin/true"), "x").unwrap();
        let config = Config {
            entrypoint: vec!["/bin/true".to_owned()],
            command: Vec::new(),
        };
        let archive = write(workshop.path(), &rootfs, &config, &["docker.io/a/b:1".to_owned()]).unwrap();
        let list = run(Command::new("tar").arg("--list").arg("--file").arg(&archive)).unwrap();
        assert_eq!(
            list.lines().collect::<Vec<_>>(),
            ["manifest.json", "config.json", "layer.tar"]
        );
        let text = fs::read_to_string(workshop.path().join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let sum = sha256(&workshop.path().join("layer.tar")).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{sum}"));
        assert_eq!(config["config"]["Entrypoint"], json!(["/bin/true"]));
        let manifest = fs::read_to_string(workshop.path().join("manifest.json")).unwrap();
        assert!(manifest.contains("docker.io/a/b:1"), "{manifest}");
    }
}
