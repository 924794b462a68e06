//! Change feeds in openkv's own form (`protocol::feed`).
//!
//! Opening a feed makes the file log its changes from then on. A read token is enough for that.

use hyper::body::Bytes;

use crate::answer::{Answer, Refusal};
use crate::data::{Client, store_of};
use crate::feed::{BATCH_BYTES_MAX, Following, Form};
use crate::stream::stream;
use openkv_core::model::{Change, Error, Limits, Result, Versionstamp};
use openkv_wire::protocol::feed::{read_request, write_batch, write_end};

/// The form of the extension.
struct Frames {
    /// Whether the client knows expiries.
    expiries: bool,
}

impl Form for Frames {
    /// The client gets the error, and its caller decides.
    const TELLS_GAPS: bool = false;

    fn batch(&mut self, version: u64, changes: &[Change]) -> Result<Vec<u8>> {
        write_batch(Versionstamp::new(version), changes, self.expiries)
    }

    fn gap(&mut self, _version: u64) -> Result<Vec<u8>> {
        Err(Error::internal("a gap without its error"))
    }

    fn end(&mut self, error: &Error) -> Option<Bytes> {
        write_end(error).ok().map(Bytes::from)
    }
}

/// Starts a feed.
pub(super) async fn feed(client: &Client, body: &[u8], expiries: bool) -> Result<Answer, Refusal> {
    let database = &client.database;
    let (range, since) = read_request(body, &Limits::wide())?;
    let since = since.map(Versionstamp::version);
    let place = client.take_watch().await?;
    let store = store_of(database).await?;
    let claim = database.memory.claim(BATCH_BYTES_MAX);
    let following = Following::open((store, place), claim, (range, since), Frames { expiries });
    Ok(stream(client, following))
}
