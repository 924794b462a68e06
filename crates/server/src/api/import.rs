//! `POST /import`: the entries of NDJSON, many in a commit.
//!
//! Invariant: constant memory beside the longest line. The import ends at the first line that cannot be
//! stored; then all lines before it are committed, and none behind it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use serde::Serialize;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::json;
use super::export::LINES_TYPE;
use super::lines::Lines;
use super::media::names;
use super::problem::{Answered, Problem, Stopped};
use super::target::Query;
use crate::clock::now_ms;
use crate::data::{Client, has_room, still, store_of, submitted};
use crate::pending::Pending;
use openkv_core::index::not_unique;
use openkv_core::interchange::ndjson::{self, Line};
use openkv_core::model::{
    AtomicWrite, Check, Decision, Error, FRAMES_APART_BYTES_MIN, HTTP_IMPORT_COMMIT_BYTES_MAX,
    HTTP_IMPORT_COMMIT_ENTRIES_MAX, Key, Limits, Mutation, Result, Time, WriteParts,
};
use openkv_store::Store;

/// The answer of an import.
#[derive(Clone, Copy, Default, Serialize, ToSchema)]
#[schema(as = Imported)]
pub(super) struct Counts {
    /// Entries that are committed.
    imported: u64,
    /// Entries that existed already or had expired.
    skipped: u64,
}

/// Imports the lines of an export.
#[utoipa::path(post, path = "/import", tag = "operation", operation_id = "import",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal, in front of every key."),
        ("overwrite" = Option<bool>, Query, description = "Whether existing entries are replaced, by default true."),
    ),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "All lines are committed or skipped.", body = Counts)))]
pub(super) async fn import(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let query = Query::of(&head.uri, &["prefix", "overwrite"])?;
    let (prefix, overwrite) = (query.key("prefix")?, query.flag("overwrite")?.unwrap_or(true));
    let given = head.headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    if !given.is_some_and(|given| names(given, LINES_TYPE)) {
        let text = format!("Content-Type must be {LINES_TYPE}.");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let store = store_of(&client.database).await?;
    let mut lines = Lines::new(&client.database, body);
    let mut importing = Importing::new(&client, store, prefix, overwrite);
    match importing.run(&mut lines).await {
        Ok(()) => json(&importing.counts),
        Err((line, problem)) => {
            let Counts { imported, skipped } = importing.counts;
            Err(problem.stopped(Stopped { line, imported, skipped }))
        }
    }
}

/// The fault of a line, and its number from 1.
type Fault = (u64, Problem);

/// The entry of a line; `None` for an empty line.
enum Parsed {
    Done(Result<Option<Line>, Problem>),
    /// A long line is read outside of the server's threads.
    Apart(JoinHandle<Result<Line>>),
}

fn parsed(text: Result<&str, Problem>) -> Parsed {
    match text {
        Err(problem) => Parsed::Done(Err(problem)),
        Ok(text) if text.len() >= FRAMES_APART_BYTES_MIN => {
            let text = text.to_owned();
            Parsed::Apart(tokio::task::spawn_blocking(move || ndjson::parse(&text)))
        }
        Ok(text) if text.trim().is_empty() => Parsed::Done(Ok(None)),
        Ok(text) => Parsed::Done(ndjson::parse(text).map(Some).map_err(Problem::from)),
    }
}

impl Parsed {
    async fn end(self) -> Result<Option<Line>, Problem> {
        match self {
            Self::Done(parsed) => parsed,
            Self::Apart(parsed) => {
                let panicked = |_| Error::internal("reading a line ended by a panic");
                Ok(Some(parsed.await.map_err(panicked)??))
            }
        }
    }
}

/// Entries that wait for their commit.
#[derive(Default)]
struct ImportBatch {
    /// One for each entry.
    writes: Vec<WriteParts>,
    /// The number of the line of each.
    lines: Vec<u64>,
    bytes: usize,
}

/// A batch that the store has, and its line numbers.
struct Submitted {
    decisions: Pending<Vec<Decision>>,
    lines: Vec<u64>,
    /// The write of each entry, if all were sent as one.
    together: Vec<WriteParts>,
}

struct Importing<'c> {
    client: &'c Client,
    store: Arc<Store>,
    prefix: Option<Key>,
    overwrite: bool,
    limits: Limits,
    counts: Counts,
    batch: ImportBatch,
    /// At most one, so that no batch behind a failed one is committed.
    submitted: Option<Submitted>,
}

impl<'c> Importing<'c> {
    fn new(client: &'c Client, store: Arc<Store>, prefix: Option<Key>, overwrite: bool) -> Self {
        let (limits, counts) = (Limits::wide(), Counts::default());
        let (batch, submitted) = (ImportBatch::default(), None);
        Self { client, store, prefix, overwrite, limits, counts, batch, submitted }
    }

    async fn run(&mut self, lines: &mut Lines) -> Result<(), Fault> {
        loop {
            match lines.next().await {
                Ok(None) => break,
                Ok(Some(line)) => {
                    let (number, bytes) = (lines.number(), line.len());
                    let parsed = parsed(lines.text(line));
                    let taken = parsed.end().await.and_then(|line| self.take(line, number, bytes));
                    if let Err(problem) = taken {
                        return self.stop(number, problem).await;
                    }
                    if self.is_full() {
                        self.submit().await?;
                    }
                }
                Err(problem) => return self.stop(lines.number() + 1, problem).await,
            }
        }
        self.finish().await
    }

    /// Ends the import at a line, once all before it are committed.
    async fn stop(&mut self, number: u64, problem: Problem) -> Result<(), Fault> {
        self.finish().await?;
        Err((number, problem))
    }

    fn is_full(&self) -> bool {
        let ImportBatch { lines, bytes, .. } = &self.batch;
        lines.len() >= HTTP_IMPORT_COMMIT_ENTRIES_MAX || *bytes >= HTTP_IMPORT_COMMIT_BYTES_MAX
    }

    /// Adds the entry of a line to the batch.
    fn take(&mut self, line: Option<Line>, number: u64, bytes: usize) -> Result<(), Problem> {
        let Some(Line { key, value, expire_at_ms }) = line else { return Ok(()) };
        if expire_at_ms.is_some_and(|ms| ms <= now_ms()) {
            self.counts.skipped += 1;
            return Ok(());
        }
        let key = match &self.prefix {
            Some(prefix) => Key::from_encoded([prefix.as_bytes(), key.as_bytes()].concat()),
            None => key,
        };
        let checks = match self.overwrite {
            true => Vec::new(),
            false => vec![Check { key: key.clone(), expected: None }],
        };
        let expiry = expire_at_ms.map(Time::At);
        let mutations = vec![Mutation::Set { key, suffixed: false, value, expiry }];
        // Checked alone, so that the error of an entry does not fail others.
        let alone = WriteParts { checks, mutations, ..WriteParts::default() };
        let parts = AtomicWrite::new(alone, &self.limits)?.into_parts();
        self.batch.writes.push(parts);
        self.batch.lines.push(number);
        self.batch.bytes += bytes;
        Ok(())
    }

    /// Hands the batch to the store, once the one before is committed.
    async fn submit(&mut self) -> Result<(), Fault> {
        let ImportBatch { writes, lines, .. } = std::mem::take(&mut self.batch);
        self.settle().await?;
        let Some(first) = lines.first().copied() else { return Ok(()) };
        let refused = |problem| (first, problem);
        still(self.client).map_err(|refusal| refused(refusal.into()))?;
        let database = &self.client.database;
        has_room(database).await.map_err(|refusal| refused(refusal.into()))?;
        database.owe_operations(lines.len() as u64);
        if self.overwrite {
            let mutations = writes.iter().flat_map(|parts| parts.mutations.iter().cloned());
            let all = WriteParts { mutations: mutations.collect(), ..WriteParts::default() };
            let decisions = self.send(vec![all]);
            self.submitted = Some(Submitted { decisions, lines, together: writes });
        } else if self.has_unique().await.map_err(|error| refused(error.into()))? {
            self.write_each(writes, lines).await?;
        } else {
            let decisions = self.send(writes);
            self.submitted = Some(Submitted { decisions, lines, together: Vec::new() });
        }
        Ok(())
    }

    /// Whether a unique index may refuse entries.
    async fn has_unique(&self) -> Result<bool> {
        let indexes = Pending::of(|caller| self.store.value_indexes(caller)).await?;
        Ok(indexes.iter().any(|index| index.spec.unique))
    }

    fn send(&self, writes: Vec<WriteParts>) -> Pending<Vec<Decision>> {
        let writes = writes.into_iter().map(|parts| AtomicWrite::new(parts, &self.limits));
        submitted(&self.store, writes.collect())
    }

    /// Commits one entry after the other, up to the first that cannot be stored.
    async fn write_each(&mut self, writes: Vec<WriteParts>, lines: Vec<u64>) -> Result<(), Fault> {
        for (parts, line) in writes.into_iter().zip(lines) {
            let decisions = self.send(vec![parts]).await.map_err(|error| (line, error.into()))?;
            let decided = decisions.into_iter().try_for_each(|one| self.count(one, 1));
            decided.map_err(|problem| (line, problem))?;
        }
        Ok(())
    }

    /// Waits for the batch that the store has.
    async fn settle(&mut self) -> Result<(), Fault> {
        let Some(Submitted { decisions, lines, together }) = self.submitted.take() else {
            return Ok(());
        };
        let first = lines.first().copied().unwrap_or_default();
        let decisions = decisions.await.map_err(|error| (first, error.into()))?;
        if !together.is_empty() {
            let entries = lines.len() as u64;
            let decided = decisions.into_iter().try_for_each(|all| self.count(all, entries));
            // One of the entries was refused, and with it all of them.
            return match decided {
                Ok(()) => Ok(()),
                Err(_) => self.write_each(together, lines).await,
            };
        }
        let mut fault = None;
        for (decision, line) in decisions.into_iter().zip(lines) {
            if let Err(problem) = self.count(decision, 1) {
                fault.get_or_insert((line, problem));
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Counts the entries of a write.
    fn count(&mut self, decision: Decision, entries: u64) -> Result<(), Problem> {
        match decision {
            Decision::Committed(_) | Decision::CommittedWith(..) => self.counts.imported += entries,
            Decision::CheckFailed(_) => self.counts.skipped += entries,
            Decision::NotUnique(violations) => return Err(not_unique(&violations).into()),
            Decision::Rejected(error) => return Err(error.into()),
            Decision::Deleted(_) => {
                return Err(Error::internal("a deletion as the answer of a write").into());
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        self.submit().await?;
        self.settle().await
    }
}
