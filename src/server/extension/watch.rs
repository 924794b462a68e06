//! Watches in frames: of more keys than the protocol's, with values as they are, and raw ones.

use std::sync::Arc;

use hyper::body::Bytes;

use crate::connect::state::{read_request, write_end, write_state};
use crate::model::{Error, FRAMES_ANSWER_BYTES_MAX, Key, Limits, Result};
use crate::server::Serving;
use crate::server::answer::{Answer, Refusal};
use crate::server::auth::Grant;
use crate::server::database::Database;
use crate::server::memory::Claim;
use crate::server::watch::{Form, start};
use crate::store::Entry;

struct Frames;

impl Form for Frames {
    const BYTES_MAX: usize = FRAMES_ANSWER_BYTES_MAX;

    fn frame(&self, _keys: &[Key], entries: &[Option<Entry>]) -> Result<Vec<u8>> {
        let held = entries.iter().map(|entry| entry.as_ref().map(|of| (of.stamp, &of.value)));
        write_state(held)
    }

    /// Told in the stream, since a client that asked again would hear the same.
    fn end(&self, error: &Error) -> Option<Bytes> {
        write_end(error).ok().map(Bytes::from)
    }
}

/// Starts a watch.
pub(super) async fn watch(
    serving: &Arc<Serving>,
    database: &Arc<Database>,
    grant: &Grant,
    (body, claim): (&[u8], Option<Arc<Claim>>),
) -> Result<Answer, Refusal> {
    let (keys, raw) = read_request(body, &Limits::wide())?;
    start(serving, (database, grant), (keys, claim), raw, Frames).await
}
