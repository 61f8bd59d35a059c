//! Names of resources.

// Kubernetes' own.
/// CPU.
pub const CPU: &str = "cpu";
/// Memory.
pub const MEMORY: &str = "memory";
/// Number of pods.
pub const PODS: &str = "pods";
/// Scratch space.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Whole GPUs.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";

// Oversubscribed.
/// CPU that online services leave.
pub const BATCH_CPU: &str = "kubernetes.io/batch-cpu";
/// Memory that online services leave.
pub const BATCH_MEMORY: &str = "kubernetes.io/batch-memory";

// Shared devices.
/// GPU memory, legacy sharing.
pub const GPU_MEMORY: &str = "volcano.sh/gpu-memory";
/// Whole GPUs, legacy sharing.
pub const GPU_NUMBER: &str = "volcano.sh/gpu-number";
/// Slices of GPUs.
pub const VGPU_NUMBER: &str = "volcano.sh/vgpu-number";
/// Memory of a slice.
pub const VGPU_MEMORY: &str = "volcano.sh/vgpu-memory";
/// Memory of a slice in percent of the card's.
pub const VGPU_MEMORY_PERCENTAGE: &str = "volcano.sh/vgpu-memory-percentage";
/// Computing power of a slice in percent of the card's.
pub const VGPU_CORES: &str = "volcano.sh/vgpu-cores";
/// Ascend devices, or slices of them.
pub const ASCEND_310P: &str = "huawei.com/Ascend310P";
/// Memory of a slice of an Ascend device.
pub const ASCEND_310P_MEMORY: &str = "huawei.com/Ascend310P-memory";

// Prefixes of derived names.
/// Quota: sum of requests.
pub const REQUESTS_PREFIX: &str = "requests.";
/// Quota: sum of limits.
pub const LIMITS_PREFIX: &str = "limits.";
/// Quota: number of objects.
pub const COUNT_PREFIX: &str = "count/";
/// Quota: number of pods.
pub const COUNT_PODS: &str = "count/pods";
/// Huge pages; the size follows.
pub const HUGEPAGES_PREFIX: &str = "hugepages-";
/// Volumes of a CSI driver that a node can attach.
pub const ATTACHABLE_VOLUMES_CSI_PREFIX: &str = "attachable-volumes-csi-";
/// Devices of a class in a queue's amounts; before it may stand `<dimension>.`.
pub const DEVICE_CLASS_PREFIX: &str = "deviceclass/";
