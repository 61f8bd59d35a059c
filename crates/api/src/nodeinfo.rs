//! `nodeinfo.volcano.sh/v1alpha1`: the NUMA topology of nodes, as the resource exporter reports it.

use std::collections::BTreeMap;

use crate::wire::{object, resource};

resource! {
    /// NUMA topology of the node of the same name.
    pub struct Numatopology = NUMATOPOLOGY {
        /// The topology.
        pub spec: NumatopoSpec,
    }
}

object! {
    /// NUMA topology of a node.
    pub struct NumatopoSpec {
        /// Policies of the kubelet: CPUManagerPolicy and TopologyManagerPolicy.
        pub policies: BTreeMap<String, String>,
        /// Reserved amounts by resource.
        pub res_reserved: BTreeMap<String, String>,
        /// What there is by resource.
        pub numares: BTreeMap<String, ResourceInfo>,
        /// Where each CPU is, by CPU id.
        pub cpu_detail: BTreeMap<String, CpuInfo>,
        /// What pods hold.
        pub pod_allocations: Vec<PodAllocation>,
    }
}

object! {
    /// What there is of a resource.
    pub struct ResourceInfo {
        /// What can be given out; a set of CPUs such as `0,2-4` for cpu.
        pub allocatable: String,
        /// How much there is in all.
        #[schema(with = "isize")]
        pub capacity: i64,
    }
}

object! {
    /// Where a CPU is.
    pub struct CpuInfo {
        /// Its NUMA node.
        #[schema(with = "isize", range(min = 0))]
        pub numa: i64,
        /// Its socket.
        #[schema(with = "isize", range(min = 0))]
        pub socket: i64,
        /// Its core.
        #[schema(with = "isize", range(min = 0))]
        pub core: i64,
    }
}

object! {
    /// What a pod holds.
    pub struct PodAllocation {
        /// UID of the pod.
        pub uid: String,
        /// Name of the pod.
        pub name: String,
        /// Namespace of the pod.
        pub namespace: String,
        /// What its containers hold.
        pub container_allocations: Vec<ContainerAllocation>,
    }
}

object! {
    /// What a container holds.
    pub struct ContainerAllocation {
        /// Name of the container.
        pub name: String,
        /// A set of CPUs such as `0,2-4` for cpu, else an amount, by resource.
        pub allocations: BTreeMap<String, String>,
    }
}
