//! The order of writes: writes of the same key or queue keep the order of their calls, even in
//! separate requests. Other writes do not wait.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch as flag;
use tokio::time::{Instant, timeout_at};

use super::executor::RequestExecutor;
use openkv_core::model::{AtomicWrite, Error, Key, Result};

/// A key or queue of a write. Two writes with a common one must not run at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum WriteSubject {
    Key(Key),
    Queue(String),
}

/// The keys and queues of a write.
pub(super) fn subjects(write: &AtomicWrite) -> impl Iterator<Item = WriteSubject> + '_ {
    let (checks, mutations, _) = write.parts();
    let checked = checks.iter().map(|check| &check.key);
    let keys = checked.chain(mutations.iter().map(|mutation| mutation.key()));
    let queues = write.queues().map(|queue| WriteSubject::Queue(queue.to_owned()));
    keys.map(|key| WriteSubject::Key(key.clone())).chain(queues)
}

/// The running writes of one handle.
#[derive(Clone, Default)]
pub(super) struct Order(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last_number: u64,
    /// The last write of each key or queue.
    last: HashMap<WriteSubject, u64>,
    /// Their channels close when they end.
    under_way: BTreeMap<u64, flag::Receiver<()>>,
}

/// A place in the order, until it is dropped.
pub(super) struct Turn {
    order: Order,
    number: u64,
    subjects: Option<Vec<WriteSubject>>,
    before: Vec<flag::Receiver<()>>,
    /// Closes when the write ends.
    _ended: flag::Sender<()>,
}

impl Order {
    /// Takes the next place, for a write of these subjects. `None` is a deletion of many: it waits
    /// for all writes, but none waits for it, because other writes run between its steps.
    pub(super) fn turn(&self, subjects: Option<Vec<WriteSubject>>) -> Turn {
        let mut state = self.0.lock();
        let state = &mut *state;
        state.last_number += 1;
        let number = state.last_number;
        let mut before: Vec<u64> = match &subjects {
            None => state.under_way.keys().copied().collect(),
            Some(subjects) => {
                subjects.iter().filter_map(|each| state.last.get(each).copied()).collect()
            }
        };
        before.sort_unstable();
        before.dedup();
        let before =
            before.iter().filter_map(|number| state.under_way.get(number).cloned()).collect();
        let all = subjects.iter().flatten();
        state.last.extend(all.map(|each| (each.clone(), number)));
        let (ended, ends) = flag::channel(());
        state.under_way.insert(number, ends);
        Turn { order: self.clone(), number, subjects, before, _ended: ended }
    }
}

impl Turn {
    /// Waits for the writes before it. Returns an executor for the remaining time.
    pub(super) async fn come(
        &mut self,
        executor: Arc<RequestExecutor>,
    ) -> Result<Arc<RequestExecutor>> {
        if self.before.is_empty() {
            return Ok(executor);
        }
        let begun = Instant::now();
        for mut before in std::mem::take(&mut self.before) {
            // The channel carries no values; it closes when the write ends.
            let ended = async { while before.changed().await.is_ok() {} };
            if timeout_at(begun + executor.timeout, ended).await.is_err() {
                let why = "writes about the same keys that were called before are still under way";
                return Err(Error::unavailable(why));
            }
        }
        Ok(Arc::new(executor.later_by(begun.elapsed())))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.order.0.lock();
        state.under_way.remove(&self.number);
        for each in self.subjects.iter().flatten() {
            if state.last.get(each) == Some(&self.number) {
                state.last.remove(each);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> Option<Vec<WriteSubject>> {
        Some(vec![WriteSubject::Queue(name.into())])
    }

    fn waits(turn: &Turn) -> usize {
        turn.before.iter().filter(|before| before.has_changed().is_ok()).count()
    }

    #[test]
    fn a_write_waits_for_the_last_one_of_its_key_and_a_deletion_for_all() {
        let order = Order::default();
        let (a, b) = (order.turn(queue("a")), order.turn(queue("b")));
        assert_eq!((waits(&a), waits(&b)), (0, 0));
        let again = order.turn(queue("a"));
        let all = order.turn(None);
        let after = order.turn(queue("c"));
        assert_eq!((waits(&again), waits(&all), waits(&after)), (1, 3, 0));
        drop(a);
        assert_eq!((waits(&again), waits(&all)), (0, 2));
        drop((b, again, all, after));
        let state = order.0.lock();
        assert!(state.last.is_empty() && state.under_way.is_empty());
    }
}
