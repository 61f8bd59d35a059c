//! The Go modules that pin every version: Kubernetes with etcd, and CoreDNS.
//!
//! CoreDNS wants other versions of the libraries that both use, so it has a module of its own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Version of Kubernetes: `require k8s.io/kubernetes` of its Go module.
pub const KUBERNETES_VERSION: &str = "v1.36.1";
/// Version of etcd: `require go.etcd.io/etcd/server/v3` of the same.
pub const ETCD_VERSION: &str = "v3.6.8";
/// Version of CoreDNS: `require github.com/coredns/coredns` of its Go module.
pub const COREDNS_VERSION: &str = "v1.14.7";

/// The files of a Go module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// What its versions are versions of, for the name of its folder.
    versions: &'static [(&'static str, &'static str)],
    /// Path and text of each file.
    files: &'static [(&'static str, &'static str)],
}

/// Kubernetes and etcd.
pub(crate) static KUBERNETES: Module = Module {
    versions: &[("kubernetes", KUBERNETES_VERSION), ("etcd", ETCD_VERSION)],
    files: &[
        ("go.mod", include_str!("../go/go.mod")),
        ("go.sum", include_str!("../go/go.sum")),
        ("tools.go", include_str!("../go/tools.go")),
        ("etcd/main.go", include_str!("../go/etcd/main.go")),
    ],
};

/// CoreDNS with few plugins.
pub(crate) static COREDNS: Module = Module {
    versions: &[("coredns", COREDNS_VERSION)],
    files: &[
        ("go.mod", include_str!("../go/coredns/go.mod")),
        ("go.sum", include_str!("../go/coredns/go.sum")),
        ("main.go", include_str!("../go/coredns/main.go")),
    ],
};

impl Module {
    /// All modules.
    pub(crate) fn all() -> [&'static Module; 2] {
        [&KUBERNETES, &COREDNS]
    }

    /// Name of the folder for what is built from it on this platform.
    pub(crate) fn key(&self) -> String {
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(name, version)| format!("{name}-{version}"))
            .collect();
        let platform = format!("{}-{}", env::consts::OS, env::consts::ARCH);
        format!("{}-{:016x}-{platform}", versions.join("-"), hash(self.files))
    }

    /// Writes its files below a folder.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for (name, text) in self.files {
            let path: PathBuf = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// `kubectl` and clients parse the server's version, so the linker has to write one.
pub(crate) fn linker_flags() -> String {
    let package = "k8s.io/component-base/version";
    let mut numbers = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    format!(
        "-s -w -X {package}.gitVersion={KUBERNETES_VERSION} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

/// A number for a set of files that changes with each of their names and texts.
pub(crate) fn hash(files: &[(&str, &str)]) -> u64 {
    let mut hash = Fnv::new();
    for (name, text) in files {
        // Lengths keep (a, bc) and (ab, c) apart.
        for part in [name, text] {
            hash.add(&part.len().to_le_bytes());
            hash.add(part.as_bytes());
        }
    }
    hash.value()
}

/// FNV-1a: the same in every run and with every compiler, unlike the hashes of the standard library.
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn value(&self) -> u64 {
        self.0
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_changes_with_every_file_of_the_module() {
        let number = hash(&[("go.mod", "a"), ("go.sum", "b")]);
        assert_eq!(number, hash(&[("go.mod", "a"), ("go.sum", "b")]));
        for other in [
            [("go.mod", "a"), ("go.sum", "c")],
            [("go.mod", "x"), ("go.sum", "b")],
            [("go.moda", ""), ("go.sum", "b")],
            [("go.mod", "ab"), ("go.sum", "")],
        ] {
            assert_ne!(number, hash(&other), "{other:?}");
        }
        assert_ne!(KUBERNETES.key(), COREDNS.key());
    }

    #[test]
    fn the_modules_require_the_versions_that_messages_name() {
        let requires = |module: &Module, line: &str| {
            let there = module.files[0].1.lines();
            let plain = there.map(|text| text.trim().trim_start_matches("require ").to_owned());
            plain.collect::<Vec<_>>().contains(&line.to_owned())
        };
        for (module, name, version) in [
            (&KUBERNETES, "k8s.io/kubernetes", KUBERNETES_VERSION),
            (&KUBERNETES, "go.etcd.io/etcd/server/v3", ETCD_VERSION),
            (&COREDNS, "github.com/coredns/coredns", COREDNS_VERSION),
        ] {
            assert!(requires(module, &format!("{name} {version}")), "{name}");
        }
    }
}
