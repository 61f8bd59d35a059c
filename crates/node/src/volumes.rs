//! Volumes of pods: made below the pod's directory, or found on the host.

use crate::container::{Mount, Source};
use crate::environment::expand;
use crate::fields::{Facts, container_named, field, resource};
use crate::objects::Objects;
use crate::payload::{self, Entry};
use k8s_openapi::api::core::v1::{
    Container, DownwardAPIVolumeFile, HostPathVolumeSource, KeyToPath, PersistentVolume,
    PersistentVolumeClaim, Pod, Volume,
};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use volcano_api::quantity::Quantity;

/// The mode of files that do not have one, as Kubernetes has it.
const DEFAULT_MODE: i32 = 0o644;

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub source: Source,
    /// It shows objects, which a container does not change.
    pub shows_objects: bool,
}

/// The volumes of a pod by name.
pub(crate) type Volumes = HashMap<String, Made>;

/// Makes the volumes of a pod, or says why one cannot be had.
pub(crate) fn make(
    pod: &Pod,
    objects: &Objects,
    claims: &Claims,
    facts: &Facts,
    directory: &Path,
) -> Result<Volumes, String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .map(|volume| {
            let place = directory.join(&volume.name);
            let source = make_one(volume, pod, objects, claims, facts, &place).map_err(|problem| {
                format!(
                    "MountVolume.SetUp failed for volume {:?} : {problem}",
                    volume.name
                )
            })?;
            let made = Made {
                source,
                shows_objects: volume.config_map.is_some()
                    || volume.secret.is_some()
                    || volume.downward_api.is_some()
                    || volume.projected.is_some(),
            };
            Ok((volume.name.clone(), made))
        })
        .collect()
}

fn make_one(
    volume: &Volume,
    pod: &Pod,
    objects: &Objects,
    claims: &Claims,
    facts: &Facts,
    place: &Path,
) -> Result<Source, String> {
    if let Some(entries) = entries(volume, pod, objects, facts) {
        payload::write(place, &entries?).map_err(|error| error.to_string())?;
        return Ok(Source::Path(place.to_owned()));
    }
    if let Some(empty) = &volume.empty_dir {
        let in_memory = empty.medium.as_deref() == Some("Memory");
        if in_memory && users(pod, &volume.name) <= 1 {
            let limit = empty.size_limit.as_ref().map(|text| Quantity::parse(&text.0));
            let limit = limit.transpose().map_err(|error| error.to_string())?;
            let bytes = limit.and_then(|limit| u64::try_from(limit.value()).ok());
            return Ok(Source::Memory { bytes });
        }
        fs::create_dir_all(place).map_err(|error| error.to_string())?;
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(place, open).map_err(|error| error.to_string())?;
        return Ok(Source::Path(place.to_owned()));
    }
    if let Some(host) = &volume.host_path {
        return host_path(host).map(Source::Path);
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return claims.path(&claim.claim_name).map(Source::Path);
    }
    Err("this node has no volumes of this kind; it has configMap, secret, emptyDir, downwardAPI, projected, hostPath, \
         and claims of volumes with a path on the host"
        .to_owned())
}

/// How many containers mount a volume.
fn users(pod: &Pod, volume: &str) -> usize {
    let spec = pod.spec.iter();
    let containers = spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    containers
        .filter(|container| {
            let mut mounts = container.volume_mounts.iter().flatten();
            mounts.any(|mount| mount.name == volume)
        })
        .count()
}

/// Writes anew what has changed of the objects that volumes show.
pub(crate) fn refresh(pod: &Pod, objects: &Objects, facts: &Facts, directory: &Path) {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for volume in volumes {
        // What is missing now was there when the pod started: it stays as it was, as with a kubelet.
        if let Some(Ok(entries)) = entries(volume, pod, objects, facts)
            && let Err(error) = payload::write(&directory.join(&volume.name), &entries)
        {
            tracing::warn!(volume = volume.name, %error, "volume not brought up to date");
        }
    }
}

/// The files of a volume that shows objects; `None` for other volumes.
fn entries(
    volume: &Volume,
    pod: &Pod,
    objects: &Objects,
    facts: &Facts,
) -> Option<Result<Vec<Entry>, String>> {
    let mode = |mode: Option<i32>| mode.unwrap_or(DEFAULT_MODE);
    if let Some(source) = &volume.config_map {
        let optional = source.optional == Some(true);
        let items = source.items.as_deref();
        return Some(config_map(
            &source.name,
            items,
            optional,
            mode(source.default_mode),
            objects,
        ));
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let optional = source.optional == Some(true);
        return Some(secret(
            name,
            source.items.as_deref(),
            optional,
            mode(source.default_mode),
            objects,
        ));
    }
    if let Some(source) = &volume.downward_api {
        return Some(downward(
            source.items.as_deref(),
            mode(source.default_mode),
            pod,
            facts,
        ));
    }
    let projected = volume.projected.as_ref()?;
    let mode = mode(projected.default_mode);
    let mut all = Vec::new();
    for source in projected.sources.iter().flatten() {
        let part = if let Some(part) = &source.config_map {
            config_map(
                &part.name,
                part.items.as_deref(),
                part.optional == Some(true),
                mode,
                objects,
            )
        } else if let Some(part) = &source.secret {
            secret(
                &part.name,
                part.items.as_deref(),
                part.optional == Some(true),
                mode,
                objects,
            )
        } else if let Some(part) = &source.downward_api {
            downward(part.items.as_deref(), mode, pod, facts)
        } else {
            Err(
                "this node projects configMap, secret and downwardAPI, and has no tokens or certificates"
                    .to_owned(),
            )
        };
        match part {
            Ok(part) => all.extend(part),
            Err(problem) => return Some(Err(problem)),
        }
    }
    Some(Ok(all))
}

fn config_map(
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: bool,
    mode: i32,
    objects: &Objects,
) -> Result<Vec<Entry>, String> {
    let data = objects.config_maps.get(name).map(|map| {
        let texts = map.data.iter().flatten();
        let texts = texts.map(|(key, text)| (key.clone(), text.as_bytes().to_vec()));
        let bytes = map.binary_data.iter().flatten();
        let bytes = bytes.map(|(key, bytes)| (key.clone(), bytes.0.clone()));
        texts.chain(bytes).collect()
    });
    let data = data.ok_or_else(|| format!("configmap {name:?} not found"));
    select(data, items, optional, mode)
}

fn secret(
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: bool,
    mode: i32,
    objects: &Objects,
) -> Result<Vec<Entry>, String> {
    let data = objects.secrets.get(name).map(|secret| {
        let bytes = secret.data.iter().flatten();
        bytes.map(|(key, bytes)| (key.clone(), bytes.0.clone())).collect()
    });
    let data = data.ok_or_else(|| format!("secret {name:?} not found"));
    select(data, items, optional, mode)
}

/// All keys, or those that are wanted, at their paths; none if there is no data and need not be any.
fn select(
    data: Result<BTreeMap<String, Vec<u8>>, String>,
    items: Option<&[KeyToPath]>,
    optional: bool,
    mode: i32,
) -> Result<Vec<Entry>, String> {
    let data = match data {
        Err(_) if optional => return Ok(Vec::new()),
        data => data?,
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return data
            .into_iter()
            .map(|(key, bytes)| Entry::new(&key, bytes, mode))
            .collect();
    };
    let mut entries = Vec::new();
    for item in items {
        match data.get(&item.key) {
            Some(bytes) => entries.push(Entry::new(&item.path, bytes.clone(), item.mode.unwrap_or(mode))?),
            None if optional => {}
            None => return Err(format!("references non-existent config key: {}", item.key)),
        }
    }
    Ok(entries)
}

fn downward(
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: i32,
    pod: &Pod,
    facts: &Facts,
) -> Result<Vec<Entry>, String> {
    let items = items.unwrap_or_default().iter();
    items
        .map(|item| {
            let text = if let Some(selector) = &item.field_ref {
                field(&selector.field_path, pod, facts)?
            } else if let Some(selector) = &item.resource_field_ref {
                let name = selector.container_name.as_deref().unwrap_or_default();
                let container =
                    container_named(pod, name).ok_or_else(|| format!("container {name:?} not found"))?;
                resource(selector, container, facts)?
            } else {
                return Err(format!("{} has no source", item.path));
            };
            Entry::new(&item.path, text.into_bytes(), item.mode.unwrap_or(mode))
        })
        .collect()
}

/// A path of the host, of the type that is asked for.
fn host_path(source: &HostPathVolumeSource) -> Result<PathBuf, String> {
    let path = PathBuf::from(&source.path);
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(format!(
            "hostPath {:?} must be absolute and without \"..\"",
            source.path
        ));
    }
    let kind = source.type_.as_deref().unwrap_or_default();
    let problem = |error: std::io::Error| format!("hostPath {}: {error}", source.path);
    match kind {
        "DirectoryOrCreate" => fs::create_dir_all(&path).map_err(problem)?,
        // Container runtimes make what is not there, and manifests rely on it.
        "" if !path.exists() => fs::create_dir_all(&path).map_err(problem)?,
        "FileOrCreate" if !path.exists() => drop(fs::File::create(&path).map_err(problem)?),
        _ => {}
    }
    let about = fs::metadata(&path).map_err(problem)?.file_type();
    let fits = match kind {
        "Directory" => about.is_dir(),
        "File" => about.is_file(),
        "Socket" => about.is_socket(),
        "CharDevice" => about.is_char_device(),
        "BlockDevice" => about.is_block_device(),
        _ => true,
    };
    if fits {
        Ok(path)
    } else {
        Err(format!(
            "hostPath type check failed: {} is not a {kind}",
            source.path
        ))
    }
}

/// The claims of a pod, with the paths of what they are bound to.
#[derive(Default)]
pub(crate) struct Claims(HashMap<String, Result<PathBuf, String>>);

impl Claims {
    /// Reads the claims that a pod names.
    pub async fn read(client: &kube::Client, pod: &Pod) -> Result<Claims, kube::Error> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mut claims = Claims::default();
        for source in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
            let name = &source.claim_name;
            let all: kube::Api<PersistentVolumeClaim> = kube::Api::namespaced(client.clone(), namespace);
            let claim = all.get_opt(name).await?;
            let bound = claim
                .and_then(|claim| claim.spec?.volume_name)
                .filter(|name| !name.is_empty());
            let found = match bound {
                None => Err(format!("persistentvolumeclaim {name:?} not found or not bound")),
                Some(bound) => {
                    let all: kube::Api<PersistentVolume> = kube::Api::all(client.clone());
                    path_of(&bound, all.get_opt(&bound).await?)
                }
            };
            claims.0.insert(name.clone(), found);
        }
        Ok(claims)
    }

    fn path(&self, claim: &str) -> Result<PathBuf, String> {
        let found = self.0.get(claim).cloned();
        found.unwrap_or_else(|| Err(format!("persistentvolumeclaim {claim:?} not found")))
    }
}

fn path_of(name: &str, volume: Option<PersistentVolume>) -> Result<PathBuf, String> {
    let spec = volume.and_then(|volume| volume.spec);
    let spec = spec.ok_or_else(|| format!("persistentvolume {name:?} not found"))?;
    if let Some(host) = &spec.host_path {
        return host_path(host);
    }
    match spec.local {
        Some(local) => Ok(PathBuf::from(local.path)),
        None => Err(format!(
            "persistentvolume {name:?} has no path on the host: hostPath and local are possible"
        )),
    }
}

/// The mounts of a container.
pub(crate) fn mounts(
    container: &Container,
    volumes: &Volumes,
    values: &BTreeMap<String, String>,
) -> Result<Vec<Mount>, String> {
    let mounts = container.volume_mounts.iter().flatten();
    mounts
        .map(|mount| {
            let volume = volumes.get(&mount.name);
            let volume = volume.ok_or_else(|| format!("volume {:?} is not of this pod", mount.name))?;
            let target = PathBuf::from(&mount.mount_path);
            if !target.is_absolute() || target.components().any(|part| part == Component::ParentDir) {
                return Err(format!(
                    "mountPath {:?} must be absolute and without \"..\"",
                    mount.mount_path
                ));
            }
            let within = match (&mount.sub_path, &mount.sub_path_expr) {
                (Some(path), _) if !path.is_empty() => Some(path.clone()),
                (_, Some(text)) if !text.is_empty() => Some(expand(text, values)),
                _ => None,
            };
            let source = match (within, &volume.source) {
                (None, source) => source.clone(),
                (Some(within), Source::Path(place)) => Source::Path(sub_path(place, &within)?),
                (Some(_), Source::Memory { .. }) => {
                    return Err("subPath of a volume in memory is not possible on this node".to_owned());
                }
            };
            Ok(Mount {
                source,
                target,
                read_only: mount.read_only == Some(true) || volume.shows_objects,
            })
        })
        .collect()
}

/// A path within a volume, which does not lead out of it. It is made, as a directory, if it is not there.
fn sub_path(volume: &Path, within: &str) -> Result<PathBuf, String> {
    let path = volume.join(within);
    let parts = Path::new(within)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !parts {
        return Err(format!("subPath {within:?} must stay within the volume"));
    }
    if !path.exists() {
        fs::create_dir_all(&path).map_err(|error| format!("subPath {within:?}: {error}"))?;
    }
    let real = path
        .canonicalize()
        .map_err(|error| format!("subPath {within:?}: {error}"))?;
    let root = volume.canonicalize().map_err(|error| error.to_string())?;
    if real.starts_with(&root) {
        Ok(real)
    } else {
        Err(format!("subPath {within:?} leads out of the volume"))
    }
}

#[cfg(test)]
mod tests;
