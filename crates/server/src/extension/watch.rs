//! Watches in frames: more keys than KV Connect allows, encoded values, and raw watches.

use std::sync::Arc;

use hyper::body::Bytes;

use crate::answer::{Answer, Refusal};
use crate::data::Client;
use crate::memory::Claim;
use crate::watch::{Form, start};
use openkv_core::model::{Entry, Error, FRAMES_ANSWER_BYTES_MAX, Key, Limits, Result};
use openkv_wire::protocol::state::{read_request, write_end, write_state};

struct Frames;

impl Form for Frames {
    const BYTES_MAX: usize = FRAMES_ANSWER_BYTES_MAX;

    fn frame(&mut self, _keys: &[Key], entries: &[Option<Entry>]) -> Result<Vec<u8>> {
        let held = entries.iter().map(|entry| entry.as_ref().map(|of| (of.stamp, &of.value)));
        write_state(held)
    }

    /// Sent in the stream, because a client that asks again would get the same error.
    fn end(&self, error: &Error) -> Option<Bytes> {
        write_end(error).ok().map(Bytes::from)
    }
}

/// Starts a watch.
pub(super) async fn watch(
    client: &Client,
    body: &[u8],
    claim: Option<Arc<Claim>>,
) -> Result<Answer, Refusal> {
    let (keys, raw) = read_request(body, &Limits::wide())?;
    start(client, (keys, claim), raw, Frames).await
}
