//! Writes of a handle, and their outcomes.

use std::time::Duration;

use napi_derive::napi;

use super::events::{Event, Events};
use super::handle::{Handle, cut};
use super::lane::Code;
use crate::model::{Decision, Error};
use crate::protocol::frame::{frame_of, push_outcomes};

#[napi]
impl Handle {
    /// Submits `count` writes; SETTLED.
    #[napi(catch_unwind)]
    pub fn write(&mut self, id: f64, count: u32, frame: &[u8], len: u32) {
        let mut settle = Settle::new(self.events.clone(), id, count as usize);
        match self.database().cloned() {
            Ok(database) => {
                let reply = Box::new(move |decisions: Vec<_>| settle.answer(&decisions));
                database.write(cut(frame, len), count as usize, &self.options, reply);
            }
            Err(error) => settle.fail(&error),
        }
    }

    /// As `write`, but commits on this thread if that takes at most `most_us`, judged by the last commits. Then
    /// it writes the outcomes to the start of the scratch and returns their length. Otherwise the
    /// answer is WOULD_BLOCK, and SETTLED follows.
    #[napi(catch_unwind)]
    pub fn write_immediately(
        &mut self,
        id: f64,
        count: u32,
        frame: &[u8],
        len: u32,
        most_us: u32,
    ) -> i32 {
        let database = match self.database().cloned() {
            Ok(database) => database,
            Err(error) => {
                Settle::new(self.events.clone(), id, count as usize).fail(&error);
                return Code::WouldBlock as i32;
            }
        };
        let reply = || -> Box<dyn FnOnce(Vec<_>) + Send> {
            let mut settle = Settle::new(self.events.clone(), id, count as usize);
            Box::new(move |decisions: Vec<_>| settle.answer(&decisions))
        };
        let most = Duration::from_micros(u64::from(most_us));
        let (frame, count) = (cut(frame, len), count as usize);
        let decided = database.write_immediately(frame, count, &self.options, most, reply);
        let Some(decisions) = decided else { return Code::WouldBlock as i32 };
        let outcomes = frame_of(|out| push_outcomes(out, &decisions));
        let written = self.scratch.lend(0, |_, room| {
            let room = room.get_mut(..outcomes.len())?;
            room.copy_from_slice(&outcomes);
            i32::try_from(outcomes.len()).ok()
        });
        written.flatten().unwrap_or_else(|| {
            self.events.send(Event::Settled, id, Some(outcomes));
            Code::WouldBlock as i32
        })
    }
}

/// The reply to `count` writes.
struct Settle {
    events: Events,
    id: f64,
    count: usize,
    answered: bool,
}

impl Settle {
    fn new(events: Events, id: f64, count: usize) -> Self {
        Self { events, id, count, answered: false }
    }

    /// Answers all with the same error.
    fn fail(&mut self, error: &Error) {
        self.answer(&vec![Decision::Rejected(error.clone()); self.count]);
    }

    fn answer(&mut self, decisions: &[Decision]) {
        self.answered = true;
        let outcomes = frame_of(|out| push_outcomes(out, decisions));
        self.events.send(Event::Settled, self.id, Some(outcomes));
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        if !self.answered {
            self.fail(&Error::internal("a write was not answered; please report this"));
        }
    }
}
