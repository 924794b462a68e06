//! A read server: it serves reads from a replica, and names its primary for everything else.
//!
//! Duty: the readiness of the replica, the rights of clients, and the endpoints that clients get.
//! Invariant: a client has no other rights here than at the primary, which the server asks with the client's own
//! token. A client sends a token only to the URL of its metadata and to the endpoints named there, so a token
//! leaves this server only for the primary.
//! Never: a read before the replica has a complete copy; a token in a message or on disk.
//!
//! | file | what |
//! |---|---|
//! | [`grants`] | pure: what is known about tokens, and when to request it from the primary again |
//! | [`primary_client`] | the requests to the primary |

mod grants;
mod primary_client;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hyper::http::request::Parts;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, watch as flag};
use tokio::time::{Instant, sleep};
use url::Url;
use uuid::Uuid;

pub(super) use self::grants::InUse;
use self::grants::{Grants, Known};
use self::primary_client::strong_of;
pub(super) use self::primary_client::{Http, PrimaryClient, Unanswered};
use super::answer::Refusal;
use super::auth::{Grant, TokenHash, bearer};
use super::clock::now_ms;
use super::slots::mark_authenticated;
use openkv_client::database;
use openkv_client::open::{Target, close, open};
use openkv_core::model::{
    Error, READ_SERVER_OUTAGE_MS_MAX, READ_SERVER_REQUESTS_MAX, READ_SERVER_TOKEN_MS_MAX, Result,
};
use openkv_store::Store;
use openkv_wire::connect::metadata::{Consistency, Endpoint, Metadata};
use openkv_wire::connect::versions::Version;
use openkv_wire::protocol::extension::{OFFERED, READ_SERVER, WRITE_IDS};

/// The prefix of tokens of the data path.
const DATA_TOKEN_PREFIX: &str = "okd_";

/// The primary of a read server, and the replica that follows it.
pub(super) struct Primary {
    url: String,
    /// `None` while it is not open.
    replica: RwLock<Option<Arc<database::Replica>>>,
    /// Whether it is not opened again.
    has_ended: AtomicBool,
    /// Whether the primary has another database by this name.
    exchanged: AtomicBool,
    /// The endpoint for strong reads, until the replica knows it.
    first_strong: Option<String>,
    /// The UUID of the database, once the primary has said it.
    id: OnceLock<Uuid>,
    client: PrimaryClient,
    /// Held by requests about unknown tokens.
    asking: Semaphore,
    grants: Mutex<Grants>,
    /// As that of the database.
    changed: flag::Sender<()>,
}

impl Primary {
    /// Opens the replica of the one database of a read server. Asks the primary once; if it does not answer,
    /// the replica needs a complete copy.
    ///
    /// # Errors
    /// As [`open`]; `Unsupported` for a primary without a replication log.
    pub(super) fn open(url: &Url, target: &Target) -> Result<Arc<Self>> {
        let replica = opened(target)?;
        let client = PrimaryClient::new(Arc::new(Http::new()?), url);
        let primary = Self::of(url, id_of(&replica), client, None);
        *primary.replica.write() = Some(replica);
        Ok(primary)
    }

    /// Of one of many databases. `client` sends the requests to its URL, `metadata` is its own.
    ///
    /// # Errors
    /// `Unavailable` if the metadata names no strong endpoint.
    pub(super) fn unopened(
        url: &Url,
        client: PrimaryClient,
        metadata: &Metadata,
    ) -> Result<Arc<Self>, Unanswered> {
        let strong = strong_of(&metadata.endpoints).ok_or_else(no_strong_endpoint)?;
        Ok(Self::of(url, Some(metadata.database), client, Some(strong.to_owned())))
    }

    fn of(
        url: &Url,
        id: Option<Uuid>,
        client: PrimaryClient,
        first_strong: Option<String>,
    ) -> Arc<Self> {
        let id = id.map_or_else(OnceLock::new, OnceLock::from);
        Arc::new(Self {
            url: url.as_str().trim_end_matches('/').to_owned(),
            replica: RwLock::default(),
            has_ended: AtomicBool::new(false),
            exchanged: AtomicBool::new(false),
            first_strong,
            id,
            client,
            asking: Semaphore::new(READ_SERVER_REQUESTS_MAX),
            grants: Mutex::default(),
            changed: flag::Sender::new(()),
        })
    }

    /// Opens the replica. Waits for the primary.
    pub(super) fn open_copy(&self, target: &Target) -> Result<()> {
        let replica = opened(target)?;
        let is_same = id_of(&replica).is_none_or(|id| self.is_of(id));
        {
            let mut place = self.replica.write();
            if is_same && !self.has_ended.load(Ordering::Acquire) {
                *place = Some(replica);
                return Ok(());
            }
        }
        close(database::Database::Replica(replica), || ());
        if is_same {
            return Err(Error::closed());
        }
        self.exchanged.store(true, Ordering::Release);
        Err(another_database())
    }

    /// The UUID of the database; `None` before the primary has answered.
    pub(super) fn id(&self) -> Option<Uuid> {
        if let Some(id) = self.id.get() {
            return Some(*id);
        }
        let id = self.replica.read().as_ref().and_then(|replica| id_of(replica))?;
        Some(*self.id.get_or_init(|| id))
    }

    /// Whether the primary has the database of before. The first one that it names counts.
    fn is_of(&self, id: Uuid) -> bool {
        *self.id.get_or_init(|| id) == id
    }

    /// Whether the replica is open.
    pub(super) fn is_open(&self) -> bool {
        self.replica.read().is_some()
    }

    /// Whether the primary has another database by this name.
    pub(super) fn was_exchanged(&self) -> bool {
        self.exchanged.load(Ordering::Acquire)
    }

    /// The URL of the database at the primary.
    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    /// The replica.
    fn replica(&self) -> Result<Arc<database::Replica>> {
        let replica = self.replica.read().clone();
        replica.ok_or_else(|| {
            let why = "the replica is not open here; ask the primary";
            Error::unavailable(format!("{why}, {}, or again later", self.url))
        })
    }

    /// Closes the replica for good, and waits for that.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.close();
    }

    /// Closes the replica, and waits for that.
    pub(super) fn close(&self) {
        let Some(replica) = self.replica.write().take() else { return };
        let (done, closed) = channel();
        close(database::Database::Replica(replica), move || {
            let _gone = done.send(());
        });
        let _closed = closed.recv();
    }

    /// The store of the replica, once it has a complete copy.
    ///
    /// # Errors
    /// `Unavailable`.
    pub(super) fn store(&self) -> Result<Arc<Store>> {
        let replica = self.replica()?;
        let copy = &replica.copy;
        if copy.is_usable() {
            return Ok(copy.store().clone());
        }
        let progress = copy.progress();
        let why = progress.error.map_or_else(String::new, |error| format!(": {error}"));
        Err(Error::unavailable(format!(
            "the replica of this read server has no complete copy of the database ({}){why}; ask the \
             primary, {}, or again later",
            progress.state.name(),
            self.url
        )))
    }

    /// Notified when a known token was refused.
    pub(super) fn changes(&self) -> &flag::Sender<()> {
        &self.changed
    }

    /// Whether a token is known, by its fingerprint.
    pub(super) fn has_token(&self, fingerprint: [u8; 8]) -> bool {
        self.grants.lock().has(fingerprint, Instant::now())
    }

    /// The grant of a request. `is_data`: its token is one of the data path.
    pub(super) async fn granted(
        &self,
        head: &Parts,
        is_data: bool,
    ) -> Result<(Grant, InUse), Refusal> {
        let token = bearer(&head.headers)?;
        if is_data != token.starts_with(DATA_TOKEN_PREFIX) {
            return Err(Refusal::wrong_token());
        }
        let hash = TokenHash::of(token);
        let fresh = || self.grants.lock().fresh(&hash, Instant::now());
        let found = match fresh() {
            Some(found) => found,
            None => {
                let place = self.asking.acquire().await;
                let _place = place.map_err(|_| Error::closed())?;
                match fresh() {
                    Some(found) => found,
                    None => self.request_rights(hash, token).await?,
                }
            }
        };
        mark_authenticated(head);
        let (Known { rights, ends, .. }, in_use) = found;
        let left = ends.saturating_duration_since(Instant::now()).as_millis();
        let expires_at_ms = now_ms().saturating_add(i64::try_from(left).unwrap_or(i64::MAX));
        let issued_for = hash.fingerprint();
        let database = self.id().ok_or_else(no_answer_yet)?;
        Ok((Grant { database, rights, issued_for, expires_at_ms }, in_use))
    }

    /// Requests the rights of a token from the primary. If the primary cannot answer, its last answer counts.
    async fn request_rights(
        &self,
        hash: TokenHash,
        token: &str,
    ) -> Result<(Known, InUse), Refusal> {
        match self.rights_at_primary(&hash, token).await {
            Ok(known) => Ok(self.grants.lock().keep(hash, known, Instant::now())),
            Err(Unanswered::Refused) => {
                self.refused(&hash);
                Err(Refusal::wrong_token())
            }
            Err(unanswered @ (Unanswered::Unknown | Unanswered::Unreached(_))) => {
                let known = self.grants.lock().postponed(&hash, Instant::now());
                known.ok_or_else(|| unanswered.into())
            }
        }
    }

    fn refused(&self, hash: &TokenHash) {
        self.grants.lock().forget(hash);
        self.changed.send_replace(());
    }

    async fn rights_at_primary(&self, hash: &TokenHash, token: &str) -> Result<Known, Unanswered> {
        if token.starts_with(DATA_TOKEN_PREFIX) {
            return self.grant(self.strong()?.as_str(), token).await;
        }
        let known = self.grants.lock().known(hash, Instant::now());
        if let Some(known) = known {
            let now = self.grant(self.strong()?.as_str(), &known.data_token).await;
            // The token of the data path may have ended, or the primary was restarted.
            if !matches!(now, Err(Unanswered::Refused)) {
                return now.map(lasting);
            }
        }
        let metadata = self.client.metadata(token, &Version::ALL, true).await?;
        if !self.is_of(metadata.database) {
            self.exchanged.store(true, Ordering::Release);
            return Err(Unanswered::Unreached(another_database()));
        }
        let strong = strong_of(&metadata.endpoints).ok_or_else(no_strong_endpoint)?;
        self.grant(strong, &metadata.token).await.map(lasting)
    }

    async fn grant(&self, endpoint: &str, data_token: &str) -> Result<Known, Unanswered> {
        let id = self.id().ok_or_else(no_answer_yet).map_err(Unanswered::Unreached)?;
        let (rights, left) = self.client.grant(endpoint, id, data_token).await?;
        let ends = Instant::now() + left;
        Ok(Known { rights, ends, data_token: data_token.into(), data_ends: ends })
    }

    fn strong(&self) -> Result<String, Unanswered> {
        let replica = self.replica.read().clone();
        let known = replica.and_then(|replica| replica.client()?.strong_endpoint());
        known.or_else(|| self.first_strong.clone()).ok_or_else(no_strong_endpoint)
    }

    /// The metadata for a client: that of the primary, with this server for eventual reads. `own`: the URL
    /// of its data path.
    pub(super) async fn metadata(
        &self,
        access_token: &str,
        offered: &[Version],
        extensions: bool,
        own: impl FnOnce(Version) -> Option<String>,
    ) -> Result<Metadata, Refusal> {
        let place = self.asking.acquire().await;
        let _place = place.map_err(|_| Error::closed())?;
        let mut metadata = self.client.metadata(access_token, offered, extensions).await?;
        if !self.is_of(metadata.database) {
            self.exchanged.store(true, Ordering::Release);
            return Err(another_database().into());
        }
        let own = own(metadata.version);
        let own = own.map(|url| Endpoint { url, consistency: Consistency::Eventual });
        // After the strong ones: Deno's clients use the first of those, others the first eventual one.
        let (mut endpoints, others): (Vec<_>, Vec<_>) = std::mem::take(&mut metadata.endpoints)
            .into_iter()
            .partition(|of| of.consistency == Consistency::Strong);
        endpoints.extend(own);
        endpoints.extend(others);
        metadata.endpoints = endpoints;
        metadata.extensions.retain(|of| OFFERED.contains(&of.as_str()) || of == WRITE_IDS);
        if extensions {
            metadata.extensions.push(READ_SERVER.to_owned());
        }
        Ok(metadata)
    }

    /// Requests the rights of the tokens of streams again at intervals, until it is dropped.
    pub(super) async fn check_streams(this: Weak<Self>) {
        loop {
            sleep(Duration::from_millis(READ_SERVER_TOKEN_MS_MAX / 4)).await;
            let Some(this) = this.upgrade() else { return };
            let used = this.grants.lock().used(Instant::now());
            for (hash, known) in used {
                let granted = match this.strong() {
                    Ok(strong) => this.grant(&strong, &known.data_token).await,
                    Err(unanswered) => Err(unanswered),
                };
                match granted {
                    Ok(now) => {
                        let known = Known { ends: known.ends.max(now.ends), ..now };
                        drop(this.grants.lock().keep(hash, known, Instant::now()));
                    }
                    Err(Unanswered::Refused) => this.refused(&hash),
                    Err(Unanswered::Unknown | Unanswered::Unreached(_)) => {}
                }
            }
        }
    }
}

/// The replica of a target, once it is open.
fn opened(target: &Target) -> Result<Arc<database::Replica>> {
    match open(target)? {
        database::Database::Replica(replica) => Ok(replica),
        database::Database::Store(_)
        | database::Database::Remote(_)
        | database::Database::Led(_) => {
            Err(Error::internal("the target of a read server has no replica"))
        }
    }
}

/// The database that a replica follows; `None` before its server has answered.
fn id_of(replica: &database::Replica) -> Option<Uuid> {
    replica.client().and_then(|client| client.database_id())
}

fn no_answer_yet() -> Error {
    Error::unavailable("the primary of this read server has not answered yet: ask again later")
}

fn another_database() -> Error {
    Error::unavailable(
        "the primary of this read server has another database than before: restart it",
    )
}

/// An access token does not end with the token of the data path for it.
fn lasting(known: Known) -> Known {
    Known { ends: Instant::now() + Duration::from_millis(READ_SERVER_OUTAGE_MS_MAX), ..known }
}

fn no_strong_endpoint() -> Unanswered {
    Unanswered::Unreached(Error::unavailable("the primary names no endpoint for strong reads"))
}
