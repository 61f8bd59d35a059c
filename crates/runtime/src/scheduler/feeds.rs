//! The watches of the scheduler: one per kind, all into one channel.

use super::options::Options;
use crate::client::Client;
use crate::gates;
use crate::metrics::Process;
use crate::watch::kinds::Scheduling;
use crate::watch::{Feed, Object, watch};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use volcano_api::core::{
    CsiDriver, CsiNode, CsiStorageCapacity, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    PodDisruptionBudget, PriorityClass, ResourceQuota, StorageClass,
};
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::shard::NodeShard;
use volcano_api::topology::HyperNode;
use volcano_engine::model::kind::Kind;

/// Batches of changes that wait for the engine. More would only be memory: a watch whose batches are not taken
/// stops reading, and the API server waits.
const WAITING: usize = 64;

/// Calls `with` for every kind that is watched.
macro_rules! each_kind {
    ($options:expr, $with:ident) => {{
        $with!(Node);
        $with!(Pod);
        $with!(PodGroup);
        $with!(Queue);
        $with!(Namespace);
        $with!(PersistentVolumeClaim);
        $with!(PersistentVolume);
        $with!(StorageClass);
        $with!(CsiNode);
        $with!(ResourceQuota);
        $with!(HyperNode);
        if $options.priority_class && $options.feature_gates.enabled(gates::PRIORITY_CLASS) {
            $with!(PriorityClass);
        }
        if $options.csi_storage {
            $with!(CsiDriver);
            $with!(CsiStorageCapacity);
        }
        if $options.feature_gates.enabled(gates::PDB_SUPPORT) {
            $with!(PodDisruptionBudget);
        }
        if $options.features.sharding.is_some() {
            $with!(NodeShard);
        }
    }};
}

/// The kinds that are watched.
pub fn kinds(options: &Options) -> Vec<Kind> {
    let mut kinds = Vec::new();
    macro_rules! add {
        ($type:ty) => {
            kinds.push(<$type as Object<Scheduling>>::KIND)
        };
    }
    each_kind!(options, add);
    kinds
}

/// Starts the watches. They end with the tasks or with the receiver.
pub fn start(
    client: &Client,
    metrics: &Process,
    options: &Options,
    tasks: &mut JoinSet<()>,
) -> mpsc::Receiver<Feed> {
    let (feed, receiver) = mpsc::channel(WAITING);
    macro_rules! start {
        ($type:ty) => {
            tasks.spawn(watch::<Scheduling, $type>(
                client.clone(),
                metrics.clone(),
                feed.clone(),
            ))
        };
    }
    each_kind!(options, start);
    receiver
}
