//! What the containers of a pod have in common: its directory, its network and its volumes; and from that, what one
//! container is started with.

use crate::container::{Isolation, Mount, Outer, Source, Spec};
use crate::environment;
use crate::fields::Facts;
use crate::machine;
use crate::names::{Named, seen_hostname};
use crate::network::PodNetwork;
use crate::objects::{self, Needed, Objects};
use crate::volumes::{self, Claims, Volumes};
use crate::worker::Context;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where messages of containers are read from, unless they say another path.
const MESSAGE_FILE: &str = "/dev/termination-log";

/// Why a pod cannot be set up. All but refusals are tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Network(String),
    Volumes(String),
    /// It will never be possible here: reason and message.
    Refused(&'static str, String),
}

/// Why a container cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartProblem {
    /// Something that it names is missing or wrong; it may come.
    Config(String),
    /// The start failed.
    Start(String),
}

/// What is there for a pod.
pub(crate) struct Room {
    directory: PathBuf,
    network: Option<PodNetwork>,
    volumes: Volumes,
    facts: Facts,
    hostname: String,
}

impl Room {
    /// Sets up what a pod needs.
    pub async fn set_up(context: &Context, pod: &Pod, uid: &str) -> Result<Room, Problem> {
        if context.isolation == Isolation::None {
            refuse_mounts(pod)?;
        }
        let directory = context.directory.join(uid);
        let problem = |error: std::io::Error| Problem::Volumes(format!("directory of the pod: {error}"));
        for old in ["volumes", "containers"] {
            let _ = fs::remove_dir_all(directory.join(old));
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory.join("volumes"))
            .map_err(problem)?;
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let network = match &context.switch {
            Some(switch) if !on_host => {
                let network = switch.connect().await;
                Some(network.map_err(|error| Problem::Network(error.to_string()))?)
            }
            _ => None,
        };
        let address = network.as_ref().map(|network| network.address.to_string());
        let shares = address.is_none();
        let facts = Facts {
            pod_address: address.unwrap_or_else(|| context.host_address.clone()),
            host_address: context.host_address.clone(),
            allocatable: context.allocatable.clone(),
        };
        let named = Named::of(pod, facts.pod_address.clone(), shares);
        let hosts = directory.join("hosts");
        context
            .names
            .add(uid, named, &hosts, &context.host_names)
            .map_err(problem)?;
        let hostname = seen_hostname(pod).map_err(Problem::Network)?;
        fs::write(directory.join("hostname"), format!("{hostname}\n")).map_err(problem)?;
        // No DNS server can be reached from a network of its own: names that are not in /etc/hosts are unknown at once.
        fs::write(directory.join("resolv.conf"), "options timeout:1 attempts:1\n").map_err(problem)?;
        let objects = read(context, pod, Needed::by_volumes(pod))
            .await
            .map_err(Problem::Volumes)?;
        let claims = Claims::read(&context.client, pod).await;
        let claims = claims.map_err(|error| Problem::Volumes(error.to_string()))?;
        let volumes = volumes::make(pod, &objects, &claims, &facts, &directory.join("volumes"));
        Ok(Room {
            volumes: volumes.map_err(Problem::Volumes)?,
            directory,
            network,
            facts,
            hostname,
        })
    }

    pub fn address(&self) -> &str {
        &self.facts.pod_address
    }

    /// Brings files that show objects up to date.
    pub async fn refresh(&self, context: &Context, pod: &Pod) {
        match read(context, pod, Needed::by_volumes(pod)).await {
            Ok(objects) => volumes::refresh(pod, &objects, &self.facts, &self.directory.join("volumes")),
            Err(error) => tracing::debug!(error, "volumes not brought up to date"),
        }
    }

    /// The directory of one run of a container.
    pub fn run_directory(&self, container: &str, run: u64) -> PathBuf {
        self.directory
            .join("containers")
            .join(container)
            .join(run.to_string())
    }

    /// The file with the message of a container.
    pub fn message_file(&self, container: &str, run: u64) -> PathBuf {
        self.run_directory(container, run).join("message")
    }

    /// What a container is started with.
    pub async fn spec(
        &self,
        context: &Context,
        pod: &Pod,
        container: &Container,
        run: u64,
    ) -> Result<(Outer, Spec), StartProblem> {
        let objects = read(context, pod, Needed::by_environment(container)).await;
        let objects = objects.map_err(StartProblem::Config)?;
        let (user, group) = user(pod, container)?;
        let home = machine::home(user.unwrap_or_else(|| nix::unistd::geteuid().as_raw()));
        let environment =
            environment::variables(container, pod, &objects, &self.facts, &self.hostname, &home)
                .map_err(StartProblem::Config)?;
        let command = environment::command(container, &environment.own);
        if command.is_empty() {
            return Err(StartProblem::Start(
                "the container has no command: images are not pulled here, the host's files are the image, so a command \
                 has to be given"
                    .to_owned(),
            ));
        }
        let directory = self.run_directory(&container.name, run);
        let work = directory.join("work");
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory);
        let made = made.and_then(|()| fs::create_dir_all(&work)).and_then(|()| {
            fs::write(self.message_file(&container.name, run), "")?;
            match (user, group) {
                (None, None) => Ok(()),
                (user, group) => std::os::unix::fs::chown(&work, user, group),
            }
        });
        made.map_err(|error| StartProblem::Start(format!("directory of the container: {error}")))?;
        let mut mounts = Vec::new();
        if context.isolation != Isolation::None {
            mounts =
                volumes::mounts(container, &self.volumes, &environment.own).map_err(StartProblem::Config)?;
            self.add_own(&mut mounts, container, run, &work);
        }
        let given = container.working_dir.as_deref().filter(|path| !path.is_empty());
        let spec = Spec {
            isolation: context.isolation,
            hostname: self.hostname.clone(),
            scratch: directory.join("scratch"),
            mounts,
            shm_bytes: context.shm_bytes,
            command,
            env: environment.all,
            directory: given.map_or(work, PathBuf::from),
            user,
            group,
        };
        let outer = Outer {
            isolation: context.isolation,
            network: self.network.as_ref().map(PodNetwork::path),
        };
        Ok((outer, spec))
    }

    /// What every container has at fixed paths, unless it mounts something else there.
    fn add_own(&self, mounts: &mut Vec<Mount>, container: &Container, run: u64, work: &Path) {
        let message = container
            .termination_message_path
            .as_deref()
            .unwrap_or(MESSAGE_FILE);
        let own = [
            (self.directory.join("hosts"), Path::new("/etc/hosts")),
            (self.directory.join("hostname"), Path::new("/etc/hostname")),
            (self.message_file(&container.name, run), Path::new(message)),
            (work.to_owned(), work),
        ];
        let resolver = (self.directory.join("resolv.conf"), Path::new("/etc/resolv.conf"));
        let resolver = self.network.is_some().then_some(resolver);
        for (source, target) in own.into_iter().chain(resolver) {
            if target.is_absolute() && !mounts.iter().any(|mount| mount.target == target) {
                mounts.push(Mount {
                    source: Source::Path(source),
                    target: target.to_owned(),
                    read_only: false,
                });
            }
        }
    }
}

/// Without namespaces nothing can be at a path of its own.
fn refuse_mounts(pod: &Pod) -> Result<(), Problem> {
    let all = pod
        .spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let mounted = all
        .flat_map(|container| container.volume_mounts.iter().flatten())
        .next();
    match mounted {
        None => Ok(()),
        Some(mount) => Err(Problem::Refused(
            "VolumeMountsNotPossible",
            format!(
                "volume {:?} cannot be mounted at {}: this node has neither root nor user namespaces; start it as root, or \
                 allow user namespaces",
                mount.name, mount.mount_path
            ),
        )),
    }
}

/// The user and group that a container asks for.
fn user(pod: &Pod, container: &Container) -> Result<(Option<u32>, Option<u32>), StartProblem> {
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let number = |wanted: Option<i64>| -> Result<Option<u32>, StartProblem> {
        let number = wanted.map(u32::try_from).transpose();
        number.map_err(|_| StartProblem::Config("runAsUser and runAsGroup must fit 32 bits".to_owned()))
    };
    let user = number(
        own.and_then(|own| own.run_as_user)
            .or_else(|| of_pod?.run_as_user),
    )?;
    let group = number(
        own.and_then(|own| own.run_as_group)
            .or_else(|| of_pod?.run_as_group),
    )?;
    let (mine, my_group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let not_root = own
        .and_then(|own| own.run_as_non_root)
        .or_else(|| of_pod?.run_as_non_root);
    if not_root == Some(true) && user.unwrap_or(mine) == 0 {
        let problem = "container has runAsNonRoot and image will run as root";
        return Err(StartProblem::Config(problem.to_owned()));
    }
    if mine != 0 {
        // Only root becomes somebody else.
        let other = user
            .filter(|user| *user != mine)
            .or(group.filter(|group| *group != my_group));
        return match other {
            Some(id) => Err(StartProblem::Config(format!(
                "runAsUser or runAsGroup {id}: this node is not root and runs everything as user {mine}"
            ))),
            None => Ok((None, None)),
        };
    }
    Ok((user, group))
}

async fn read(context: &Context, pod: &Pod, needed: Needed) -> Result<Objects, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let objects = objects::read(&context.client, namespace, needed).await;
    objects.map_err(|error| error.to_string())
}
