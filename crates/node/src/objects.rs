//! The ConfigMaps and Secrets that a pod names. They are read before anything is made of them, so that what is made is a
//! pure function of objects.

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret};
use kube::Api;
use std::collections::{BTreeMap, BTreeSet};

/// Those that exist, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub config_maps: BTreeMap<String, ConfigMap>,
    pub secrets: BTreeMap<String, Secret>,
}

/// Names of ConfigMaps and of Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    pub config_maps: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
}

impl Needed {
    /// What the volumes of a pod are made of.
    pub fn by_volumes(pod: &Pod) -> Needed {
        let mut needed = Needed::default();
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        for volume in volumes {
            needed
                .config_maps
                .extend(volume.config_map.iter().map(|source| source.name.clone()));
            needed.secrets.extend(
                volume
                    .secret
                    .iter()
                    .filter_map(|source| source.secret_name.clone()),
            );
            let projected = volume
                .projected
                .iter()
                .flat_map(|source| source.sources.iter().flatten());
            for source in projected {
                needed
                    .config_maps
                    .extend(source.config_map.iter().map(|source| source.name.clone()));
                needed
                    .secrets
                    .extend(source.secret.iter().map(|source| source.name.clone()));
            }
        }
        needed
    }

    /// What the environment of a container is made of.
    pub fn by_environment(container: &Container) -> Needed {
        let mut needed = Needed::default();
        for from in container.env_from.iter().flatten() {
            needed
                .config_maps
                .extend(from.config_map_ref.iter().map(|source| source.name.clone()));
            needed
                .secrets
                .extend(from.secret_ref.iter().map(|source| source.name.clone()));
        }
        for from in container
            .env
            .iter()
            .flatten()
            .filter_map(|one| one.value_from.as_ref())
        {
            needed
                .config_maps
                .extend(from.config_map_key_ref.iter().map(|source| source.name.clone()));
            needed
                .secrets
                .extend(from.secret_key_ref.iter().map(|source| source.name.clone()));
        }
        needed
    }
}

/// Reads what is needed.
pub(crate) async fn read(
    client: &kube::Client,
    namespace: &str,
    needed: Needed,
) -> Result<Objects, kube::Error> {
    let mut objects = Objects::default();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    for name in needed.config_maps {
        if let Some(found) = config_maps.get_opt(&name).await? {
            objects.config_maps.insert(name, found);
        }
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    for name in needed.secrets {
        if let Some(found) = secrets.get_opt(&name).await? {
            objects.secrets.insert(name, found);
        }
    }
    Ok(objects)
}
