//! What job plugins are called, and what they add to pods.

/// Tells a container its index.
pub const ENV: &str = "env";
/// Host names and a list of them.
pub const SVC: &str = "svc";
/// Keys, so that pods can log in to each other.
pub const SSH: &str = "ssh";
/// Cluster description for TensorFlow.
pub const TENSORFLOW: &str = "tensorflow";
/// Addresses and ranks for PyTorch.
pub const PYTORCH: &str = "pytorch";
/// Host list for MPI.
pub const MPI: &str = "mpi";
/// Head and workers of Ray.
pub const RAY: &str = "ray";
/// Rank for the Ascend runtime.
pub const HCCLRANK: &str = "hcclrank";

/// Every plugin.
pub const ALL: [&str; 8] = [ENV, SVC, SSH, TENSORFLOW, PYTORCH, MPI, RAY, HCCLRANK];

// Variables.
/// env: index in the task; the older name.
pub const VK_TASK_INDEX: &str = "VK_TASK_INDEX";
/// env: index in the task.
pub const VC_TASK_INDEX: &str = "VC_TASK_INDEX";
/// tensorflow: the cluster and the pod's place in it, JSON.
pub const TF_CONFIG: &str = "TF_CONFIG";
/// pytorch: host of the master.
pub const MASTER_ADDR: &str = "MASTER_ADDR";
/// pytorch: port of the master.
pub const MASTER_PORT: &str = "MASTER_PORT";
/// pytorch: number of processes.
pub const WORLD_SIZE: &str = "WORLD_SIZE";
/// pytorch: number of this process.
pub const RANK: &str = "RANK";
/// mpi: hosts of the workers.
pub const MPI_HOST: &str = "MPI_HOST";

// Ports, containers and files.
/// pytorch: name of the port.
pub const PYTORCH_PORT: &str = "pytorchjob-port";
/// mpi: name of the port.
pub const MPI_PORT: &str = "mpijob-port";
/// ray: name of the port of the head.
pub const RAY_GCS_PORT: &str = "gcs";
/// ray: name of the port of the web page.
pub const RAY_DASHBOARD_PORT: &str = "dashboard";
/// ray: name of the port for clients.
pub const RAY_CLIENT_PORT: &str = "client-server";
/// pytorch: the init container of workers.
pub const WAIT_FOR_MASTER: &str = "wait-for-master";
/// svc: where the host lists are mounted.
pub const SVC_MOUNT_PATH: &str = "/etc/volcano";
/// ssh: key of the Secret with the private key.
pub const SSH_PRIVATE_KEY: &str = "id_rsa";
/// ssh: key of the Secret with the public key.
pub const SSH_PUBLIC_KEY: &str = "id_rsa.pub";
/// ssh: key of the Secret with the keys that may log in.
pub const SSH_AUTHORIZED_KEYS: &str = "authorized_keys";
/// ssh: key of the Secret with the hosts.
pub const SSH_CONFIG: &str = "config";
