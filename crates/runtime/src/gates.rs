//! Feature gates: which there are, which are on, and what `--feature-gates` may say.
//!
//! Volcano's gates and those of the Kubernetes libraries share one flag. Most of the latter mean nothing to a
//! scheduler; they are known so that a command line that names one still works.

use std::collections::BTreeMap;
use thiserror::Error;

/// List and watch workloads, for the default constraints of topology spread.
pub const WORKLOAD_SUPPORT: &str = "WorkLoadSupport";
/// Watch PodDisruptionBudgets.
pub const PDB_SUPPORT: &str = "PodDisruptionBudgetsSupport";
/// Watch PriorityClasses.
pub const PRIORITY_CLASS: &str = "PriorityClass";
/// Watch Jobs.
pub const VOLCANO_JOB_SUPPORT: &str = "VolcanoJobSupport";
/// Watch Commands, and carry them out.
pub const QUEUE_COMMAND_SYNC: &str = "QueueCommandSync";
/// Watch `Numatopology` objects.
pub const RESOURCE_TOPOLOGY: &str = "ResourceTopology";
/// Remove the queue-allocation scheduling gate when the queue has room.
pub const QUEUE_ADMISSION_GATES: &str = "SchedulingGatesQueueAdmission";
/// Score nodes by how well volumes and free storage suit the claims of a pod. A gate of Kubernetes, where it is alpha.
pub const STORAGE_CAPACITY_SCORING: &str = "StorageCapacityScoring";

/// Volcano's own gates, all of them alpha, with their defaults.
const VOLCANO: &[(&str, bool)] = &[
    (WORKLOAD_SUPPORT, true),
    (VOLCANO_JOB_SUPPORT, true),
    (PDB_SUPPORT, true),
    (QUEUE_COMMAND_SYNC, true),
    (PRIORITY_CLASS, true),
    ("CSIStorage", false),
    (RESOURCE_TOPOLOGY, true),
    ("CronVolcanoJobSupport", true),
    (QUEUE_ADMISSION_GATES, false),
];

/// Gates of Kubernetes that something here looks at and that are alpha there.
const KUBERNETES_ALPHA: &[(&str, bool)] = &[(STORAGE_CAPACITY_SCORING, false)];

/// What the scheduler looks at.
pub const OF_SCHEDULER: &[&str] = &[
    PRIORITY_CLASS,
    PDB_SUPPORT,
    QUEUE_ADMISSION_GATES,
    STORAGE_CAPACITY_SCORING,
];
/// What the controllers look at.
pub const OF_CONTROLLERS: &[&str] = &[
    VOLCANO_JOB_SUPPORT,
    QUEUE_COMMAND_SYNC,
    PRIORITY_CLASS,
    WORKLOAD_SUPPORT,
];
/// What admission looks at.
pub const OF_ADMISSION: &[&str] = &[QUEUE_ADMISSION_GATES];

/// All of Kubernetes 1.36.
const KUBERNETES: &str = "
    APIResponseCompression APIServerIdentity APIServerTracing APIServingWithRoutine
    AggregatedDiscoveryRemoveBetaType AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    AllowOverwriteTerminationGracePeriodSeconds AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs
    AllowUnsafeMalformedObjectDeletion AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AtomicFIFO
    AuthorizeNodeWithSelectors AuthorizePodWebsocketUpgradeCreatePermission AuthorizeWithSelectors
    BtreeWatchCache CBORServingAndStorage CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
    CPUManagerPolicyOptions CRDObservedGenerationTracking CRDValidationRatcheting CRIListStreaming
    CSIServiceAccountTokenSecrets CSIVolumeHealth ChangeContainerStatusOnKubeletRestart
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz
    ConcurrentWatchObjectDecode ConsistentListFromCache ConstrainedImpersonation ContainerCheckpoint
    ContainerRestartRules ContainerStopSignals ContextualLogging
    ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection
    CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod CustomResourceFieldSelectors DRAAdminAccess
    DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules DRADeviceTaints
    DRAExtendedResource DRAListTypeAttributes DRANodeAllocatableResources DRAPartitionableDevices
    DRAPrioritizedList DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
    DRAResourcePoolStatus DRASchedulerFilterTimeout DRAWorkloadResourceClaims DeclarativeValidation
    DeclarativeValidationBeta DeclarativeValidationTakeover DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency DisableAllocatorDualWrite DisableCPUQuotaWithExclusiveCPUs
    DisableNodeKubeProxyVersion DynamicResourceAllocation EnvFiles EventedPLEG ExecProbeTimeout
    ExtendWebSocketsToKubelet ExternalServiceAccountTokenSigner GangScheduling GenericWorkload
    GitRepoVolumeDriver GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HPAScaleToZero HostnameOverride ImageMaximumGCAge ImageVolume
    ImageVolumeWithDigest InOrderInformers InOrderInformersBatchProcess
    InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScaling
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    InPlacePodVerticalScalingInitContainers InformerResourceVersion JobBackoffLimitPerIndex JobManagedBy
    JobPodReplacementPolicy JobSuccessPolicy KMSv1 KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPodResourcesListUseActivePods
    KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders KubeletTracing ListFromCacheSnapshot
    LocalStorageCapacityIsolationFSQuotaMonitoring LogarithmicScaleDown LoggingAlphaOptions
    LoggingBetaOptions LoggingStableOptions ManifestBasedAdmissionControlConfig
    MatchLabelKeysInPodAffinity MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MultiCIDRServiceAllocator MutableCSINodeAllocatableCount MutablePVNodeAffinity
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    MutatingAdmissionPolicy NFTablesProxyMode NativeHistograms NodeDeclaredFeatures
    NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap NominatedNodeNameForExpectation
    OpenAPIEnums OpportunisticBatching OrderedNamespaceDeletion PLEGOnDemandRelist
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodCertificateRequest
    PodDeletionCost PodLevelResourceManagers PodLevelResources PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodLogsQuerySplitStreams PodObservedGenerationTracking
    PodReadyToStartContainersCondition PodSchedulingReadiness PodTopologyLabelsAdmission PodsAPI
    PortForwardWebsockets PreferSameTrafficDistribution PreventStaticPodAPIReferences ProcMountType
    QOSReserved RecoverVolumeExpansionFailure RecursiveReadOnlyMounts ReduceDefaultCrashLoopBackOffDecay
    RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResilientWatchCacheInitialization
    ResourceHealthStatus ResourceHealthStatusMessage RestartAllContainersOnContainerExits
    RetryGenerateName RotateKubeletServerCertificate RuntimeClassInImageCriApi SELinuxChangePolicy
    SELinuxMount SELinuxMountReadWriteOncePod SchedulerAsyncAPICalls SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ SchedulerQueueingHints SeparateCacheWatchRPC
    SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo ServiceCIDRStatusFieldWiping ShardedListAndWatch SidecarContainers
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageNamespaceIndex StorageVersionAPI
    StorageVersionHash StorageVersionMigrator StreamingCollectionEncodingToJSON
    StreamingCollectionEncodingToProtobuf StrictIPCIDRValidation StructuredAuthenticationConfiguration
    StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
    SupplementalGroupsPolicy TaintTolerationComparisonOperators TokenRequestServiceAccountUIDValidation
    TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions
    TopologyManagerPolicyOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport
    UserNamespacesSupport VolumeAttributesClass VolumeLimitScaling WatchCacheInitializationPostStartHook
    WatchList WatchListClient WinDSR WinOverlay WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown
    WindowsHostNetwork WorkloadAwarePreemption WorkloadWithJob
";

/// Sets every alpha gate that is not set by itself.
const ALL_ALPHA: &str = "AllAlpha";
/// Sets every beta gate that is not set by itself; Volcano has none.
const ALL_BETA: &str = "AllBeta";

/// Why `--feature-gates` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// An item has no `=`.
    #[error("missing value for feature gate {0}: write {0}=true or {0}=false")]
    NoValue(String),
    /// The value is no truth value.
    #[error("invalid value {value:?} of feature gate {name}: write true or false")]
    NotBool {
        /// The gate.
        name: String,
        /// What was written.
        value: String,
    },
    /// There is no such gate.
    #[error("unknown feature gate {name}{}", hint(.nearest.as_deref()))]
    Unknown {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default()
}

/// The gates as they are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    given: BTreeMap<String, bool>,
}

impl FeatureGates {
    /// Reads lists such as `A=true,B=false`; what comes later wins.
    ///
    /// # Errors
    /// For a gate that does not exist and a value that is no truth value.
    pub fn parse<'a>(lists: impl IntoIterator<Item = &'a str>) -> Result<Self, GateError> {
        let mut given = BTreeMap::new();
        let items = lists.into_iter().flat_map(|list| list.split(','));
        for item in items.map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) = item
                .split_once('=')
                .ok_or_else(|| GateError::NoValue(item.to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            if !known().any(|gate| gate == name) {
                return Err(GateError::Unknown {
                    name: name.to_owned(),
                    nearest: nearest(name),
                });
            }
            let on = go_bool(value).ok_or_else(|| GateError::NotBool {
                name: name.to_owned(),
                value: value.to_owned(),
            })?;
            given.insert(name.to_owned(), on);
        }
        Ok(FeatureGates { given })
    }

    /// Whether a gate is on: of Volcano, or an alpha one of Kubernetes. Any other is when it was switched on.
    pub fn enabled(&self, name: &str) -> bool {
        if let Some(on) = self.given(name) {
            return on;
        }
        let mut alpha = VOLCANO.iter().chain(KUBERNETES_ALPHA);
        let Some((_, default)) = alpha.find(|(gate, _)| *gate == name) else {
            return false;
        };
        self.given(ALL_ALPHA).unwrap_or(*default)
    }

    /// What was said about a gate, if anything was. For Kubernetes' gates, whose defaults depend on the API server.
    pub fn given(&self, name: &str) -> Option<bool> {
        self.given.get(name).copied()
    }

    /// Gates that were set although a program looks only at others.
    pub fn without_effect(&self, looked_at: &[&str]) -> impl Iterator<Item = &str> {
        let given = self.given.keys().map(String::as_str);
        given.filter(move |name| !looked_at.contains(name) && ![ALL_ALPHA, ALL_BETA].contains(name))
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    let volcano = VOLCANO.iter().map(|(name, _)| *name);
    volcano
        .chain(KUBERNETES.split_whitespace())
        .chain([ALL_ALPHA, ALL_BETA])
}

/// The gate whose name is most like this one, if one is like it.
fn nearest(name: &str) -> Option<String> {
    let likeness = |gate: &str| strsim::jaro_winkler(&gate.to_lowercase(), &name.to_lowercase());
    let best = known().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.85).then(|| best.to_owned())
}

/// The truth values of Go's flags.
pub fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &str) -> FeatureGates {
        FeatureGates::parse([list]).unwrap()
    }

    #[test]
    fn defaults_are_those_of_volcano() {
        let gates = FeatureGates::default();
        for (gate, on) in [
            (WORKLOAD_SUPPORT, true),
            (PDB_SUPPORT, true),
            (PRIORITY_CLASS, true),
            (RESOURCE_TOPOLOGY, true),
            (QUEUE_ADMISSION_GATES, false),
            ("CSIStorage", false),
            ("DynamicResourceAllocation", false),
        ] {
            assert_eq!(gates.enabled(gate), on, "{gate}");
        }
        assert_eq!(gates.given("DynamicResourceAllocation"), None);
    }

    #[test]
    fn what_is_given_wins_and_the_last_of_it() {
        let gates = FeatureGates::parse([
            "PriorityClass=false, SchedulingGatesQueueAdmission=T,",
            "",
            "PriorityClass=1",
        ])
        .unwrap();
        assert!(gates.enabled(PRIORITY_CLASS) && gates.enabled(QUEUE_ADMISSION_GATES));
        assert!(gates.enabled(WORKLOAD_SUPPORT));
    }

    #[test]
    fn all_alpha_sets_what_is_not_set_by_itself() {
        let off = parse("AllAlpha=false,PriorityClass=true");
        assert!(off.enabled(PRIORITY_CLASS) && !off.enabled(WORKLOAD_SUPPORT));
        let on = parse("AllAlpha=true");
        assert!(on.enabled(QUEUE_ADMISSION_GATES) && on.enabled(STORAGE_CAPACITY_SCORING));
        assert!(!on.enabled("DynamicResourceAllocation"), "beta");
        assert!(!parse("AllAlpha=true,StorageCapacityScoring=false").enabled(STORAGE_CAPACITY_SCORING));
        assert!(!parse("").enabled(STORAGE_CAPACITY_SCORING));
    }

    #[test]
    fn mistakes_name_the_gate() {
        for (list, message) in [
            (
                "PriorityClasses=true",
                "unknown feature gate PriorityClasses; did you mean PriorityClass?",
            ),
            ("Zzz=true", "unknown feature gate Zzz"),
            (
                "PriorityClass",
                "missing value for feature gate PriorityClass: write PriorityClass=true or PriorityClass=false",
            ),
            (
                "PriorityClass=yes",
                "invalid value \"yes\" of feature gate PriorityClass: write true or false",
            ),
        ] {
            let error = FeatureGates::parse([list]).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn gates_that_mean_nothing_here_are_known_and_told() {
        let gates = parse("PriorityClass=true,DRAAdminAccess=true,KubeletTracing=true,AllBeta=true");
        let idle = |looked_at| gates.without_effect(looked_at).collect::<Vec<_>>();
        assert_eq!(idle(OF_SCHEDULER), ["DRAAdminAccess", "KubeletTracing"]);
        assert_eq!(
            idle(OF_ADMISSION),
            ["DRAAdminAccess", "KubeletTracing", "PriorityClass"]
        );
        for name in [OF_SCHEDULER, OF_CONTROLLERS, OF_ADMISSION].concat() {
            assert!(known().any(|gate| gate == name), "{name}");
        }
    }
}
