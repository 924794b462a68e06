//! `GET /export`: the entries of a range as NDJSON, from one state of the database.
//!
//! Invariant: constant memory. A thread visits the entries and waits for the connection.

use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::ACCEPT;
use tokio::sync::OwnedSemaphorePermit;

use super::admit::Admitted;
use super::list::Range;
use super::media::accepts;
use super::problem::{Answered, Problem};
use super::target::Query;
use crate::answer::{Body, answer};
use crate::checked::PieceSender;
use crate::data::{Client, store_of};
use crate::memory::Claim;
use crate::quota::over;
use openkv_core::interchange::ndjson;
use openkv_core::model::{
    ANSWER_PIECE_BYTES, Error, HTTP_EXPORT_MS_MAX, HTTP_EXPORTS_MAX, Result, SHORT_BYTES_MAX, Seen,
};
use openkv_store::metrics::{Operation, Subject};
use openkv_store::{Caller, Store};
use std::sync::Arc;

/// The media type of NDJSON.
pub(super) const LINES_TYPE: &str = "application/x-ndjson";

/// Bytes of text for each byte of a large value, for which memory is reserved.
const TEXT_BYTES_PER_BYTE: usize = 2;

/// Exports the entries of a range, one a line.
#[utoipa::path(get, path = "/export", tag = "operation", operation_id = "export",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("start" = Option<String>, Query, description = "The first key, included."),
        ("end" = Option<String>, Query, description = "The last key, excluded."),
    ),
    responses((status = 200, description = "NDJSON, in the order of the keys. A connection that breaks off has not sent all of it.",
        content_type = "application/x-ndjson", body = String)))]
pub(super) async fn export(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["prefix", "start", "end"])?;
    let bounds = Range::of_query(&query)?.bounds()?;
    if !accepts(head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()), LINES_TYPE) {
        let text = format!("The body is available as {LINES_TYPE}.");
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, text));
    }
    let place = client.database.exporting.clone().try_acquire_owned();
    let busy = |_| over("exports at one time", HTTP_EXPORTS_MAX as u64, "", 5);
    let place = place.map_err(busy)?;
    let store = store_of(&client.database).await?;
    let (mut pieces, body) = PieceSender::new(&client);
    let most = Duration::from_millis(HTTP_EXPORT_MS_MAX);
    let patience = store.patience("export", most, Some(pieces.liveness()));
    pieces.within(&patience);
    let subject = bounds.subject();
    let exporting = Exporting::new(&client, &store, (pieces, subject), place);
    store.long_walk((bounds.start, bounds.end), patience, exporting, Exporting::take);
    let body = Body::Checked(Box::new(body.begun().await?));
    // The bound of exports counts it, and not that of running requests.
    drop(client.take_permit());
    Ok(answer(StatusCode::OK, LINES_TYPE, body))
}

/// An export under way, on its thread.
struct Exporting {
    pieces: PieceSender,
    lines: String,
    /// The memory of a large value.
    claim: Arc<Claim>,
    fault: Option<Error>,
    store: Arc<Store>,
    since: Instant,
    subject: Subject,
    _place: OwnedSemaphorePermit,
}

impl Exporting {
    fn new(
        client: &Client,
        store: &Arc<Store>,
        (pieces, subject): (PieceSender, Subject),
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            pieces,
            subject,
            lines: String::with_capacity(ANSWER_PIECE_BYTES),
            claim: client.database.memory.claim(usize::MAX),
            fault: None,
            store: store.clone(),
            since: Instant::now(),
            _place: place,
        }
    }

    /// Appends an entry; `false` ends the export.
    fn take(&mut self, entry: &Seen<'_>) -> bool {
        let is_large = entry.row.value.len() > SHORT_BYTES_MAX;
        let is_full = self.lines.len() + entry.row.value.len() > ANSWER_PIECE_BYTES;
        if (is_large || is_full) && !self.flush() {
            return false;
        }
        let taken = if is_large { self.take_large(entry) } else { self.line(entry).map(|()| true) };
        taken.unwrap_or_else(|error| {
            self.fault = Some(error);
            false
        })
    }

    fn line(&mut self, entry: &Seen<'_>) -> Result<()> {
        ndjson::push(&mut self.lines, entry)?;
        self.lines.push('\n');
        Ok(())
    }

    /// Sends the entry alone, with its memory.
    fn take_large(&mut self, entry: &Seen<'_>) -> Result<bool> {
        let wait = self.claim.wait(TEXT_BYTES_PER_BYTE * entry.row.value.len());
        match self.pieces.wait_for(wait) {
            None => return Ok(false),
            Some(waited) => waited.map_err(|refusal| Error::unavailable(refusal.text()))?,
        }
        self.line(entry)?;
        let sent = self.flush();
        self.claim.shrink(0);
        Ok(sent)
    }

    /// Sends the lines; `false` if the client wants no more.
    fn flush(&mut self) -> bool {
        let next = String::with_capacity(ANSWER_PIECE_BYTES);
        let lines = std::mem::replace(&mut self.lines, next).into_bytes();
        let lines = match lines.len() > SHORT_BYTES_MAX {
            true => self.claim.bytes(lines),
            false => Bytes::from(lines),
        };
        self.pieces.send(lines)
    }
}

impl Caller<()> for Exporting {
    fn end(mut self, walked: Result<()>) {
        let walked = self.fault.take().map_or(walked, Err);
        let metrics = self.store.metrics();
        metrics.answered(Operation::List, (1, walked.is_ok()), self.since, || self.subject);
        match walked {
            Ok(()) if self.flush() => self.pieces.end(),
            Ok(()) => {}
            Err(error) => self.pieces.fail(error),
        }
    }
}
