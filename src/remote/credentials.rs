//! The server's endpoints and the token for them. One caller renews the token before it expires,
//! for all callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::backoff;
pub(super) use super::exchange::Grant;
use super::exchange::{Exchange, Failure};
use super::transport::Transport;
use crate::model::{Env, Error, METADATA_INTERVAL_MS_MIN, REMOTE_TIMEOUT_MS_DEFAULT, Result};

/// Bound of one early renewal: a caller that needs a token meanwhile waits for it.
const AHEAD_TRY: Duration = Duration::from_millis(REMOTE_TIMEOUT_MS_DEFAULT);

/// The metadata exchange and its last result.
pub(super) struct Credentials {
    exchange: Exchange,
    env: Arc<dyn Env>,
    current: Mutex<Option<Arc<Grant>>>,
    /// Held during an exchange, not between two tries: all waiting callers share its result.
    exchanging: tokio::sync::Mutex<Option<LastExchange>>,
    renewing_early: AtomicBool,
}

/// The last exchange.
struct LastExchange {
    ended: Instant,
    /// Its failure, if it failed.
    failure: Option<Failure>,
}

/// The pauses of one waiting caller, longer with each failure since its start.
#[derive(Default)]
struct Pauses {
    seen: Option<Instant>,
    tries: u32,
    pause: Duration,
}

impl Pauses {
    /// When the next exchange may start.
    fn end(&mut self, last: &LastExchange, random: impl Fn() -> u64) -> Instant {
        let Some(Failure::Passing(_, least)) = &last.failure else {
            return last.ended + Duration::from_millis(METADATA_INTERVAL_MS_MIN);
        };
        if self.seen != Some(last.ended) {
            self.pause = backoff::delay(self.tries, random());
            self.tries += 1;
            self.seen = Some(last.ended);
        }
        last.ended + self.pause.max(*least)
    }
}

/// Marks the early renewal as ended when dropped.
struct EarlyRenewal(Arc<Credentials>);

impl Drop for EarlyRenewal {
    fn drop(&mut self) {
        self.0.renewing_early.store(false, Ordering::Release);
    }
}

impl Credentials {
    pub(super) fn new(
        transport: Arc<Transport>,
        env: Arc<dyn Env>,
        url: &str,
        access_token: &str,
    ) -> Result<Self> {
        Ok(Self {
            exchange: Exchange::new(transport, env.clone(), url, access_token)?,
            env,
            current: Mutex::default(),
            exchanging: tokio::sync::Mutex::default(),
            renewing_early: AtomicBool::new(false),
        })
    }

    /// The server's URL for messages.
    pub(super) fn shown(&self) -> String {
        self.exchange.shown()
    }

    /// Whether the server offers that extension, as far as known.
    pub(super) fn offers(&self, extension: &str) -> bool {
        self.current.lock().as_ref().is_some_and(|grant| grant.offers(extension))
    }

    /// The error for a feature that the server does not offer.
    pub(super) fn lacks(&self, what: &str) -> Error {
        let shown = self.shown();
        let why = format!("{shown} lacks the extension of KV Connect that this needs: {what}");
        Error::unsupported(why)
    }

    /// The error for metadata without a strong endpoint.
    pub(super) fn no_endpoint(&self) -> Error {
        self.exchange.no_endpoint()
    }

    /// A grant that has not expired.
    pub(super) async fn current(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Grant>> {
        let (there, now) = (self.current.lock().clone(), Instant::now());
        match there {
            Some(grant) if now < grant.renew_at => Ok(grant),
            Some(grant) if now < grant.ends_at => {
                self.renew_early(grant.number, grant.ends_at);
                Ok(grant)
            }
            other => self.newer_than(other.map_or(0, |grant| grant.number), deadline).await,
        }
    }

    /// Renews the grant while the old one is valid. No caller waits for it.
    fn renew_early(self: &Arc<Self>, number: u64, ends_at: Instant) {
        if self.renewing_early.swap(true, Ordering::AcqRel) {
            return;
        }
        let ahead = EarlyRenewal(self.clone());
        tokio::spawn(async move {
            if let Err(error) = ahead.0.exchanged(number, ends_at, AHEAD_TRY).await {
                tracing::warn!(%error, "renewing a token before it expires");
            }
        });
    }

    /// A grant newer than the one with this number, which the server has rejected.
    pub(super) async fn newer_than(&self, number: u64, deadline: Instant) -> Result<Arc<Grant>> {
        let all = deadline.saturating_duration_since(Instant::now());
        self.exchanged(number, deadline, all).await
    }

    /// As [`Self::newer_than`], by exchanges of at most `each`.
    async fn exchanged(
        &self,
        number: u64,
        deadline: Instant,
        each: Duration,
    ) -> Result<Arc<Grant>> {
        let late = |why: &str| {
            let why = format!("{} gives no access: {why}", self.shown());
            Error::unavailable(why)
        };
        let since = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            let Ok(mut guard) = timeout_at(deadline, self.exchanging.lock()).await else {
                return Err(late("no answer in time"));
            };
            let before = self.current.lock().clone();
            if let Some(grant) = before.as_ref().filter(|grant| grant.number > number) {
                return Ok(grant.clone());
            }
            if let Some(last) = &*guard {
                let again = pauses.end(last, || self.env.random());
                match &last.failure {
                    // The failure is the answer for all callers that waited for it.
                    Some(Failure::Final(error)) if last.ended >= since || again >= deadline => {
                        return Err(error.clone());
                    }
                    Some(Failure::Passing(why, _)) if again >= deadline => return Err(late(why)),
                    _ if again >= deadline => {
                        return Err(late("the time is over before the next try"));
                    }
                    _ => {}
                }
                if Instant::now() < again {
                    drop(guard);
                    sleep_until(again).await;
                    continue;
                }
            }
            let soon = deadline.min(Instant::now() + each);
            let failure = match self.exchange.once(number + 1, soon).await {
                Ok(grant) if before.is_some_and(|before| before.database != grant.database) => {
                    let shown = self.shown();
                    let why = format!("{shown} is another database than before: open it again");
                    Some(Failure::Final(Error::corrupt(why)))
                }
                Ok(grant) => {
                    *self.current.lock() = Some(Arc::new(grant));
                    None
                }
                Err(failure) => Some(failure),
            };
            *guard = Some(LastExchange { ended: Instant::now(), failure });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RETRY_DELAY_MS, RETRY_DELAY_MS_MAX};

    #[tokio::test]
    async fn pauses_grow_with_failures_and_respect_retry_after() {
        let ms = Duration::from_millis;
        let ended = Instant::now();
        let failed = |ended, least| {
            let failure = Some(Failure::Passing(String::new(), least));
            LastExchange { ended, failure }
        };
        let mut pauses = Pauses::default();
        let first = failed(ended, Duration::ZERO);
        for _ in 0..3 {
            assert_eq!(pauses.end(&first, || 0), ended + ms(RETRY_DELAY_MS / 2), "once each");
        }
        let later = ended + ms(1);
        let second = failed(later, Duration::ZERO);
        assert_eq!(pauses.end(&second, || 0), later + ms(RETRY_DELAY_MS));
        let least = ms(RETRY_DELAY_MS_MAX + 1);
        let limited = failed(later + ms(1), least);
        assert_eq!(pauses.end(&limited, || u64::MAX), later + ms(1) + least);
        let answered = LastExchange { ended, failure: None };
        assert_eq!(pauses.end(&answered, || 0), ended + ms(METADATA_INTERVAL_MS_MIN));
    }
}
