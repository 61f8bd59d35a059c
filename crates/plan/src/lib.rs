//! Scheduling cycles over given objects, with nothing written anywhere: what `volcano plan`, `vcctl plan` and
//! `vcctl job explain` run.
//!
//! ```text
//! texts --input--> Cluster --+--> session (the engine) --> outcome --> table | JSON | YAML
//! Job ----submit--> objects -+                                    \--> case: compared with what is expected
//!                  Cluster -----> explain -> Explanation: text | JSON
//! ```
//!
//! A caller with a live cluster lists [`live::KINDS`], gives the answers to a [`Reader`], and asks:
//!
//! ```
//! use volcano_engine::config::SchedulerConf;
//! use volcano_plan::{Conf, JobKey, Reader, Source};
//!
//! let mut reader = Reader::with_jobs();
//! for (name, answer) in [("queues", r#"{"kind": "QueueList", "apiVersion": "scheduling.volcano.sh/v1beta1",
//!     "items": [{"metadata": {"name": "q"}, "status": {"state": "Closed"}}]}"#),
//!     ("podgroups", r#"{"kind": "PodGroupList", "apiVersion": "scheduling.volcano.sh/v1beta1",
//!     "items": [{"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": "q"}}]}"#)] {
//!     reader.add(&Source::from_json(name, answer))?;
//! }
//! let scheduler = volcano_plan::configuration("default", SchedulerConf::default_text())?;
//! let conf = Conf::new(scheduler, volcano_api::time::Time::EPOCH);
//! let mut cluster = reader.finish()?;
//! cluster.complete(&conf.default_queue);
//! let explanation = volcano_plan::explain(&cluster, &conf, &JobKey::new("ns", "g"))?;
//! assert!(explanation.to_string().contains("queue q is closed"));
//! # Ok::<(), volcano_plan::Fault>(())
//! ```

pub mod admission;
pub mod case;
pub mod cluster;
pub mod explain;
pub mod fault;
pub mod input;
pub mod known;
pub mod live;
pub mod objects;
pub mod outcome;
pub mod output;
pub mod session;
pub mod source;
pub mod submit;
pub mod table;

pub use cluster::{Cluster, Reader};
pub use explain::{Conf, Explanation, JobKey, explain, plan_job};
pub use fault::Fault;
pub use session::configuration;
pub use source::Source;
