//! Making and registering metrics. Names and labels are constants, so that failing is a mistake that the first test
//! finds.

use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

const VALID: &str = "names and labels of metrics are valid constants";
const ONCE: &str = "each metric is registered once";

/// Upper bounds of `count` buckets that grow by the same factor from `min` to `max`.
pub(crate) fn range(min: f64, max: f64, count: i32) -> Vec<f64> {
    let factor = (max / min).powf(1.0 / f64::from(count - 1));
    (0..count)
        .map(|step| min * factor.powf(f64::from(step)))
        .collect()
}

pub(crate) fn register<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> M {
    registry.register(Box::new(metric.clone())).expect(ONCE);
    metric
}

pub(crate) fn histogram(registry: &Registry, name: &str, help: &str, buckets: Vec<f64>) -> Histogram {
    let opts = HistogramOpts::new(name, help).buckets(buckets);
    register(registry, Histogram::with_opts(opts).expect(VALID))
}

pub(crate) fn histogram_vec(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: Vec<f64>,
    labels: &[&str],
) -> HistogramVec {
    let opts = HistogramOpts::new(name, help).buckets(buckets);
    register(registry, HistogramVec::new(opts, labels).expect(VALID))
}

pub(crate) fn gauge(registry: &Registry, name: &str, help: &str) -> Gauge {
    register(registry, Gauge::new(name, help).expect(VALID))
}

pub(crate) fn gauge_vec(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    register(
        registry,
        GaugeVec::new(Opts::new(name, help), labels).expect(VALID),
    )
}

pub(crate) fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    register(registry, IntCounter::new(name, help).expect(VALID))
}

pub(crate) fn counter_vec(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register(
        registry,
        IntCounterVec::new(Opts::new(name, help), labels).expect(VALID),
    )
}

/// Sets a series, or takes it out.
pub(crate) fn set(gauge: &GaugeVec, labels: &[&str], value: Option<f64>) {
    match value {
        Some(value) => gauge.with_label_values(labels).set(value),
        // Absent when it was never set.
        None => drop(gauge.remove_label_values(labels)),
    }
}
