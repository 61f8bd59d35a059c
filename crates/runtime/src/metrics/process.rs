//! The metrics that every program has: how it gets on with the API server, and whether it leads.

use super::build::{counter, counter_vec, gauge, gauge_vec};
use super::names;
use http::{Method, StatusCode};
use prometheus::process_collector::ProcessCollector;
use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, Registry};

/// Clones share them.
#[derive(Clone)]
pub struct Process {
    calls: Calls,
    writes: IntCounterVec,
    watch_restarts: IntCounterVec,
    leader: Gauge,
    events_dropped: IntCounter,
    pending_writes: GaugeVec,
}

/// Calls to the API server, counted as client-go counts them.
#[derive(Clone)]
pub struct Calls(IntCounterVec);

impl Calls {
    /// A call was answered with a code, or not at all.
    pub fn count(&self, code: Option<StatusCode>, method: &Method, server: &str) {
        let code = code.as_ref().map_or("<error>", StatusCode::as_str);
        let host = server.split_once("://").map_or(server, |(_, host)| host);
        self.0.with_label_values(&[code, host, method.as_str()]).inc();
    }
}

impl Process {
    /// Registers them, once per registry.
    pub fn new(registry: &Registry) -> Self {
        registry
            .register(Box::new(ProcessCollector::for_self()))
            .expect("registered once");
        let build = gauge_vec(registry, names::BUILD, "What runs", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        Process {
            calls: Calls(counter_vec(
                registry,
                names::REST_CALLS,
                "Calls to the API server by answer, host and method",
                &["code", "host", "method"],
            )),
            writes: counter_vec(
                registry,
                names::API_WRITES,
                "Writes to the API server by kind and result",
                &["kind", "result"],
            ),
            watch_restarts: counter_vec(
                registry,
                names::WATCH_RESTARTS,
                "Watches that began again, by kind and reason",
                &["kind", "reason"],
            ),
            leader: gauge(registry, names::LEADER, "Whether this instance leads"),
            events_dropped: counter(registry, names::EVENTS_DROPPED, "Events that were not sent"),
            pending_writes: gauge_vec(
                registry,
                names::PENDING_WRITES,
                "Writes that wait, by kind",
                &["kind"],
            ),
        }
    }

    /// Counts calls of a client.
    pub fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// A write was answered: what kind (`bind`, `pod-status`, …) and how (`ok`, `conflict`, `error`, …).
    pub fn api_write(&self, kind: &str, result: &str) {
        self.writes.with_label_values(&[kind, result]).inc();
    }

    /// How many writes of a kind wait.
    pub fn pending_writes(&self, kind: &str, waiting: usize) {
        self.pending_writes.with_label_values(&[kind]).set(waiting as f64);
    }

    /// Events were not sent: too many for the rate.
    pub fn events_dropped(&self, events: u64) {
        self.events_dropped.inc_by(events);
    }

    /// A watch of a kind had to begin again.
    pub fn watch_restarted(&self, kind: &str, reason: &str) {
        self.watch_restarts.with_label_values(&[kind, reason]).inc();
    }

    /// Whether this instance leads.
    pub fn leading(&self, leading: bool) {
        self.leader.set(f64::from(leading));
    }
}
