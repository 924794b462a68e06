//! Takes the log of the server, and hands it to the writer thread of the store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::progress::FollowerProgress;
use crate::remote::LogFollower;
use openkv_core::model::{
    Advertised, CopiedEntry, Error, Followed, Key, Replacement, Result, Segment,
};
use openkv_store::Store;
use openkv_wire::protocol::follow::{Follow, FollowMessage, read_message, write_request};

/// Pages of a copy that wait for the writer thread.
const PAGES_MAX: usize = 4;

/// The follower of a replica.
pub(super) struct LogTaker {
    store: Weak<Store>,
    shared: Arc<FollowerProgress>,
    prefixes: Vec<Key>,
    beat: Duration,
    advertised: Option<Advertised>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The position of the store, or the error of reading it.
    followed: Option<Result<Option<Followed>>>,
    copying: Option<Copying>,
    over: bool,
}

/// A copy under way.
struct Copying {
    place: Followed,
    why: String,
    pages: mpsc::Sender<FollowedPage>,
    /// Once the writer thread has stored it.
    stored: Option<oneshot::Receiver<Result<()>>>,
}

enum FollowedPage {
    Entries(Vec<CopiedEntry>),
    /// Nothing is missing.
    End,
}

impl LogTaker {
    pub(super) fn new(
        store: &Arc<Store>,
        shared: Arc<FollowerProgress>,
        (prefixes, beat): (Vec<Key>, Duration),
        advertised: Option<Advertised>,
    ) -> Self {
        let store = Arc::downgrade(store);
        Self { store, shared, prefixes, beat, advertised, state: Mutex::default() }
    }

    /// Ends a copy under way, for which the writer thread waits.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.copying = None;
    }

    fn store(&self) -> Result<Arc<Store>> {
        self.store.upgrade().ok_or_else(Error::closed)
    }

    fn followed(&self) -> Option<Followed> {
        self.state.lock().followed.clone().and_then(Result::ok).flatten()
    }

    /// The position from which the store continues. Other prefixes need another copy.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn place(&self) -> Result<Option<Followed>> {
        let followed =
            self.state.lock().followed.clone().unwrap_or_else(|| Err(Error::closed()))?;
        Ok(followed.filter(|followed| followed.prefixes == self.prefixes))
    }

    /// Begins to replace everything. The writer thread waits for the pages.
    fn begin_copy(&self, why: String, place: Followed) -> Result<()> {
        let before = self.followed();
        if let Some(before) = &before
            && before.origin.database != place.origin.database
        {
            return Err(another_database());
        }
        let (pages, mut rest) = mpsc::channel(PAGES_MAX);
        let (reply, stored) = oneshot::channel();
        let replacement = Replacement {
            before,
            after: place.clone(),
            // Random enough: the server's own number is.
            generation: place.origin.incarnation ^ place.version.rotate_left(32) ^ 1,
        };
        let next = Box::new(move || match rest.blocking_recv() {
            Some(FollowedPage::Entries(entries)) => Ok(Some(entries)),
            Some(FollowedPage::End) => Ok(None),
            None => Err(Error::unavailable("the copy was interrupted")),
        });
        let store = self.store()?;
        {
            let mut state = self.state.lock();
            if state.over {
                return Err(Error::closed());
            }
            tracing::info!(why, "a replica is copied");
            let stored = Some(stored);
            state.copying = Some(Copying { place, why, pages, stored });
        }
        self.shared.copying();
        store.replace_all(replacement, next, move |done| drop(reply.send(done)));
        Ok(())
    }

    async fn page(&self, page: FollowedPage) -> Result<()> {
        let pages = self.state.lock().copying.as_ref().map(|copying| copying.pages.clone());
        let pages = pages.ok_or_else(|| Error::corrupt("entries of no copy"))?;
        if pages.send(page).await.is_ok() {
            return Ok(());
        }
        // The writer thread has ended the copy, and says why.
        self.stored().await.and_then(|_| Err(Error::internal("a copy ended too early")))
    }

    /// Waits until the copy is stored.
    async fn stored(&self) -> Result<Copying> {
        let missing = || Error::corrupt("the end of no copy");
        let copying = self.state.lock().copying.take();
        let mut copying = copying.ok_or_else(missing)?;
        let stored = copying.stored.take().ok_or_else(missing)?;
        stored.await.unwrap_or_else(|_| Err(Error::closed()))?;
        Ok(copying)
    }

    async fn end_copy(&self) -> Result<()> {
        self.page(FollowedPage::End).await?;
        let before = self.followed();
        let Copying { place, why, .. } = self.stored().await?;
        let exchanged = before
            .is_some_and(|before| before.origin != place.origin || before.version > place.version);
        if exchanged {
            tracing::warn!(why, "a replica was exchanged for another copy of its database");
        }
        self.state.lock().followed = Some(Ok(Some(place.clone())));
        self.shared.copied(place.version, exchanged, why);
        Ok(())
    }

    async fn changes(&self, version: u64, newest: bool, segments: Vec<Segment>) -> Result<()> {
        let Some(before) = self.followed() else {
            return Err(Error::corrupt("changes before a copy"));
        };
        if let Some(last) = segments.last() {
            let after = Followed { version: last.last, at_ms: last.at_ms, ..before };
            let (reply, done) = oneshot::channel();
            let stored = after.clone();
            self.store()?.follow(after, segments, move |done| drop(reply.send(done)));
            done.await.unwrap_or_else(|_| Err(Error::closed()))?;
            self.state.lock().followed = Some(Ok(Some(stored)));
        }
        self.shared.followed(version, newest);
        Ok(())
    }

    /// Carries out a message.
    pub(super) async fn follow(&self, message: FollowMessage) -> Result<()> {
        match message {
            FollowMessage::CopyBegins(why, place) => self.begin_copy(why, place),
            FollowMessage::Entries(entries) => self.page(FollowedPage::Entries(entries)).await,
            FollowMessage::CopyEnds => self.end_copy().await,
            FollowMessage::Changes { version, newest, segments } => {
                self.changes(version, newest, segments).await
            }
            FollowMessage::Indexes(indexes) => {
                let (reply, done) = oneshot::channel();
                self.store()?.copy_indexes(indexes, move |done| drop(reply.send(done)));
                done.await.unwrap_or_else(|_| Err(Error::closed()))
            }
            FollowMessage::Ended(error) => Err(error),
        }
    }
}

impl LogFollower for LogTaker {
    /// Reads anew what the store follows: another process may follow too.
    async fn ready(&self) {
        self.state.lock().copying = None;
        let Ok(store) = self.store() else { return };
        let found = followed(&store);
        drop(store);
        let found = found.await;
        let ready = found.as_ref().ok().and_then(Option::as_ref);
        if let Some(followed) = ready.filter(|followed| followed.prefixes == self.prefixes) {
            self.shared.found(followed.version);
        }
        self.state.lock().followed = Some(found);
    }

    fn request(&self, with_values: bool) -> Result<Vec<u8>> {
        let (from, prefixes) = (self.place()?, self.prefixes.clone());
        let beat_ms = u32::try_from(self.beat.as_millis()).unwrap_or(u32::MAX);
        Ok(write_request(&Follow { from, prefixes, beat_ms, wants_values: with_values }))
    }

    fn advertised(&self) -> Option<&Advertised> {
        self.advertised.as_ref()
    }

    async fn take(&self, message: Vec<u8>) -> Result<()> {
        self.follow(read_message(&message)?).await
    }

    fn ended(&self, why: &str) {
        self.state.lock().copying = None;
        self.shared.disconnected(why);
    }

    fn fail(&self, error: Error) {
        self.state.lock().copying = None;
        tracing::error!(%error, "a replica follows no longer");
        self.shared.failed(error.clone());
        // A watch and a feed that wait here would get nothing any more, and not know it.
        if let Ok(store) = self.store() {
            store.fail_streams(&error);
        }
    }
}

/// The position of a store.
pub(super) fn followed(store: &Store) -> impl Future<Output = Result<Option<Followed>>> + use<> {
    let (reply, found) = oneshot::channel();
    store.followed(move |followed| drop(reply.send(followed)));
    async { found.await.unwrap_or_else(|_| Err(Error::closed())) }
}

fn another_database() -> Error {
    Error::denied(
        "the replica is a copy of another database than the one at this URL: name another file for the \
         replica, or the right URL. Nothing was changed",
    )
}
