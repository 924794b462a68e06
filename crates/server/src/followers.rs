//! The replicas that follow a database of this server.
//!
//! Invariant: a read server is named to clients only while it follows, and has everything up to a short
//! time ago. It gets their tokens, so only a client with the highest rights may advertise one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hyper::StatusCode;
use hyper::header::HeaderMap;
use parking_lot::Mutex;
use serde::Serialize;

use super::answer::Refusal;
use super::options::{check_advertise, check_region};
use openkv_core::model::{Advertised, READ_SERVERS_MAX, Versionstamp};
use openkv_wire::protocol::extension::{ADVERTISE_HEADER, REGION_HEADER};

/// The followers of a database.
#[derive(Default)]
pub(super) struct Followers(Mutex<Vec<Arc<Follower>>>);

/// A follower.
struct Follower {
    advertised: Option<Advertised>,
    /// The commit up to which it was sent every change.
    sent: AtomicU64,
    /// Whether it was sent everything, once.
    is_complete: AtomicBool,
}

/// The place of a follower on the list, until it is dropped.
pub(super) struct FollowerPlace {
    list: Arc<Followers>,
    follower: Arc<Follower>,
}

/// A follower in the admin API.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FollowerView {
    /// The URL of a read server that is advertised.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    version: String,
    complete: bool,
}

impl Followers {
    /// The URLs of the read servers, for clients. Each call begins with another one, so that clients
    /// spread over them.
    pub(super) fn urls(&self, turn: usize) -> Vec<String> {
        let all = self.0.lock();
        let complete = all.iter().filter(|of| of.is_complete.load(Ordering::Acquire));
        let mut urls: Vec<_> =
            complete.filter_map(|of| of.advertised.as_ref().map(|of| of.url.clone())).collect();
        urls.sort_unstable();
        urls.dedup();
        let first = if urls.is_empty() { 0 } else { turn % urls.len() };
        urls.rotate_left(first);
        urls
    }

    pub(super) fn views(&self) -> Vec<FollowerView> {
        let view = |of: &Arc<Follower>| FollowerView {
            url: of.advertised.as_ref().map(|of| of.url.clone()),
            region: of.advertised.as_ref().map(|of| of.region.clone()).filter(|of| !of.is_empty()),
            version: Versionstamp::new(of.sent.load(Ordering::Relaxed)).to_string(),
            complete: of.is_complete.load(Ordering::Acquire),
        };
        self.0.lock().iter().map(view).collect()
    }
}

/// The right of a follower to advertise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum May {
    Nothing,
    /// Only a server that is reached by https.
    Encrypted,
    Any,
}

impl FollowerPlace {
    /// Puts the sender of a request on the list.
    ///
    /// # Errors
    /// `Forbidden` for a read server whose token has not the highest rights, a bad request for a URL that
    /// clients would refuse.
    pub(super) fn take(list: &Arc<Followers>, head: &HeaderMap, may: May) -> Result<Self, Refusal> {
        let advertised = advertised(head, may)?;
        let mut all = list.0.lock();
        let read_servers = all.iter().filter(|of| of.advertised.is_some()).count();
        if advertised.is_some() && read_servers >= READ_SERVERS_MAX {
            let text = format!("Too many advertised read servers (max {READ_SERVERS_MAX}).");
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, text).retry(30));
        }
        if let Some(Advertised { url, region }) = &advertised {
            tracing::info!(url, region, "a read server follows");
        }
        let (sent, is_complete) = (AtomicU64::new(0), AtomicBool::new(false));
        let follower = Arc::new(Follower { advertised, sent, is_complete });
        all.push(follower.clone());
        drop(all);
        Ok(Self { list: list.clone(), follower })
    }

    /// Notes what was sent; `newest`: it was everything.
    pub(super) fn sent(&self, version: u64, newest: bool) {
        self.follower.sent.store(version, Ordering::Relaxed);
        if newest {
            self.follower.is_complete.store(true, Ordering::Release);
        }
    }

    /// A copy begins.
    pub(super) fn begins_anew(&self) {
        self.follower.is_complete.store(false, Ordering::Release);
    }
}

impl Drop for FollowerPlace {
    fn drop(&mut self) {
        self.list.0.lock().retain(|of| !Arc::ptr_eq(of, &self.follower));
    }
}

/// The URL and region that a follower sends.
fn advertised(head: &HeaderMap, may: May) -> Result<Option<Advertised>, Refusal> {
    let text = |name| head.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (url, region) = (text(ADVERTISE_HEADER), text(REGION_HEADER).to_owned());
    if url.is_empty() {
        return Ok(None);
    }
    if may == May::Nothing {
        let text = "advertise needs a token with the highest rights of the database: clients send their \
                    tokens to the server that it names.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, text));
    }
    let url = check_advertise(url)?;
    check_region(&region)?;
    if may == May::Encrypted && !url.starts_with("https:") {
        return Err(Refusal::bad_request(
            "advertise must be an https URL: clients of this server refuse to send a token unencrypted.",
        ));
    }
    Ok(Some(Advertised { url, region }))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn head(url: &'static str) -> HeaderMap {
        let name = HeaderName::from_static(ADVERTISE_HEADER);
        [(name, HeaderValue::from_static(url))].into_iter().collect()
    }

    fn refused(url: &'static str, may: May) -> Option<StatusCode> {
        let taken = FollowerPlace::take(&Arc::default(), &head(url), may);
        taken.err().map(|refusal| refusal.status)
    }

    #[test]
    fn only_what_clients_may_send_tokens_to_is_advertised() {
        let plain = "http://near.example.com";
        assert_eq!(refused(plain, May::Nothing), Some(StatusCode::FORBIDDEN));
        assert_eq!(refused(plain, May::Encrypted), Some(StatusCode::BAD_REQUEST));
        assert_eq!(refused(plain, May::Any), None);
        assert_eq!(refused("https://near.example.com", May::Encrypted), None);
        assert_eq!(
            refused("https://user@near.example.com", May::Any),
            Some(StatusCode::BAD_REQUEST)
        );
        assert_eq!(refused("", May::Nothing), None);
    }

    #[test]
    fn read_servers_are_named_while_they_have_everything_and_take_turns() {
        let list = Arc::<Followers>::default();
        let take = |url| FollowerPlace::take(&list, &head(url), May::Any).ok().unwrap();
        let (a, b, _plain) = (take("http://a"), take("http://b"), take(""));
        assert!(list.urls(0).is_empty());
        a.sent(5, false);
        assert!(list.urls(0).is_empty());
        a.sent(9, true);
        b.sent(9, true);
        assert_eq!(list.urls(0), ["http://a", "http://b"]);
        assert_eq!(list.urls(1), ["http://b", "http://a"]);
        b.begins_anew();
        assert_eq!(list.urls(7), ["http://a"]);
        assert_eq!(list.views().len(), 3);
        drop(a);
        assert!(list.urls(0).is_empty());
    }
}
