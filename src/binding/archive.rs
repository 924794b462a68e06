//! Archives for JavaScript: archivers of a handle, and the jobs on an archive or on a database in an object store.

use std::path::PathBuf;
use std::sync::Arc;

use napi::Result;
use napi_derive::napi;
use serde::{Deserialize, Serialize};

use super::attachment;
use super::events::{Event, Events, Reply};
use super::handle::Handle;
use crate::archive::{self, ArchiveOptions, RestoreOptions};
use crate::call::Progress;
use crate::engine::bucket;
use crate::model::{self, Error, Key, KeyRange, Versionstamp, When};

/// A running archiver.
#[napi]
pub struct Archive {
    events: Events,
    running: Option<Arc<archive::Archive>>,
}

#[napi]
impl Handle {
    /// Starts to archive the database, with options as JSON; REPLIED once the archiver owns the target, or
    /// CALL_FAILED.
    #[napi(catch_unwind)]
    pub fn archive(&mut self, id: f64, options: String) -> Archive {
        let events = self.events.clone();
        let reply = Reply::new(events.clone(), id, Event::Replied, Event::CallFailed);
        let store = self.database().and_then(|database| database.store("kv.archive").cloned());
        let options = parsed::<ArchiveOptions>(&options);
        let running = match store.and_then(|store| Ok((store, options?))) {
            Ok((store, options)) => {
                let begun = move |begun: model::Result<()>| reply.tell(begun.map(|()| None));
                Some(Arc::new(archive::Archive::start(store, options, begun)))
            }
            Err(error) => {
                reply.bad(&error);
                None
            }
        };
        Archive { events, running }
    }
}

#[napi]
impl Archive {
    /// The state as JSON. Its reports are not repeated.
    #[napi(catch_unwind)]
    #[must_use]
    pub fn status(&self) -> String {
        let status = self.running.as_ref().map(|running| running.status());
        status.and_then(|status| serde_json::to_string(&status).ok()).unwrap_or_default()
    }

    /// Archives what is left, and ends; REPLIED after that.
    #[napi(catch_unwind)]
    pub fn stop(&mut self, id: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        let Some(running) = self.running.clone() else { return reply.good(None) };
        running.stop();
        reply.on_thread("openkv-archive", move |reply| {
            running.wait_ended();
            reply.good(None);
        });
    }
}

/// A job on an archive, or on a database in an object store, as JSON.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Job {
    Restore { target: String, file: PathBuf, at: Option<At>, prefix: Option<String> },
    List { target: String },
    Verify { target: String, scratch: PathBuf },
    Prune { target: String, before_ms: i64 },
    BucketStatus { url: String },
    BucketVerify { url: String },
}

/// A moment.
#[derive(Deserialize)]
#[serde(untagged)]
enum At {
    Time(i64),
    Commit(String),
}

/// A running job on an archive.
#[napi]
pub struct ArchiveJob {
    progress: Arc<Progress>,
}

#[napi]
impl ArchiveJob {
    /// Starts a job; REPLIED with its result as JSON, or CALL_FAILED.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "called from JavaScript only")]
    pub fn new(attachment: u32, id: f64, job: String) -> Result<Self> {
        let events = attachment::find(attachment)?.events;
        let reply = Reply::new(events, id, Event::Replied, Event::CallFailed);
        let progress = Arc::<Progress>::default();
        let shared = progress.clone();
        reply.on_thread("openkv-archive", move |reply| {
            let done = parsed::<Job>(&job).and_then(|job| run(job, &shared));
            reply.tell(done.map(Some));
        });
        Ok(Self { progress })
    }

    /// The number of bytes done, and of all bytes (0 while unknown).
    #[napi(catch_unwind)]
    pub fn progress(&self) -> Vec<f64> {
        self.progress.pages().to_vec()
    }

    /// Cancels it; CALL_FAILED follows, unless it is already done.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.progress.end();
    }
}

fn run(job: Job, progress: &Progress) -> model::Result<Vec<u8>> {
    let mut step = |done, all| progress.step(done, all);
    match job {
        Job::Restore { target, file, at, prefix } => {
            let range = prefix.map(|prefix| range_of(&prefix)).transpose()?;
            let options = RestoreOptions { target, file, at: at.map(when).transpose()?, range };
            json(&archive::restore(&options, &mut step)?)
        }
        Job::List { target } => json(&archive::list(&target)?),
        Job::Verify { target, scratch } => json(&archive::verify(&target, &scratch, &mut step)?),
        Job::Prune { target, before_ms } => json(&archive::remove_before(&target, before_ms)?),
        Job::BucketStatus { url } => json(&bucket::status(&url)?),
        Job::BucketVerify { url } => json(&bucket::verify(&url)?),
    }
}

fn when(at: At) -> model::Result<When> {
    match at {
        At::Time(at_ms) => Ok(When::Time(at_ms)),
        At::Commit(hex) => Versionstamp::parse(hex.as_bytes())
            .map(When::Commit)
            .ok_or_else(|| Error::internal("a versionstamp that is none")),
    }
}

/// The keys that extend an encoded prefix, which is in hexadecimal.
fn range_of(prefix: &str) -> model::Result<KeyRange> {
    let byte =
        |at: usize| prefix.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..prefix.len()).step_by(2).map(byte).collect();
    let mut start = bytes.ok_or_else(|| Error::internal("a prefix that is not hexadecimal"))?;
    let mut end = start.clone();
    start.push(0);
    end.push(0xff);
    Ok(KeyRange { start: Key::from_encoded(start), end: Key::from_encoded(end) })
}

fn parsed<'j, T: Deserialize<'j>>(json: &'j str) -> model::Result<T> {
    serde_json::from_str(json)
        .map_err(|error| Error::internal(format!("malformed options: {error}")))
}

fn json(answer: &impl Serialize) -> model::Result<Vec<u8>> {
    serde_json::to_vec(answer).map_err(|error| Error::internal(error.to_string()))
}
