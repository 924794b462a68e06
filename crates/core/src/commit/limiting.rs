//! A take from a limiter: decides on the stored state whether the points are there, and answers how many are left and
//! when they are back. The time is that of the commit.
//!
//! A state is the array `[algorithm, used, at, rest]`, an ordinary value, whose entry expires when it says nothing
//! more. `fixed`: `used` points since `at`. `sliding`: also `rest` points in the window before. `token-bucket`: at
//! `at`, `used` tokens and `rest` parts of `per_ms` of one are missing.

use crate::codec::cbor::{self, SimpleItem, SimpleReader};
use crate::model::{
    EncodedValue, Encoding, Error, LimitAlgorithm, Limiting, Rate, Result, TIME_MS_MAX,
};

/// What a take does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// The new state, and when it expires; `None`: the entry stays as it is.
    pub(super) stored: Option<(EncodedValue, i64)>,
    /// The array `[allowed, remaining, retry_ms, reset_ms]`; `retry_ms` is −1 if waiting does not help.
    pub(super) outcome: EncodedValue,
}

/// The stored state of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    used: i128,
    at_ms: i128,
    rest: i128,
}

/// The answer before it is encoded.
struct Answer {
    allowed: bool,
    remaining: i128,
    retry_ms: Option<i128>,
    reset_ms: i128,
}

/// Takes from a limiter with the stored state, or without one if the key is absent.
///
/// # Errors
/// `Invalid` if the stored value is no state of a limiter.
pub(super) fn take(rule: &Limiting, stored: Option<&EncodedValue>, now_ms: i64) -> Result<Taken> {
    let Decided { answer, next, expire_at_ms, set_back } = decide(rule, stored, now_ms)?;
    // A state that is ahead of the clock and is not stored again goes on anew at each look, and allows nothing until
    // the clock has reached it.
    let stores = set_back || answer.allowed && !rule.is_peek();
    let stored = stores.then(|| (write(rule.algorithm(), next), expire_at_ms));
    Ok(Taken { stored, outcome: encoded(&answer) })
}

/// Of several single takes, how many are allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Granted {
    /// The number.
    pub(super) count: u32,
    /// After how many ms a further one is; 0: at once.
    pub(super) retry_ms: i64,
}

/// How many of `wanted` takes of one point a limiter allows, if no other one comes before.
pub(super) fn grant(
    rule: &Rate,
    stored: Option<&EncodedValue>,
    wanted: u32,
    now_ms: i64,
) -> Result<Granted> {
    let peek = Limiting::new(rule.algorithm, rule.limit, rule.per_ms, 1, true)?;
    let Decided { answer, .. } = decide(&peek, stored, now_ms)?;
    let count = u32::try_from(answer.remaining.max(0)).unwrap_or(u32::MAX).min(wanted);
    let retry_ms = answer.retry_ms.and_then(|ms| i64::try_from(ms).ok());
    Ok(Granted { count, retry_ms: retry_ms.unwrap_or(rule.per_ms) })
}

/// The state after `count` takes of one point that [`grant`] has allowed, and until when it counts.
pub(super) fn charge(
    rule: &Rate,
    stored: Option<&EncodedValue>,
    count: u32,
    now_ms: i64,
) -> Result<Option<(EncodedValue, i64)>> {
    let take = Limiting::new(rule.algorithm, rule.limit, rule.per_ms, count, false)?;
    let Decided { answer, next, expire_at_ms, .. } = decide(&take, stored, now_ms)?;
    debug_assert!(answer.allowed, "a take that was granted is not allowed");
    Ok(Some((write(rule.algorithm, next), expire_at_ms)))
}

/// The state as it counts now, and until when. If the clock was set back, its time goes on from the new one; a state that
/// is not stored again goes on anew at each look, and nothing is ever allowed.
pub(super) fn looked_at(
    rule: &Rate,
    stored: &EncodedValue,
    now_ms: i64,
) -> Result<(EncodedValue, i64)> {
    let peek = Limiting::new(rule.algorithm, rule.limit, rule.per_ms, 1, true)?;
    let Decided { next, expire_at_ms, .. } = decide(&peek, Some(stored), now_ms)?;
    Ok((write(rule.algorithm, next), expire_at_ms))
}

/// The decision about a take.
struct Decided {
    answer: Answer,
    /// The state behind it, and until when it counts.
    next: State,
    expire_at_ms: i64,
    /// The stored state is of a later time: the clock was set back.
    set_back: bool,
}

fn decide(rule: &Limiting, stored: Option<&EncodedValue>, now_ms: i64) -> Result<Decided> {
    let now = i128::from(now_ms);
    let state = match stored {
        None => State { used: 0, at_ms: now, rest: 0 },
        Some(value) => read(value, rule.algorithm()).ok_or_else(not_a_state)?,
    };
    // After a clock that was set back, time goes on from the new one.
    let set_back = state.at_ms > now;
    let state = State { at_ms: state.at_ms.min(now), ..state };
    let (answer, next, expire_at_ms) = match rule.algorithm() {
        LimitAlgorithm::Fixed => fixed(rule, state, now),
        LimitAlgorithm::Sliding => sliding(rule, state, now),
        LimitAlgorithm::TokenBucket => token_bucket(rule, state, now),
    };
    let expire_at_ms = i64::try_from(expire_at_ms).unwrap_or(i64::MAX);
    Ok(Decided { answer, next, expire_at_ms, set_back })
}

fn fixed(rule: &Limiting, state: State, now: i128) -> (Answer, State, i128) {
    let (limit, per, cost) = sizes(rule);
    let begins = now - state.at_ms >= per;
    let state = if begins { State { used: 0, at_ms: now, rest: 0 } } else { state };
    let (allowed, used) = taken(rule, state.used, limit);
    let end = state.at_ms + per;
    let answer = Answer {
        allowed,
        remaining: limit - used,
        retry_ms: retry(cost <= limit, allowed, || end - now),
        reset_ms: if used > 0 { end - now } else { 0 },
    };
    (answer, State { used, rest: 0, ..state }, end)
}

fn sliding(rule: &Limiting, state: State, now: i128) -> (Answer, State, i128) {
    let (limit, per, cost) = sizes(rule);
    let state = match now - state.at_ms {
        elapsed if elapsed < per => state,
        elapsed if elapsed < 2 * per => {
            State { used: 0, at_ms: state.at_ms + per, rest: state.used }
        }
        _ => State { used: 0, at_ms: now, rest: 0 },
    };
    let elapsed = now - state.at_ms;
    // In parts of `per` of a point.
    let before = state.rest * (per - elapsed);
    let allowed = before + (state.used + cost) * per <= limit * per;
    let used = state.used + if allowed && !rule.is_peek() { cost } else { 0 };
    let retry_ms = retry(cost <= limit, allowed, || {
        // The time in a window until `points` of it count as `room` or less.
        let fades =
            |points: i128, room: i128| (per - (room * per).div_euclid(points.max(1))).max(0);
        match limit - cost - state.used {
            room if room >= 0 => fades(state.rest, room) - elapsed,
            _ => per - elapsed + fades(state.used, limit - cost),
        }
    });
    let reset_ms = match (used, state.rest) {
        (1.., _) => 2 * per - elapsed,
        (_, 1..) => per - elapsed,
        _ => 0,
    };
    let remaining = (limit * per - before - used * per).div_euclid(per);
    let answer = Answer { allowed, remaining, retry_ms, reset_ms };
    (answer, State { used, ..state }, state.at_ms + 2 * per)
}

fn token_bucket(rule: &Limiting, state: State, now: i128) -> (Answer, State, i128) {
    let (limit, per, cost) = sizes(rule);
    // What the bucket lacks, in parts of `per` of a token. `limit` of them come in a ms.
    let lacked = (state.used * per + state.rest.min(per - 1)).min(limit * per);
    let lacked = (lacked - (now - state.at_ms) * limit).max(0);
    let (allowed, lacks) = {
        let lacks = lacked + cost * per;
        let allowed = lacks <= limit * per;
        (allowed, if allowed && !rule.is_peek() { lacks } else { lacked })
    };
    let filled_ms = |parts: i128| (parts + limit.max(1) - 1) / limit.max(1);
    let answer = Answer {
        allowed,
        remaining: (limit * per - lacks) / per,
        retry_ms: retry(cost <= limit, allowed, || filled_ms(lacked + cost * per - limit * per)),
        reset_ms: filled_ms(lacks),
    };
    let end = now + answer.reset_ms;
    (answer, State { used: lacks / per, at_ms: now, rest: lacks % per }, end)
}

/// The limit, its time and the cost.
fn sizes(rule: &Limiting) -> (i128, i128, i128) {
    (rule.limit().into(), rule.per_ms().into(), rule.cost().into())
}

/// Whether the points are there, and the used points after the take.
fn taken(rule: &Limiting, used: i128, limit: i128) -> (bool, i128) {
    let cost = i128::from(rule.cost());
    let allowed = used + cost <= limit;
    (allowed, if allowed && !rule.is_peek() { used + cost } else { used })
}

/// The time until the same take would be allowed, if no other one comes before; `None`: never.
fn retry(possible: bool, allowed: bool, wait: impl FnOnce() -> i128) -> Option<i128> {
    match (possible, allowed) {
        (_, true) => Some(0),
        (true, false) => Some(wait().max(1)),
        (false, false) => None,
    }
}

/// Items of a state, and of an outcome.
const ITEMS: usize = 4;

/// The head of an array of [`ITEMS`] items.
const ARRAY_HEAD: u8 = 0x80 | ITEMS as u8;

/// The head of a text of up to 23 bytes, without its length.
const TEXT_HEAD: u8 = 0x60;

const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;

fn write(algorithm: LimitAlgorithm, State { used, at_ms, rest }: State) -> EncodedValue {
    let name = algorithm.name();
    let mut bytes = vec![ARRAY_HEAD, TEXT_HEAD | name.len() as u8];
    bytes.extend_from_slice(name.as_bytes());
    for number in [used, at_ms, rest] {
        bytes.extend(cbor::encode_number(number as f64));
    }
    EncodedValue { encoding: Encoding::Cbor, bytes }
}

/// The state in a value. That of another algorithm keeps the used points.
fn read(value: &EncodedValue, algorithm: LimitAlgorithm) -> Option<State> {
    if value.encoding != Encoding::Cbor {
        return None;
    }
    let mut items = SimpleReader::new(&value.bytes);
    let SimpleItem::Array(ITEMS) = items.item()? else { return None };
    let SimpleItem::Text(name) = items.item()? else { return None };
    let stored = LimitAlgorithm::named(name)?;
    let mut number = || match items.item()? {
        SimpleItem::Number(n) if n.fract() == 0.0 && (0.0..=TIME_MS_MAX as f64).contains(&n) => {
            Some(n as i128)
        }
        _ => None,
    };
    let (used, at_ms, rest) = (number()?, number()?, number()?);
    let rest = if stored == algorithm { rest } else { 0 };
    items.is_at_end().then_some(State { used, at_ms, rest })
}

fn not_a_state() -> Error {
    Error::invalid(
        "limiter: the key holds a value that no limiter has stored: choose another key, or delete it",
    )
}

fn encoded(answer: &Answer) -> EncodedValue {
    let Answer { allowed, remaining, retry_ms, reset_ms } = answer;
    let mut bytes = vec![ARRAY_HEAD, if *allowed { TRUE } else { FALSE }];
    for number in [(*remaining).max(0), retry_ms.unwrap_or(-1), *reset_ms] {
        bytes.extend(cbor::encode_number(number as f64));
    }
    EncodedValue { encoding: Encoding::Cbor, bytes }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::LimitAlgorithm::{Fixed, Sliding, TokenBucket};

    const T0: i64 = 1_000_000;

    /// A limiter on one key, as its entry would be.
    struct Key(Option<(EncodedValue, i64)>);

    impl Key {
        fn take(&mut self, rule: &Limiting, now_ms: i64) -> (bool, i64, i64, i64) {
            let live = self.0.as_ref().filter(|(_, end)| *end > now_ms);
            let taken = take(rule, live.map(|(value, _)| value), now_ms).unwrap();
            if taken.stored.is_some() {
                self.0 = taken.stored;
            }
            outcome(&taken.outcome)
        }
    }

    fn outcome(value: &EncodedValue) -> (bool, i64, i64, i64) {
        let mut items = SimpleReader::new(&value.bytes);
        assert!(matches!(items.item(), Some(SimpleItem::Array(4))));
        let Some(SimpleItem::Bool(allowed)) = items.item() else { panic!("{value:?}") };
        let mut number = || match items.item() {
            Some(SimpleItem::Number(n)) => n as i64,
            other => panic!("{other:?}"),
        };
        (allowed, number(), number(), number())
    }

    fn rule(algorithm: LimitAlgorithm, limit: u32, per_ms: i64, cost: u32) -> Limiting {
        Limiting::new(algorithm, limit, per_ms, cost, false).unwrap()
    }

    #[test]
    fn a_fixed_window_begins_with_its_first_take() {
        let (mut key, one) = (Key(None), rule(Fixed, 2, 1000, 1));
        assert_eq!(key.take(&one, T0), (true, 1, 0, 1000));
        assert_eq!(key.take(&one, T0 + 400), (true, 0, 0, 600));
        assert_eq!(key.take(&one, T0 + 900), (false, 0, 100, 100));
        assert_eq!(key.take(&one, T0 + 1000), (true, 1, 0, 1000));
    }

    #[test]
    fn a_sliding_window_counts_a_part_of_the_one_before() {
        let (mut key, four) = (Key(None), rule(Sliding, 4, 1000, 4));
        let one = rule(Sliding, 4, 1000, 1);
        assert_eq!(key.take(&four, T0), (true, 0, 0, 2000));
        // A quarter of the window before has gone after 250 ms of the next.
        assert_eq!(key.take(&one, T0 + 999), (false, 0, 251, 1001));
        assert_eq!(key.take(&one, T0 + 1249), (false, 0, 1, 751));
        assert_eq!(key.take(&one, T0 + 1250), (true, 0, 0, 1750));
        assert_eq!(key.take(&one, T0 + 1500), (true, 0, 0, 1500));
        assert_eq!(key.take(&four, T0 + 5000), (true, 0, 0, 2000));
    }

    #[test]
    fn a_bucket_is_filled_evenly() {
        let (mut key, one) = (Key(None), rule(TokenBucket, 3, 1000, 1));
        assert_eq!(key.take(&rule(TokenBucket, 3, 1000, 3), T0), (true, 0, 0, 1000));
        assert_eq!(key.take(&one, T0 + 333), (false, 0, 1, 667));
        assert_eq!(key.take(&one, T0 + 334), (true, 0, 0, 1000));
        assert_eq!(key.take(&one, T0 + 1334), (true, 2, 0, 334));
    }

    #[test]
    fn a_cost_above_the_limit_is_never_allowed() {
        for algorithm in LimitAlgorithm::ALL {
            let mut key = Key(None);
            assert_eq!(key.take(&rule(algorithm, 0, 1000, 1), T0), (false, 0, -1, 0));
            assert_eq!(key.take(&rule(algorithm, 5, 1000, 6), T0), (false, 5, -1, 0));
            assert!(key.0.is_none(), "a refused take stores nothing");
        }
    }

    #[test]
    fn a_peek_takes_nothing() {
        for algorithm in LimitAlgorithm::ALL {
            let peek = Limiting::new(algorithm, 1, 1000, 1, true).unwrap();
            let (mut key, one) = (Key(None), rule(algorithm, 1, 1000, 1));
            assert_eq!(key.take(&peek, T0), (true, 1, 0, 0));
            assert!(key.take(&one, T0).0);
            let (allowed, remaining, retry_ms, _) = key.take(&peek, T0 + 1);
            assert_eq!((allowed, remaining), (false, 0));
            assert!(key.take(&peek, T0 + 1 + retry_ms).0);
        }
    }

    /// A refused take stored nothing, so after a step back each look counted a full wait anew, until the clock had
    /// reached the old time.
    #[test]
    fn a_clock_that_is_set_prolongs_no_wait() {
        const HOUR: i64 = 3_600_000;
        for algorithm in LimitAlgorithm::ALL {
            for (step_ms, looks) in
                [-HOUR, -500, -1, HOUR].into_iter().zip([false, true].into_iter().cycle())
            {
                let (mut key, one) = (Key(None), rule(algorithm, 1, 1000, 1));
                let peek = Limiting::new(algorithm, 1, 1000, 1, true).unwrap();
                assert!(key.take(&one, 2 * HOUR).0);
                let begin = 2 * HOUR + step_ms;
                let first = key.take(if looks { &peek } else { &one }, begin);
                assert_eq!(first.0, step_ms > 0, "{algorithm:?} {step_ms}: {first:?}");
                // Repeated takes are allowed no later than after a take of now.
                let waits = (0..).step_by(100).take_while(|ms| !key.take(&one, begin + ms).0);
                assert!(waits.count() <= 20, "{algorithm:?} {step_ms}");
            }
        }
    }

    #[test]
    fn a_new_rule_goes_on_with_the_used_points() {
        for from in LimitAlgorithm::ALL {
            for to in LimitAlgorithm::ALL {
                let mut key = Key(None);
                key.take(&rule(from, 10, 60_000, 6), T0);
                let (allowed, remaining, ..) = key.take(&rule(to, 8, 90_000, 1), T0);
                assert_eq!((allowed, remaining), (true, 1), "{from:?} {to:?}");
                let (allowed, remaining, ..) = key.take(&rule(to, 3, 90_000, 1), T0);
                assert_eq!((allowed, remaining), (false, 0), "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn another_value_is_refused() {
        let cbor = |bytes: &[u8]| EncodedValue { encoding: Encoding::Cbor, bytes: bytes.to_vec() };
        let good = write(Fixed, State { used: 1, at_ms: 5, rest: 0 });
        assert!(read(&good, Fixed).is_some());
        for len in 0..good.bytes.len() {
            assert!(read(&cbor(&good.bytes[..len]), Fixed).is_none(), "{len}");
        }
        for bytes in [&b"\x84\x65fixes\x01\x01\x01"[..], b"\x84\x65fixed\x01\x20\x01", b"\x01"] {
            assert!(take(&rule(Fixed, 1, 1, 1), Some(&cbor(bytes)), 0).is_err(), "{bytes:?}");
        }
        assert!(take(&rule(Fixed, 1, 1, 1), Some(&EncodedValue::le64(1)), 0).is_err());
    }

    fn any_algorithm() -> impl Strategy<Value = LimitAlgorithm> {
        prop_oneof![Just(Fixed), Just(Sliding), Just(TokenBucket)]
    }

    proptest! {
        /// After `retry_ms`, and not a ms earlier, the same take is allowed. No window of `per` starting with an
        /// allowed take has more than twice the limit, and a fixed one between two resets no more than the limit.
        #[test]
        fn a_wait_is_exact(
            algorithm in any_algorithm(),
            limit in 1_u32..20,
            per_ms in 1_i64..5000,
            takes in prop::collection::vec((1_u32..20, 0_i64..3000), 1..60),
        ) {
            let (mut key, mut now_ms, mut allowed_at) = (Key(None), T0, Vec::new());
            for (cost, pause_ms) in takes {
                now_ms += pause_ms;
                let take = rule(algorithm, limit, per_ms, cost);
                let (allowed, remaining, retry_ms, reset_ms) = key.take(&take, now_ms);
                prop_assert!((0..=i64::from(limit)).contains(&remaining));
                prop_assert!(reset_ms >= 0);
                if allowed {
                    allowed_at.push((now_ms, u64::from(cost)));
                } else if cost <= limit {
                    let peek = Limiting::new(algorithm, limit, per_ms, cost, true).unwrap();
                    prop_assert!(key.take(&peek, now_ms + retry_ms).0);
                    prop_assert!(!key.take(&peek, now_ms + retry_ms - 1).0);
                } else {
                    prop_assert_eq!(retry_ms, -1);
                }
            }
            for (start, _) in &allowed_at {
                let inside = allowed_at.iter().filter(|(at, _)| (*start..start + per_ms).contains(at));
                let sum: u64 = inside.map(|(_, cost)| cost).sum();
                prop_assert!(sum <= 2 * u64::from(limit), "{sum}");
            }
        }
    }
}
