//! Objects that the model keeps as they came, without what tools wrote into them for themselves.

use crate::ids::Sym;
use crate::model::Model;
use crate::model::delta::Delta;
use volcano_api::core::{Meta, Namespace, PriorityClass};
use volcano_api::meta::Resource as _;
use volcano_api::names::{CSI_DRIVER_PARAMETER, annotations};

pub(super) fn before_nodes(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    let cluster = &m.cluster;
    let classes = by_name(m, cluster.priority_classes.iter()).map(|(name, class)| {
        Delta::PriorityClass(PriorityClass {
            metadata: named(name),
            value: class.value,
            global_default: class.global_default,
            preemption_policy: None,
        })
    });
    let namespaces = by_name(m, cluster.namespaces.iter()).map(|(name, labels)| {
        Delta::Namespace(Namespace {
            metadata: Meta {
                labels: labels.clone(),
                ..named(name)
            },
        })
    });
    classes.chain(namespaces)
}

pub(super) fn hyper_nodes(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    m.cluster.hyper_nodes.values().map(|object| {
        let mut object = object.clone();
        object.set_type();
        object.metadata.annotations.remove(annotations::LAST_APPLIED);
        object.metadata.extra.clear();
        Delta::HyperNode(Box::new(object))
    })
}

pub(super) fn node_shards(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    m.shards.objects().map(|object| {
        let mut object = object.clone();
        object.set_type();
        object.metadata.annotations.remove(annotations::LAST_APPLIED);
        object.metadata.extra.clear();
        Delta::NodeShard(Box::new(object))
    })
}

pub(super) fn after_nodes(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    let cluster = &m.cluster;
    let storage_classes = cluster.storage_classes.values().map(|object| {
        let mut object = trimmed(object, |o| &mut o.metadata);
        // The others are the driver's own, and some drivers take passwords.
        object.parameters.retain(|name, _| name == CSI_DRIVER_PARAMETER);
        Delta::StorageClass(object)
    });
    let volumes = cluster
        .volumes
        .values()
        .map(|object| Delta::Volume(trimmed(object, |o| &mut o.metadata)));
    let claims =
        by_key(m, cluster.claims.iter()).map(|object| Delta::Claim(trimmed(object, |o| &mut o.metadata)));
    let csi_nodes = by_name(m, cluster.csi_nodes.iter())
        .map(|(_, object)| Delta::CsiNode(trimmed(object, |o| &mut o.metadata)));
    let csi_drivers = cluster
        .csi_drivers
        .values()
        .map(|object| Delta::CsiDriver(trimmed(object, |o| &mut o.metadata)));
    let capacities = by_key(m, cluster.storage_capacities.iter())
        .map(|capacity| Delta::StorageCapacity(trimmed(&capacity.object, |o| &mut o.metadata)));
    let quotas = by_key(m, cluster.quotas.iter())
        .map(|object| Delta::ResourceQuota(trimmed(object, |o| &mut o.metadata)));
    let budgets = by_key(m, cluster.budgets.iter())
        .map(|budget| Delta::DisruptionBudget(trimmed(&budget.object, |o| &mut o.metadata)));
    storage_classes
        .chain(volumes)
        .chain(claims)
        .chain(csi_nodes)
        .chain(csi_drivers)
        .chain(capacities)
        .chain(quotas)
        .chain(budgets)
}

/// The object without the copy of itself that a tool keeps in it, which has all that was never decoded, and without the
/// version of the stored one.
fn trimmed<T: Clone>(object: &T, metadata: fn(&mut T) -> &mut Meta) -> Box<T> {
    let mut object = Box::new(object.clone());
    let metadata = metadata(&mut object);
    metadata.annotations.remove(annotations::LAST_APPLIED);
    metadata.resource_version.clear();
    object
}

fn named(name: &str) -> Meta {
    Meta {
        name: name.to_owned(),
        ..Meta::default()
    }
}

fn by_name<'a, T: 'a>(
    m: &'a Model,
    objects: impl Iterator<Item = (&'a Sym, &'a T)>,
) -> impl Iterator<Item = (&'a str, &'a T)> {
    let mut list: Vec<_> = objects.map(|(&name, object)| (m.text(name), object)).collect();
    list.sort_unstable_by_key(|(name, _)| *name);
    list.into_iter()
}

fn by_key<'a, T: 'a>(
    m: &'a Model,
    objects: impl Iterator<Item = (&'a (Sym, Box<str>), &'a T)>,
) -> impl Iterator<Item = &'a T> {
    let mut list: Vec<_> = objects
        .map(|((namespace, name), object)| ((m.text(*namespace), &**name), object))
        .collect();
    list.sort_unstable_by_key(|(key, _)| *key);
    list.into_iter().map(|(_, object)| object)
}
