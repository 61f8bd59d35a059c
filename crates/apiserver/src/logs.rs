//! Logs of pods: the server does not have them, whoever runs the pods does.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Which log, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// UID of the pod.
    pub uid: String,
    /// Name of the container.
    pub container: String,
    /// What comes later is wanted too.
    pub follow: bool,
    /// The container that ran before this one.
    pub previous: bool,
    /// Every line begins with its time.
    pub timestamps: bool,
    /// Only so many lines, the last ones.
    pub tail_lines: Option<u64>,
    /// Only so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only what is not older.
    pub since_seconds: Option<u64>,
    /// Why the container waits, if it does: said to those who ask for its log.
    pub waits_because: String,
}

/// Where logs come from.
pub trait LogSource: Send + Sync {
    /// Opens a log; an error says why there is none.
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<BoxStream<'static, Bytes>, String>>;
}
