//! The figures of archivers as families of metrics.

use prometheus::proto::Metric;

use super::{Family, Labels, counter, gauge};
use crate::metrics::ArchiveFigures;

/// The states of an archiver.
const STATES: [&str; 6] = ["starting", "waiting", "running", "failing", "stopped", "idle"];

/// One metric, or one for each state, of each archiver.
pub(in crate::metrics) fn of_archives(archives: &[ArchiveFigures]) -> Vec<Family> {
    let counts = |value: fn(&ArchiveFigures) -> u64| -> Vec<Metric> {
        archives.iter().map(|of| with_target(of, |labels| counter(labels, value(of)))).collect()
    };
    let levels = |value: fn(&ArchiveFigures) -> Option<f64>| -> Vec<Metric> {
        let some = archives.iter().filter_map(|of| Some((of, value(of)?)));
        some.map(|(of, value)| with_target(of, |labels| gauge(labels, value))).collect()
    };
    let states = archives.iter().flat_map(|of| {
        STATES.map(|state| {
            with_target(of, |labels| {
                let labels: Vec<_> = labels.iter().copied().chain([("state", state)]).collect();
                gauge(&labels, f64::from(u8::from(of.state == state)))
            })
        })
    });
    vec![
        ("archive_state", states.collect()),
        ("archive_lag_seconds", levels(|of| of.lag_ms.map(|lag_ms| lag_ms / 1e3))),
        ("archive_objects_total", counts(|of| of.objects)),
        ("archive_bytes_total", counts(|of| of.bytes)),
        ("archive_snapshots_total", counts(|of| of.snapshots)),
        (
            "archive_snapshot_timestamp_seconds",
            levels(|of| of.snapshot_ms.map(|ms| ms as f64 / 1e3)),
        ),
        ("archive_failures_total", counts(|of| of.failures)),
        ("archive_gaps_total", counts(|of| of.gaps)),
        ("archive_pruned_objects_total", counts(|of| of.pruned)),
    ]
}

/// A metric with the target as its label; without one if the target is private.
fn with_target(of: &ArchiveFigures, make: impl FnOnce(Labels<'_>) -> Metric) -> Metric {
    if of.to.is_empty() { make(&[]) } else { make(&[("to", of.to.as_str())]) }
}
