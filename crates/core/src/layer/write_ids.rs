//! The ids of writes that have committed, and of repetitions that were refused, with their outcomes. A
//! write whose id is here gets the outcome and is not decided again.
//!
//! Invariant: a write that has committed at the time `from_ms` or later, durable or not, is here if it has
//! an id; so is a refused repetition. An id is at most `ids_ahead_ms` ahead of the clock when its write is
//! decided. So a write that is not here and whose id is `ids_ahead_ms` younger than `from_ms` has not
//! committed, and no repetition of it was refused.

use std::collections::{HashMap, HashSet, VecDeque};

use foldhash::fast::RandomState;

use crate::codec::{Malformed, write_log};
use crate::commit::Work;
use crate::model::{
    AtomicWrite, Attempt, Decision, Error, Kind, LAYER_CACHE_BYTES_MAX, LAYER_DEPTH_MAX,
    LAYER_WRITE_ID_BYTES, LAYER_WRITE_IDS_BYTES_MAX, Results, WRITE_ID_AHEAD_MS_MAX,
    WRITE_ID_KEPT_MS, WRITE_REPEAT_MS_MAX, WriteId, WriteRecord,
};

const _: () = assert!(
    WRITE_ID_KEPT_MS - WRITE_ID_AHEAD_MS_MAX > WRITE_REPEAT_MS_MAX.cast_signed(),
    "a client repeats a write only while its id is remembered"
);

/// The memory of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of the entries that it keeps.
    pub cache_bytes: usize,
    /// Bytes of the ids of writes that it keeps, with their outcomes.
    pub ids_bytes: usize,
    /// How long it keeps an id, in ms.
    pub ids_kept_ms: i64,
    /// By how much an id may be ahead of the clock of the database, in ms.
    pub ids_ahead_ms: i64,
    /// Most batches in flight.
    pub batches_in_flight: usize,
}

impl Bounds {
    /// Those of a process that leads databases.
    pub const USUAL: Self = Self {
        cache_bytes: LAYER_CACHE_BYTES_MAX,
        ids_bytes: LAYER_WRITE_IDS_BYTES_MAX,
        ids_kept_ms: WRITE_ID_KEPT_MS,
        ids_ahead_ms: WRITE_ID_AHEAD_MS_MAX,
        batches_in_flight: LAYER_DEPTH_MAX,
    };
}

/// The writes with ids that the database has when a lead begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// All that were decided for good at this time or later are among them, in ms since the epoch.
    pub from_ms: i64,
    /// Each with the time of its batch, in the order of the batches.
    pub records: Vec<(i64, WriteRecord)>,
}

impl Default for Remembered {
    /// Of a database without such writes.
    fn default() -> Self {
        Self { from_ms: i64::MIN, records: Vec::new() }
    }
}

/// Collects what a lead remembers from the log of batches.
pub struct NewestWrites {
    from_ms: i64,
    /// The newest first.
    batches: Vec<(i64, Vec<WriteRecord>)>,
    bytes: usize,
}

impl NewestWrites {
    /// For a lead that begins at this time.
    #[must_use]
    pub fn before(clock_ms: i64) -> Self {
        let from_ms = clock_ms.saturating_sub(WRITE_ID_KEPT_MS);
        Self { from_ms, batches: Vec::new(), bytes: 0 }
    }

    /// The time of the oldest batches that are needed.
    #[must_use]
    pub fn from_ms(&self) -> i64 {
        self.from_ms
    }

    /// Adds the writes of a batch as the log has them, the newest batch first. `previous`: the version before the
    /// batch. Whether there is room for an older one.
    ///
    /// # Errors
    /// For bytes of another form.
    pub fn add(&mut self, at_ms: i64, previous: u64, writes: &[u8]) -> Result<bool, Malformed> {
        let records = write_log::decode(writes, previous)?;
        self.bytes += weight(writes, &records);
        self.batches.push((at_ms, records));
        let has_room = self.bytes <= LAYER_WRITE_IDS_BYTES_MAX;
        if !has_room {
            // Some of this time may be missing.
            self.from_ms = at_ms + 1;
        }
        Ok(has_room)
    }

    /// What the writes of a batch weigh in the memory of a leader, in bytes.
    ///
    /// # Errors
    /// For bytes of another form.
    pub fn weight(writes: &[u8]) -> Result<usize, Malformed> {
        Ok(weight(writes, &write_log::decode(writes, 0)?))
    }

    /// All that were added.
    #[must_use]
    pub fn all(self) -> Remembered {
        let timed = |(at_ms, records): (i64, Vec<WriteRecord>)| {
            records.into_iter().map(move |record| (at_ms, record))
        };
        let records = self.batches.into_iter().rev().flat_map(timed).collect();
        Remembered { from_ms: self.from_ms, records }
    }
}

fn weight(writes: &[u8], records: &[WriteRecord]) -> usize {
    writes.len() + records.len() * LAYER_WRITE_ID_BYTES
}

/// The ids that are known.
pub(super) struct WriteIds {
    known: HashMap<WriteId, Decision, RandomState>,
    /// In the order of their batches, with the times of those.
    order: VecDeque<(i64, WriteId)>,
    from_ms: i64,
    bytes: usize,
    bounds: Bounds,
    /// The ids of the batch that is looked at; empty in between.
    seen: HashSet<WriteId, RandomState>,
}

/// The fate of a write of a batch.
#[derive(Debug, PartialEq)]
enum Place {
    /// It is decided; for good, if it or a later write of the batch with its id is a repetition.
    Decided { repeated: bool },
    /// It is answered with this.
    Known(Decision),
    /// It is answered as an earlier write of the batch, which has the same id.
    Same(usize),
}

/// A batch in which some writes are not decided.
#[derive(Debug)]
pub(super) struct Screened(Vec<Place>);

impl WriteIds {
    pub(super) fn new(remembered: Remembered, bounds: Bounds) -> Self {
        let mut ids = Self {
            known: HashMap::default(),
            order: VecDeque::new(),
            from_ms: remembered.from_ms,
            bytes: 0,
            bounds,
            seen: HashSet::default(),
        };
        remembered.records.into_iter().for_each(|(at_ms, record)| ids.add(at_ms, record));
        ids
    }

    /// The fates of the writes of a batch at this time; `None` if all are decided.
    pub(super) fn screen(&mut self, writes: &[AtomicWrite], now_ms: i64) -> Option<Screened> {
        let mut seen = std::mem::take(&mut self.seen);
        let mut is_decided =
            |id| self.is_new(id, now_ms) && !self.known.contains_key(&id) && seen.insert(id);
        let all_decided = writes.iter().filter_map(AtomicWrite::id).all(&mut is_decided);
        seen.clear();
        self.seen = seen;
        if all_decided {
            return None;
        }
        let mut first: HashMap<WriteId, usize> = HashMap::new();
        let place = |(at, write): (usize, &AtomicWrite)| {
            let Some(Attempt { id, repeated }) = write.attempt() else {
                return Place::Decided { repeated: false };
            };
            if let Some(decision) = self.known.get(&id) {
                return Place::Known(decision.clone());
            }
            if !self.is_new(id, now_ms) {
                return Place::Known(Decision::Rejected(forgotten()));
            }
            match *first.entry(id).or_insert(at) {
                first if first == at => Place::Decided { repeated },
                first => Place::Same(first),
            }
        };
        let mut places: Vec<Place> = writes.iter().enumerate().map(place).collect();
        for (at, write) in writes.iter().enumerate() {
            if let Some(Place::Same(first)) = places.get(at)
                && let (Some(Attempt { repeated: true, .. }), first) = (write.attempt(), *first)
                && let Some(place) = places.get_mut(first)
            {
                *place = Place::Decided { repeated: true };
            }
        }
        Some(Screened(places))
    }

    /// Whether a write with this id has no outcome, unless the id is known.
    fn is_new(&self, id: WriteId, now_ms: i64) -> bool {
        let (at_ms, ahead_ms) = (id.at_ms(), self.bounds.ids_ahead_ms);
        at_ms <= now_ms.saturating_add(ahead_ms) && at_ms - ahead_ms >= self.from_ms
    }

    /// Adds a write that was decided for good at this time.
    pub(super) fn add(&mut self, at_ms: i64, WriteRecord { id, decision }: WriteRecord) {
        self.bytes += size_bytes(&decision);
        self.order.push_back((at_ms, id));
        if let Some(before) = self.known.insert(id, decision) {
            self.bytes -= size_bytes(&before);
        }
    }

    /// Forgets what is over the bounds, the oldest first.
    pub(super) fn trim(&mut self, now_ms: i64) {
        self.from_ms = self.from_ms.max(now_ms.saturating_sub(self.bounds.ids_kept_ms));
        while let Some((at_ms, id)) = self.order.front().copied()
            && (at_ms < self.from_ms || self.bytes > self.bounds.ids_bytes)
        {
            self.order.pop_front();
            self.from_ms = self.from_ms.max(at_ms + 1);
            if let Some(decision) = self.known.remove(&id) {
                self.bytes -= size_bytes(&decision);
            }
        }
    }
}

impl Screened {
    /// The work without the writes that are not decided.
    pub(super) fn of_work(&self, work: &Work) -> Work {
        let Work { writes, durable, seed, .. } = work;
        let writes = self.decided(writes.iter().cloned());
        Work { writes, durable: *durable, seed: *seed, ..Work::default() }
    }

    /// The writes that are decided.
    pub(super) fn decided(
        &self,
        writes: impl IntoIterator<Item = AtomicWrite>,
    ) -> Vec<AtomicWrite> {
        let decided = |(write, place): (AtomicWrite, &Place)| match place {
            Place::Decided { repeated: true } => Some(write.repeated()),
            Place::Decided { repeated: false } => Some(write),
            Place::Known(_) | Place::Same(_) => None,
        };
        writes.into_iter().zip(&self.0).filter_map(decided).collect()
    }

    /// The decisions of all writes. `decided`: those of the writes that were decided.
    pub(super) fn decisions(self, decided: Vec<Decision>) -> Vec<Decision> {
        let mut decided = decided.into_iter();
        let mut all: Vec<Decision> = Vec::with_capacity(self.0.len());
        let missing = || Decision::Rejected(Error::internal("a write was not decided"));
        for place in self.0 {
            let decision = match place {
                Place::Decided { .. } => decided.next(),
                Place::Known(decision) => Some(decision),
                Place::Same(at) => all.get(at).cloned(),
            };
            all.push(decision.unwrap_or_else(missing));
        }
        all
    }
}

fn size_bytes(decision: &Decision) -> usize {
    let more = match decision {
        Decision::Committed(_) | Decision::Deleted(_) => 0,
        Decision::CommittedWith(_, results) => {
            let Results { resolved, values, enqueued } = &**results;
            let values = values.iter().map(|value| size_of_val(value) + value.bytes.len());
            let rest = size_of_val(resolved.as_slice()) + size_of_val(enqueued.as_slice());
            size_of::<Results>() + values.sum::<usize>() + rest
        }
        Decision::CheckFailed(failed) => size_of_val(failed.as_slice()),
        Decision::NotUnique(violations) => {
            let bytes =
                violations.iter().map(|one| one.index.len() + one.key.len() + one.other.len());
            size_of_val(violations.as_slice()) + bytes.sum::<usize>()
        }
        Decision::Rejected(error) => error.message().len(),
    };
    LAYER_WRITE_ID_BYTES + more
}

/// The outcome of a write whose id is too old, or ahead of the clock.
fn forgotten() -> Error {
    let why = "the id of this write is older than those that the leader remembers, or ahead of its \
               clock, so it was not executed now; read to find out whether it has happened before";
    Error::new(Kind::OutcomeUnknown, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EncodedValue, Limits, Versionstamp, WriteParts};

    const BOUNDS: Bounds =
        Bounds { ids_bytes: 1 << 20, ids_kept_ms: 100, ids_ahead_ms: 10, ..Bounds::USUAL };

    fn id(at_ms: i64, number: u64) -> WriteId {
        WriteId::new(at_ms, [0, number])
    }

    fn write(id: Option<WriteId>) -> AtomicWrite {
        let parts = WriteParts { attempt: id.map(Attempt::first), ..WriteParts::default() };
        AtomicWrite::new(parts, &Limits::default()).unwrap()
    }

    fn committed(version: u64) -> Decision {
        Decision::Committed(Versionstamp::new(version))
    }

    fn record(id: WriteId, version: u64) -> WriteRecord {
        WriteRecord { id, decision: committed(version) }
    }

    /// What becomes of one write with this id.
    fn fate(ids: &mut WriteIds, id: WriteId, now_ms: i64) -> Option<Decision> {
        let screened = ids.screen(&[write(Some(id))], now_ms)?;
        screened.decisions(Vec::new()).pop()
    }

    fn is_unknown(decision: Option<Decision>) -> bool {
        matches!(decision, Some(Decision::Rejected(error)) if error.kind() == Kind::OutcomeUnknown)
    }

    #[test]
    fn a_known_id_gets_its_outcome_and_others_are_decided() {
        let mut ids = WriteIds::new(Remembered::default(), BOUNDS);
        ids.add(50, record(id(40, 1), 7));
        let writes = [None, Some(id(50, 2)), Some(id(40, 1)), Some(id(50, 2)), Some(id(50, 3))];
        let writes = writes.map(write).to_vec();
        assert!(ids.screen(&writes[..2], 50).is_none());
        let screened = ids.screen(&writes, 50).unwrap();
        let work = Work { writes: writes.clone(), durable: true, seed: 5, ..Work::default() };
        let part = screened.of_work(&work);
        assert_eq!((part.durable, part.seed), (true, 5));
        let writes = screened.decided(writes);
        assert_eq!(part.writes, writes);
        let left: Vec<_> = writes.iter().map(AtomicWrite::id).collect();
        assert_eq!(left, [None, Some(id(50, 2)), Some(id(50, 3))]);
        let failed = Decision::CheckFailed(vec![0]);
        let decided = vec![committed(8), failed.clone(), committed(9)];
        let all = [committed(8), failed.clone(), committed(7), failed, committed(9)];
        assert_eq!(screened.decisions(decided), all);
    }

    #[test]
    fn a_repetition_in_the_batch_of_its_first_attempt_is_decided_for_good() {
        let mut ids = WriteIds::new(Remembered::default(), BOUNDS);
        let (first, other) = (write(Some(id(50, 1))), write(Some(id(50, 2))));
        for writes in [
            [first.clone(), first.clone().repeated(), other.clone()],
            [first.clone().repeated(), first, other],
        ] {
            let decided = ids.screen(&writes, 50).unwrap().decided(writes);
            let attempts: Vec<_> = decided.iter().map(AtomicWrite::attempt).collect();
            let [first, other] = [(1, true), (2, false)]
                .map(|(number, repeated)| Some(Attempt { id: id(50, number), repeated }));
            assert_eq!(attempts, [first, other]);
        }
    }

    #[test]
    fn an_id_older_than_what_is_kept_has_an_unknown_outcome() {
        let mut ids = WriteIds::new(Remembered::default(), BOUNDS);
        ids.add(50, record(id(50, 1), 7));
        ids.trim(150);
        assert_eq!(fate(&mut ids, id(50, 1), 150), Some(committed(7)));
        ids.trim(151);
        assert!(is_unknown(fate(&mut ids, id(50, 1), 151)));
        // An id that was 10 ms ahead may be of a write that is forgotten.
        assert!(is_unknown(fate(&mut ids, id(60, 2), 151)));
        assert_eq!(fate(&mut ids, id(61, 2), 151), None);
        assert_eq!(fate(&mut ids, id(161, 3), 151), None);
        assert!(is_unknown(fate(&mut ids, id(162, 3), 151)), "ahead of the clock");
    }

    #[test]
    fn ids_over_the_bytes_are_forgotten_and_their_time_with_them() {
        let bounds = Bounds { ids_bytes: 2 * LAYER_WRITE_ID_BYTES, ..BOUNDS };
        let records = (1..=3).map(|n| (n, record(id(n, 0), n as u64))).collect();
        let mut ids = WriteIds::new(Remembered { from_ms: 0, records }, bounds);
        ids.trim(20);
        assert!(is_unknown(fate(&mut ids, id(1, 0), 20)));
        assert_eq!(fate(&mut ids, id(2, 0), 20), Some(committed(2)));
        assert_eq!(fate(&mut ids, id(12, 0), 20), None);
        assert!(is_unknown(fate(&mut ids, id(11, 0), 20)), "it may have committed at 1");
        let values = vec![EncodedValue::le64(1); 50];
        let decision =
            Decision::committed(Versionstamp::new(9), Results { values, ..Results::default() });
        ids.add(30, WriteRecord { id: id(30, 0), decision });
        ids.trim(30);
        assert!(ids.known.is_empty() && ids.bytes == 0, "results count");
    }
}
