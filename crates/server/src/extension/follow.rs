//! The replication log for replicas (`protocol::follow`).
//!
//! A replica that has nothing, or that the log does not reach back to, gets a copy of one snapshot first.
//! The first follower turns the log on; a read token is enough for that, as for a feed.
//! Invariant: a follower costs the memory of two messages, and while it is copied one snapshot. One that takes
//! nothing of a copy loses it.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::answer::{Answer, Refusal};
use crate::checked::while_lasting;
use crate::data::{Client, store_of};
use crate::database::{Database, WatchPlace};
use crate::followers::{FollowerPlace, May};
use crate::memory::{Claim, attempt};
use crate::pending::{Pending, unanswered};
use crate::stream::{Source, stream};
use openkv_core::model::{
    COPY_MS_MAX, COPY_PAGE_BYTES, CopiedIndexes, Error, FEED_FRAME_BYTES_MAX, FOLLOW_LINGER_MS,
    Followed, Id, Key, Result, Seen,
};
use openkv_store::{LogRead, Store, TransferPage, TransferPiece};
use openkv_wire::protocol::follow::{
    Follow, read_request, write_changes, write_copy_begins, write_copy_ends, write_end,
    write_entries, write_indexes,
};
use openkv_wire::protocol::frame::push_entry;

/// Pages of a copy that wait for the connection.
const PAGES_MAX: usize = 2;

/// The next stage of a stream.
enum Stage {
    /// Waits until few enough copies are under way, for this reason.
    Waiting(&'static str),
    /// Sends a copy.
    Transferring(mpsc::Receiver<Piece>, #[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
    /// Sends what comes after the place.
    Following,
    /// Ends with this error.
    Failed(Error),
    Over,
}

type Piece = TransferPiece<EntriesPage>;

type InFlight<T> = Option<Pending<T>>;

/// A stream of the log.
struct Following {
    store: Arc<Store>,
    database: Arc<Database>,
    prefixes: Vec<Key>,
    /// The place of the follower.
    place: Option<Followed>,
    stage: Stage,
    /// Why a copy is needed.
    why: &'static str,
    log_read: InFlight<LogRead>,
    index_read: InFlight<CopiedIndexes>,
    /// The indexes that the follower knows.
    indexes: Option<CopiedIndexes>,
    /// Whether it wants value indexes too.
    wants_values: bool,
    /// Whether they are to be read.
    looks: bool,
    /// Whether there may be later commits.
    has_later: bool,
    /// Read not before.
    from: Option<Instant>,
    /// The next position is due.
    beat_at: Instant,
    beat: Duration,
    beats: bool,
    tail: Id,
    woken: Arc<Notify>,
    claim: Arc<Claim>,
    list: FollowerPlace,
    _place: WatchPlace,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.store.log_tail_end(self.tail);
    }
}

/// Starts a stream of the log.
pub(super) async fn follow(
    client: &Client,
    head: &HeaderMap,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let Follow { from, prefixes, beat_ms, wants_values } = read_request(body)?;
    let database = client.database.clone();
    let (place, list) =
        (client.take_watch().await?, FollowerPlace::take(&database.followers, head, may(client))?);
    let store = store_of(&database).await?;
    let (opened, has_log) = (store.clone(), database.can_be_followed());
    let begin = move || if has_log { opened.begin_log() } else { Err(has_many_logs()) };
    let begun = tokio::task::spawn_blocking(begin).await;
    let stage = match (begun.unwrap_or_else(|_| Err(unanswered())), &from) {
        (Err(error), _) => Stage::Failed(error),
        (Ok(()), Some(_)) => Stage::Following,
        (Ok(()), None) => Stage::Waiting("the replica is new"),
    };
    let woken = Arc::<Notify>::default();
    let wake = woken.clone();
    let tail = store.log_tail(Box::new(move || wake.notify_one()));
    let beat = Duration::from_millis(beat_ms.into());
    let following = Following {
        claim: database.memory.claim(FEED_FRAME_BYTES_MAX),
        place: from.map(|from| Followed { prefixes: prefixes.clone(), ..from }),
        store,
        database,
        prefixes,
        stage,
        why: "",
        log_read: None,
        index_read: None,
        indexes: None,
        wants_values,
        looks: true,
        has_later: true,
        from: None,
        beat_at: Instant::now() + beat,
        beat,
        beats: true,
        tail,
        woken,
        list,
        _place: place,
    };
    Ok(stream(client, following))
}

/// The refusal of a client of an earlier version, which does not look whether the log is offered.
fn has_many_logs() -> Error {
    Error::unsupported(
        "replica: each server on an object store has a log of its own: leave the option out, or open the database \
         with the URL of the object store, for a copy that is kept up to date (docs/bucket.md)",
    )
}

/// The right of the sender of a request to advertise.
fn may(Client { serving, database, grant, .. }: &Client) -> May {
    match (grant.rights >= database.highest_rights(), serving.is_encrypted) {
        (false, _) => May::Nothing,
        (true, true) => May::Encrypted,
        (true, false) => May::Any,
    }
}

impl Following {
    /// The next message; `None` at the end of the stream.
    async fn next_message(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            match &mut self.stage {
                Stage::Over => return Ok(None),
                Stage::Failed(error) => {
                    let error = error.clone();
                    self.stage = Stage::Over;
                    return Err(error);
                }
                Stage::Waiting(why) => {
                    self.why = *why;
                    self.list.begins_anew();
                    let place = self.database.exporting.clone().acquire_owned().await;
                    let place = place.map_err(|_| Error::closed())?;
                    self.stage = Stage::Transferring(self.copy(), place);
                }
                Stage::Transferring(pieces, _) => {
                    let piece = pieces.recv().await;
                    return self.copied(piece).map(Some);
                }
                Stage::Following => {
                    if let Some(message) = self.followed().await? {
                        return Ok(Some(message));
                    }
                }
            }
        }
    }

    fn copied(&mut self, piece: Option<Piece>) -> Result<Vec<u8>> {
        match piece {
            Some(Piece::Begins(place)) => {
                let begins = write_copy_begins(self.why, &place);
                self.place = Some(place);
                begins
            }
            Some(Piece::Page(page)) => write_entries(&page.0),
            Some(Piece::Ends) => {
                (self.stage, self.has_later, self.looks) = (Stage::Following, true, true);
                write_copy_ends()
            }
            Some(Piece::Failed(error)) => Err(error),
            None => Err(Error::unavailable("the copy was interrupted")),
        }
    }

    /// Starts to copy on a thread.
    fn copy(&self) -> mpsc::Receiver<Piece> {
        let (pieces, rest) = mpsc::channel(PAGES_MAX);
        let most = Duration::from_millis(COPY_MS_MAX);
        let alive = pieces.downgrade();
        let wanted = Arc::new(move || alive.upgrade().is_some_and(|pieces| !pieces.is_closed()));
        let patience = self.store.patience("the copy for a replica", most, Some(wanted));
        let (runtime, lasting) = (Handle::current(), patience.clone());
        let send = move |piece| {
            // An end comes without a snapshot.
            let is_of_snapshot = matches!(piece, Piece::Begins(_) | Piece::Page(_));
            let sent = while_lasting(is_of_snapshot.then_some(&*lasting), pieces.send(piece));
            runtime.block_on(sent).is_some_and(|sent| sent.is_ok())
        };
        self.store.transfer(self.prefixes.clone(), patience, send);
        rest
    }

    /// The next changes, the position, or the indexes; `None` if there is nothing to tell yet.
    async fn followed(&mut self) -> Result<Option<Vec<u8>>> {
        if self.looks {
            return self.new_indexes().await;
        }
        if !self.has_later {
            tokio::select! {
                () = self.woken.notified() => {
                    self.from = Some(Instant::now() + Duration::from_millis(FOLLOW_LINGER_MS));
                }
                () = sleep_until(self.beat_at) => {
                    (self.beats, self.looks) = (true, true);
                }
            }
            self.has_later = true;
            return Ok(None);
        }
        if let Some(from) = self.from {
            sleep_until(from).await;
            self.from = None;
        }
        let Some(place) = self.place.clone() else {
            return Err(Error::internal("a follower without a place"));
        };
        if self.log_read.is_none() {
            let (store, claim) = (&self.store, self.claim.clone());
            self.log_read = Some(Pending::of(|reply| store.read_log(place, claim, reply)));
        }
        let read = answered(&mut self.log_read).await?;
        self.has_later = false;
        match read {
            LogRead::Copy(why) => {
                self.stage = Stage::Waiting(why);
                Ok(None)
            }
            LogRead::Segments { version, newest, segments } => {
                let Some(place) = &mut self.place else { return Ok(None) };
                let is_quiet = version == place.version && !self.beats;
                place.advance(version, &segments);
                self.list.sent(version, newest);
                self.has_later = !newest;
                if is_quiet {
                    return Ok(None);
                }
                self.beats = false;
                self.beat_at = Instant::now() + self.beat;
                write_changes(version, newest, &segments).map(Some)
            }
        }
    }

    async fn new_indexes(&mut self) -> Result<Option<Vec<u8>>> {
        if self.index_read.is_none() {
            let wants_values = self.wants_values;
            let read = Pending::of(|reply| self.store.copied_indexes(wants_values, reply));
            self.index_read = Some(read);
        }
        let indexes = answered(&mut self.index_read).await?;
        self.looks = false;
        if self.indexes.as_ref() == Some(&indexes) {
            return Ok(None);
        }
        let message = write_indexes(&indexes);
        self.indexes = Some(indexes);
        message.map(Some)
    }
}

/// Waits for an answer. The request stays until it has come, so that the wait may be dropped.
async fn answered<T>(request: &mut InFlight<T>) -> Result<T> {
    let Some(answer) = request else { return Err(Error::internal("no request is in flight")) };
    let answer = answer.await;
    *request = None;
    answer
}

impl Source for Following {
    async fn next(&mut self) -> Option<Bytes> {
        let next = attempt!(self.claim, self.next_message().await).ok()?;
        let message = match next {
            Ok(None) => return None,
            Ok(Some(message)) => Ok(message),
            Err(error) => {
                tracing::debug!(%error, "a stream of the log ended");
                self.stage = Stage::Over;
                write_end(&error)
            }
        };
        let bytes = message.ok().map(|message| self.claim.bytes(message));
        self.claim.shrink(0);
        bytes
    }
}

/// Entries as [`write_entries`] sends them.
struct EntriesPage(Vec<u8>);

impl Default for EntriesPage {
    fn default() -> Self {
        Self(Vec::with_capacity(COPY_PAGE_BYTES))
    }
}

impl TransferPage for EntriesPage {
    fn push(&mut self, Seen { row, expire_at_ms }: &Seen<'_>) {
        let value = (row.encoding.id(), row.value);
        push_entry(&mut self.0, (row.key, row.stamp.version()), value, *expire_at_ms);
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }
}
