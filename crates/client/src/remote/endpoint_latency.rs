//! Which of several endpoints answers soonest, by the times of this handle's own eventual reads.
//!
//! Duty: remember how long each endpoint took, and choose one for the next read.
//! Invariant: no request is made for measuring alone. An endpoint that is slower than the chosen one gets a
//! read when nothing is known of it, and then at most one read in [`ENDPOINT_LATENCY_RETRY_MS`] goes to any of them.
//! Never: an endpoint that the metadata does not name.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use openkv_core::model::{
    ENDPOINT_LATENCY_ANSWER_BYTES_MAX, ENDPOINT_LATENCY_FAILED_MS, ENDPOINT_LATENCY_RETRY_MS,
    ENDPOINT_LATENCY_WEIGHT,
};

/// An endpoint is left for another one only if that takes less than this part of its time, so that the reads
/// of a handle stay at one server.
const FASTER: f64 = 0.8;

/// What is known of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Known {
    /// The weighted mean of its times in ms; `None` before the first answer.
    mean_ms: Option<f64>,
    /// Whether its last request failed.
    failed: bool,
    /// When its last request began.
    requested_at: Option<Instant>,
}

impl Known {
    /// Takes the time of a request.
    fn took(&mut self, time: Duration) {
        let ms = time.as_secs_f64() * 1000.0;
        self.mean_ms = Some(match self.mean_ms {
            Some(mean) if !self.failed => mean + ENDPOINT_LATENCY_WEIGHT * (ms - mean),
            // After a failure the time before says nothing.
            _ => ms,
        });
        self.failed = false;
    }

    /// Takes the failure of a request.
    fn fails(&mut self) {
        let before = self.mean_ms.unwrap_or_default();
        self.mean_ms =
            Some((2.0 * before).clamp(ENDPOINT_LATENCY_FAILED_MS as f64, f64::from(u32::MAX)));
        self.failed = true;
    }
}

/// Where the next read goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    /// The endpoint of the next read.
    next: usize,
    /// The endpoint of most reads. A read of another one is to find out how long that takes.
    home: usize,
}

/// Chooses the endpoint for the next read. `home`: that of most reads before; `tried`: when the last read of
/// another one began. `None` if there is no endpoint.
fn choose(
    known: &[Known],
    home: Option<usize>,
    tried: Option<Instant>,
    now: Instant,
) -> Option<Choice> {
    let timed = known.iter().enumerate().filter_map(|(at, of)| Some((at, of.mean_ms?)));
    let fastest = timed.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let stays = home.filter(|home| {
        let present = known.get(*home).filter(|of| !of.failed).and_then(|of| of.mean_ms);
        let (Some(present), Some((_, least))) = (present, fastest) else { return false };
        least >= FASTER * present
    });
    let unknown = known.iter().position(|of| of.requested_at.is_none());
    let home = stays.or(fastest.map(|(at, _)| at)).or(unknown);
    let home = home.or(if known.is_empty() { None } else { Some(0) })?;
    if let Some(next) = unknown {
        return Some(Choice { next, home });
    }
    let pause = Duration::from_millis(ENDPOINT_LATENCY_RETRY_MS);
    let is_due = |at: Option<Instant>| at.is_none_or(|at| now >= at + pause);
    let others = known.iter().enumerate().filter(|(at, of)| *at != home && is_due(of.requested_at));
    let longest_ago = others.min_by_key(|(_, of)| of.requested_at).map(|(at, _)| at);
    let next = longest_ago.filter(|_| is_due(tried)).unwrap_or(home);
    Some(Choice { next, home })
}

/// What a handle knows of the endpoints for its eventual reads.
#[derive(Default)]
pub(super) struct EndpointLatency(Mutex<State>);

#[derive(Default)]
struct State {
    endpoints: Vec<(String, Known)>,
    home: Option<String>,
    tried: Option<Instant>,
}

impl EndpointLatency {
    /// The endpoint for the next read, of those that the metadata names.
    pub(super) fn endpoint<'g>(&self, named: &'g [String], now: Instant) -> Option<&'g str> {
        if let [] | [_] = named {
            return named.first().map(String::as_str);
        }
        let mut state = self.0.lock();
        let State { endpoints, home, tried } = &mut *state;
        let known = |url: &String| {
            let found = endpoints.iter().find(|(known, _)| known == url);
            found.map(|(_, known)| *known).unwrap_or_default()
        };
        let mut all: Vec<_> = named.iter().map(|url| (url.clone(), known(url))).collect();
        let before = named.iter().position(|url| Some(url) == home.as_ref());
        let known: Vec<_> = all.iter().map(|(_, known)| *known).collect();
        let choice = choose(&known, before, *tried, now)?;
        if choice.next != choice.home {
            *tried = Some(now);
        }
        if let Some((_, known)) = all.get_mut(choice.next) {
            known.requested_at = Some(now);
        }
        *endpoints = all;
        *home = named.get(choice.home).cloned();
        named.get(choice.next).map(String::as_str)
    }

    /// Notes the time of an answer. A long one says more about its bytes than about the way.
    pub(super) fn took(&self, endpoint: &str, time: Duration, bytes: usize) {
        if bytes <= ENDPOINT_LATENCY_ANSWER_BYTES_MAX {
            self.note(endpoint, |known| known.took(time));
        }
    }

    /// Notes that an endpoint did not answer.
    pub(super) fn failed(&self, endpoint: &str) {
        self.note(endpoint, Known::fails);
    }

    fn note(&self, endpoint: &str, note: impl FnOnce(&mut Known)) {
        let mut state = self.0.lock();
        let found = state.endpoints.iter_mut().find(|(url, _)| url == endpoint);
        if let Some((_, known)) = found {
            note(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn urls(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("http://{at}")).collect()
    }

    /// Reads one after the other, at this interval, from endpoints that take these times. Returns the number of
    /// requests to each endpoint.
    fn reads(
        endpoint_latency: &EndpointLatency,
        times: &[Option<u64>],
        (now, interval): (&mut Instant, u64),
        count: usize,
    ) -> Vec<usize> {
        let named = urls(times.len());
        let mut requests = vec![0; times.len()];
        for _ in 0..count {
            let chosen = endpoint_latency.endpoint(&named, *now).unwrap().to_owned();
            let at = named.iter().position(|url| *url == chosen).unwrap();
            requests[at] += 1;
            match times[at] {
                Some(time) => endpoint_latency.took(&chosen, MS(time), 0),
                None => endpoint_latency.failed(&chosen),
            }
            *now += MS(interval);
        }
        requests
    }

    proptest! {
        /// Whatever the times are, one that is nearly the fastest gets all reads but few.
        #[test]
        fn the_nearest_gets_all_reads_but_few(
            times in vec(1u64..900, 2..12),
            interval in 1u64..200,
        ) {
            let (endpoint_latency, mut now) = (EndpointLatency::default(), Instant::now());
            let given: Vec<_> = times.iter().copied().map(Some).collect();
            let count = 500;
            let requests = reads(&endpoint_latency, &given, (&mut now, interval), count);
            let least = *times.iter().min().unwrap() as f64;
            let near: usize = times.iter().zip(&requests)
                .filter(|(time, _)| FASTER * **time as f64 <= least)
                .map(|(_, requests)| requests)
                .sum();
            let retries = count as u64 * interval / ENDPOINT_LATENCY_RETRY_MS + 1;
            prop_assert!(near + times.len() + retries as usize >= count, "{times:?} {requests:?}");
        }

        /// The next read leaves an endpoint that failed; a later one tries it again, when it may be the nearest.
        #[test]
        fn one_that_fails_is_left_and_found_again(
            near in 1u64..100,
            others in vec(300u64..900, 1..8),
        ) {
            let (endpoint_latency, mut now) = (EndpointLatency::default(), Instant::now());
            let with = |first| {
                let rest = others.iter().copied().map(Some);
                std::iter::once(first).chain(rest).collect::<Vec<_>>()
            };
            let all = others.len() + 1;
            reads(&endpoint_latency, &with(Some(near)), (&mut now, 1), 50);
            let requests = reads(&endpoint_latency, &with(None), (&mut now, 1), 50);
            prop_assert!(requests[0] <= 2, "{requests:?}");
            let round = (all as u64 + 1) * ENDPOINT_LATENCY_RETRY_MS;
            reads(&endpoint_latency, &with(Some(near)), (&mut now, round / 50), 100);
            let requests = reads(&endpoint_latency, &with(Some(near)), (&mut now, 1), 50);
            prop_assert!(requests[0] >= 48, "{requests:?}");
        }

        /// What is chosen is one of the endpoints, whatever is known.
        #[test]
        fn an_endpoint_is_chosen_if_there_is_one(
            known in vec((proptest::option::of(0.0..1e6), any::<bool>(), proptest::option::of(0u64..100_000)), 0..12),
            home in proptest::option::of(0usize..14),
        ) {
            let begun = Instant::now();
            let known: Vec<_> = known.into_iter().map(|(mean_ms, failed, requested_at)| {
                Known { mean_ms, failed, requested_at: requested_at.map(|ms| begun + MS(ms)) }
            }).collect();
            let choice = choose(&known, home, None, begun + MS(50_000));
            prop_assert_eq!(choice.is_some(), !known.is_empty());
            if let Some(Choice { next, home }) = choice {
                prop_assert!(next < known.len() && home < known.len());
            }
        }
    }

    #[test]
    fn a_read_does_not_wait_for_the_first_answer_of_another_endpoint() {
        let (endpoint_latency, now, named) = (EndpointLatency::default(), Instant::now(), urls(3));
        assert_eq!(endpoint_latency.endpoint(&named, now), Some("http://0"));
        assert_eq!(endpoint_latency.endpoint(&named, now), Some("http://1"));
        endpoint_latency.took("http://1", MS(10), 0);
        assert_eq!(endpoint_latency.endpoint(&named, now), Some("http://2"));
        assert_eq!(endpoint_latency.endpoint(&named, now), Some("http://1"));
        endpoint_latency.took("http://0", MS(1), ENDPOINT_LATENCY_ANSWER_BYTES_MAX + 1);
        assert_eq!(
            endpoint_latency.endpoint(&named, now),
            Some("http://1"),
            "a long answer says nothing"
        );
        assert_eq!(endpoint_latency.endpoint(&named[2..], now), Some("http://2"));
        assert_eq!(endpoint_latency.endpoint(&[], now), None);
    }
}
