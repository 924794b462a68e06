//! Change feeds: a stream of batches, in the client's form.

use std::sync::Arc;

use hyper::body::Bytes;

use super::database::WatchPlace;
use super::memory::{Claim, attempt};
use super::pending::{BUSY, Pending};
use super::stream::Source;
use openkv_core::codec::framing::KEEP_ALIVE;
use openkv_core::model::{Batch, Change, Error, FEED_FRAME_BYTES_MAX, Id, KeyRange, Kind, Result};
use openkv_store::Store;

/// The form of batches.
pub(super) trait Form: Send + 'static {
    /// Whether the client gets a notice of a gap and continues behind it; otherwise a gap is an error.
    const TELLS_GAPS: bool;

    /// The piece of changes. With them everything up to the commit `version` is reported. The first
    /// batch has no changes and carries the position of the new feed.
    fn batch(&mut self, version: u64, changes: &[Change]) -> Result<Vec<u8>>;

    /// The last piece, after changes were lost: every change behind the commit `version` is logged.
    fn gap(&mut self, version: u64) -> Result<Vec<u8>>;

    /// The last piece, after an error.
    fn end(&mut self, error: &Error) -> Option<Bytes>;

    /// The keep-alive piece.
    fn alive(&self) -> Bytes {
        Bytes::from_static(&KEEP_ALIVE)
    }
}

/// The running request to the store.
enum FeedRequest {
    /// The position of the new feed.
    Opening(Pending<u64>),
    Nothing,
    Batch(Pending<Option<Batch>>),
    /// The position behind a gap.
    Gap(Pending<u64>),
    /// An error ended the feed.
    Ended,
}

enum FeedEvent {
    Batch(Batch),
    Gap(u64),
}

/// A feed of the store, cancelled when its stream ends.
pub(super) struct Following<F> {
    store: Arc<Store>,
    id: Id,
    request: FeedRequest,
    /// The commit up to which the client has every change.
    position: u64,
    form: F,
    /// The memory of the batch in transfer.
    claim: Arc<Claim>,
    _place: WatchPlace,
}

impl<F> Drop for Following<F> {
    fn drop(&mut self) {
        self.store.feed_cancel(self.id);
    }
}

/// The commit after which a feed that begins now has every change.
pub(super) fn position(store: &Store) -> Pending<u64> {
    Pending::of(|reply| store.feed_start(BUSY, reply))
}

impl<F: Form> Following<F> {
    /// Opens a feed. It keeps its place among the watches.
    pub(super) fn open(
        (store, place): (Arc<Store>, WatchPlace),
        claim: Arc<Claim>,
        (range, since): (KeyRange, Option<u64>),
        form: F,
    ) -> Self {
        let mut id = 0;
        let opened = Pending::of(|reply| {
            id = store.feed(range, since, Some(claim.clone()), BUSY, reply);
        });
        let request = FeedRequest::Opening(opened.or_closed());
        Self { store, id, request, position: 0, form, claim, _place: place }
    }

    fn ask(&self) -> Pending<Option<Batch>> {
        Pending::of(|reply| self.store.feed_next(self.id, reply)).or_closed()
    }

    /// The next batch. The first has no changes and carries the position of the new feed.
    async fn next_event(&mut self) -> Result<Option<FeedEvent>> {
        if let FeedRequest::Nothing = self.request {
            self.request = FeedRequest::Batch(self.ask());
        }
        let answer = match &mut self.request {
            FeedRequest::Opening(place) => place
                .await
                .map(|version| Some(FeedEvent::Batch(Batch { changes: Vec::new(), version }))),
            FeedRequest::Batch(batch) => batch.await.map(|batch| batch.map(FeedEvent::Batch)),
            FeedRequest::Gap(place) => {
                let version = place.await;
                self.request = FeedRequest::Ended;
                return version.map(|version| Some(FeedEvent::Gap(version)));
            }
            FeedRequest::Nothing | FeedRequest::Ended => Ok(None),
        };
        if F::TELLS_GAPS && answer.as_ref().is_err_and(|error| error.kind() == Kind::FeedGap) {
            self.request = FeedRequest::Gap(position(&self.store).or_closed());
            return Box::pin(self.next_event()).await;
        }
        let goes_on = matches!(answer, Ok(Some(_))) || self.claim.has_lacked();
        self.request = if goes_on { FeedRequest::Nothing } else { FeedRequest::Ended };
        answer
    }

    /// The commit up to which the client has every change, if the feed waits for the next one.
    pub(super) fn idle_at(&self) -> Option<u64> {
        self.store.feed_position(self.id)
    }

    fn piece(&mut self, event: &FeedEvent) -> Result<Bytes> {
        let piece = match event {
            FeedEvent::Batch(batch) => {
                self.position = batch.version;
                self.form.batch(batch.version, &batch.changes)
            }
            FeedEvent::Gap(version) => self.form.gap(*version),
        };
        piece.map(|piece| self.claim.bytes(piece))
    }
}

impl<F: Form> Source for Following<F> {
    async fn next(&mut self) -> Option<Bytes> {
        let answer = attempt!(self.claim, self.next_event().await).ok()?;
        let piece = answer.and_then(|event| event.map(|event| self.piece(&event)).transpose());
        self.claim.shrink(0);
        piece.unwrap_or_else(|error| {
            tracing::debug!(%error, "a feed ended");
            self.request = FeedRequest::Ended;
            self.form.end(&error)
        })
    }

    /// The position, if it has advanced past commits outside the range, so that the client resumes
    /// there.
    fn alive(&mut self) -> Bytes {
        let moved = self.idle_at().filter(|at| *at > self.position);
        let place = moved
            .map(|version| self.piece(&FeedEvent::Batch(Batch { changes: Vec::new(), version })));
        place.and_then(Result::ok).unwrap_or_else(|| self.form.alive())
    }
}

/// The memory of the batches of a feed.
pub(super) const BATCH_BYTES_MAX: usize = FEED_FRAME_BYTES_MAX;
