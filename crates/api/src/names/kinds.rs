//! The kinds: group, version, names and scope of each.

/// Group of Job and CronJob.
pub const BATCH: &str = "batch.volcano.sh";
/// Group of Command.
pub const BUS: &str = "bus.volcano.sh";
/// Group of PodGroup and Queue.
pub const SCHEDULING: &str = "scheduling.volcano.sh";
/// Group of JobFlow and JobTemplate.
pub const FLOW: &str = "flow.volcano.sh";
/// Group of Numatopology.
pub const NODEINFO: &str = "nodeinfo.volcano.sh";
/// Group of HyperNode.
pub const TOPOLOGY: &str = "topology.volcano.sh";
/// Group of NodeShard.
pub const SHARD: &str = "shard.volcano.sh";
/// Group of ColocationConfiguration.
pub const CONFIG: &str = "config.volcano.sh";

/// Kubernetes' group of workloads.
pub const APPS: &str = "apps";

/// Version of Kubernetes' own kinds.
pub const V1: &str = "v1";
/// Version of every group but [`SCHEDULING`].
pub const V1ALPHA1: &str = "v1alpha1";
/// Version of [`SCHEDULING`].
pub const V1BETA1: &str = "v1beta1";

/// What the API server has to know about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// The one version, served and stored.
    pub version: &'static str,
    /// Name of the kind.
    pub kind: &'static str,
    /// Name in URLs and on the command line.
    pub plural: &'static str,
    /// Other names on the command line.
    pub short_names: &'static [&'static str],
    /// Whether objects are in a namespace.
    pub namespaced: bool,
    /// Whether the status is written through a subresource of its own.
    pub status_subresource: bool,
}

impl Kind {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Name of the kind's list.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The name on the command line, one object.
    pub fn singular(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// Name of the CRD, `plural.group`.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// A namespaced `v1alpha1` kind with a status subresource and no short names: what most are.
const fn kind(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        version: V1ALPHA1,
        kind,
        plural,
        short_names: &[],
        namespaced: true,
        status_subresource: true,
    }
}

/// A batch job: tasks of pods that run as a gang.
pub const JOB: Kind = Kind {
    short_names: &["vcjob", "vj"],
    ..kind(BATCH, "Job", "jobs")
};
/// Makes Jobs on a schedule.
pub const CRON_JOB: Kind = Kind {
    short_names: &["cronvcjob", "cronvj"],
    ..kind(BATCH, "CronJob", "cronjobs")
};
/// An order to a Job or a Queue, carried out once.
pub const COMMAND: Kind = Kind {
    status_subresource: false,
    ..kind(BUS, "Command", "commands")
};
/// A gang of pods. Its status is written with the whole object: there is no status subresource.
pub const POD_GROUP: Kind = Kind {
    version: V1BETA1,
    short_names: &["pg", "podgroup-v1beta1"],
    status_subresource: false,
    ..kind(SCHEDULING, "PodGroup", "podgroups")
};
/// A share of the cluster.
pub const QUEUE: Kind = Kind {
    version: V1BETA1,
    short_names: &["q", "queue-v1beta1"],
    namespaced: false,
    ..kind(SCHEDULING, "Queue", "queues")
};
/// A graph of Jobs.
pub const JOB_FLOW: Kind = Kind {
    short_names: &["jf"],
    ..kind(FLOW, "JobFlow", "jobflows")
};
/// A Job that a JobFlow makes.
pub const JOB_TEMPLATE: Kind = Kind {
    short_names: &["jt"],
    ..kind(FLOW, "JobTemplate", "jobtemplates")
};
/// NUMA topology of a node; the object's name is the node's.
pub const NUMATOPOLOGY: Kind = Kind {
    short_names: &["numatopo"],
    namespaced: false,
    status_subresource: false,
    ..kind(NODEINFO, "Numatopology", "numatopologies")
};
/// A domain of the network topology.
pub const HYPER_NODE: Kind = Kind {
    short_names: &["hn"],
    namespaced: false,
    ..kind(TOPOLOGY, "HyperNode", "hypernodes")
};
/// The nodes of one scheduler among several; the object's name is the scheduler's.
pub const NODE_SHARD: Kind = Kind {
    short_names: &["nsh"],
    namespaced: false,
    ..kind(SHARD, "NodeShard", "nodeshards")
};
/// Settings of the node agent for pods that share nodes with online services.
pub const COLOCATION_CONFIGURATION: Kind =
    kind(CONFIG, "ColocationConfiguration", "colocationconfigurations");

/// A namespaced `v1` kind of Kubernetes itself, of which the status is written elsewhere.
const fn builtin(group: &'static str, name: &'static str, plural: &'static str) -> Kind {
    Kind {
        version: V1,
        status_subresource: false,
        ..kind(group, name, plural)
    }
}

/// A pod.
pub const POD: Kind = Kind {
    status_subresource: true,
    ..builtin("", "Pod", "pods")
};
/// Names and ports for pods.
pub const SERVICE: Kind = builtin("", "Service", "services");
/// Files and variables for pods.
pub const CONFIG_MAP: Kind = builtin("", "ConfigMap", "configmaps");
/// The same, kept secret.
pub const SECRET: Kind = builtin("", "Secret", "secrets");
/// A claim on a volume.
pub const PERSISTENT_VOLUME_CLAIM: Kind = builtin("", "PersistentVolumeClaim", "persistentvolumeclaims");
/// A name for a priority.
pub const PRIORITY_CLASS: Kind = Kind {
    namespaced: false,
    ..builtin("scheduling.k8s.io", "PriorityClass", "priorityclasses")
};
/// Which pods may talk to which.
pub const NETWORK_POLICY: Kind = builtin("networking.k8s.io", "NetworkPolicy", "networkpolicies");
/// Equal pods of one revision of a Deployment.
pub const REPLICA_SET: Kind = builtin(APPS, "ReplicaSet", "replicasets");
/// Pods with names that stay.
pub const STATEFUL_SET: Kind = builtin(APPS, "StatefulSet", "statefulsets");
/// A pod on each node.
pub const DAEMON_SET: Kind = builtin(APPS, "DaemonSet", "daemonsets");
/// Kubernetes' own Job.
pub const KUBERNETES_JOB: Kind = builtin("batch", "Job", "jobs");

/// Every kind of the project, in the order of the CRDs.
pub const ALL: [Kind; 11] = [
    JOB,
    CRON_JOB,
    COMMAND,
    POD_GROUP,
    QUEUE,
    JOB_FLOW,
    JOB_TEMPLATE,
    NUMATOPOLOGY,
    HYPER_NODE,
    NODE_SHARD,
    COLOCATION_CONFIGURATION,
];
