//! Settlements and renewals by callers of [`super::Store::ask`], which hold a lock.

use openkv_core::model::{Ask, Result};
use openkv_engines::{Report, Work};

/// Gets whether the caller still held the lock of the message.
pub type Reply = Box<dyn FnOnce(Result<bool>) + Send>;

/// An [`Ask`] and its reply.
pub(super) struct LockRequest {
    pub(super) ask: Ask,
    pub(super) reply: Reply,
}

impl LockRequest {
    pub(super) fn settles(&self) -> bool {
        matches!(self.ask, Ask::Settle(_))
    }

    pub(super) fn answer(self, answer: Result<bool>) {
        (self.reply)(answer);
    }

    /// Adds the request to the work, as the last of its kind.
    pub(super) fn join(&self, work: &mut Work) {
        match &self.ask {
            Ask::Settle(settlement) => work.settlements.push(settlement.clone()),
            Ask::Extend(renewal) => work.renewals.push(*renewal),
        }
    }

    /// Answers all requests that joined one work. They were the last of their kinds.
    pub(super) fn answer_all(requests: Vec<Self>, report: &mut Report) {
        let settling = requests.iter().filter(|request| request.settles()).count();
        let extending = requests.len() - settling;
        let last =
            |all: &mut Vec<bool>, count: usize| all.split_off(all.len().saturating_sub(count));
        let mut settled = last(&mut report.settled, settling).into_iter();
        let mut renewed = last(&mut report.renewed, extending).into_iter();
        for request in requests {
            let held = if request.settles() { settled.next() } else { renewed.next() };
            request.answer(Ok(held.unwrap_or(false)));
        }
    }
}
