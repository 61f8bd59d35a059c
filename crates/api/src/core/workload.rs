//! ReplicaSets and StatefulSets, which are alike as far as anybody here looks at them.

use super::Meta;

slim! {
    /// Something that makes equal pods.
    pub struct Workload {
        /// Name, identity, annotations.
        pub metadata: Meta,
        /// What is wanted.
        pub spec: WorkloadSpec,
    }

    /// What is wanted.
    pub struct WorkloadSpec {
        /// How many pods; one if nothing is said.
        pub replicas: Option<i32>,
        /// How a pod looks.
        pub template: WorkloadTemplate,
    }

    /// How a pod looks.
    pub struct WorkloadTemplate {
        /// What the pod wants.
        pub spec: WorkloadPod,
    }

    /// What a pod of it wants.
    pub struct WorkloadPod {
        /// The scheduler that is to place it.
        pub scheduler_name: String,
    }
}
