//! The inline lane: reads on the JavaScript thread, inside the turn's budget.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::scratch::{self, Scratch};
use super::snapshot_timeout::TimedReader;
use crate::call::{brief_check_reads, brief_ordered, brief_scan, operation, too_large};
use crate::codec::Malformed;
use crate::database::Gate;
use crate::engine::{Reader, Snapshot};
use crate::metrics::{LocalCounters, Metrics, Operation, Subject};
use crate::model::{
    ANSWER_BYTES_MAX, Env, Error, Key, Kind, Range, Result, SYNC_READ_RETRY_MS, TURN_BUDGET_US,
};
use crate::open::SetClock;
use crate::protocol::Command;
use crate::protocol::frame::{
    Answer, Fill, Out, ScanRequest, next_key, parse_ordered, parse_ranges, parse_scan, put_point,
};
use crate::protocol::numbers::code;
use crate::protocol::numbers::length::POINT_HEAD_BYTES;
use crate::store::ParkedLane;

/// The results of a sync read other than lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Code {
    Miss = code::MISS,
    WouldBlock = code::WOULD_BLOCK,
    TooLarge = code::TOO_LARGE,
    Closed = code::IS_CLOSED,
    Error = code::ERROR,
    NotHere = code::NOT_HERE,
}

thread_local! {
    static LANES: RefCell<Vec<Option<Lane>>> = const { RefCell::new(Vec::new()) };
}

/// Opens a lane on this thread, with its requests and answers in `scratch`. `added` gets it for the parking of its
/// database. Returns its number.
pub(super) fn open(
    (reader, gate): (Box<dyn Reader>, Option<Gate>),
    metrics: Arc<Metrics>,
    clock: Option<Arc<SetClock>>,
    scratch: Rc<Scratch>,
    added: impl FnOnce(Weak<dyn ParkedLane>),
) -> usize {
    LANES.with_borrow_mut(|lanes| {
        let (reader, counters) = (TimedReader::new(reader), LocalCounters::new(metrics));
        let lane: Arc<dyn ParkedLane> = reader.clone();
        added(Arc::downgrade(&lane));
        let turn = TurnReader { reader, clock, turn_us: None, turns: 0, counters };
        let lane = Some(Lane { scratch, turn, gate });
        let free = lanes.iter_mut().position(|place| place.is_none());
        let number = free.unwrap_or(lanes.len());
        match lanes.get_mut(number) {
            Some(place) => *place = lane,
            None => lanes.push(lane),
        }
        number
    })
}

/// Closes a lane of this thread. A later lane reuses its number.
pub(super) fn close(number: usize) {
    // At the end of a thread, a handle may be collected after the lanes are gone.
    let lane = LANES.try_with(|lanes| lanes.borrow_mut().get_mut(number)?.take());
    drop(lane);
}

/// Reads through a lane of this thread.
pub(super) fn with(number: usize, read: impl FnOnce(&mut Lane) -> i32) -> i32 {
    LANES.with_borrow_mut(|lanes| match lanes.get_mut(number) {
        Some(Some(lane)) => read(lane),
        _ => Code::Closed as i32,
    })
}

/// The reads of a handle on its JavaScript thread.
pub(super) struct Lane {
    scratch: Rc<Scratch>,
    turn: TurnReader,
    /// Admits reads, for a replica.
    gate: Option<Gate>,
}

/// A reader with the clock of the turn.
struct TurnReader {
    reader: Arc<TimedReader>,
    /// The clock of the database, if it is not the machine's.
    clock: Option<Arc<SetClock>>,
    /// The time of the first read of this turn, in µs since the epoch.
    turn_us: Option<u64>,
    /// The number of turns with reads so far.
    turns: u64,
    counters: LocalCounters,
}

impl Drop for TurnReader {
    fn drop(&mut self) {
        self.reader.forget();
    }
}

impl TurnReader {
    /// The time in ms; `None` once the budget of this turn is used up.
    fn admit(&mut self) -> Option<i64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_us = now.as_secs() * 1_000_000 + u64::from(now.subsec_micros());
        let since = match self.turn_us {
            Some(since) => since,
            None => {
                self.turns += 1;
                self.reader.begin_turn(self.turns);
                *self.turn_us.insert(now_us)
            }
        };
        // If the clock was set back, the budget counts as used up.
        let spent = now_us.checked_sub(since).is_none_or(|spent| spent > TURN_BUDGET_US);
        if spent { None } else { Some(self.time_ms(now)) }
    }

    /// The time by which entries expire; `machine` is that of the machine.
    fn time_ms(&self, machine: Duration) -> i64 {
        let of_machine = || i64::try_from(machine.as_millis()).unwrap_or(i64::MAX);
        self.clock.as_ref().map_or_else(of_machine, |clock| clock.now_ms())
    }

    /// Reads so many keys, or one page, at the time that `job` gets. `about` is called for a slow read.
    fn read(
        &mut self,
        counted: (Operation, u64),
        about: impl FnOnce() -> Subject,
        job: &mut dyn FnMut(&mut dyn Snapshot, i64) -> Result<i32>,
    ) -> i32 {
        let Some(now_ms) = self.admit() else { return Code::WouldBlock as i32 };
        let since = self.counters.begin();
        let mut answer = Code::Error as i32;
        let read = self.reader.reader().read(now_ms, &mut |snapshot| {
            answer = job(snapshot, now_ms)?;
            Ok(())
        });
        match read {
            Ok(()) => {
                // JavaScript repeats a read whose answer does not fit; only the repetition is
                // counted.
                if answer >= Code::Miss as i32 {
                    self.counters.end(counted, true, since, about);
                }
                answer
            }
            // JavaScript repeats it in the asynchronous lane, which waits.
            Err(error) if error.kind() == Kind::Unavailable => Code::WouldBlock as i32,
            Err(error) => {
                self.counters.end(counted, false, since, about);
                scratch::keep_error(&error);
                Code::Error as i32
            }
        }
    }

    fn now_ms(&self) -> i64 {
        self.time_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn get_all(&mut self, keys: &[Key]) -> Result<Vec<u8>> {
        let now_ms = self.now_ms();
        let mut out = Vec::new();
        // A separate turn, because the snapshot timeout may release the snapshot of a long one.
        self.turns += 1;
        self.reader.begin_turn(self.turns);
        self.reader.reader().read(now_ms, &mut |snapshot| {
            for key in keys {
                let mut answer = Answer::new(&mut out);
                snapshot.get(key.as_bytes(), &mut |row| {
                    answer.push(&row, false);
                })?;
                answer.finish();
                if out.len() > ANSWER_BYTES_MAX {
                    return Err(too_large(ANSWER_BYTES_MAX));
                }
            }
            Ok(())
        })?;
        Ok(out)
    }
}

impl Lane {
    /// Ends the turn.
    pub(super) fn release(&mut self) {
        self.turn.turn_us = None;
        self.turn.reader.end_turn();
        self.count();
    }

    /// Merges the counters of this turn.
    pub(super) fn count(&mut self) {
        let TurnReader { reader, counters, .. } = &mut self.turn;
        counters.turn_ended(reader.reader().take_cache_counts());
    }

    /// Reads the entry of the key in the scratch, and writes it behind the key.
    pub(super) fn get(&mut self, key_len: usize) -> i32 {
        let Self { scratch, turn, gate } = self;
        let get = |key: &[u8], room: &mut [u8]| {
            if gate.as_ref().is_some_and(|gate| !gate.admits(key)) {
                return Code::NotHere as i32;
            }
            let mut out = Fill::new(room);
            turn.read((Operation::Get, 1), || Subject::key(key), &mut |snapshot, _| {
                let mut fits = true;
                let found = snapshot.get(key, &mut |row| {
                    fits = out.has_room(POINT_HEAD_BYTES + row.value.len());
                    put_point(&mut out, &row);
                })?;
                Ok(match (found, fits) {
                    (false, _) => Code::Miss as i32,
                    (true, false) => Code::TooLarge as i32,
                    (true, true) => length(out.len()),
                })
            })
        };
        scratch.lend(key_len, get).unwrap_or_else(misuse)
    }

    /// Reads the entries of `count` keys in the scratch, and writes them behind the keys.
    pub(super) fn get_many(&mut self, count: usize, request_len: usize) -> i32 {
        let Self { scratch, turn, gate } = self;
        let get_many = |request: &[u8], room: &mut [u8]| {
            if gate.as_ref().is_some_and(|gate| !admits_all(gate, request)) {
                return Code::NotHere as i32;
            }
            let mut out = Fill::new(room);
            turn.read((Operation::Get, count as u64), || first_of(request), &mut |snapshot, _| {
                points(snapshot, (request, count), &mut out)
            })
        };
        scratch.lend(request_len, get_many).unwrap_or_else(misuse)
    }

    /// Reads the entries of the keys as point answers, without the limits of the turn's budget and
    /// of the scratch. Waits up to `busy` for another process.
    pub(super) fn get_blocking(&mut self, keys: &[Key], busy: Duration) -> Result<Vec<u8>> {
        let deadline = Instant::now() + busy;
        let since = self.turn.counters.begin();
        let admitted = |gate: &Gate| keys.iter().all(|key| gate.admits(key.as_bytes()));
        let read = loop {
            let read = match &self.gate {
                Some(gate) if !admitted(gate) => Err(Error::unavailable(
                    "the replica cannot answer it yet: it has no copy, lacks what the handle has seen, is too \
                     old (maxLag), or has other prefixes; use the asynchronous method",
                )),
                _ => self.turn.get_all(keys),
            };
            match read {
                Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(SYNC_READ_RETRY_MS));
                }
                read => break read,
            }
        };
        let about = || keys.first().map_or(Subject::NONE, |key| Subject::key(key.as_bytes()));
        self.turn.counters.end((Operation::Get, keys.len() as u64), read.is_ok(), since, about);
        read
    }

    /// Reads the rows of the range request in the scratch into `out`.
    pub(super) fn page(&mut self, request_len: usize, out: &mut [u8]) -> i32 {
        let ranges = self.scratch.lend(request_len, |request, _| parse_ranges(request, 1));
        let Some(Ok(ranges)) = ranges else { return misuse() };
        let Some(range) = ranges.first() else { return misuse() };
        if let Some(gate) = &self.gate
            && !admits_range(gate, range)
        {
            return Code::NotHere as i32;
        }
        let mut out = Fill::new(out);
        self.turn.read((Operation::List, 1), || Subject::range(range), &mut |snapshot, _| {
            let none_fit = answer_range(snapshot, range, &mut out)?;
            Ok(if none_fit { Code::TooLarge as i32 } else { length(out.len()) })
        })
    }

    /// Does one step of a command that reads a range, or compares what a transaction has read. The request is in the scratch,
    /// and the answer is written behind it, if the step is brief. It is counted as the command: here `TTL` and `ENTRIES` are
    /// scans of one key, and `COUNT` is one without rows.
    pub(super) fn step(&mut self, request_len: usize, command: u32) -> i32 {
        let command = Command::from_number(command);
        match command.map(|command| (command, operation(command))) {
            Some((Command::OrderedList, Some(counted))) => self.brief(
                (request_len, counted),
                parse_ordered,
                |list| &list.scan,
                |list, on, out| brief_ordered(list, on, out),
            ),
            Some((Command::CheckReads, Some(counted))) => self.check_reads(request_len, counted),
            Some((command, Some(counted))) => self.brief(
                (request_len, counted),
                parse_scan,
                |scan| scan,
                |scan, on, out| brief_scan(scan, command == Command::Count, on, out),
            ),
            _ => misuse(),
        }
    }

    /// Compares what a transaction has read. A replica leaves that to its primary.
    fn check_reads(&mut self, request_len: usize, counted: Operation) -> i32 {
        let Self { scratch, turn, gate } = self;
        let check = |request: &[u8], room: &mut [u8]| {
            if gate.is_some() {
                return Code::NotHere as i32;
            }
            let mut out = Fill::new(room);
            turn.read((counted, 1), || Subject::NONE, &mut |snapshot, now_ms| {
                let written = brief_check_reads(request, (snapshot, now_ms), &mut out)?;
                Ok(code_of(written, &out))
            })
        };
        scratch.lend(request_len, check).unwrap_or_else(misuse)
    }

    fn brief<R>(
        &mut self,
        (request_len, counted): (usize, Operation),
        parse: impl Fn(&[u8]) -> Result<R, Malformed>,
        scan_of: impl Fn(&R) -> &ScanRequest,
        step: impl Fn(&mut R, (&mut dyn Snapshot, i64), &mut Fill<'_>) -> Result<Option<bool>>,
    ) -> i32 {
        let Self { scratch, turn, gate } = self;
        let read = |request: &[u8], room: &mut [u8]| {
            let Ok(mut parsed) = parse(request) else { return misuse() };
            let scan = scan_of(&parsed);
            let (start, end) = (scan.start.as_bytes(), scan.end.as_bytes());
            if gate.as_ref().is_some_and(|gate| !gate.admits_range(start, end)) {
                return Code::NotHere as i32;
            }
            let about = || {
                let span =
                    |scan: &ScanRequest| Subject::span(scan.start.as_bytes(), scan.end.as_bytes());
                parse(request).map_or(Subject::NONE, |parsed| span(scan_of(&parsed)))
            };
            let mut out = Fill::new(room);
            turn.read((counted, 1), about, &mut |snapshot, now_ms| {
                let written = step(&mut parsed, (snapshot, now_ms), &mut out)?;
                Ok(code_of(written, &out))
            })
        };
        scratch.lend(request_len, read).unwrap_or_else(misuse)
    }
}

/// The code of a brief step: the length of its answer; that the answer does not fit; for `None`, that another thread
/// must do the step.
fn code_of(written: Option<bool>, out: &Fill<'_>) -> i32 {
    match written {
        None => Code::NotHere as i32,
        Some(false) => Code::TooLarge as i32,
        Some(true) => length(out.len()),
    }
}

/// What a request of keys is about: its first key.
fn first_of(request: &[u8]) -> Subject {
    next_key(request).map_or(Subject::NONE, |(key, _)| Subject::key(key))
}

/// Whether a replica may answer all keys of a request.
fn admits_all(gate: &Gate, mut request: &[u8]) -> bool {
    while let Some((key, after)) = next_key(request) {
        if !gate.admits(key) {
            return false;
        }
        request = after;
    }
    true
}

fn admits_range(gate: &Gate, range: &Range) -> bool {
    match range {
        Range::Point(key) => gate.admits(key.as_bytes()),
        Range::Span { start, end, .. } => gate.admits_range(start.as_bytes(), end.as_bytes()),
    }
}

/// Reads `count` keys, each after its length, directly from the request: collecting ten keys first
/// would cost as much as two reads.
fn points(
    snapshot: &mut dyn Snapshot,
    (request, count): (&[u8], usize),
    out: &mut Fill<'_>,
) -> Result<i32> {
    let mut rest = request;
    for _ in 0..count {
        let Some((key, after)) = next_key(rest) else { return Ok(misuse()) };
        rest = after;
        if !out.has_room(4) {
            return Ok(Code::TooLarge as i32);
        }
        let at = out.len();
        out.put(&[0; 4]);
        let mut fits = true;
        snapshot.get(key, &mut |row| {
            fits = out.has_room(POINT_HEAD_BYTES + row.value.len());
            put_point(out, &row);
        })?;
        if !fits {
            return Ok(Code::TooLarge as i32);
        }
        let len = out.len() - at - 4;
        out.patch(at, &(len as u32).to_le_bytes());
    }
    Ok(length(out.len()))
}

/// Reads one range; returns `true` if there are rows and the first does not fit.
fn answer_range(snapshot: &mut dyn Snapshot, range: &Range, out: &mut impl Out) -> Result<bool> {
    let mut answer = Answer::new(out);
    let with_key = !range.is_point();
    snapshot.visit(range, |row, _| answer.push(&row, with_key))?;
    let none_fit = answer.is_full() && answer.rows() == 0;
    answer.finish();
    Ok(none_fit)
}

fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(Code::TooLarge as i32)
}

/// The error of a malformed request, which is a bug of openkv.
fn misuse() -> i32 {
    scratch::keep_error(&Error::internal("a malformed request to the addon"));
    Code::Error as i32
}
