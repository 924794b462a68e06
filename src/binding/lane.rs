//! The immediate lane: reads on the JavaScript thread, inside the turn's budget.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::minder::Minded;
use super::scratch::{self, Scratch};
use crate::call::too_large;
use crate::codec::frame::{Answer, Fill, Out, POINT_HEAD_BYTES, next_key, parse_ranges, put_point};
use crate::engine::{Reader, Snapshot};
use crate::metrics::{Metrics, Tally};
use crate::model::{
    ANSWER_BYTES_MAX, Error, Key, Kind, Range, Result, SYNC_READ_RETRY_MS, TURN_BUDGET_US,
};

/// What a sync read answers instead of a length. The numbers are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Code {
    Miss = -1,
    WouldBlock = -2,
    TooLarge = -3,
    Closed = -4,
    Error = -5,
}

thread_local! {
    static LANES: RefCell<Vec<Option<Lane>>> = const { RefCell::new(Vec::new()) };
}

/// Opens a lane on this thread, whose requests and answers are in `scratch`; answers its number.
pub(super) fn open(reader: Box<dyn Reader>, metrics: Arc<Metrics>, scratch: Rc<Scratch>) -> usize {
    LANES.with_borrow_mut(|lanes| {
        let (reader, tally) = (Minded::new(reader), Tally::new(metrics));
        let lane = Some(Lane { reader, scratch, turn_us: None, turns: 0, tally });
        let free = lanes.iter_mut().position(|place| place.is_none());
        let number = free.unwrap_or(lanes.len());
        match lanes.get_mut(number) {
            Some(place) => *place = lane,
            None => lanes.push(lane),
        }
        number
    })
}

/// Closes a lane of this thread; its number goes to the next one.
pub(super) fn close(number: usize) {
    // A handle may be collected while its thread ends, after its lanes.
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

impl Drop for Lane {
    fn drop(&mut self) {
        self.reader.forget();
    }
}

/// A reader with the turn's clock.
pub(super) struct Lane {
    reader: Arc<Minded>,
    scratch: Rc<Scratch>,
    /// When this turn's first read was, in µs since the epoch.
    turn_us: Option<u64>,
    /// Turns with reads so far.
    turns: u64,
    tally: Tally,
}

impl Lane {
    /// The turn is over.
    pub(super) fn release(&mut self) {
        self.turn_us = None;
        self.reader.end_turn();
        self.count();
    }

    /// Shares what was counted in this turn.
    pub(super) fn count(&mut self) {
        self.tally.turn_ended(self.reader.reader().take_cache_looks());
    }

    /// The time in ms, or `None` when this turn's budget is spent.
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
        // A clock that was set back spends the budget.
        let spent = now_us.checked_sub(since).is_none_or(|spent| spent > TURN_BUDGET_US);
        if spent { None } else { i64::try_from(now_us / 1000).ok() }
    }

    /// `count` keys, or a page of a list.
    fn read(
        &mut self,
        (count, is_list): (usize, bool),
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<i32>,
    ) -> i32 {
        let Some(now_ms) = self.admit() else { return Code::WouldBlock as i32 };
        let since = self.tally.begin();
        let mut answer = Code::Error as i32;
        let read = self.reader.reader().read(now_ms, &mut |snapshot| {
            answer = job(snapshot)?;
            Ok(())
        });
        match read {
            Ok(()) => {
                // What does not fit is asked for again.
                if answer >= Code::Miss as i32 {
                    self.tally.end(is_list, count as u64, true, since);
                }
                answer
            }
            // Waiting is for the other lane.
            Err(error) if error.kind() == Kind::Unavailable => Code::WouldBlock as i32,
            Err(error) => {
                self.tally.end(is_list, count as u64, false, since);
                scratch::keep_error(&error);
                Code::Error as i32
            }
        }
    }

    /// The entry of the key in the scratch, written behind it.
    pub(super) fn get(&mut self, key_len: usize) -> i32 {
        let Some((key, room)) = self.scratch.split(key_len) else { return misuse() };
        let mut out = Fill::new(room);
        self.read((1, false), &mut |snapshot| {
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
    }

    /// The entries of `count` keys in the scratch, written behind them.
    pub(super) fn get_many(&mut self, count: usize, request_len: usize) -> i32 {
        let Some((request, room)) = self.scratch.split(request_len) else { return misuse() };
        let mut out = Fill::new(room);
        self.read((count, false), &mut |snapshot| {
            // Key by key from the request: ten allocations would cost as much as two reads.
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
                    put_point(&mut out, &row);
                })?;
                if !fits {
                    return Ok(Code::TooLarge as i32);
                }
                let len = out.len() - at - 4;
                out.patch(at, &(len as u32).to_le_bytes());
            }
            Ok(length(out.len()))
        })
    }

    /// The entries of the keys as point answers, whatever the turn's budget and the room in the
    /// scratch are. Waits up to `busy` for another process.
    pub(super) fn get_blocking(&mut self, keys: &[Key], busy: Duration) -> Result<Vec<u8>> {
        let deadline = Instant::now() + busy;
        let since = self.tally.begin();
        let read = loop {
            match self.get_all(keys) {
                Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(SYNC_READ_RETRY_MS));
                }
                read => break read,
            }
        };
        self.tally.end(false, keys.len() as u64, read.is_ok(), since);
        read
    }

    fn get_all(&mut self, keys: &[Key]) -> Result<Vec<u8>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let mut out = Vec::new();
        // It waits for no turn, and the turn may be long.
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

    /// The rows of the range request in the scratch, written into `out`.
    pub(super) fn page(&mut self, request_len: usize, out: &mut [u8]) -> i32 {
        let Some((request, _)) = self.scratch.split(request_len) else { return misuse() };
        let Ok(ranges) = parse_ranges(request, 1) else { return misuse() };
        let Some(range) = ranges.first() else { return misuse() };
        let mut out = Fill::new(out);
        self.read((1, true), &mut |snapshot| {
            let none_fit = answer_range(snapshot, range, &mut out)?;
            Ok(if none_fit { Code::TooLarge as i32 } else { length(out.len()) })
        })
    }
}

/// Answers one range; `true` when there are rows of which not even the first fits.
fn answer_range(snapshot: &mut dyn Snapshot, range: &Range, out: &mut impl Out) -> Result<bool> {
    let mut answer = Answer::new(out);
    match range {
        Range::Point(key) => {
            snapshot.get(key.as_bytes(), &mut |row| {
                answer.push(&row, false);
            })?;
        }
        Range::Span { limit: 0, .. } => {}
        Range::Span { start, end, limit, reverse } => {
            snapshot.scan(start.as_bytes(), end.as_bytes(), *reverse, &mut |row| {
                answer.push(&row, true) && answer.rows() < *limit
            })?;
        }
    }
    let none_fit = answer.is_full() && answer.rows() == 0;
    answer.finish();
    Ok(none_fit)
}

fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(Code::TooLarge as i32)
}

/// A request that JavaScript must not make: a bug of ours.
fn misuse() -> i32 {
    scratch::keep_error(&Error::internal("a malformed request to the addon"));
    Code::Error as i32
}
