//! A database in an object store, led by one process at a time, with a copy of it in a local file.
//!
//! Duty: [`Engine`](crate::Engine) over [`openkv_core::chain`], [`crate::objects`] and a file of SQLite. The
//! transaction layer decides writes over the file and the batches in flight, and the file repeats them once their
//! objects exist (`leader.rs`). Work that cannot be decided ahead runs alone, in a transaction of the file that is
//! published before its COMMIT ([`crate::sqlite::published`]). So a commit is visible only when it is durable. A process
//! that does not lead repeats the log in its file.
//! Invariant: the file is a beginning of the chain, at the place that its mark names. Reads are answered while
//! the lease says that no other process leads, or after a look at the end of the log.
//! Never: a write of the file that is not in the chain, except locks of messages, which are this process's own.
//!
//! | thread | does |
//! |---|---|
//! | the store's writer | decides batches, and repeats them in the file |
//! | `openkv-upload` | creates the object of a batch, and waits for it; exists meanwhile |
//! | `openkv-bucket` | renews the lease, or follows the log and watches the lease of another process |
//! | `openkv-snapshot` | uploads a copy of the file and deletes what it contains; exists meanwhile |

mod cache;
mod cluster;
mod driver;
mod indexer;
mod inspect;
mod lead;
mod leader;
mod location;
mod merging;
mod objects;
mod publisher;
mod reader;
mod seen_lease;
mod snapshots;
mod uploads;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cache::Cache;
pub use cluster::BucketCluster;
use driver::Driver;
pub use inspect::{BucketStatus, BucketVerified, status, verify};
use lead::Lead;
pub use lead::LeadMode;
use location::Location;
pub use location::{Timing, identity, served, timing};
use objects::Objects;
use objects::{LEASE, lease_at};
use parking_lot::Mutex;
use publisher::LogPublisher;
pub use reader::BucketReader;
pub use writer::BucketWriter;

use crate::sqlite::{SqliteEngine, SqliteWriter};
use crate::{Engine, ExternalWatch, GoesOn, Leadership, Lengths, Maintenance, TellExternal};
use openkv_core::model::{
    BUCKET_OPENING_ATTEMPTS, BUCKET_OPENING_MS_MAX, BUCKET_RETRY_MS, Backup, Capabilities, Error,
    Kind, Moment, RequestCounts, Result,
};

/// How to open a database in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOptions {
    /// Its URL.
    pub url: String,
    /// The folder of the local copy; `None`: one that is removed at the end.
    pub cache: Option<PathBuf>,
    /// Whether the process leads.
    pub lead: LeadMode,
    /// Whether reads of a process that does not lead may miss commits of the last second.
    pub eventual: bool,
    /// The URL of this process for clients, if it is a server.
    pub advertise: Option<String>,
}

/// An open database in an object store.
pub struct BucketEngine {
    local: Arc<Local>,
    lead: Arc<Lead>,
    thread: Option<JoinHandle<()>>,
}

/// The local copy. Its last owner gives up the folder.
struct Local {
    writer: Mutex<SqliteWriter>,
    engine: SqliteEngine,
    database: [u8; 16],
    cache: Cache,
}

impl BucketEngine {
    /// Opens a database, or creates it. With [`LeadMode::Wait`] it waits until the process leads. Between two requests it
    /// asks `goes_on`.
    ///
    /// # Errors
    /// `Closed` once `goes_on` says no; `Invalid` for a wrong URL and for a place with other objects; `Denied` without permission; `Unsupported` for a
    /// newer format and for a store without conditional writes; `Unavailable` if the store or the folder of the copy
    /// cannot be used, or there is no database and this process may not lead.
    pub fn open(options: &BucketOptions, goes_on: &dyn Fn() -> bool) -> Result<Self> {
        let longest = Duration::from_millis(BUCKET_OPENING_MS_MAX);
        let opened =
            attempt(longest, goes_on, |attempts| Self::open_once(options, attempts, goes_on));
        if goes_on() { opened } else { Err(Error::closed()) }
    }

    fn open_once(
        options: &BucketOptions,
        attempts: &mut Attempts,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let creates = options.lead != LeadMode::Never;
        let Location { target, timing } = location::open(&options.url, creates)?;
        let (local, lead, mut driver) = Self::begin(options, Objects { target }, timing)?;
        if options.lead == LeadMode::Wait {
            // What fails from now on is no part of the opening.
            *attempts = Attempts::default();
            driver.wait_for_lead(goes_on)?;
        }
        let thread = std::thread::Builder::new()
            .name("openkv-bucket".into())
            .spawn(move || driver.run())
            .map_err(|error| Error::unavailable(error.to_string()))?;
        Ok(Self { local, lead, thread: Some(thread) })
    }

    /// All of it but the thread of the driver.
    fn begin(
        options: &BucketOptions,
        objects: Objects,
        timing: Timing,
    ) -> Result<(Arc<Local>, Arc<Lead>, Driver)> {
        let creates = options.lead != LeadMode::Never;
        let id = random()?;
        let identity = objects.identify(if creates { Some(random()?) } else { None })?;
        let database = bytes_of(&identity.database)?;
        let cache = Cache::take(options.cache.as_deref(), &id)?;
        let lead = Arc::new(Lead::new(objects, id, options, timing));
        let (engine, place) = cache.prepare(&lead.objects, &database, || lead.now_ms())?;
        let mut writer = engine.writer()?;
        writer.publish_by(Box::new(LogPublisher::new(lead.clone(), database)))?;
        let writer = Mutex::new(writer);
        let local = Arc::new(Local { writer, engine, database, cache });
        lead.at_ms(place.at_ms);
        let mut driver = Driver::new(lead.clone(), local.clone(), identity, place);
        driver.begin()?;
        Ok((local, lead, driver))
    }
}

/// The attempts to open a database that are left, and the beginning of the first one.
struct Attempts {
    left: u32,
    began: Instant,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { left: BUCKET_OPENING_ATTEMPTS, began: Instant::now() }
    }
}

/// Repeats an opening whose request was lost, or that has read a snapshot while the log behind it was deleted; for as long
/// as there are attempts and `goes_on` says so, and no attempt begins after `longest`.
fn attempt<T>(
    longest: Duration,
    goes_on: &dyn Fn() -> bool,
    mut open: impl FnMut(&mut Attempts) -> Result<T>,
) -> Result<T> {
    let mut attempts = Attempts::default();
    loop {
        attempts.left -= 1;
        match open(&mut attempts) {
            Err(error)
                if attempts.left > 0
                    && goes_on()
                    && attempts.began.elapsed() < longest
                    && matches!(error.kind(), Kind::Unavailable | Kind::Closed) =>
            {
                tracing::debug!(%error, "opening a database in an object store");
                std::thread::sleep(Duration::from_millis(BUCKET_RETRY_MS));
            }
            opened => return opened,
        }
    }
}

impl Drop for BucketEngine {
    fn drop(&mut self) {
        self.lead.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(
                "the thread of a database in an object store ended by a panic; please report this"
            );
        }
    }
}

impl Maintenance for BucketEngine {
    fn backup(
        &self,
        to: &std::path::Path,
        step: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Backup> {
        self.lead.fresh(true)?;
        self.local.engine.backup(to, step)
    }

    fn reads_wait(&self) -> bool {
        true
    }

    fn lengths(&self) -> Option<Lengths> {
        self.local.engine.lengths()
    }

    fn requests(&self) -> Option<RequestCounts> {
        Some(self.lead.objects.target.requests())
    }

    fn leadership(&self) -> Leadership {
        self.lead.leadership()
    }

    fn check(&self, findings_max: usize, goes_on: &GoesOn) -> Result<Vec<String>> {
        self.local.engine.check(findings_max, goes_on)
    }
}

impl Engine for BucketEngine {
    type Reader = BucketReader;
    type Writer = BucketWriter;

    fn capabilities(&self) -> Capabilities {
        Capabilities::BUCKET
    }

    fn reader(&self) -> Result<BucketReader> {
        Ok(BucketReader::new(self.local.engine.reader()?, self.lead.clone(), self.local.clone()))
    }

    fn reader_at(&self, moment: Moment) -> Result<BucketReader> {
        let reader = self.local.engine.reader_at(moment)?;
        Ok(BucketReader::new(reader, self.lead.clone(), self.local.clone()))
    }

    fn writer(&self) -> Result<BucketWriter> {
        Ok(BucketWriter::new(self.local.clone(), self.lead.clone()))
    }

    fn watch_external(&self, tell: TellExternal) -> Result<Option<ExternalWatch>> {
        Ok(Some(self.lead.listen(tell)))
    }
}

/// The URL at which the server that leads a database of servers, or has led it last, gives access to it.
///
/// # Errors
/// `Unavailable` if no server has led it; errors of the store.
pub fn access_url(url: &str) -> Result<String> {
    let Location { target, .. } = location::open(url, false)?;
    let server = lease_at(&target, LEASE)?.and_then(|found| found.lease.url);
    let server = server.ok_or_else(|| {
        Error::unavailable(
            "no server has led the database: write to one of the servers of this place first",
        )
    })?;
    Ok(format!("{server}/{}", location::name_of(url)?))
}

/// 32 random hexadecimal digits.
fn random() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::unavailable(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn bytes_of(hex: &str) -> Result<[u8; 16]> {
    u128::from_str_radix(hex, 16)
        .map(u128::to_be_bytes)
        .map_err(|_| Error::internal("the id of a database was not checked"))
}
