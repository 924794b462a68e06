//! The slow log: the slowest operations of the last hour.
//!
//! Invariant: an operation that is not slow costs one comparison, with a time that its counters have taken anyway.
//! Never: a value; a key in Prometheus' text.

use std::time::{Duration, Instant};

use super::Operation;
use super::snapshot::SlowOperation;
use openkv_core::codec::key::whole_parts;
use openkv_core::interchange::key_literal;
use openkv_core::model::{
    Range, SLOW_KEY_BYTES_MAX, SLOW_OPERATION_AGE_MS, SLOW_OPERATION_MS_MIN, SLOW_OPERATIONS_MAX,
};

/// From this time on an operation is slow, in ns.
pub(super) const SLOW_NS: u64 = SLOW_OPERATION_MS_MIN * 1_000_000;
const AGE: Duration = Duration::from_millis(SLOW_OPERATION_AGE_MS);

/// What an operation was about: a key, or what the keys of its range have in common. It is a copy of their first
/// bytes, so making one allocates nothing.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    bytes: [u8; SLOW_KEY_BYTES_MAX],
    len: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    None,
    Key,
    Prefix,
}

impl Subject {
    /// That of an operation on no keys.
    pub const NONE: Self = Self { bytes: [0; SLOW_KEY_BYTES_MAX], len: 0, form: Form::None };

    /// A key. A longer one is its first parts.
    #[must_use]
    pub fn key(key: &[u8]) -> Self {
        let form = if key.len() > SLOW_KEY_BYTES_MAX { Form::Prefix } else { Form::Key };
        Self::of(key, form)
    }

    /// The parts that all keys between two bounds have in common.
    #[must_use]
    pub fn span(start: &[u8], end: &[u8]) -> Self {
        let common = start.iter().zip(end).take_while(|(a, b)| a == b).count();
        Self::of(start.get(..common).unwrap_or_default(), Form::Prefix)
    }

    /// All keys below a prefix.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self::of(prefix, Form::Prefix)
    }

    /// A range of a read.
    #[must_use]
    pub fn range(range: &Range) -> Self {
        match range {
            Range::Point(key) => Self::key(key.as_bytes()),
            Range::Span { start, end, .. } => Self::span(start.as_bytes(), end.as_bytes()),
        }
    }

    fn of(bytes: &[u8], form: Form) -> Self {
        let mut subject = Self { form, ..Self::NONE };
        let mut len = bytes.len().min(SLOW_KEY_BYTES_MAX);
        // A zero at the cut may be one inside a text, whose escape is cut off.
        if len < bytes.len() && bytes.get(len - 1) == Some(&0) {
            len -= 1;
        }
        for (to, from) in subject.bytes.iter_mut().zip(bytes).take(len) {
            *to = *from;
        }
        subject.len = len;
        subject
    }

    /// The key and the prefix as literals; at most one of the two is there.
    fn literals(&self) -> (Option<String>, Option<String>) {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        match self.form {
            Form::None => (None, None),
            Form::Key => (Some(key_literal::print(bytes)), None),
            Form::Prefix => (None, Some(key_literal::print(whole_parts(bytes)))),
        }
    }
}

/// An operation that was slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) operation: Operation,
    pub(super) subject: Subject,
    /// Operations that were answered together.
    pub(super) times: u64,
    pub(super) good: bool,
    pub(super) since: Instant,
    pub(super) ns: u64,
}

impl Slow {
    fn ended(&self) -> Instant {
        self.since + Duration::from_nanos(self.ns)
    }
}

/// The place of a slow operation in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowId(u64);

/// The slowest operations, at most [`SLOW_OPERATIONS_MAX`].
#[derive(Clone, Debug, Default)]
pub(super) struct SlowLog {
    entries: Vec<(SlowId, Slow)>,
    next: u64,
    /// Of a full log: the shortest time in it, and until when none of its entries is too old.
    full: Option<(u64, Instant)>,
}

impl SlowLog {
    /// Notes an operation, in place of one that is too old, or else of the fastest one if that is faster.
    pub(super) fn note(&mut self, slow: Slow) -> SlowId {
        let id = SlowId(self.next);
        self.next += 1;
        let ended = slow.ended();
        if self.full.is_some_and(|(least, until)| slow.ns <= least && ended < until) {
            return id;
        }
        self.entries.push((id, slow));
        self.entries.retain(|(_, of)| is_fresh(of, ended));
        if self.entries.len() > SLOW_OPERATIONS_MAX {
            let fastest = (0..).zip(&self.entries).min_by_key(|(_, (_, of))| of.ns);
            if let Some((at, _)) = fastest {
                self.entries.swap_remove(at);
            }
        }
        self.full = None;
        if self.entries.len() == SLOW_OPERATIONS_MAX {
            let least = self.entries.iter().map(|(_, of)| of.ns).min();
            let until = self.entries.iter().map(|(_, of)| of.ended() + AGE).min();
            self.full = least.zip(until);
        }
        id
    }

    /// Counts operations that were answered together with one in the log.
    pub(super) fn join(&mut self, id: SlowId, times: u64) {
        if let Some((_, slow)) = self.entries.iter_mut().find(|(of, _)| *of == id) {
            slow.times += times;
        }
    }

    /// The operations, the slowest first. `now`: the same moment by both clocks.
    pub(super) fn shown(&self, now: (Instant, i64)) -> Vec<SlowOperation> {
        let fresh = self.entries.iter().map(|(_, of)| of).filter(|of| is_fresh(of, now.0));
        let mut all: Vec<_> = fresh.collect();
        all.sort_by_key(|of| std::cmp::Reverse(of.ns));
        all.into_iter().map(|of| shown(of, now)).collect()
    }
}

fn is_fresh(slow: &Slow, now: Instant) -> bool {
    now.saturating_duration_since(slow.ended()) < AGE
}

fn shown(slow: &Slow, (now, now_ms): (Instant, i64)) -> SlowOperation {
    let (key, prefix) = slow.subject.literals();
    let ago_ms = now.saturating_duration_since(slow.ended()).as_millis();
    SlowOperation {
        operation: slow.operation.name(),
        key,
        prefix,
        times: slow.times,
        failed: !slow.good,
        duration_ms: slow.ns as f64 / 1e6,
        at_ms: now_ms.saturating_sub(i64::try_from(ago_ms).unwrap_or(i64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::interchange::key_literal::parse;
    use openkv_core::model::Key;

    fn key(literal: &str) -> Key {
        parse(literal).unwrap()
    }

    fn slow(since: Instant, ms: u64, literal: &str) -> Slow {
        let subject = Subject::key(key(literal).as_bytes());
        let (operation, ns) = (Operation::Set, ms * 1_000_000);
        Slow { operation, subject, times: 1, good: true, since, ns }
    }

    fn durations(log: &SlowLog, now: Instant) -> Vec<f64> {
        log.shown((now, 0)).iter().map(|of| of.duration_ms).collect()
    }

    #[test]
    fn the_slowest_stay_and_the_log_is_bounded() {
        let (mut log, since) = (SlowLog::default(), Instant::now());
        let most = SLOW_OPERATIONS_MAX as u64;
        for ms in (1..=2 * most).chain(1..=most) {
            log.note(slow(since, ms, "a"));
        }
        let now = since + Duration::from_secs(1);
        let expected: Vec<f64> = (most + 1..=2 * most).rev().map(|ms| ms as f64).collect();
        assert_eq!(durations(&log, now), expected);
    }

    #[test]
    fn one_that_is_too_old_makes_place_for_a_faster_one() {
        let (mut log, since) = (SlowLog::default(), Instant::now());
        for _ in 0..SLOW_OPERATIONS_MAX {
            log.note(slow(since, 500, "a"));
        }
        log.note(slow(since + AGE / 2, 20, "b"));
        assert!(!durations(&log, since + AGE / 2).contains(&20.0), "all others are slower");
        let later = since + AGE + Duration::from_secs(1);
        log.note(slow(later, 20, "b"));
        let now = later + Duration::from_millis(60);
        let [only] = &log.shown((now, 1_000_000))[..] else { panic!("{log:?}") };
        assert_eq!((only.key.as_deref(), only.at_ms), (Some(r#"["b"]"#), 1_000_000 - 40));
        assert!(log.shown((now + AGE, 0)).is_empty());
    }

    #[test]
    fn operations_of_one_transaction_are_one() {
        let (mut log, since) = (SlowLog::default(), Instant::now());
        let id = log.note(slow(since, 30, "a"));
        log.join(id, 4);
        let all = log.shown((since + Duration::from_secs(1), 0));
        assert_eq!(all.iter().map(|of| of.times).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn a_subject_is_a_key_or_the_parts_that_fit_or_are_common() {
        let literals = |subject: Subject| subject.literals();
        let whole = r#"["users",42,u8"00ff",-1n,true]"#;
        let printed = (Some(whole.to_owned()), None);
        assert_eq!(literals(Subject::key(key(whole).as_bytes())), printed);
        let long = key(&format!(r#"["users", "{}", 1]"#, "x".repeat(SLOW_KEY_BYTES_MAX)));
        let users = (None, Some(r#"["users"]"#.to_owned()));
        assert_eq!(literals(Subject::key(long.as_bytes())), users);
        let prefix = key(r#"["users"]"#);
        let [start, end] = [0, 0xff].map(|last| [prefix.as_bytes(), &[last]].concat());
        assert_eq!(literals(Subject::span(&start, &end)), users);
        let [start, end] = [r#"["users", "a1"]"#, r#"["users", "a2"]"#].map(key);
        assert_eq!(literals(Subject::span(start.as_bytes(), end.as_bytes())), users);
        assert_eq!(literals(Subject::span(&[], &[0xff])), (None, Some("[]".to_owned())));
        assert_eq!(literals(Subject::NONE), (None, None));
    }

    #[test]
    fn a_text_that_is_cut_at_a_zero_is_left_out() {
        // The bytes of the first part end with a zero that belongs to the text.
        let text = format!("{}\\0tail", "x".repeat(SLOW_KEY_BYTES_MAX - 2));
        let long = key(&format!(r#"["{text}"]"#));
        assert_eq!(long.as_bytes().get(SLOW_KEY_BYTES_MAX - 1), Some(&0));
        let subject = Subject::key(long.as_bytes());
        assert_eq!(subject.literals(), (None, Some("[]".to_owned())));
    }
}
