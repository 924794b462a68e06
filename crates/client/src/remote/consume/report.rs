//! What a listener sends about its messages: settlements and lock renewals.
//!
//! Both may be repeated after an unknown outcome. A lock identifies one delivery and never repeats.
//! So a repeated failure of a delivery costs no second retry of the message, and a repeated renewal
//! only starts the lock's time again.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Consumer, Phase};
use crate::remote::backoff;
use crate::remote::executor::RequestExecutor;
use crate::remote::extension::call;
use openkv_core::model::{
    Ask, Error, Kind, LOCK_UPDATE_ITEMS_MAX, LOCK_UPDATE_REASON_BYTES_MAX, Limits, Renewal, Result,
    Settlement,
};
use openkv_wire::protocol::Command;
use openkv_wire::protocol::frame::{LockUpdate, frame_of, push_lock_update};

async fn send_update(executor: &RequestExecutor, update: &LockUpdate) -> Result<Vec<u8>> {
    let frame = frame_of(|out| push_lock_update(out, update));
    call(executor, Command::LockUpdate, frame, Limits::wide()).await
}

/// Whether a retry can help.
fn is_retryable(error: &Error) -> bool {
    let is_final = matches!(error.kind(), Kind::Denied | Kind::Unsupported | Kind::Closed);
    !is_final && !error.kind().is_of_input()
}

/// The contents of one request.
struct ReportBatch {
    ends: Vec<Settlement>,
    stream: u64,
    granted: u64,
}

impl Consumer {
    /// The next contents to send; `None` if there are none.
    fn batch(&self) -> Option<ReportBatch> {
        let mut state = self.state.lock();
        let has_credits = state.stream != 0 && state.granted > state.known;
        if state.ends.is_empty() && !has_credits {
            return None;
        }
        let mut bytes = 0;
        let fits = state.ends.iter().take(LOCK_UPDATE_ITEMS_MAX).take_while(|end| {
            let reason = end.reason.as_ref();
            bytes += reason.map_or(0, |why| why.name().len() + why.message().len());
            bytes <= LOCK_UPDATE_REASON_BYTES_MAX
        });
        let count = fits.count().max(1).min(state.ends.len());
        let ends = state.ends.drain(..count).collect();
        Some(ReportBatch { ends, stream: state.stream, granted: state.granted })
    }

    /// Records that the contents were received, or can never be.
    fn confirm(&self, batch: &ReportBatch) {
        let mut state = self.state.lock();
        // Credits belong to a stream: contents sent without a stream granted none.
        if batch.stream != 0 && state.stream == batch.stream {
            state.known = state.known.max(batch.granted);
        }
    }

    /// Queues the contents again, before later ones.
    fn requeue(&self, batch: ReportBatch) {
        let mut state = self.state.lock();
        state.ends.splice(..0, batch.ends);
    }

    /// Whether nothing will ever be sent again.
    fn is_done(&self) -> bool {
        let state = self.state.lock();
        let waits = !state.held.is_empty() && self.phase() < Phase::Closed;
        state.stream_closed && state.ends.is_empty() && !waits
    }
}

/// Sends settlements, with the credits that they free, until the listener ends.
pub(super) async fn ends(executor: &RequestExecutor, consumer: &Consumer) {
    let in_time = async {
        consumer.reaches(Phase::Closed).await;
        sleep(executor.timeout).await;
    };
    tokio::select! {
        () = send_settlements(executor, consumer) => {}
        () = in_time => tracing::warn!("settlements were not sent before the database closed"),
    }
}

async fn send_settlements(executor: &RequestExecutor, consumer: &Consumer) {
    let mut tries = 0;
    loop {
        let Some(batch) = consumer.batch() else {
            consumer.answer_acknowledged();
            if consumer.is_done() {
                return;
            }
            consumer.sendable.notified().await;
            continue;
        };
        let asks = batch.ends.iter().cloned().map(Ask::Settle).collect();
        let update = LockUpdate { stream: batch.stream, granted: batch.granted, asks };
        match send_update(executor, &update).await {
            Ok(_) => {
                tries = 0;
                consumer.confirm(&batch);
            }
            Err(error) if is_retryable(&error) => {
                tracing::debug!(%error, "settlements are sent again");
                consumer.requeue(batch);
                sleep(backoff::delay(tries, executor.env.random())).await;
                tries = tries.saturating_add(1);
            }
            Err(error) => {
                tracing::warn!(%error, "settlements cannot be sent");
                consumer.confirm(&batch);
            }
        }
    }
}

impl Consumer {
    /// The due lock renewals with the numbers of their messages, and the next due time.
    fn due(&self) -> (Vec<i64>, Vec<Renewal>, Option<Instant>) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let (mut numbers, mut renewals) = (Vec::new(), Vec::new());
        for (number, held) in state.held.iter_mut().filter(|(_, held)| !held.lost) {
            if held.renew_at <= now {
                held.renew_at = now + self.renewal();
                numbers.push(*number);
                let (id, lock, lock_ms) = (held.id, held.lock, self.options.lock_ms);
                renewals.push(Renewal { id, lock, lock_ms });
            }
        }
        let kept = state.held.values().filter(|held| !held.lost);
        (numbers, renewals, kept.map(|held| held.renew_at).min())
    }

    /// Records the outcome of renewals.
    fn renewed(&self, numbers: &[i64], answer: Result<Vec<u8>>, again: Instant) {
        let mut lost = Vec::new();
        let mut state = self.state.lock();
        for (at, number) in numbers.iter().enumerate() {
            let Some(held) = state.held.get_mut(number) else { continue };
            match &answer {
                Ok(flags) if flags.get(at) == Some(&0) => {
                    held.lost = true;
                    lost.push(*number);
                }
                Ok(_) => {}
                Err(_) => held.renew_at = again,
            }
        }
        drop(state);
        let on_lost = self.lock_lost.lock().clone();
        if let Some(on_lost) = on_lost {
            lost.into_iter().for_each(|number| on_lost(number));
        }
    }

    fn has_nothing_to_keep(&self) -> bool {
        let state = self.state.lock();
        state.stream_closed && state.held.is_empty()
    }
}

/// Renews the locks of held messages, each after a third of its duration.
pub(super) async fn renewals(executor: &RequestExecutor, consumer: &Consumer) {
    tokio::select! {
        () = renew(executor, consumer) => {}
        () = consumer.reaches(Phase::Closed) => {}
    }
}

async fn renew(executor: &RequestExecutor, consumer: &Consumer) {
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
        let update = LockUpdate { asks, ..LockUpdate::default() };
        // Until the next renewal at most: half of the lock's time is left then.
        let patience = consumer.renewal().max(RENEWAL_MIN);
        let late = |_| Err(Error::unavailable("no answer in time"));
        let answer = timeout(patience, send_update(executor, &update)).await.unwrap_or_else(late);
        let pause = match &answer {
            Ok(_) => {
                tries = 0;
                Duration::ZERO
            }
            Err(error) => {
                tracing::debug!(%error, "locks of messages are renewed again");
                tries += 1;
                backoff::delay(tries, executor.env.random()).min(consumer.renewal())
            }
        };
        consumer.renewed(&numbers, answer, Instant::now() + pause);
    }
}

/// A request takes some time, however short a lock is.
const RENEWAL_MIN: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use crate::remote::consume::Consumer;
    use openkv_core::model::ConsumeOptions;
    use openkv_core::model::{Delivery, Outcome};

    fn consumer(concurrency: u32) -> Consumer {
        let options = ConsumeOptions { queue: String::new(), lock_ms: 1000 };
        Consumer::new((options, concurrency), (Box::new(|_| Vec::new()), Box::new(|_| ())))
    }

    fn message(id: i64) -> Delivery {
        Delivery { id, lock: id, attempts: 1, attempts_left: 0, enqueued_ms: 0, value: Vec::new() }
    }

    #[test]
    fn a_credit_freed_before_the_stream_is_granted_to_it() {
        // The credits counted as sent, and the listener got none any more.
        let consumer = consumer(1);
        assert_eq!(consumer.begin(), 1);
        consumer.opened(7);
        consumer.accept(vec![message(1)]);
        assert_eq!(consumer.begin(), 0);
        consumer.settle(1, Outcome::Done, None);
        consumer.confirm(&consumer.batch().unwrap());
        assert!(consumer.batch().is_none(), "there is no stream to grant credits to");
        consumer.opened(8);
        let batch = consumer.batch().unwrap();
        assert_eq!((batch.stream, batch.granted), (8, 1));
        consumer.confirm(&batch);
        assert!(consumer.batch().is_none());
    }

    #[test]
    fn contents_sent_without_a_stream_grant_nothing_to_the_next_one() {
        // The credits counted for the next stream, and were sent again without end.
        let consumer = consumer(3);
        consumer.begin();
        consumer.opened(7);
        consumer.accept(vec![message(1)]);
        assert_eq!(consumer.begin(), 2);
        consumer.settle(1, Outcome::Done, None);
        let on_its_way = consumer.batch().unwrap();
        consumer.opened(8);
        consumer.confirm(&consumer.batch().unwrap());
        consumer.accept(vec![message(2), message(3)]);
        assert_eq!(consumer.begin(), 1);
        consumer.confirm(&on_its_way);
        assert_eq!(consumer.state.lock().known, 1);
        consumer.opened(9);
        assert!(consumer.batch().is_none(), "the server knows its one credit");
        consumer.settle(2, Outcome::Done, None);
        assert_eq!(consumer.batch().unwrap().granted, 2);
    }
}
