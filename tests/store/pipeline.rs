//! Batches under way: an engine takes them, and the test ends them. It panics where the store breaks
//! the rules of several batches at once, which ends the writer thread.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use openkv::engine::{Report, Ticket, Wake, Work, Writer};
use openkv::model::Result;

/// The batches of one writer. Nothing is under way until [`Pipeline::hold`].
#[derive(Default)]
pub(crate) struct Pipeline(Mutex<State>, Mutex<Option<Wake>>);

#[derive(Default)]
struct State {
    depth: usize,
    tickets: u64,
    under_way: VecDeque<UnderWay>,
    calls: Vec<Call>,
}

struct UnderWay {
    ticket: Ticket,
    work: Work,
    now_ms: i64,
    /// What the test has decided.
    outcome: Option<Result<()>>,
}

/// A call of the writer, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A batch of this many writes and nothing else.
    Writes(usize),
    /// A batch with other work beside this many writes.
    Mixed(usize),
    /// Another method.
    Other(&'static str),
}

impl Pipeline {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic")
    }

    /// From now on each batch is under way until [`Pipeline::end`], at most `depth` at once.
    pub(crate) fn hold(&self, depth: usize) {
        let mut state = self.state();
        state.depth = depth;
        state.calls.clear();
    }

    /// Ends the oldest batch that the test has not ended yet. Returns whether there is one.
    pub(crate) fn end(&self, outcome: Result<()>) -> bool {
        let ended = match self.state().under_way.iter_mut().find(|batch| batch.outcome.is_none()) {
            Some(batch) => {
                batch.outcome = Some(outcome);
                true
            }
            None => false,
        };
        if let Some(wake) = &*self.1.lock().expect("no panic") {
            wake();
        }
        ended
    }

    /// The number of batches that have begun and have not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.state().under_way.iter().filter(|batch| batch.outcome.is_none()).count()
    }

    /// The calls since [`Pipeline::hold`].
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Takes a batch out of `work`; `None` while nothing is held.
    pub(crate) fn begin(&self, work: &mut Work, now_ms: i64) -> Option<Ticket> {
        let mut state = self.state();
        let call = call(work);
        state.calls.push(call);
        if state.depth == 0 {
            return None;
        }
        let together = |call| matches!(call, Call::Writes(_));
        let all_together = state.under_way.iter().all(|batch| together(self::call(&batch.work)));
        assert!(state.under_way.is_empty() || (together(call) && all_together), "{call:?}");
        assert!(state.under_way.len() < state.depth, "there is no room");
        state.tickets += 1;
        let ticket = Ticket(state.tickets);
        let work = std::mem::take(work);
        state.under_way.push_back(UnderWay { ticket, work, now_ms, outcome: None });
        Some(ticket)
    }

    pub(crate) fn has_room(&self) -> bool {
        let state = self.state();
        state.under_way.len() < state.depth.max(1)
    }

    /// The outcome of the oldest batch, which is executed only now, if the test has ended it.
    pub(crate) fn ended(&self, writer: &mut impl Writer) -> Option<(Ticket, Result<Report>)> {
        let mut state = self.state();
        let outcome = state.under_way.front()?.outcome.clone()?;
        let UnderWay { ticket, work, now_ms, .. } = state.under_way.pop_front()?;
        drop(state);
        Some((ticket, outcome.and_then(|()| writer.apply(work, now_ms, Instant::now()))))
    }

    pub(crate) fn on_ended(&self, wake: Wake) {
        *self.1.lock().expect("no panic") = Some(wake);
    }

    /// Notes a call that needs the writer alone.
    pub(crate) fn alone(&self, what: &'static str) {
        let mut state = self.state();
        state.calls.push(Call::Other(what));
        assert!(state.under_way.is_empty(), "{what} while a batch is under way");
    }
}

fn call(work: &Work) -> Call {
    let others = Work {
        settlements: work.settlements.clone(),
        renewals: work.renewals.clone(),
        claims: work.claims.clone(),
        sweep_max: work.sweep_max,
        purge_max: work.purge_max,
        fires: work.fires,
        ..Work::default()
    };
    let writes = work.writes.len();
    if others.is_empty() { Call::Writes(writes) } else { Call::Mixed(writes) }
}
