//! Scheduling scenarios as text: a cluster and its jobs, then what one or more cycles decide.
//!
//! ```text
//! ## a gang that does not fit whole places nothing
//! conf: allocate / gang / predicates nodeorder
//! node n1 cpu=2
//! group pg1 min=3
//! pod pg1/p{0..2} cpu=1
//! show: conditions
//! ---
//! pg1: Unschedulable: 1/3 tasks in gang unschedulable: pod group is not ready, …
//! ```
//!
//! **A file** holds many scenarios. Each begins with `## ` and a sentence, unique over all files. What stands before
//! the first one is put in front of every scenario of the file. `#` begins a comment (in the expected part only at the
//! beginning of a line). A word that is not known is an error with its line.
//!
//! **Ranges**: a line with `{0..2}` or `{a,b,c}` stands for one line per value; several ranges in a line go in step
//! (`pod pg/p{0..2} on n{0..2}`).
//!
//! **Settings**
//! - `conf: ACTION… / PLUGIN… / PLUGIN…`: actions, then one tier after the other. `gang{enablePreemptable=false}` sets a
//!   switch, `binpack{binpack.weight=5}` an argument; actions take arguments likewise. `conf: default` and `conf: helm`
//!   are the stock ones. A second `conf:` replaces the first. Without one: `default`.
//! - `cycles: N`: several cycles. Between two, bound pods start to run, evicted pods vanish, and every status that was
//!   written comes back as an update. Expected lines then stand under `cycle 1`, `cycle 2`, …
//! - `now: SECONDS`: time of the first cycle (1000 by default); each further cycle is a second later.
//! - `show: conditions pods events queues reasons`: what to print besides decisions and phases.
//!
//! **Objects**; amounts are `cpu=`, `memory=`, `gpu=` (`nvidia.com/gpu`), `pods=`, `ephemeral-storage=` or any name
//! with a `/`; lists are `cpu:4,memory:8Gi`. Every object is a second younger than the one before; `created=SECONDS`
//! says otherwise.
//! - `node NAME AMOUNT… [label K=V] [annotation K=V] [taint K=V:EFFECT] [unschedulable]`, 110 pods unless it says.
//! - `queue NAME [weight=N] [capability=LIST] [deserved=LIST] [guarantee=LIST] [parent=Q] [priority=N] [state=Closed]
//!   [reclaimable=false] [dequeue=fifo] [annotation K=V]`. Queues `root` and `default` are always there.
//! - `priorityclass NAME VALUE [default]`
//! - `group NAME [min=N] [queue=Q] [priority=CLASS] [phase=PHASE] [minResources=LIST] [roles=master:1,worker:2] [ns=NS]
//!   [subgroups=NAME:SIZE:MINIMUM@LABEL,…] [preemptable=BOOL] [topology=MODE:TIER] [annotation K=V] [label K=V]`: a
//!   PodGroup. `min` is 1 and `queue` is `default` unless it says; the phase is `Running` if a pod of it has ever had a node, else `Inqueue`.
//! - `pod GROUP/NAME AMOUNT… [STATE] [on NODE] [role=R] [priority=N or CLASS] [preemptable=BOOL] [preemption=Never]
//!   [nominated=NODE] [started=SECONDS] [scheduler=S]
//!   [label K=V] [annotation K=V] [selector K=V] [nodeaffinity K=V|V] [prefers K=V:WEIGHT]
//!   [toleration K=V:EFFECT or K:EFFECT or K or *] [port 8080 or 8080/UDP] [affinity K=V@TOPOLOGYKEY]
//!   [antiaffinity K=V@TOPOLOGYKEY] [spread K=V@TOPOLOGYKEY:SKEW] [claim NAME] [gated or gated=GATE]`. The pod's real name is
//!   `GROUP-NAME`. A pod `on` a node runs unless its STATE is `bound`, `succeeded`, `failed`, `unknown` or `deleting`.
//!   `pod NAME …` without a group is a pod of no job.
//! - `namespace NAME [label K=V]`, and `object {JSON}` for anything else that has a `kind`.
//! - Any of these lines may end in `with {JSON}`, which is added to the object: maps key by key, lists element by element
//!   (`with {"spec": {"containers": [{"image": "app:v1"}]}}`). There are no ranges in it.
//! - `gone pod GROUP/NAME`, `gone node NAME`, `gone group NAME`, `gone queue NAME`, `bindfailed GROUP/NAME`,
//!   `evictfailed GROUP/NAME`, `leaves GROUP/NAME` (evicted in the cycle before, it is being deleted and does not vanish
//!   at once); with `@2` in front, a line happens before the second cycle.
//!
//! **Expected**, in any order; `nothing` when a cycle decides nothing:
//! - `pg1: p0 p1 -> n1, p2 -> n2`: binds. `n1|n2` is either, `any` is any node, and a number stands for that many pods
//!   of the group: `pg1: 2 -> n1, 1 -> n2|n3`.
//! - `pg1: p0 ~> n1`: placed where others are leaving, in the same forms.
//! - `preempt low/p0 low/p1 for high/p0`, `reclaim …`: evictions. `2 of low` is any two pods of it, `for high` any pod.
//! - `pg1: Running`: its phase, when it changed.
//! - `pg1: Unschedulable: MESSAGE`, `pg1: Scheduled`, `pg1: no longer Scheduled`: conditions (`show: conditions`).
//! - `pg1/p0 p1: REASON: MESSAGE`, `pg1/p0: REASON (nominated n1): MESSAGE`, `pg1/p0: REASON (no longer
//!   nominated): MESSAGE`: pod conditions (`show: pods`).
//! - `pg1: event Warning Unschedulable: MESSAGE` (`show: events`).
//! - `queue q1: cpu=2, memory=1Gi, pods=2`, `queue q1: cpu=0, memory=0, no more pods`: what it uses, those below it
//!   included, when that changed (`show: queues`).
//! - `pg1: not admitted: …`, `pg1: invalid: …`, `pg1: queue full: …` (`show: reasons`).
//!
//! With `UPDATE=1` in the environment the expected parts of scenarios that differ are rewritten: review them.

mod conf;
mod objects;
mod outcome;
mod runner;
mod text;
mod world;

pub use outcome::Line;
pub use runner::{check_file, check_text, names};
pub use text::{File, Problem, Scenario, parse};
pub use world::run;
