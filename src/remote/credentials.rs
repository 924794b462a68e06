//! What a server has told of itself: where its endpoints are, and the token for them; asked for
//! anew before it ends, by one caller for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::backoff;
pub(super) use super::exchange::Grant;
use super::exchange::{Exchange, Failure};
use super::transport::Transport;
use crate::model::{Env, Error, Kind, METADATA_INTERVAL_MS_MIN, REMOTE_TIMEOUT_MS_DEFAULT, Result};

/// How long one exchange ahead may take: who needs a token meanwhile waits for it.
const AHEAD_TRY: Duration = Duration::from_millis(REMOTE_TIMEOUT_MS_DEFAULT);

/// The one who asks, and what was answered last.
pub(super) struct Credentials {
    exchange: Exchange,
    env: Arc<dyn Env>,
    current: Mutex<Option<Arc<Grant>>>,
    /// Held while asking, not between two tries: who waits has the answer, whoever asked.
    asking: tokio::sync::Mutex<Option<Asked>>,
    asking_ahead: AtomicBool,
}

/// The last exchange that was tried.
struct Asked {
    ended: Instant,
    /// Why it has given nothing, if it has not.
    failure: Option<Failure>,
}

/// The pauses of one who waits: longer with each failure that has come since.
#[derive(Default)]
struct Pauses {
    seen: Option<Instant>,
    tries: u32,
    pause: Duration,
}

impl Pauses {
    /// When the next exchange may be tried.
    fn end(&mut self, last: &Asked, random: impl Fn() -> u64) -> Instant {
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

/// Says at its end that nobody asks ahead any more, however it ends.
struct Ahead(Arc<Credentials>);

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.asking_ahead.store(false, Ordering::Release);
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
            asking: tokio::sync::Mutex::default(),
            asking_ahead: AtomicBool::new(false),
        })
    }

    /// The server's URL as it may be shown.
    pub(super) fn shown(&self) -> String {
        self.exchange.shown()
    }

    /// Whether the server offers that extension, as far as is known.
    pub(super) fn offers(&self, extension: &str) -> bool {
        self.current.lock().as_ref().is_some_and(|grant| grant.offers(extension))
    }

    /// The error of something that the server does not offer.
    pub(super) fn lacks(&self, what: &str) -> Error {
        let shown = self.shown();
        let why = format!("{shown} lacks the extension of KV Connect that this needs: {what}");
        Error::new(Kind::Unsupported, why)
    }

    /// There is no strong endpoint.
    pub(super) fn no_endpoint(&self) -> Error {
        self.exchange.no_endpoint()
    }

    /// A grant that has not ended.
    pub(super) async fn current(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Grant>> {
        let (there, now) = (self.current.lock().clone(), Instant::now());
        match there {
            Some(grant) if now < grant.renew_at => Ok(grant),
            Some(grant) if now < grant.ends_at => {
                self.ask_ahead(grant.number, grant.ends_at);
                Ok(grant)
            }
            other => self.newer_than(other.map_or(0, |grant| grant.number), deadline).await,
        }
    }

    /// Asks while the old grant still holds; nobody waits for it.
    fn ask_ahead(self: &Arc<Self>, number: u64, ends_at: Instant) {
        if self.asking_ahead.swap(true, Ordering::AcqRel) {
            return;
        }
        let ahead = Ahead(self.clone());
        tokio::spawn(async move {
            if let Err(error) = ahead.0.asked_for(number, ends_at, AHEAD_TRY).await {
                tracing::warn!(%error, "asking for a new token ahead of the old one's end");
            }
        });
    }

    /// A grant that is newer than the one of this number, which has turned out to be of no use.
    pub(super) async fn newer_than(&self, number: u64, deadline: Instant) -> Result<Arc<Grant>> {
        let all = deadline.saturating_duration_since(Instant::now());
        self.asked_for(number, deadline, all).await
    }

    /// The same by exchanges of at most `each`.
    async fn asked_for(
        &self,
        number: u64,
        deadline: Instant,
        each: Duration,
    ) -> Result<Arc<Grant>> {
        let late = |why: &str| {
            let why = format!("{} gives no access: {why}", self.shown());
            Error::new(Kind::Unavailable, why)
        };
        let since = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            let Ok(mut asked) = timeout_at(deadline, self.asking.lock()).await else {
                return Err(late("no answer in time"));
            };
            let before = self.current.lock().clone();
            if let Some(grant) = before.as_ref().filter(|grant| grant.number > number) {
                return Ok(grant.clone());
            }
            if let Some(last) = &*asked {
                let again = pauses.end(last, || self.env.random());
                match &last.failure {
                    // It is the answer for all who have waited for it.
                    Some(Failure::Final(error)) if last.ended >= since || again >= deadline => {
                        return Err(error.clone());
                    }
                    Some(Failure::Passing(why, _)) if again >= deadline => return Err(late(why)),
                    _ if again >= deadline => return Err(late("it was asked a moment ago")),
                    _ => {}
                }
                if Instant::now() < again {
                    drop(asked);
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
            *asked = Some(Asked { ended: Instant::now(), failure });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RETRY_DELAY_MS, RETRY_DELAY_MS_MAX};

    #[tokio::test]
    async fn pauses_grow_by_failures_that_were_seen_and_are_no_shorter_than_was_asked_for() {
        let ms = Duration::from_millis;
        let ended = Instant::now();
        let failed = |ended, least| {
            let failure = Some(Failure::Passing(String::new(), least));
            Asked { ended, failure }
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
        let asked_for = failed(later + ms(1), least);
        assert_eq!(pauses.end(&asked_for, || u64::MAX), later + ms(1) + least);
        let answered = Asked { ended, failure: None };
        assert_eq!(pauses.end(&answered, || 0), ended + ms(METADATA_INTERVAL_MS_MIN));
    }
}
