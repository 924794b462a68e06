//! Distributions: of latencies in ns, and of sizes.

use hdrhistogram::Histogram;

use super::snapshot::{LATENCY_BOUNDS_MS, Latency, Spread};
use openkv_core::model::{METRIC_DIGITS, METRIC_VALUE_MAX};

/// A distribution of values. It allocates at the first value, and more for larger ones: room for an hour in ns takes
/// 36 KiB, that for a millisecond a third of it.
#[derive(Clone, Default)]
pub(super) struct Distribution {
    seen: Option<Histogram<u64>>,
    sum: u64,
}

impl Distribution {
    pub(super) fn record(&mut self, value: u64, times: u64) {
        if self.seen.is_none() {
            // This constant is valid.
            self.seen = Histogram::new(METRIC_DIGITS).ok();
        }
        if let Some(seen) = &mut self.seen {
            // A histogram that grows has room for any value, and 1 is its least.
            let _recorded = seen.record_n(value.clamp(1, METRIC_VALUE_MAX), times);
            self.sum = self.sum.saturating_add(value.saturating_mul(times));
        }
    }

    /// The distribution with this sum, in which each value was seen so often.
    pub(super) fn of(sum: u64, values: &[(u64, u64)]) -> Self {
        let mut all = Self::default();
        values.iter().for_each(|(value, times)| all.record(*value, *times));
        Self { sum, ..all }
    }

    /// Each value, and how often it was seen. Values of one bucket are one.
    pub(super) fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let seen = self.seen.iter().flat_map(Histogram::iter_recorded);
        seen.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// Adds all values of another one.
    pub(super) fn add(&mut self, other: &Self) {
        let sum = self.sum.saturating_add(other.sum);
        other.values().for_each(|(value, times)| self.record(value, times));
        self.sum = sum;
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        let seen = self.seen.as_ref()?;
        let at = |quantile| seen.value_at_quantile(quantile) as f64;
        Some(Spread {
            count: seen.len(),
            sum: self.sum as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: seen.max() as f64,
        })
    }

    /// The number of values up to this one.
    fn count_within(&self, value: u64) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.count_between(0, value))
    }

    /// The distribution as latencies; its values are in ns.
    pub(super) fn latency(&self) -> Option<Latency> {
        let ns = self.spread()?;
        let ms = |value: f64| value / 1e6;
        Some(Latency {
            samples: ns.count,
            sum_ms: ms(ns.sum),
            p50_ms: ms(ns.p50),
            p90_ms: ms(ns.p90),
            p99_ms: ms(ns.p99),
            max_ms: ms(ns.max),
            within: LATENCY_BOUNDS_MS.map(|bound| self.count_within(bound * 1_000_000)),
        })
    }
}
