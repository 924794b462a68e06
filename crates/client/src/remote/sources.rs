//! The URLs of one database, each on a server that answers its metadata exchanges.
//! Whoever opens the database gives them, or a call that finds one before each exchange.
//!
//! Duty: choose the URL for the next metadata exchange, and decide when to try another one.
//! Invariant: a round begins with the URL that answered last. No request goes to a URL before its
//! `Retry-After` is over, if there are others.
//! Never: an unencrypted URL beside an encrypted one: the token would leave the encryption.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use url::Url;

use super::address;
use openkv_core::model::{Error, REMOTE_URL_TRY_MS_MAX, REMOTE_URLS_MAX, Result};

/// Finds the URL at which a server gives access to a database; it may wait for a network.
type FindUrl = Arc<dyn Fn() -> Result<String> + Send + Sync>;

/// Where the servers of a database are.
pub enum Servers<'a> {
    /// At these URLs.
    At(&'a [String]),
    /// At the URL that is found before each metadata exchange.
    Found(FindUrl),
}

/// The URLs of one database.
pub(super) struct Sources {
    find: Option<FindUrl>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    urls: Vec<Url>,
    /// The URL that answered last; before any answer the first one.
    answered: usize,
    /// Until when each URL gets no request.
    rests: Vec<Option<Instant>>,
}

impl Sources {
    /// # Errors
    /// `Invalid` for an invalid URL, for none, for more than [`REMOTE_URLS_MAX`], and for `http:`
    /// and `https:` in one list.
    pub(super) fn new(servers: Servers<'_>) -> Result<Self> {
        let urls = match servers {
            Servers::Found(find) => return Ok(Self { find: Some(find), state: Mutex::default() }),
            Servers::At(urls) => urls,
        };
        if urls.is_empty() || urls.len() > REMOTE_URLS_MAX {
            return Err(Error::invalid(format!(
                "A database has 1 to {REMOTE_URLS_MAX} URLs: received {}",
                urls.len()
            )));
        }
        let urls = urls.iter().map(|url| address::parse(url)).collect::<Result<Vec<_>>>()?;
        if urls.iter().any(|url| urls.first().map(Url::scheme) != Some(url.scheme())) {
            return Err(Error::invalid(
                "The URLs of a database begin all with https:// or all with http://: the token \
                 would leave the encryption",
            ));
        }
        Ok(Self { find: None, state: Mutex::new(State::of(urls)) })
    }

    /// Looks for the URL, unless the URLs are given.
    pub(super) async fn look(&self) -> Result<()> {
        let Some(find) = self.find.clone() else { return Ok(()) };
        let found = tokio::task::spawn_blocking(move || find()).await;
        let found =
            found.map_err(|_| Error::internal("a search for a server ended by a panic"))??;
        let url = address::parse(&found)?;
        let mut state = self.state.lock();
        match state.urls.first() {
            Some(before) if *before == url => {}
            Some(before) if before.scheme() == "https" && url.scheme() != "https" => {
                return Err(Error::denied(
                    "the server that leads the database now has an address without encryption, and the one before \
                     had one with it: the token would leave the encryption",
                ));
            }
            _ => *state = State::of(vec![url]),
        }
        Ok(())
    }

    /// The URLs of one round with their numbers, and how long each still rests.
    pub(super) fn round(&self, now: Instant) -> Vec<(usize, Url, Duration)> {
        let state = self.state.lock();
        let rest = |at: usize| {
            let until = state.rests.get(at).copied().flatten();
            until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
        };
        let urls = state.urls.iter().cloned().enumerate().map(|(at, url)| (at, url, rest(at)));
        let mut round: Vec<_> = urls.collect();
        round.rotate_left(state.answered);
        round
    }

    /// Records that this URL has given a grant.
    pub(super) fn answered(&self, at: usize) {
        self.state.lock().answered = at;
    }

    /// Records that this URL gets no request before that time.
    pub(super) fn rest(&self, at: usize, until: Instant) {
        if let Some(rest) = self.state.lock().rests.get_mut(at) {
            *rest = Some(until);
        }
    }

    /// The URL that answered last.
    pub(super) fn last(&self) -> Option<Url> {
        let state = self.state.lock();
        state.urls.get(state.answered).cloned()
    }

    /// The URL with that number, for messages.
    pub(super) fn shown(&self, at: usize) -> String {
        self.state.lock().urls.get(at).map(address::shown).unwrap_or_default()
    }

    /// The error when no URL has given a grant. `why` names them.
    pub(super) fn no_access(&self, why: &str) -> Error {
        Error::unavailable(match self.state.lock().urls.as_slice() {
            [] | [_] => why.to_owned(),
            urls => format!("none of {} URLs gives access: {why}", urls.len()),
        })
    }

    /// As [`Self::no_access`], for a reason that names no URL.
    pub(super) fn no_time(&self, why: &str) -> Error {
        Error::unavailable(match self.state.lock().urls.as_slice() {
            [] => why.to_owned(),
            [url] => format!("{} gives no access: {why}", address::shown(url)),
            urls => format!("none of {} URLs gives access: {why}", urls.len()),
        })
    }
}

impl State {
    fn of(urls: Vec<Url>) -> Self {
        Self { answered: 0, rests: vec![None; urls.len()], urls }
    }
}

/// When to ask the next URL, if `left` of a round are left with this one: the last one has all the
/// time that is left, an earlier one an equal part of it, up to [`REMOTE_URL_TRY_MS_MAX`].
pub(super) fn next_at(now: Instant, deadline: Instant, left: u32) -> Instant {
    if left <= 1 {
        return deadline;
    }
    let part = deadline.saturating_duration_since(now) / left;
    now + part.min(Duration::from_millis(REMOTE_URL_TRY_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    fn sources(urls: &[&str]) -> Result<Sources> {
        Sources::new(Servers::At(&urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>()))
    }

    fn numbers(sources: &Sources, now: Instant) -> Vec<usize> {
        sources.round(now).into_iter().map(|(at, _, _)| at).collect()
    }

    #[test]
    fn a_list_has_a_bound_and_one_scheme() {
        let many = vec!["http://a/"; REMOTE_URLS_MAX + 1];
        assert!(sources(&many[1..]).is_ok());
        for bad in [&many[..], &[], &["https://a/", "http://b/"], &["http://a/", "ftp://b/"]] {
            assert_eq!(
                sources(bad).err().map(|error| error.kind()),
                Some(Kind::Invalid),
                "{bad:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_round_begins_with_the_url_that_answered_last() {
        let sources = sources(&["http://a/", "http://b/?key=secret", "http://c/"]).unwrap();
        let now = Instant::now();
        assert_eq!(numbers(&sources, now), [0, 1, 2]);
        sources.answered(1);
        assert_eq!(numbers(&sources, now), [1, 2, 0]);
        assert_eq!(sources.last().as_ref().map(Url::as_str), Some("http://b/?key=secret"));
        assert_eq!(sources.shown(1), "http://b/");
    }

    #[tokio::test]
    async fn a_url_that_is_found_replaces_the_one_before_within_the_encryption() {
        let now_at = Arc::new(Mutex::new(Err(Error::unavailable("nobody leads"))));
        let found = now_at.clone();
        let find = move || found.lock().clone().map(|url: &str| url.to_owned());
        let sources = Sources::new(Servers::Found(Arc::new(find))).unwrap();
        assert_eq!(sources.look().await.map_err(|error| error.kind()), Err(Kind::Unavailable));
        assert!(sources.round(Instant::now()).is_empty());
        for url in ["http://a/x", "https://b/x", "https://c/x", "https://c/x"] {
            *now_at.lock() = Ok(url);
            sources.look().await.unwrap();
            assert_eq!(sources.last().as_ref().map(Url::as_str), Some(url));
        }
        *now_at.lock() = Ok("http://a/x");
        assert_eq!(sources.look().await.map_err(|error| error.kind()), Err(Kind::Denied));
        assert_eq!(sources.last().as_ref().map(Url::as_str), Some("https://c/x"));
    }

    #[tokio::test]
    async fn a_url_rests_until_its_time() {
        let sources = sources(&["http://a/", "http://b/"]).unwrap();
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        sources.rest(1, now + second);
        let rests = |now| sources.round(now).iter().map(|(_, _, rest)| *rest).collect::<Vec<_>>();
        assert_eq!(rests(now), [Duration::ZERO, second]);
        assert_eq!(rests(now + second), [Duration::ZERO; 2]);
    }

    #[tokio::test]
    async fn each_url_has_its_part_of_the_time() {
        let (now, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(next_at(now, now + ms(900), 3), now + ms(300));
        assert_eq!(next_at(now, now + ms(3_600_000), 2), now + ms(REMOTE_URL_TRY_MS_MAX));
        assert_eq!(next_at(now, now + ms(3_600_000), 1), now + ms(3_600_000), "the last one");
    }
}
