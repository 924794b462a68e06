//! The order of writes: those about the same key or queue happen in the order in which they were
//! asked for, also where each takes a request of its own. All others do not wait.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch as flag;
use tokio::time::{Instant, timeout_at};

use super::ask::Asker;
use crate::model::{AtomicWrite, Error, Key, Kind, Result};

/// What two writes must not be about if they are to go at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum About {
    Key(Key),
    Queue(String),
}

/// What a write is about.
pub(super) fn about(write: &AtomicWrite) -> impl Iterator<Item = About> + '_ {
    let (checks, mutations, _) = write.parts();
    let checked = checks.iter().map(|check| &check.key);
    let keys = checked.chain(mutations.iter().map(|mutation| mutation.key()));
    let queues = write.queues().map(|queue| About::Queue(queue.to_owned()));
    keys.map(|key| About::Key(key.clone())).chain(queues)
}

/// The writes of one handle that are under way.
#[derive(Clone, Default)]
pub(super) struct Order(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last_number: u64,
    /// Who came last about each.
    last: HashMap<About, u64>,
    /// Their channels close when they end.
    under_way: BTreeMap<u64, flag::Receiver<()>>,
}

/// A place in the order, until it is dropped.
pub(super) struct Turn {
    order: Order,
    number: u64,
    about: Option<Vec<About>>,
    before: Vec<flag::Receiver<()>>,
    /// Closes when this ends.
    _ended: flag::Sender<()>,
}

impl Order {
    /// Takes the next place, for what is about these. What may be about everything (`None`) waits for
    /// all, but nobody waits for it: it is a deletion of many, which lets others write meanwhile.
    pub(super) fn turn(&self, about: Option<Vec<About>>) -> Turn {
        let mut state = self.0.lock();
        let state = &mut *state;
        state.last_number += 1;
        let number = state.last_number;
        let mut before: Vec<u64> = match &about {
            None => state.under_way.keys().copied().collect(),
            Some(about) => about.iter().filter_map(|each| state.last.get(each).copied()).collect(),
        };
        before.sort_unstable();
        before.dedup();
        let before =
            before.iter().filter_map(|number| state.under_way.get(number).cloned()).collect();
        let all = about.iter().flatten();
        state.last.extend(all.map(|each| (each.clone(), number)));
        let (ended, ends) = flag::channel(());
        state.under_way.insert(number, ends);
        Turn { order: self.clone(), number, about, before, _ended: ended }
    }
}

impl Turn {
    /// Waits for those before. Answers the way to the server for the rest of the time.
    pub(super) async fn come(&mut self, asker: Arc<Asker>) -> Result<Arc<Asker>> {
        if self.before.is_empty() {
            return Ok(asker);
        }
        let begun = Instant::now();
        for mut before in std::mem::take(&mut self.before) {
            // Nothing is sent through it: it ends by being closed.
            let ended = async { while before.changed().await.is_ok() {} };
            if timeout_at(begun + asker.timeout, ended).await.is_err() {
                let why = "writes about the same keys that were called before are still under way";
                return Err(Error::new(Kind::Unavailable, why));
            }
        }
        Ok(Arc::new(asker.later_by(begun.elapsed())))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.order.0.lock();
        state.under_way.remove(&self.number);
        for each in self.about.iter().flatten() {
            if state.last.get(each) == Some(&self.number) {
                state.last.remove(each);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> Option<Vec<About>> {
        Some(vec![About::Queue(name.into())])
    }

    fn waits(turn: &Turn) -> usize {
        turn.before.iter().filter(|before| before.has_changed().is_ok()).count()
    }

    #[test]
    fn the_same_waits_for_the_last_one_and_what_is_about_everything_for_all() {
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
