//! The processes of one database, and what they do from one seed.

use std::collections::BTreeSet;
use std::time::Instant;

use openkv::commit::Work;
use openkv::engine::{Engine, Indexer as _, Reader as _, Snapshot, Writer as _};
use openkv::filter::Filter;
use openkv::index::{
    Gathered, Ordered, ValueIndex, gather, gather_ordered, parse_paths, plan_keys, plan_order,
};
use openkv::model::{
    AtomicWrite, Decision, Error, IndexChoice, Limits, Mutation, OrderPath, Step, Time,
    ValueIndexState, Violation, Walk, WriteParts,
};

use super::BUSY;
use super::model::{
    Field, Index, KEYS, Row, Rows, VALUES, any_expiry, key, number_of, object, prefix, twins,
};
use crate::rng::Rng;

const PROCESSES: u64 = 2;

/// Its fields are dropped in this order.
struct Process<E: Engine> {
    reader: E::Reader,
    writer: E::Writer,
    _engine: E,
}

fn start<E: Engine>(engine: E) -> Process<E> {
    let reader = engine.reader().expect("a reader");
    Process { reader, writer: engine.writer().expect("a writer"), _engine: engine }
}

struct World<E: Engine> {
    rng: Rng,
    now_ms: i64,
    rows: Rows,
    processes: Vec<Process<E>>,
}

/// Runs one seed on a fresh database; `open` opens it again.
///
/// # Errors
/// The first difference from the model.
pub(super) fn run<E: Engine>(seed: u64, open: &dyn Fn() -> E) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let processes = (0..PROCESSES).map(|_| start(open())).collect();
    let steps = 20 + rng.below(60);
    let mut world = World { rng, now_ms: 1000, rows: Rows::new(), processes };
    for step in 0..steps {
        world.step(open).map_err(|problem| format!("seed {seed}, step {step}: {problem}"))?;
    }
    Ok(())
}

fn soon() -> Instant {
    Instant::now() + BUSY
}

fn in_words<T>(result: Result<T, Error>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

impl<E: Engine> World<E> {
    fn step(&mut self, open: &dyn Fn() -> E) -> Result<(), String> {
        let at = self.rng.below(PROCESSES) as usize;
        match self.rng.below(16) {
            0 | 1 => {
                let index = self.rng.pick(&Index::ALL);
                in_words(self.processes[at].writer.create_value_index(&index.request(), soon()))?;
            }
            2 => {
                let choice = IndexChoice::Name(self.rng.pick(&Index::ALL).name().to_owned());
                in_words(self.processes[at].writer.drop_index(&choice, soon()))?;
            }
            3..=5 => self.build(at)?,
            6 => {
                let work = Work { sweep_max: usize::MAX >> 1, ..Work::default() };
                in_words(self.processes[at].writer.apply(work, self.now_ms, soon()))?;
                let now_ms = self.now_ms;
                self.rows.retain(|_, row| row.is_alive(now_ms));
            }
            7 => {
                // Its files are closed before another process begins.
                drop(self.processes.remove(at));
                self.processes.push(start(open()));
            }
            8 => self.now_ms += self.rng.below(40) as i64,
            _ => self.write(at)?,
        }
        self.check()
    }

    /// What a job reads by a random process.
    fn read<T>(
        &mut self,
        mut job: impl FnMut(&mut dyn Snapshot) -> Result<T, Error>,
    ) -> Result<T, String> {
        let at = self.rng.below(PROCESSES) as usize;
        let mut found = None;
        in_words(self.processes[at].reader.read(self.now_ms, &mut |snapshot| {
            found = Some(job(snapshot)?);
            Ok(())
        }))?;
        found.ok_or_else(|| "nothing was read".to_owned())
    }

    /// The state of the unique index.
    fn unique(&mut self) -> Result<Option<ValueIndexState>, String> {
        let indexes = self.read(|snapshot| snapshot.value_indexes())?;
        let unique = indexes.iter().find(|index| index.spec().name == Index::Unique.name());
        Ok(unique.map(|index| index.info.state.clone()))
    }

    fn build(&mut self, at: usize) -> Result<(), String> {
        let before = self.unique()?;
        in_words(self.processes[at].writer.build_indexes(self.now_ms, soon()))?;
        let Some(ValueIndexState::Failed(failure)) = self.unique()? else { return Ok(()) };
        if before != Some(ValueIndexState::Building) {
            return Ok(());
        }
        let number = number_of(failure.key.as_bytes()).ok_or("a failure of an unknown key")?;
        let is_true = match failure.other.as_ref().map(|other| number_of(other.as_bytes())) {
            Some(other) => {
                twins(&self.rows, number, self.now_ms).into_iter().any(|twin| Some(twin) == other)
            }
            None => self.rows.get(&number).is_some_and(Row::is_unfit),
        };
        if is_true {
            Ok(())
        } else {
            Err(format!("the index failed without a reason: {failure:?}"))
        }
    }

    fn write(&mut self, at: usize) -> Result<(), String> {
        let (mut writes, mut changes) = (Vec::new(), Vec::new());
        for _ in 0..=self.rng.below(3) {
            let mutations: Vec<Change> =
                (0..=self.rng.below(3)).map(|_| Change::any(&mut self.rng, self.now_ms)).collect();
            let parts = WriteParts {
                mutations: mutations.iter().map(Change::mutation).collect(),
                ..WriteParts::default()
            };
            writes.push(in_words(AtomicWrite::new(parts, &Limits::default()))?);
            changes.push(mutations);
        }
        let unique = self.unique()?;
        let work = Work { writes, durable: true, ..Work::default() };
        let report = in_words(self.processes[at].writer.apply(work, self.now_ms, soon()))?;
        if report.decisions.len() != changes.len() {
            return Err("not every write was decided".to_owned());
        }
        for (changes, decision) in changes.iter().zip(report.decisions) {
            let mut rows = self.rows.clone();
            changes.iter().for_each(|change| change.apply(&mut rows, self.now_ms));
            let expected = Expected::of(changes, &rows, self.now_ms);
            let happened = expected.agrees(unique.as_ref(), &decision, &rows, self.now_ms).ok_or_else(|| {
                format!(
                    "{changes:?} on {:?} was answered with {decision:?}, the unique index being {unique:?}",
                    self.rows
                )
            })?;
            if happened {
                self.rows = rows;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let now_ms = self.now_ms;
        let mut living = self.rows.clone();
        living.retain(|_, row| row.is_alive(now_ms));
        let stored = self.read(|snapshot| {
            let mut stored = Vec::new();
            let walk = Walk { start: &[], end: &[u8::MAX], reverse: false, values: true };
            snapshot.walk(walk, &mut |seen| {
                stored.push((seen.row.key.to_vec(), seen.row.value.to_vec()));
                Step::Next
            })?;
            Ok(stored)
        })?;
        let entry = |(number, row): (&u8, &Row)| (key(*number).into_bytes(), row.value().bytes);
        if stored != living.iter().map(entry).collect::<Vec<_>>() {
            return Err(format!("the entries are not {living:?}"));
        }
        if self.unique()? == Some(ValueIndexState::Ready)
            && let Some(twin) = living.keys().find(|key| !twins(&living, **key, now_ms).is_empty())
        {
            return Err(format!("the value of {twin} is not unique in {living:?}"));
        }
        for index in Index::ALL {
            self.check_entries(index, &living)?;
        }
        self.check_list(&living)?;
        self.check_order(&living)
    }

    /// A ready index has the entries of living rows, in order, and none of rows that are not there.
    fn check_entries(&mut self, index: Index, living: &Rows) -> Result<(), String> {
        let found = self.read(|snapshot| {
            let indexes = snapshot.value_indexes()?;
            let named = |found: &&ValueIndex| found.spec().name == index.name();
            let Some(found) = indexes.iter().find(named).filter(|index| index.is_ready()) else {
                return Ok(None);
            };
            let mut keys = Vec::new();
            snapshot.walk_index(found.info.id, (&[], &[u8::MAX]), false, &mut |entry| {
                keys.push(found.key_of(entry).and_then(number_of));
                true
            })?;
            Ok(Some(keys))
        })?;
        let Some(found) = found else { return Ok(()) };
        let of_living = |key: &Option<u8>| key.is_some_and(|key| living.contains_key(&key));
        let (there, others): (Vec<_>, Vec<_>) = found.into_iter().partition(of_living);
        // Entries that have ended stay until they are swept.
        let ended = |key: &Option<u8>| key.is_some_and(|key| self.rows.contains_key(&key));
        if !others.iter().all(ended) {
            return Err(format!("{index:?} has entries of keys that are not there: {others:?}"));
        }
        let expected = index.keys(living).into_iter().map(Some).collect::<Vec<_>>();
        if there == expected {
            return Ok(());
        }
        Err(format!("{index:?} has the keys {there:?}, not {expected:?}, of {living:?}"))
    }

    /// A list with a filter finds by an index what the model finds without one.
    fn check_list(&mut self, living: &Rows) -> Result<(), String> {
        let (index, filter, meets) = any_filter(&mut self.rng);
        let filter = in_words(Filter::parse(&filter, self.now_ms))?;
        let (reverse, max) = (self.rng.below(2) == 0, 1 + self.rng.below(4) as usize);
        let found = self.read(|snapshot| {
            let indexes = snapshot.value_indexes()?;
            if !indexes.iter().any(|found| found.is_ready() && found.spec().name == index.name()) {
                return Ok(None);
            }
            let (mut start, mut end) = range();
            let plan = plan_keys(&indexes, &filter, &start, &end);
            let Some(plan) = plan else { return Err(Error::internal("no index is read")) };
            let mut all = Vec::new();
            loop {
                let mut walk =
                    |id, range: (&[u8], &[u8]), reverse, visit: &mut dyn FnMut(&[u8]) -> bool| {
                        snapshot.walk_index(id, range, reverse, visit)
                    };
                let range = (start.as_slice(), end.as_slice());
                let gathered = gather(&indexes, &plan, range, reverse, max, &mut walk)?;
                let Some(Gathered { keys, is_complete, .. }) = gathered else {
                    return Err(Error::internal("so few entries are too many"));
                };
                all.extend(keys.iter().map(|key| number_of(key)));
                match keys.last() {
                    _ if is_complete => return Ok(Some(all)),
                    None => return Err(Error::internal("a list does not go on")),
                    Some(last) if reverse => end.clone_from(last),
                    Some(last) => start = [last.as_slice(), &[0]].concat(),
                }
            }
        })?;
        let Some(found) = found else { return Ok(()) };
        let chosen = |key: Option<u8>| {
            let key = key?;
            let value = living.get(&key)?.value();
            filter.matches(value.encoding, &value.bytes).ok()?.then_some(key)
        };
        let found: Vec<u8> = found.into_iter().filter_map(chosen).collect();
        let mut expected: Vec<u8> =
            living.iter().filter(|(_, row)| meets(row)).map(|(key, _)| *key).collect();
        if reverse {
            expected.reverse();
        }
        if found == expected {
            return Ok(());
        }
        Err(format!("{filter:?} finds {found:?} by an index, not {expected:?}, in {living:?}"))
    }

    /// A list in the order of values has all living entries, in order.
    fn check_order(&mut self, living: &Rows) -> Result<(), String> {
        let (reverse, max) = (self.rng.below(2) == 0, 1 + self.rng.below(4) as usize);
        let path = |path: &str, descending: bool| OrderPath {
            path: path.to_owned(),
            descending: descending != reverse,
        };
        let order = in_words(parse_paths(&[path("n", false), path("u", true)]))?;
        let found = self.read(|snapshot| {
            let indexes = snapshot.value_indexes()?;
            let (start, end) = range();
            let Some(plan) = plan_order(&indexes, None, &order, &start, &end) else {
                return Ok(None);
            };
            let mut after: Option<Vec<u8>> = None;
            let mut all = Vec::new();
            loop {
                let mut walk =
                    |id, range: (&[u8], &[u8]), reverse, visit: &mut dyn FnMut(&[u8]) -> bool| {
                        snapshot.walk_index(id, range, reverse, visit)
                    };
                let range = (start.as_slice(), end.as_slice());
                let page =
                    gather_ordered(&indexes, &plan, range, after.as_deref(), max, &mut walk)?;
                let Ordered { entries, next, .. } = page;
                all.extend(entries.iter().filter_map(|(_, key)| number_of(key)));
                match next {
                    Some(next) => after = Some(next),
                    None => return Ok(Some(all)),
                }
            }
        })?;
        let Some(mut found) = found else { return Ok(()) };
        found.retain(|key| living.contains_key(key));
        let mut expected = Index::Ordered.keys(living);
        if reverse {
            expected.reverse();
        }
        if found == expected {
            Ok(())
        } else {
            Err(format!("in order {found:?}, not {expected:?}"))
        }
    }
}

/// All keys.
fn range() -> (Vec<u8>, Vec<u8>) {
    ([prefix(), vec![0]].concat(), [prefix(), vec![u8::MAX]].concat())
}

type Meets = Box<dyn Fn(&Row) -> bool>;

/// A filter, the index that answers it, and its meaning.
fn any_filter(rng: &mut Rng) -> (Index, Vec<u8>, Meets) {
    let [a, b] = [(); 2].map(|()| rng.below(VALUES) as u8);
    let (low, high) = (a.min(b), a.max(b));
    let within = |range: std::ops::RangeInclusive<u8>| move |field: &Field| matches!(field, Field::Number(n) if range.contains(n));
    let nested = |path: &str, tests: &[(&str, Field)]| {
        let inner = object(tests);
        [&[0xa1, 0x61, path.as_bytes()[0]], inner.as_slice()].concat()
    };
    match rng.below(7) {
        0 => {
            let filter = object(&[("u", Field::Number(a))]);
            (Index::Unique, filter, Box::new(move |row| row.u == Field::Number(a)))
        }
        1 => {
            let filter = object(&[("u", Field::Text(a))]);
            (Index::Unique, filter, Box::new(move |row| row.u == Field::Text(a)))
        }
        2 => {
            let filter =
                nested("u", &[("$gte", Field::Number(low)), ("$lte", Field::Number(high))]);
            let meets = within(low..=high);
            (Index::Unique, filter, Box::new(move |row| meets(&row.u)))
        }
        3 => {
            let filter = nested("n", &[("$between", Field::List(vec![low, high]))]);
            let meets = within(low..=high);
            (Index::Ordered, filter, Box::new(move |row| meets(&row.n)))
        }
        4 => {
            let filter = nested("u", &[("$in", Field::List(vec![a, b]))]);
            let meets = move |row: &Row| matches!(row.u, Field::Number(n) if n == a || n == b);
            (Index::Unique, filter, Box::new(meets))
        }
        5 => {
            let filter = nested("m", &[("$contains", Field::Number(a))]);
            let meets = move |row: &Row| matches!(&row.m, Field::List(list) if list.contains(&a));
            (Index::Multi, filter, Box::new(meets))
        }
        _ => {
            let filter = nested("n", &[("$lt", Field::Number(a))]);
            let meets = move |row: &Row| matches!(row.n, Field::Number(n) if n < a);
            (Index::Ordered, filter, Box::new(meets))
        }
    }
}

/// One mutation.
#[derive(Clone, Debug)]
enum Change {
    Set(u8, Row),
    Delete(u8),
    Expire(u8, Option<i64>),
}

impl Change {
    fn any(rng: &mut Rng, now_ms: i64) -> Self {
        let number = rng.below(KEYS) as u8;
        match rng.below(8) {
            0 | 1 => Self::Delete(number),
            2 => Self::Expire(number, any_expiry(rng, now_ms)),
            _ => Self::Set(number, Row::any(rng, now_ms)),
        }
    }

    fn number(&self) -> u8 {
        match self {
            Self::Set(number, _) | Self::Delete(number) | Self::Expire(number, _) => *number,
        }
    }

    fn mutation(&self) -> Mutation {
        let key = key(self.number());
        match self {
            Self::Set(_, row) => {
                let expiry = row.expire_at_ms.map(Time::At);
                Mutation::Set { key, suffixed: false, value: row.value(), expiry }
            }
            Self::Delete(_) => Mutation::Delete { key },
            Self::Expire(_, expire_at_ms) => Mutation::SetExpiry {
                key,
                expiry: expire_at_ms.map(Time::At),
                required: false,
                shortens: false,
            },
        }
    }

    fn apply(&self, rows: &mut Rows, now_ms: i64) {
        match self {
            Self::Set(number, row) => drop(rows.insert(*number, row.clone())),
            // One that has ended stays until it is swept, or is removed.
            Self::Delete(number) => {
                if rows.get(number).is_some_and(|row| row.is_alive(now_ms)) {
                    rows.remove(number);
                }
            }
            Self::Expire(number, expire_at_ms) => {
                if let Some(row) = rows.get_mut(number).filter(|row| row.is_alive(now_ms)) {
                    row.expire_at_ms = *expire_at_ms;
                }
            }
        }
    }
}

/// What a write does to a unique index.
struct Expected {
    /// Keys that it writes with a value that no unique index can compare.
    unfit: BTreeSet<u8>,
    /// Keys that have the value of another one then.
    twins: BTreeSet<u8>,
    /// Those of them that it sets. Another expiry of an entry is no new value.
    set: BTreeSet<u8>,
}

impl Expected {
    fn of(changes: &[Change], rows: &Rows, now_ms: i64) -> Self {
        let written: BTreeSet<u8> = changes.iter().map(Change::number).collect();
        let is_unfit =
            |key: &u8| rows.get(key).is_some_and(|row| row.is_alive(now_ms) && row.is_unfit());
        let unfit = written.iter().copied().filter(is_unfit).collect();
        let has_twins = |key: &u8| !twins(rows, *key, now_ms).is_empty();
        let twins: BTreeSet<u8> = written.iter().copied().filter(has_twins).collect();
        let is_set = |key: &u8| {
            changes.iter().any(|change| matches!(change, Change::Set(set, _) if set == key))
        };
        let set = twins.iter().copied().filter(is_set).collect();
        Self { unfit, twins, set }
    }

    /// Whether the write has happened; `None` if its answer is wrong.
    fn agrees(
        &self,
        unique: Option<&ValueIndexState>,
        decision: &Decision,
        rows: &Rows,
        now_ms: i64,
    ) -> Option<bool> {
        let is_ready = unique == Some(&ValueIndexState::Ready);
        // While it is built, it knows some of the older entries.
        let is_kept = is_ready || unique == Some(&ValueIndexState::Building);
        let is_fine = self.unfit.is_empty() && self.twins.is_empty();
        match decision {
            Decision::Committed(_) | Decision::CommittedWith(..) => {
                (is_fine || !is_ready).then_some(true)
            }
            Decision::Rejected(_) => (is_kept && !self.unfit.is_empty()).then_some(false),
            Decision::NotUnique(violations) => {
                // Of two keys of one write the decision names only the later one, with the other.
                let is_true = |Violation { key, other, index }: &Violation| {
                    let key = number_of(key.as_bytes())?;
                    let other = number_of(other.as_bytes())?;
                    let is_twin = twins(rows, key, now_ms).contains(&other);
                    (index == Index::Unique.name() && is_twin).then_some([key, other])
                };
                let reported: Option<Vec<_>> = violations.iter().map(is_true).collect();
                let reported = reported.filter(|reported| !reported.is_empty())?;
                let all = self.set.iter().all(|key| reported.as_flattened().contains(key));
                let is_whole = all && self.unfit.is_empty();
                (is_kept && (is_whole || !is_ready)).then_some(false)
            }
            Decision::Deleted(_) | Decision::CheckFailed(_) => None,
        }
    }
}
