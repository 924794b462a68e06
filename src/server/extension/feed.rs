//! Change feeds: a stream of batches (`protocol::feed`).
//!
//! Opening a feed makes the file log its changes from then on. A read token is enough for that.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::oneshot;

use crate::codec::framing::KEEP_ALIVE;
use crate::model::{
    BUSY_TIMEOUT_MS_DEFAULT, Batch, Error, FEED_FRAME_BYTES_MAX, Id, Limits, Result, Versionstamp,
};
use crate::protocol::feed::{read_request, write_batch, write_end};
use crate::server::answer::{Answer, Refusal};
use crate::server::data::{Client, store_of};
use crate::server::database::WatchPlace;
use crate::server::memory::{Claim, attempt};
use crate::server::stream::{Source, stream};
use crate::store::Store;

/// The running request to the store.
enum FeedRequest {
    /// The position of the new feed.
    Opening(oneshot::Receiver<Result<u64>>),
    Nothing,
    Batch(oneshot::Receiver<Result<Option<Batch>>>),
    /// An error ended the feed.
    Ended,
}

/// A feed of the store, cancelled when its stream ends.
struct Following {
    store: Arc<Store>,
    id: Id,
    asked: FeedRequest,
    /// The commit up to which the client has every change.
    position: u64,
    /// Whether the client knows expiries.
    expiries: bool,
    /// The memory of the batch in transfer.
    claim: Arc<Claim>,
    _place: WatchPlace,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.store.feed_cancel(self.id);
    }
}

impl Following {
    fn ask(&self) -> oneshot::Receiver<Result<Option<Batch>>> {
        let (reply, batch) = oneshot::channel();
        self.store.feed_next(self.id, Box::new(move |answer| drop(reply.send(answer))));
        batch
    }

    /// The next batch. The first has no changes and carries the position of the new feed.
    async fn batch(&mut self) -> Result<Option<Batch>> {
        if let FeedRequest::Nothing = self.asked {
            self.asked = FeedRequest::Batch(self.ask());
        }
        let answer = match &mut self.asked {
            FeedRequest::Opening(place) => {
                let version = place.await.unwrap_or_else(|_| Err(Error::closed()));
                version.map(|version| Some(Batch { changes: Vec::new(), version }))
            }
            FeedRequest::Batch(batch) => batch.await.unwrap_or_else(|_| Err(Error::closed())),
            FeedRequest::Nothing | FeedRequest::Ended => Ok(None),
        };
        let goes_on = matches!(answer, Ok(Some(_))) || self.claim.has_lacked();
        self.asked = if goes_on { FeedRequest::Nothing } else { FeedRequest::Ended };
        answer
    }

    fn frame(&mut self, batch: &Batch) -> Result<Bytes> {
        self.position = batch.version;
        let frame = write_batch(Versionstamp::new(batch.version), &batch.changes, self.expiries);
        frame.map(|frame| self.claim.bytes(frame))
    }
}

impl Source for Following {
    async fn next(&mut self) -> Option<Bytes> {
        let answer = attempt!(self.claim, self.batch().await).ok()?;
        let frame = answer.and_then(|batch| batch.map(|batch| self.frame(&batch)).transpose());
        self.claim.shrink(0);
        frame.unwrap_or_else(|error| {
            tracing::debug!(%error, "a feed ended");
            self.asked = FeedRequest::Ended;
            write_end(&error).ok().map(Bytes::from)
        })
    }

    /// The position, if it has advanced past commits outside the range, so that the client resumes
    /// there.
    fn alive(&mut self) -> Bytes {
        let moved = self.store.feed_position(self.id).filter(|at| *at > self.position);
        let place = moved.map(|version| self.frame(&Batch { changes: Vec::new(), version }));
        place.and_then(Result::ok).unwrap_or_else(|| Bytes::from_static(&KEEP_ALIVE))
    }
}

/// Starts a feed.
pub(super) async fn feed(client: &Client, body: &[u8], expiries: bool) -> Result<Answer, Refusal> {
    let database = &client.database;
    let (range, since) = read_request(body, &Limits::wide())?;
    let since = since.map(Versionstamp::version);
    let place = database.take_watch()?;
    let store = store_of(database).await?;
    let (reply, opened) = oneshot::channel();
    let busy = Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
    let reply = Box::new(move |place| drop(reply.send(place)));
    let claim = database.memory.claim(FEED_FRAME_BYTES_MAX);
    let id = store.feed(range, since, Some(claim.clone()), busy, reply);
    let asked = FeedRequest::Opening(opened);
    let following = Following { store, id, asked, position: 0, expiries, claim, _place: place };
    Ok(stream(client, following))
}
