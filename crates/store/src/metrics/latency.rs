//! Distributions: of latencies in ns, and of sizes.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use hdrhistogram::iterators::IterationValue;

use super::snapshot::{LATENCY_BOUNDS_MS, Latency, Spread};
use openkv_core::model::{METRIC_DIGITS, METRIC_VALUE_MAX};

/// A distribution of values.
#[derive(Clone, Default)]
pub(super) struct Distribution {
    seen: Seen,
    sum: u64,
}

/// The values that were seen.
#[derive(Clone)]
enum Seen {
    /// Each, and how often: most databases of a process with many see no more.
    Few(Vec<(u64, u64)>),
    /// It grows for larger values: room for an hour in ns takes 36 KiB, that for a millisecond a third of it.
    Many(Histogram<u64>),
}

impl Default for Seen {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

/// Values of [`Seen::Few`].
const FEW_MAX: usize = 64;

fn histogram_of(values: &[(u64, u64)]) -> Option<Histogram<u64>> {
    // This constant is valid.
    let mut all = Histogram::new(METRIC_DIGITS).ok()?;
    // A histogram that grows has room for any value.
    for (value, times) in values {
        let _recorded = all.record_n(*value, *times);
    }
    Some(all)
}

impl Distribution {
    pub(super) fn record(&mut self, value: u64, times: u64) {
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
        let recorded = (value.clamp(1, METRIC_VALUE_MAX), times);
        match &mut self.seen {
            Seen::Many(seen) => {
                let _recorded = seen.record_n(recorded.0, times);
            }
            Seen::Few(few) => {
                few.push(recorded);
                if few.len() > FEW_MAX
                    && let Some(many) = histogram_of(few)
                {
                    self.seen = Seen::Many(many);
                }
            }
        }
    }

    /// The distribution with this sum, in which each value was seen so often.
    pub(super) fn of(sum: u64, values: &[(u64, u64)]) -> Self {
        let mut all = Self::default();
        values.iter().for_each(|(value, times)| all.record(*value, *times));
        Self { sum, ..all }
    }

    /// All values; `None` without any.
    fn seen(&self) -> Option<Cow<'_, Histogram<u64>>> {
        match &self.seen {
            Seen::Many(seen) => Some(Cow::Borrowed(seen)),
            Seen::Few(few) if few.is_empty() => None,
            Seen::Few(few) => histogram_of(few).map(Cow::Owned),
        }
    }

    /// Each value, and how often it was seen. Values of one bucket are one.
    pub(super) fn values(&self) -> Vec<(u64, u64)> {
        let bucket = |at: IterationValue<u64>| (at.value_iterated_to(), at.count_at_value());
        self.seen().map_or(Vec::new(), |seen| seen.iter_recorded().map(bucket).collect())
    }

    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// Adds all values of another one.
    pub(super) fn add(&mut self, other: &Self) {
        let sum = self.sum.saturating_add(other.sum);
        other.values().into_iter().for_each(|(value, times)| self.record(value, times));
        self.sum = sum;
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        let seen = self.seen()?;
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

    /// The distribution as latencies; its values are in ns.
    pub(super) fn latency(&self) -> Option<Latency> {
        let (seen, ns) = (self.seen()?, self.spread()?);
        let ms = |value: f64| value / 1e6;
        Some(Latency {
            samples: ns.count,
            sum_ms: ms(ns.sum),
            p50_ms: ms(ns.p50),
            p90_ms: ms(ns.p90),
            p99_ms: ms(ns.p99),
            max_ms: ms(ns.max),
            within: LATENCY_BOUNDS_MS.map(|bound| seen.count_between(0, bound * 1_000_000)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_values_have_the_same_quantiles() {
        for count in [1, FEW_MAX as u64, FEW_MAX as u64 + 1, 1000] {
            let mut all = Distribution::default();
            (1..=count).for_each(|n| all.record(n * 1_000, 2));
            assert_eq!(matches!(all.seen, Seen::Few(_)), count <= FEW_MAX as u64);
            let Spread { count: seen, sum, p50, max, .. } = all.spread().unwrap();
            assert_eq!((seen, sum), (2 * count, (count * (count + 1) * 1_000) as f64));
            let exact = (count.div_ceil(2) * 1_000) as f64;
            assert!((p50 / exact - 1.0).abs() < 0.01, "{count} values: {p50}, {exact}");
            assert!((max / (count * 1_000) as f64 - 1.0).abs() < 0.01, "{count} values: {max}");
            let again = Distribution::of(all.sum(), &all.values());
            assert_eq!(again.values(), all.values());
        }
        assert!(Distribution::default().spread().is_none());
    }
}
