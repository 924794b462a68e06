//! The messages of an engine without queues.

use openkv_core::commit::{LockedMessage, MessageTable, Placed};
use openkv_core::model::{Claim, Delivery, Error, Freed, KeptMessage, Message, Reason, Result};

/// The error of an engine without queues.
pub(super) fn no_queues() -> Error {
    Error::unsupported("this database has no queues")
}

/// The messages of an engine that has no queues: none, and none can be added.
#[derive(Clone, Copy, Debug)]
pub struct NoMessages;

impl MessageTable for NoMessages {
    fn acknowledge(&mut self, _id: i64, _lock: i64) -> Result<Option<Freed>> {
        Ok(None)
    }

    fn is_held(&mut self, _id: i64, _lock: i64) -> Result<bool> {
        Ok(false)
    }

    fn put_back(&mut self, _id: i64, _lock: i64) -> Result<Option<Freed>> {
        Ok(None)
    }

    fn cancel(&mut self, _queue: &str, _id: i64) -> Result<Option<(Freed, Vec<u8>)>> {
        Ok(None)
    }

    fn locked(&mut self, _id: i64, _lock: i64) -> Result<Option<LockedMessage>> {
        Ok(None)
    }

    fn renew(&mut self, _id: i64, _lock: i64, _end_ms: i64) -> Result<bool> {
        Ok(false)
    }

    fn expired(&mut self, _queue: &str, _max: usize, _now_ms: i64) -> Result<Vec<LockedMessage>> {
        Ok(Vec::new())
    }

    fn retry(&mut self, _locked: &LockedMessage, _due_ms: i64) -> Result<()> {
        Err(no_queues())
    }

    fn remove_dead(
        &mut self,
        _locked: &LockedMessage,
        _reason: Option<&Reason>,
        _now_ms: i64,
    ) -> Result<()> {
        Err(no_queues())
    }

    fn enqueue(&mut self, _message: Message, _now_ms: i64) -> Result<Placed> {
        Err(no_queues())
    }

    fn with_key(&mut self, _queue: &str, _key: &str) -> Result<Option<i64>> {
        Ok(None)
    }

    fn leave_key(&mut self, _id: i64) -> Result<()> {
        Ok(())
    }

    fn claim(&mut self, _claim: &Claim, _now_ms: i64) -> Result<Vec<Delivery>> {
        Ok(Vec::new())
    }

    fn due(&mut self, _queue: &str, _max: usize, _now_ms: i64) -> Result<Vec<i64>> {
        Ok(Vec::new())
    }

    fn next_due(&mut self, _queue: &str) -> Result<Option<i64>> {
        Ok(None)
    }

    fn next_end(&mut self, _queue: &str) -> Result<Option<i64>> {
        Ok(None)
    }

    fn running(&mut self, _queue: &str) -> Result<u64> {
        Ok(0)
    }

    fn move_to(&mut self, _id: i64, _queue: &str) -> Result<()> {
        Err(no_queues())
    }

    fn kept(&mut self, ids: &[i64]) -> Result<Vec<Option<KeptMessage>>> {
        Ok(ids.iter().map(|_| None).collect())
    }

    fn purge(&mut self, _max: usize, _now_ms: i64) -> Result<usize> {
        Ok(0)
    }
}
