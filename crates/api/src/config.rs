//! `config.volcano.sh/v1alpha1`: settings of the node agent for pods that share nodes with online services.

use crate::meta::{Condition, LabelSelector};
use crate::wire::{object, resource};

resource! {
    /// Settings of the node agent for the pods that it selects.
    pub struct ColocationConfiguration = COLOCATION_CONFIGURATION {
        /// What was found.
        pub status: ColocationConfigurationStatus,
    }
    always {
        /// The pods and their settings.
        pub spec: ColocationConfigurationSpec,
    }
}

object! {
    /// Pods and their settings.
    pub struct ColocationConfigurationSpec {
        /// The pods of the namespace that are meant: none when unset, all when empty.
        pub selector: Option<LabelSelector>,
        /// How their memory is protected.
        pub memory_qos: Option<MemoryQos>,
    }
}

object! {
    /// How the memory of pods is protected, in percent of what they ask for.
    ///
    /// A ratio of 0 differs from none given, which means the default.
    pub struct MemoryQos {
        /// Share of the limit above which the pod is throttled.
        #[schema(with = "isize", range(min = 0, max = 100), extend("default" = 100))]
        pub high_ratio: Option<i64>,
        /// Share of the request that is kept if possible.
        #[schema(with = "isize", range(min = 0, max = 100), extend("default" = 0))]
        pub low_ratio: Option<i64>,
        /// Share of the request that is always kept.
        #[schema(with = "isize", range(min = 0, max = 100), extend("default" = 0))]
        pub min_ratio: Option<i64>,
    }
}

object! {
    /// What was found about a configuration.
    pub struct ColocationConfigurationStatus {
        /// Its conditions.
        #[schema(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        pub conditions: Vec<Condition>,
    }
}
