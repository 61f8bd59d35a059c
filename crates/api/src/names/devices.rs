//! Keys with which shared devices are booked: annotations, unless the comment says label.

// Legacy GPU sharing.
/// Pod: indexes of its cards.
pub const GPU_INDEX: &str = "volcano.sh/gpu-index";
/// Pod: when its cards were chosen, in nanoseconds.
pub const PREDICATE_TIME: &str = "volcano.sh/predicate-time";
/// Node: cards not to use.
pub const GPU_UNHEALTHY_IDS: &str = "volcano.sh/gpu-unhealthy-ids";

// vGPU.
/// Node: its cards, `uuid,count,memory,type,health,mode:` each.
pub const NODE_VGPU_REGISTER: &str = "volcano.sh/node-vgpu-register";
/// Pod: when its cards were chosen, in seconds.
pub const VGPU_TIME: &str = "volcano.sh/vgpu-time";
/// Pod: its cards, per container.
pub const VGPU_IDS_NEW: &str = "volcano.sh/vgpu-ids-new";
/// Pod: cards that the device plugin still has to set up.
pub const DEVICES_TO_ALLOCATE: &str = "volcano.sh/devices-to-allocate";
/// Pod: node of its cards.
pub const VGPU_NODE: &str = "volcano.sh/vgpu-node";
/// Pod: when it was bound to its cards.
pub const BIND_TIME: &str = "volcano.sh/bind-time";
/// Pod: how far the device plugin is.
pub const BIND_PHASE: &str = "volcano.sh/bind-phase";
/// Value of [`BIND_PHASE`] until the device plugin is done.
pub const BIND_PHASE_ALLOCATING: &str = "allocating";
/// Value of [`BIND_PHASE`] when it is.
pub const BIND_PHASE_SUCCESS: &str = "success";
/// Pod: mode that its cards must be in.
pub const VGPU_MODE: &str = "volcano.sh/vgpu-mode";
/// Pod: `spread` to share no card with its PodGroup.
pub const VGPU_PODGROUP_POLICY: &str = "volcano.sh/vgpu-podgroup-policy";
/// Pod: cards that it may use.
pub const VGPU_USE_GPUUUID: &str = "volcano.sh/vgpu-use-gpuuuid";
/// Pod: cards that it may not use.
pub const VGPU_NOUSE_GPUUUID: &str = "volcano.sh/vgpu-nouse-gpuuuid";
/// Pod: types of cards that it may use.
pub const USE_GPUTYPE: &str = "nvidia.com/use-gputype";
/// Pod: types of cards that it may not use.
pub const NOUSE_GPUTYPE: &str = "nvidia.com/nouse-gputype";

// Ascend through HAMi. `<w>` is the word of the device type.
/// Node: its devices, JSON; `<w>` follows.
pub const HAMI_NODE_REGISTER_PREFIX: &str = "hami.io/node-register-";
/// Node: whether devices are sliced by software.
pub const HAMI_VNPU_CORE: &str = "hami-vnpu-core";
/// Pod: start of `hami.io/<w>-devices-…`.
pub const HAMI_PREFIX: &str = "hami.io/";
/// Pod: end of the key of the devices that are still to be set up.
pub const HAMI_DEVICES_TO_ALLOCATE_SUFFIX: &str = "-devices-to-allocate";
/// Pod: end of the key of its devices.
pub const HAMI_DEVICES_ALLOCATED_SUFFIX: &str = "-devices-allocated";
/// Pod: node of its devices.
pub const HAMI_VGPU_NODE: &str = "hami.io/vgpu-node";
/// Pod: when its devices were chosen.
pub const HAMI_VGPU_TIME: &str = "hami.io/vgpu-time";
/// Pod: when it was bound to its devices.
pub const HAMI_BIND_TIME: &str = "hami.io/bind-time";
/// Pod: how far the device plugin is.
pub const HAMI_BIND_PHASE: &str = "hami.io/bind-phase";
/// Pod: its devices for the runtime, JSON; `<w>` follows.
pub const HUAWEI_PREFIX: &str = "huawei.com/";
/// Pod: `hami-core` to be sliced by software.
pub const HUAWEI_VNPU_MODE: &str = "huawei.com/vnpu-mode";
/// Pod: when its devices were chosen.
pub const ASCEND_PREDICATE_TIME: &str = "predicate-time";

// Ascend through MindCluster.
/// Pod label: kind of the device.
pub const RING_CONTROLLER: &str = "ring-controller.atlas";
/// Pod label: `low` or `high` share of the CPUs.
pub const VNPU_LEVEL: &str = "vnpu-level";
/// Pod label: whether it needs the video unit.
pub const VNPU_DVPP: &str = "vnpu-dvpp";
/// Pod: its chip and template. Also the resource.
pub const HUAWEI_NPU_CORE: &str = "huawei.com/npu-core";
/// Pod: the chips that it really has.
pub const HUAWEI_ASCEND_REAL: &str = "huawei.com/AscendReal";
/// Node label: kind of its chips.
pub const ACCELERATOR: &str = "accelerator";
/// Node label: type of its board.
pub const SERVER_TYPE: &str = "servertype";
/// Node label: name of its chips.
pub const NPU_CHIP_NAME: &str = "node.kubernetes.io/npu.chip.name";

// Locks on nodes: annotations with the time that the lock was taken.
/// Lock of legacy GPU sharing.
pub const LOCK_GPU: &str = "gpu";
/// Lock of vGPU.
pub const LOCK_VGPU: &str = "hamivgpu";
/// Lock of Ascend through HAMi.
pub const LOCK_HAMI: &str = "hami.io/mutex.lock";
