//! The lines of a body, as they arrive.
//!
//! Invariant: memory for the longest line and one piece of the body. A long line reserves its memory,
//! and that for reading it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use tokio::time::timeout;

use super::problem::Problem;
use crate::database::Database;
use crate::memory::Claim;
use crate::request::RequestBody;
use openkv_core::model::{
    HTTP_IMPORT_BYTES_PER_BYTE, HTTP_IMPORT_LINE_BYTES_MAX, REQUEST_BODY_MS_MAX, SHORT_BYTES_MAX,
};

pub(super) struct Lines {
    body: RequestBody,
    bytes: Vec<u8>,
    /// Where the next line begins in `bytes`.
    start: usize,
    /// Where no end of it was found before.
    searched: usize,
    has_ended: bool,
    number: u64,
    claim: Arc<Claim>,
    /// Bytes of a line for which there is memory.
    held: usize,
}

impl Lines {
    pub(super) fn new(database: &Database, body: RequestBody) -> Self {
        Self {
            body,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            has_ended: false,
            number: 0,
            claim: database.memory.claim(usize::MAX),
            held: SHORT_BYTES_MAX,
        }
    }

    /// The number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Where the next line is; `None` at the end. The last line may lack its line feed.
    pub(super) async fn next(&mut self) -> Result<Option<Range<usize>>, Problem> {
        loop {
            let unsearched = self.bytes.get(self.searched..).unwrap_or_default();
            if let Some(found) = memchr::memchr(b'\n', unsearched) {
                let line = self.start..self.searched + found;
                self.start = line.end + 1;
                self.searched = self.start;
                self.number += 1;
                return Ok(Some(line));
            }
            self.bytes.drain(..self.start);
            (self.start, self.searched) = (0, self.bytes.len());
            if self.has_ended {
                let line = 0..self.bytes.len();
                (self.start, self.searched) = (line.end, line.end);
                self.number += u64::from(!line.is_empty());
                return Ok(Some(line).filter(|line| !line.is_empty()));
            }
            self.more().await?;
        }
    }

    /// A line without its end. Some editors put a byte order mark before the first one.
    pub(super) fn text(&self, line: Range<usize>) -> Result<&str, Problem> {
        let bytes = self.bytes.get(line).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| Problem::bad_request("not UTF-8"))?;
        Ok(if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text })
    }

    /// Reads a piece of the body.
    async fn more(&mut self) -> Result<(), Problem> {
        if self.bytes.len() <= SHORT_BYTES_MAX && self.held > SHORT_BYTES_MAX {
            self.held = SHORT_BYTES_MAX;
            self.claim.shrink(0);
        }
        match self.piece().await? {
            None => self.has_ended = true,
            Some(piece) => self.bytes.extend_from_slice(&piece),
        }
        let most = HTTP_IMPORT_LINE_BYTES_MAX;
        let last = self.bytes.len() - memchr::memrchr(b'\n', &self.bytes).unwrap_or_default();
        if last > most {
            let text = format!("too long (max {most} bytes)");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        if last > self.held {
            self.held = (2 * last).min(most);
            self.claim.wait(HTTP_IMPORT_BYTES_PER_BYTE * self.held).await?;
        }
        Ok(())
    }

    async fn piece(&mut self) -> Result<Option<hyper::body::Bytes>, Problem> {
        let wait = Duration::from_millis(REQUEST_BODY_MS_MAX);
        let Ok(frame) = timeout(wait, self.body.frame()).await else {
            let text = format!("nothing came for {REQUEST_BODY_MS_MAX} ms");
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, text));
        };
        match frame {
            None => Ok(None),
            Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
            Some(Err(error)) => Err(Problem::bad_request(format!("the body ended: {error}"))),
        }
    }
}
