//! The server's endpoints and the token for them. One caller renews the token before it expires,
//! for all callers, and requests the endpoints again when one of them has failed, because the server may
//! name others by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::header::HeaderValue;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use super::backoff;
use super::endpoint_latency::EndpointLatency;
pub(super) use super::exchange::Grant;
use super::exchange::{Exchange, Failure};
use super::sources::Servers;
use super::transport::{Patience, Transport};
use openkv_core::model::{
    Env, Error, METADATA_INTERVAL_MS_MIN, REMOTE_FIRST_CONNECT_MS_MAX, REMOTE_TIMEOUT_MS_DEFAULT,
    Result,
};
use openkv_wire::protocol::extension::OFFERED;

/// Shortest time between two exchanges, unless the first failed and a call cannot go on without one.
const INTERVAL: Duration = Duration::from_millis(METADATA_INTERVAL_MS_MIN);

/// Bound of one early renewal: a caller that needs a token meanwhile waits for it.
const AHEAD_TRY: Duration = Duration::from_millis(REMOTE_TIMEOUT_MS_DEFAULT);

/// How an opening meets a server that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It fails with the first reason.
    Once,
    /// It asks again until the timeout of the handle.
    Retried,
    /// It asks nothing: the first call does. Until then the server counts as openkv's own.
    Later,
}

/// The metadata exchange and its last result.
pub(super) struct Credentials {
    exchange: Exchange,
    env: Arc<dyn Env>,
    current: Mutex<Current>,
    /// Held during an exchange, not between two tries: all waiting callers share its result.
    exchanging: tokio::sync::Mutex<Option<LastExchange>>,
    renewing_early: AtomicBool,
    /// Whether the server counts as openkv's own until it has answered.
    assumed: bool,
    /// Of the endpoints for eventual reads.
    pub(super) endpoint_latency: EndpointLatency,
}

/// The last grant.
#[derive(Default)]
struct Current {
    grant: Option<Arc<Grant>>,
    doubt: Option<Doubt>,
}

/// An endpoint of the last grant was not reached, is unavailable, or has lost a request.
struct Doubt {
    endpoint: String,
    /// An exchange after that has failed too.
    exchange_failed: bool,
}

/// The last exchange.
struct LastExchange {
    ended: Instant,
    /// Its failure, if it failed.
    failure: Option<Failure>,
    /// Why the last one has failed that was not cut off by its deadline, since one succeeded.
    reason: Option<String>,
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
            return last.ended + INTERVAL;
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
        (servers, access_token): (Servers<'_>, &str),
        opening: Opening,
    ) -> Result<Self> {
        Ok(Self {
            assumed: opening == Opening::Later,
            exchange: Exchange::new(transport, env.clone(), servers, access_token)?,
            env,
            current: Mutex::default(),
            exchanging: tokio::sync::Mutex::default(),
            renewing_early: AtomicBool::new(false),
            endpoint_latency: EndpointLatency::default(),
        })
    }

    /// The URL of the server that answered last, for messages.
    pub(super) fn shown(&self) -> String {
        self.exchange.shown()
    }

    /// As [`Exchange::access`].
    pub(super) fn access(&self) -> Result<(Url, Option<HeaderValue>)> {
        self.exchange.access()
    }

    /// Whether the server offers that extension, as far as known.
    pub(super) fn offers(&self, extension: &str) -> bool {
        match &self.current.lock().grant {
            Some(grant) => grant.offers(extension),
            None => self.assumed && OFFERED.contains(&extension),
        }
    }

    /// The last grant.
    pub(super) fn last(&self) -> Option<Arc<Grant>> {
        self.current.lock().grant.clone()
    }

    /// As [`Grant::write_id_ms`], of the last grant.
    pub(super) fn write_id_ms(&self) -> Option<i64> {
        self.current.lock().grant.as_ref().and_then(|grant| grant.write_id_ms())
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

    /// The first exchange of a client, as far as its opening waits for that.
    pub(super) async fn open(self: &Arc<Self>, opening: Opening, deadline: Instant) -> Result<()> {
        match opening {
            Opening::Later => return Ok(()),
            Opening::Retried => {}
            Opening::Once => match self.first(deadline).await {
                Ok(()) => return Ok(()),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(why, Duration::ZERO)) => {
                    return Err(self.exchange.sources.no_access(&why));
                }
                // The server runs, and has said when to ask again.
                Err(Failure::Passing(..)) => {}
            },
        }
        self.current(deadline).await.map(drop)
    }

    async fn first(&self, deadline: Instant) -> Result<(), Failure> {
        let mut guard = self.exchanging.lock().await;
        let connected = Instant::now() + Duration::from_millis(REMOTE_FIRST_CONNECT_MS_MAX);
        let patience = Patience { connected: connected.min(deadline), answered: deadline };
        self.exchange(&mut guard, 1, patience).await;
        guard.as_ref().and_then(|last| last.failure.clone()).map_or(Ok(()), Err)
    }

    /// A grant that has not expired. If an endpoint of the last one is doubted, and the next exchange
    /// is due, it is made first.
    pub(super) async fn current(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Grant>> {
        let now = Instant::now();
        let (there, is_doubted) = {
            let current = self.current.lock();
            (current.grant.clone(), current.doubt.is_some())
        };
        match there {
            Some(grant) if is_doubted && now < grant.ends_at => {
                self.renewed_if_due(grant, deadline).await
            }
            Some(grant) if now < grant.renew_at => Ok(grant),
            Some(grant) if now < grant.ends_at => {
                self.renew_early(grant.number, grant.ends_at);
                Ok(grant)
            }
            other => self.newer_than(other.map_or(0, |grant| grant.number), deadline).await,
        }
    }

    /// Records that this endpoint of the grant was not reached, is unavailable, or has lost a
    /// request.
    pub(super) fn doubt(&self, grant: &Grant, endpoint: &str) {
        let mut current = self.current.lock();
        if current.doubt.is_none() && current.is(grant.number) {
            current.doubt = Some(Doubt { endpoint: endpoint.to_owned(), exchange_failed: false });
        }
    }

    /// Records that this endpoint of the grant has answered. If no server gives newer metadata, the
    /// endpoint is no longer doubted then.
    pub(super) fn trust(&self, grant: &Grant, endpoint: &str) {
        let mut current = self.current.lock();
        let is_over = |doubt: &Doubt| doubt.exchange_failed && doubt.endpoint == endpoint;
        if current.doubt.as_ref().is_some_and(is_over) && current.is(grant.number) {
            current.doubt = None;
        }
    }

    /// A newer grant than this one, by one exchange for all callers. If the next exchange is not due
    /// yet, or it fails, this one: its endpoint may answer again by now. An exchange takes at most
    /// half of the time that is left.
    async fn renewed_if_due(&self, grant: Arc<Grant>, deadline: Instant) -> Result<Arc<Grant>> {
        let since = Instant::now();
        let soon = since + deadline.saturating_duration_since(since) / 2;
        let Ok(mut guard) = timeout_at(soon, self.exchanging.lock()).await else {
            return Ok(grant);
        };
        let is_due = match &*guard {
            None => true,
            Some(last) => match &last.failure {
                // The failure is the answer for all callers that waited for it.
                Some(Failure::Final(error)) if last.ended >= since => return Err(error.clone()),
                Some(Failure::Passing(_, least)) => {
                    last.ended + INTERVAL.max(*least) <= Instant::now()
                }
                _ => last.ended + INTERVAL <= Instant::now(),
            },
        };
        if is_due && self.current.lock().is(grant.number) {
            self.exchange(&mut guard, grant.number + 1, soon.into()).await;
            match guard.as_ref().and_then(|last| last.failure.as_ref()) {
                Some(Failure::Final(error)) => return Err(error.clone()),
                Some(Failure::Passing(why, _)) => {
                    tracing::debug!(why, "asking for the endpoints again");
                    if let Some(doubt) = &mut self.current.lock().doubt {
                        doubt.exchange_failed = true;
                    }
                }
                None => {}
            }
        }
        Ok(self.current.lock().grant.clone().unwrap_or(grant))
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
        let late = |why: &str| self.exchange.sources.no_time(why);
        let since = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            let Ok(mut guard) = timeout_at(deadline, self.exchanging.lock()).await else {
                return Err(late("no answer in time"));
            };
            let newer = self.current.lock().grant.clone().filter(|grant| grant.number > number);
            if let Some(grant) = newer {
                return Ok(grant);
            }
            if let Some(last) = &*guard {
                let again = pauses.end(last, || self.env.random());
                match &last.failure {
                    // The failure is the answer for all callers that waited for it.
                    Some(Failure::Final(error)) if last.ended >= since || again >= deadline => {
                        return Err(error.clone());
                    }
                    Some(Failure::Passing(why, _)) if again >= deadline => {
                        return Err(self.exchange.sources.no_access(why));
                    }
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
            self.exchange(&mut guard, number + 1, soon.into()).await;
        }
    }

    /// Makes one exchange and records its result. Its grant gets this number.
    async fn exchange(&self, last: &mut Option<LastExchange>, number: u64, patience: Patience) {
        let before = self.current.lock().grant.clone();
        let mut reason = last.as_ref().and_then(|last| last.reason.clone());
        let failure = match (self.exchange.once(number, patience).await, before) {
            (Ok(grant), Some(before)) if before.database != grant.database => {
                Some(Failure::Final(self.exchange.another_database(&before, &grant)))
            }
            (Ok(grant), _) => {
                self.exchange.sources.answered(grant.source);
                *self.current.lock() = Current { grant: Some(Arc::new(grant)), doubt: None };
                reason = None;
                None
            }
            (Err(Failure::Passing(mut why, least)), _) if Instant::now() >= patience.answered => {
                if let Some(reason) = &reason {
                    why = format!("{why}; before that, {reason}");
                }
                Some(Failure::Passing(why, least))
            }
            (Err(failure), _) => {
                if let Failure::Passing(why, _) = &failure {
                    reason = Some(why.clone());
                }
                Some(failure)
            }
        };
        *last = Some(LastExchange { ended: Instant::now(), failure, reason });
    }
}

impl Current {
    fn is(&self, number: u64) -> bool {
        self.grant.as_ref().is_some_and(|grant| grant.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{RETRY_DELAY_MS, RETRY_DELAY_MS_MAX};

    #[tokio::test]
    async fn pauses_grow_with_failures_and_respect_retry_after() {
        let ms = Duration::from_millis;
        let ended = Instant::now();
        let failed = |ended, least| {
            let failure = Some(Failure::Passing(String::new(), least));
            LastExchange { ended, failure, reason: None }
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
        let answered = LastExchange { ended, failure: None, reason: None };
        assert_eq!(pauses.end(&answered, || 0), ended + ms(METADATA_INTERVAL_MS_MIN));
    }
}
