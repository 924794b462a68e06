//! What a listener tells of its messages: how they ended, and that their locks are to go on.
//!
//! Both may be said again whenever it is not known whether they were heard. A lock is the number of
//! one delivery and never comes again: the end of a delivery that has ended is none, so a second
//! failure costs no second try, and a lock that goes on twice goes on from now.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Consumer, Phase};
use crate::codec::frame::{Held, Verb, push_held};
use crate::model::{
    Ask, Error, HELD_ITEMS_MAX, HELD_REASON_BYTES_MAX, Kind, Limits, Renewal, Result, Settlement,
};
use crate::remote::ask::Asker;
use crate::remote::backoff;
use crate::remote::extension::call;

async fn tell(asker: &Asker, held: &Held) -> Result<Vec<u8>> {
    let mut frame = Vec::new();
    push_held(&mut frame, held);
    call(asker, Verb::Held, frame, Limits::wide()).await
}

/// Whether telling it again can help.
fn may_come_right(error: &Error) -> bool {
    !matches!(error.kind(), Kind::Denied | Kind::Unsupported | Kind::Invalid | Kind::Closed)
}

/// What is said in one request.
struct Batch {
    ends: Vec<Settlement>,
    stream: u64,
    granted: u64,
}

impl Consumer {
    /// The next that is to be told; `None` if there is nothing.
    fn batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        let has_places = state.stream != 0 && state.granted > state.known;
        if state.ends.is_empty() && !has_places {
            return None;
        }
        let mut bytes = 0;
        let fits = state.ends.iter().take(HELD_ITEMS_MAX).take_while(|end| {
            let reason = end.reason.as_ref();
            bytes += reason.map_or(0, |why| why.name().len() + why.message().len());
            bytes <= HELD_REASON_BYTES_MAX
        });
        let count = fits.count().max(1).min(state.ends.len());
        let ends = state.ends.drain(..count).collect();
        Some(Batch { ends, stream: state.stream, granted: state.granted })
    }

    /// It was heard, or can never be.
    fn was_told(&self, batch: &Batch) {
        let mut state = self.state.lock();
        // Places are told to a stream: what was said while there was none has told nobody.
        if batch.stream != 0 && state.stream == batch.stream {
            state.known = state.known.max(batch.granted);
        }
    }

    /// It is to be told again, before what came later.
    fn was_not_told(&self, batch: Batch) {
        let mut state = self.state.lock();
        state.ends.splice(..0, batch.ends);
    }

    /// Whether there will never be anything to tell.
    fn is_silent(&self) -> bool {
        let state = self.state.lock();
        let waits = !state.held.is_empty() && self.phase() < Phase::Closed;
        state.unfollowed && state.ends.is_empty() && !waits
    }
}

/// Tells ends, with the places that they free, until there will be none.
pub(super) async fn ends(asker: &Asker, consumer: &Consumer) {
    let in_time = async {
        consumer.reaches(Phase::Closed).await;
        sleep(asker.timeout).await;
    };
    tokio::select! {
        () = tell_ends(asker, consumer) => {}
        () = in_time => tracing::warn!("ends of messages were not told before the database closed"),
    }
}

async fn tell_ends(asker: &Asker, consumer: &Consumer) {
    let mut tries = 0;
    loop {
        let Some(batch) = consumer.batch() else {
            consumer.tell_told();
            if consumer.is_silent() {
                return;
            }
            consumer.to_tell.notified().await;
            continue;
        };
        let asks = batch.ends.iter().cloned().map(Ask::Settle).collect();
        let held = Held { stream: batch.stream, granted: batch.granted, asks };
        match tell(asker, &held).await {
            Ok(_) => {
                tries = 0;
                consumer.was_told(&batch);
            }
            Err(error) if may_come_right(&error) => {
                tracing::debug!(%error, "ends of messages are told again");
                consumer.was_not_told(batch);
                sleep(backoff::delay(tries, asker.env.random())).await;
                tries = tries.saturating_add(1);
            }
            Err(error) => {
                tracing::warn!(%error, "ends of messages cannot be told");
                consumer.was_told(&batch);
            }
        }
    }
}

impl Consumer {
    /// Locks that are to be renewed by now, by the numbers of their messages; and the next time.
    fn due(&self) -> (Vec<i64>, Vec<Renewal>, Option<Instant>) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let (mut numbers, mut renewals) = (Vec::new(), Vec::new());
        for (number, held) in state.held.iter_mut().filter(|(_, held)| !held.lost) {
            if held.renew_at <= now {
                held.renew_at = now + self.renewal();
                numbers.push(*number);
                let (id, lock, lock_ms) = (held.id, held.lock, self.wish.lock_ms);
                renewals.push(Renewal { id, lock, lock_ms });
            }
        }
        let kept = state.held.values().filter(|held| !held.lost);
        (numbers, renewals, kept.map(|held| held.renew_at).min())
    }

    /// What became of them.
    fn renewed(&self, numbers: &[i64], answer: Result<Vec<u8>>, again: Instant) {
        let mut state = self.state.lock();
        for (at, number) in numbers.iter().enumerate() {
            let Some(held) = state.held.get_mut(number) else { continue };
            match &answer {
                Ok(flags) => held.lost = flags.get(at) == Some(&0),
                Err(_) => held.renew_at = again,
            }
        }
    }

    fn has_nothing_to_keep(&self) -> bool {
        let state = self.state.lock();
        state.unfollowed && state.held.is_empty()
    }
}

/// Renews locks while messages are in hand, each third of their time.
pub(super) async fn renewals(asker: &Asker, consumer: &Consumer) {
    tokio::select! {
        () = renew(asker, consumer) => {}
        () = consumer.reaches(Phase::Closed) => {}
    }
}

async fn renew(asker: &Asker, consumer: &Consumer) {
    let mut tries = 0;
    while !consumer.has_nothing_to_keep() {
        let (numbers, renewals, next) = consumer.due();
        if renewals.is_empty() {
            let next = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                () = consumer.taken.notified() => {}
            }
            continue;
        }
        let asks = renewals.into_iter().map(Ask::Extend).collect();
        let held = Held { asks, ..Held::default() };
        // Not longer than until the next time: half of the lock is left then.
        let patience = consumer.renewal().max(RENEWAL_MIN);
        let late = |_| Err(Error::new(Kind::Unavailable, "no answer in time"));
        let answer = timeout(patience, tell(asker, &held)).await.unwrap_or_else(late);
        let pause = match &answer {
            Ok(_) => {
                tries = 0;
                Duration::ZERO
            }
            Err(error) => {
                tracing::debug!(%error, "locks of messages are renewed again");
                tries += 1;
                backoff::delay(tries, asker.env.random()).min(consumer.renewal())
            }
        };
        consumer.renewed(&numbers, answer, Instant::now() + pause);
    }
}

/// A request takes some time, however short a lock is.
const RENEWAL_MIN: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use crate::model::{Delivery, Outcome};
    use crate::remote::consume::Consumer;
    use crate::store::Wish;

    fn consumer(concurrency: u32) -> Consumer {
        let wish = Wish { queue: String::new(), lock_ms: 1000 };
        Consumer::new((wish, concurrency), (Box::new(|_| Vec::new()), Box::new(|_| ())))
    }

    fn message(id: i64) -> Delivery {
        Delivery { id, lock: id, attempts: 1, enqueued_ms: 0, value: Vec::new() }
    }

    #[test]
    fn a_place_that_frees_before_there_is_a_stream_is_told_to_it() {
        // It counted as told, and the listener was given nothing any more.
        let consumer = consumer(1);
        assert_eq!(consumer.begin(), 1);
        consumer.opened(7);
        consumer.take_in(vec![message(1)]);
        assert_eq!(consumer.begin(), 0);
        consumer.settle(1, Outcome::Done, None);
        consumer.was_told(&consumer.batch().unwrap());
        assert!(consumer.batch().is_none(), "nobody is there to be told");
        consumer.opened(8);
        let told = consumer.batch().unwrap();
        assert_eq!((told.stream, told.granted), (8, 1));
        consumer.was_told(&told);
        assert!(consumer.batch().is_none());
    }

    #[test]
    fn what_was_told_to_no_stream_says_nothing_about_the_next_one() {
        // Its places counted as the next stream's, and were told again without end.
        let consumer = consumer(3);
        consumer.begin();
        consumer.opened(7);
        consumer.take_in(vec![message(1)]);
        assert_eq!(consumer.begin(), 2);
        consumer.settle(1, Outcome::Done, None);
        let on_its_way = consumer.batch().unwrap();
        consumer.opened(8);
        consumer.was_told(&consumer.batch().unwrap());
        consumer.take_in(vec![message(2), message(3)]);
        assert_eq!(consumer.begin(), 1);
        consumer.was_told(&on_its_way);
        assert_eq!(consumer.state.lock().known, 1);
        consumer.opened(9);
        assert!(consumer.batch().is_none(), "its one place is known");
        consumer.settle(2, Outcome::Done, None);
        assert_eq!(consumer.batch().unwrap().granted, 2);
    }
}
