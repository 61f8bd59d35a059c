//! What a pure crate depends on: a walk over `cargo metadata` with the features that the crate itself asks for.
//!
//! The metadata joins the features of all members of the workspace, so that an optional dependency that only the
//! binary turns on (`schema` of `volcano-api`) would count for the engine too. Hence features are resolved here, the
//! way cargo does for one crate: along normal dependencies, on every platform, without build and dev dependencies.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, Metadata, Package};

/// Crates that do I/O, read a clock, or make random numbers. A name that ends in `*` is a prefix.
const FORBIDDEN: &[&str] = &[
    "async-std",
    "chrono-tz",
    "crossbeam*",
    "curl*",
    "fastrand",
    "getrandom",
    "h2",
    "hickory*",
    "http-body*",
    "hyper*",
    "instant",
    "jiff-tzdb-platform",
    "kube",
    "kube-*",
    "libc",
    "log4rs",
    "memmap*",
    "mio",
    "native-tls",
    "nix",
    "notify*",
    "num_cpus",
    "openssl*",
    "rand",
    "rand_*",
    "rayon*",
    "reqwest",
    "rustix",
    "rustls*",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio*",
    "tonic*",
    "tower*",
    "tracing-subscriber",
    "trust-dns*",
    "ureq",
    "uuid",
    "walkdir",
    "web-time",
    "winapi",
    "windows-sys",
];

/// Features that bring a clock or files into a crate that is pure without them.
const FORBIDDEN_FEATURES: &[(&str, &str)] = &[
    ("chrono", "clock"),
    ("chrono", "now"),
    ("jiff", "std"),
    ("jiff", "tz-system"),
    ("serde-saphyr", "include_fs"),
    ("rustc-hash", "rand"),
];

/// The packages of a workspace and all that they may depend on.
#[derive(Debug)]
pub struct Graph {
    crates: Vec<Crate>,
}

#[derive(Debug)]
struct Crate {
    name: String,
    features: BTreeMap<String, Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    /// The name by which features speak of it.
    key: String,
    target: usize,
    optional: bool,
    features: Vec<String>,
}

/// What a crate was reached with, and from where.
#[derive(Debug, Default)]
pub struct Reached {
    features: BTreeSet<String>,
    from: Option<usize>,
}

/// The crates that one depends on, itself included.
pub type Closure = BTreeMap<usize, Reached>;

impl Graph {
    /// The graph of a workspace.
    ///
    /// # Errors
    /// When the metadata has no dependency graph.
    pub fn new(metadata: &Metadata) -> anyhow::Result<Self> {
        let resolve = metadata
            .resolve
            .as_ref()
            .context("the metadata has no dependency graph")?;
        let index: BTreeMap<_, _> = metadata
            .packages
            .iter()
            .enumerate()
            .map(|(at, package)| (&package.id, at))
            .collect();
        let mut targets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for node in &resolve.nodes {
            let normal = node.deps.iter().filter(|dependency| {
                dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind == DependencyKind::Normal)
            });
            let list = normal
                .filter_map(|dependency| index.get(&dependency.pkg).copied())
                .collect();
            if let Some(&at) = index.get(&node.id) {
                targets.insert(at, list);
            }
        }
        let none = Vec::new();
        let crates = metadata.packages.iter().enumerate().map(|(at, package)| Crate {
            name: package.name.to_string(),
            features: package.features.clone(),
            dependencies: dependencies(package, &metadata.packages, targets.get(&at).unwrap_or(&none)),
        });
        Ok(Graph {
            crates: crates.collect(),
        })
    }

    /// The crates that a crate depends on with its default features.
    ///
    /// # Errors
    /// When there is no crate of that name.
    pub fn closure(&self, root: &str) -> anyhow::Result<Closure> {
        let found = self.crates.iter().position(|known| known.name == root);
        let root = found.with_context(|| format!("no crate {root} in the workspace"))?;
        let mut closure = Closure::new();
        closure.insert(
            root,
            Reached {
                features: BTreeSet::from(["default".to_owned()]),
                from: None,
            },
        );
        // Features of one crate turn on dependencies of another: repeat until nothing is new.
        while self.grow(&mut closure) {}
        Ok(closure)
    }

    /// One round; false when nothing was new.
    fn grow(&self, closure: &mut Closure) -> bool {
        let mut grown = false;
        for at in closure.keys().copied().collect::<Vec<_>>() {
            let features = self.crates[at].enabled(&closure[&at].features);
            let wanted: Vec<_> = self.crates[at]
                .dependencies
                .iter()
                .filter(|dependency| !dependency.optional || features.turned_on.contains(&dependency.key))
                .map(|dependency| {
                    let passed = features.passed.iter().filter(|(key, _)| *key == dependency.key);
                    let passed = passed.map(|(_, feature)| feature.clone());
                    (
                        dependency.target,
                        dependency
                            .features
                            .iter()
                            .cloned()
                            .chain(passed)
                            .collect::<Vec<_>>(),
                    )
                })
                .collect();
            grown |= closure
                .get_mut(&at)
                .is_some_and(|own| extend(&mut own.features, features.names));
            for (target, features) in wanted {
                grown |= !closure.contains_key(&target);
                let reached = closure.entry(target).or_insert_with(|| Reached {
                    from: Some(at),
                    ..Reached::default()
                });
                grown |= extend(&mut reached.features, features);
            }
        }
        grown
    }

    /// Forbidden crates and features in a closure, each with the way that leads to it.
    pub fn impure(&self, closure: &Closure) -> Vec<String> {
        let mut found = Vec::new();
        for (&at, reached) in closure {
            let name = &self.crates[at].name;
            if FORBIDDEN.iter().any(|pattern| matches(pattern, name)) {
                found.push(format!("{}: the crate {name} is not pure", self.way(closure, at)));
            }
            for (of, feature) in FORBIDDEN_FEATURES {
                if of == name && reached.features.contains(*feature) {
                    found.push(format!(
                        "{}: {name} is not pure with the feature {feature}",
                        self.way(closure, at)
                    ));
                }
            }
        }
        found
    }

    /// How the closure came to a crate: `a -> b -> c`.
    fn way(&self, closure: &Closure, mut at: usize) -> String {
        let mut names = vec![self.crates[at].name.as_str()];
        while let Some(from) = closure.get(&at).and_then(|reached| reached.from) {
            names.push(&self.crates[from].name);
            at = from;
        }
        names.reverse();
        names.join(" -> ")
    }
}

/// What a set of features means for a crate's dependencies.
#[derive(Debug, Default)]
struct Enabled {
    /// The features and all that they imply.
    names: BTreeSet<String>,
    /// Optional dependencies that are turned on.
    turned_on: BTreeSet<String>,
    /// Features of dependencies.
    passed: BTreeSet<(String, String)>,
}

impl Crate {
    fn enabled(&self, features: &BTreeSet<String>) -> Enabled {
        let mut enabled = Enabled::default();
        let mut open: Vec<String> = features.iter().cloned().collect();
        while let Some(feature) = open.pop() {
            if let Some(dependency) = feature.strip_prefix("dep:") {
                enabled.turned_on.insert(dependency.to_owned());
            } else if let Some((dependency, of_it)) = feature.split_once('/') {
                // `crate?/feature` does not turn the dependency on.
                let name = dependency.strip_suffix('?').unwrap_or(dependency);
                if name == dependency {
                    enabled.turned_on.insert(name.to_owned());
                }
                enabled.passed.insert((name.to_owned(), of_it.to_owned()));
            } else if !enabled.names.contains(&feature) {
                open.extend(self.features.get(&feature).into_iter().flatten().cloned());
                enabled.names.insert(feature);
            }
        }
        enabled
    }
}

fn dependencies(package: &Package, packages: &[Package], targets: &[usize]) -> Vec<Dependency> {
    let normal = package
        .dependencies
        .iter()
        .filter(|declared| declared.kind == DependencyKind::Normal);
    let resolved = normal.filter_map(|declared| {
        let fits = |&at: &usize| {
            *packages[at].name == declared.name
                && (declared.path.is_some() || declared.req.matches(&packages[at].version))
        };
        let target = targets.iter().copied().find(fits)?;
        let default = declared.uses_default_features.then(|| "default".to_owned());
        Some(Dependency {
            key: declared.rename.clone().unwrap_or_else(|| declared.name.clone()),
            target,
            optional: declared.optional,
            features: declared.features.iter().cloned().chain(default).collect(),
        })
    });
    resolved.collect()
}

/// Adds to a set; true when something was new.
fn extend(set: &mut BTreeSet<String>, more: impl IntoIterator<Item = String>) -> bool {
    let before = set.len();
    set.extend(more);
    set.len() > before
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from lines such as `app [default=net net=dep:tokio] : tokio? serde+std`, each crate on one line; `?`
    /// marks an optional dependency, `+` a feature asked of it.
    fn graph(lines: &[&str]) -> Graph {
        let names: Vec<_> = lines
            .iter()
            .map(|line| line.split_whitespace().next().unwrap())
            .collect();
        let crates = lines.iter().map(|line| {
            let (head, tail) = line.split_once(':').map_or((*line, ""), |_| {
                let at = line.rfind(" : ").unwrap_or(line.len());
                (&line[..at], line.get(at + 3..).unwrap_or(""))
            });
            let (name, features) = head.split_once('[').unwrap_or((head, "]"));
            let features = features
                .trim()
                .trim_end_matches(']')
                .split_whitespace()
                .map(|feature| {
                    let (name, implied) = feature.split_once('=').unwrap();
                    (name.to_owned(), implied.split(',').map(str::to_owned).collect())
                });
            let dependencies = tail.split_whitespace().map(|dependency| {
                let mut parts = dependency.split('+');
                let key = parts.next().unwrap();
                let name = key.trim_end_matches('?');
                Dependency {
                    key: name.to_owned(),
                    target: names.iter().position(|known| *known == name).unwrap(),
                    optional: key.ends_with('?'),
                    features: parts.map(str::to_owned).collect(),
                }
            });
            Crate {
                name: name.trim().to_owned(),
                features: features.collect(),
                dependencies: dependencies.collect(),
            }
        });
        Graph {
            crates: crates.collect(),
        }
    }

    fn impure(lines: &[&str]) -> Vec<String> {
        let graph = graph(lines);
        graph.impure(&graph.closure("app").unwrap())
    }

    #[test]
    fn a_forbidden_crate_is_found_at_any_depth_with_the_way_to_it() {
        let found = impure(&["app : serde middle", "serde", "middle : tokio-util", "tokio-util"]);
        assert_eq!(
            found,
            ["app -> middle -> tokio-util: the crate tokio-util is not pure"]
        );
    }

    #[test]
    fn what_is_not_reached_does_not_count() {
        assert_eq!(
            impure(&["app : serde", "serde", "other : tokio", "tokio"]),
            [""; 0]
        );
    }

    #[test]
    fn an_optional_dependency_counts_only_when_a_feature_turns_it_on() {
        assert_eq!(impure(&["app [net=dep:tokio] : tokio?", "tokio"]), [""; 0]);
        assert_eq!(
            impure(&["app [default=net net=dep:tokio] : tokio?", "tokio"]).len(),
            1
        );
        assert_eq!(
            impure(&["app : middle", "middle [net=dep:rand] : rand?", "rand"]),
            [""; 0]
        );
        assert_eq!(
            impure(&["app : middle+net", "middle [net=dep:rand] : rand?", "rand"]).len(),
            1
        );
    }

    #[test]
    fn a_weak_feature_does_not_turn_a_dependency_on() {
        assert_eq!(impure(&["app [default=tokio?/net] : tokio?", "tokio"]), [""; 0]);
        assert_eq!(impure(&["app [default=tokio/net] : tokio?", "tokio"]).len(), 1);
    }

    #[test]
    fn a_pure_crate_with_an_impure_feature_is_found() {
        let found = impure(&["app : jiff+alloc", "jiff"]);
        assert_eq!(found, [""; 0]);
        let found = impure(&["app [default=jiff/all] : jiff", "jiff [all=std]"]);
        assert_eq!(found, ["app -> jiff: jiff is not pure with the feature std"]);
    }

    #[test]
    fn patterns_match_whole_names_or_prefixes() {
        assert!(matches("kube-*", "kube-client") && matches("kube", "kube") && !matches("kube", "kubelet"));
        assert!(FORBIDDEN.iter().any(|pattern| matches(pattern, "rand_core")));
    }

    #[test]
    fn a_crate_that_is_not_there_is_an_error() {
        assert!(graph(&["other"]).closure("app").is_err());
    }
}
