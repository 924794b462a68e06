//! Entries and messages in PostgreSQL, for any number of processes on any number of machines.
//!
//! Duty: execute the batches of this process as transactions that are ordered by the lock of the
//! database's row, and answer reads from one snapshot of the server.
//! Invariant: the commit counter rises by the lock's order, so a version that is visible has all
//! versions below it visible. A statement that has a reader or a writer waiting is never cancelled.
//! Never: a decision about a write; a lock that outlives its transaction.

mod cells;
mod cluster;
mod commit_statements;
mod database;
mod direct;
mod entries;
mod errors;
mod history;
mod indexes;
mod kept_messages;
mod lead;
mod lease;
mod line;
mod link;
mod logged_keys;
mod logged_writes;
mod message_changes;
mod messages;
mod outcome;
mod pages;
mod pool;
mod pooler;
mod prefetch;
mod queues;
mod read_transaction;
mod reader;
mod replication;
mod schema;
mod session;
mod single_statement;
mod snapshot;
mod tail;
mod time;
mod tls;
mod transaction;
mod url;
mod url_parts;
mod value_entries;
mod value_index;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Engine, ExternalWatch, GoesOn, Maintenance, TellExternal};
pub use cluster::PostgresCluster;
use lease::Lease;
use line::Call;
use openkv_core::model::{
    Backup, Capabilities, Capability, Env, Error, Kind, LeaderFigures, Moment,
    POSTGRES_LOG_TRIM_BATCHES, Result, Sharing,
};
use pool::Pool;
pub use reader::PostgresReader;
pub use schema::script;
use time::Time;
pub use url::Server;
use value_index::KnownIndexes;
pub use writer::PostgresWriter;
#[cfg(feature = "defects")]
pub use writer::{Actor, Ending};

/// A database on a PostgreSQL server.
pub struct PostgresEngine {
    shared: Arc<Shared>,
    readonly: bool,
}

/// The state that the readers and the writer of a database share.
pub(super) struct Shared {
    pool: Arc<Pool>,
    db: i64,
    time: Time,
    /// That of a process which leads databases.
    lease: Option<Arc<Lease>>,
    /// The last commit that this process has seen or made.
    seen: AtomicU64,
    /// Whether a poll looks for commits of other processes.
    polled: AtomicBool,
    /// The figures of this process as the leader.
    figures: Mutex<Option<LeaderFigures>>,
    /// The logs that this process writes as the leader, as its last lead has found them.
    logs: LeaderLogs,
    /// The value indexes, as far as this process knows them.
    value_indexes: Arc<KnownIndexes>,
    /// Names of batches: a random number, and a counter.
    batches: (u64, AtomicU64),
    /// Longest wait for a connection of a read.
    busy: Duration,
}

/// The logs that a leader writes.
#[derive(Default)]
struct LeaderLogs {
    /// Segments.
    replicates: AtomicBool,
    /// Whether replaced entries are kept.
    remembers: AtomicBool,
    /// Messages in segments.
    messages: AtomicBool,
}

impl PostgresEngine {
    /// Opens a database, and creates it and its tables if they are not there.
    ///
    /// # Errors
    /// `Unavailable` if the server does not answer; `Denied` for a wrong password, a standby, or
    /// without the right to create tables; `Unsupported` for another product or version; `Corrupt`
    /// for tables of another program.
    pub fn open(server: &Server, name: &str, readonly: bool, busy: Duration) -> Result<Self> {
        Self::open_with(server, name, readonly, busy, Time::of_server())
    }

    /// As [`PostgresEngine::open`], with the time of the caller instead of the server's.
    pub fn open_in_time_of_caller(server: &Server, name: &str) -> Result<Self> {
        let server = server.clone().idling(60_000);
        Self::open_with(&server, name, false, Duration::from_secs(5), Time::of_caller())
    }

    fn open_with(
        server: &Server,
        name: &str,
        readonly: bool,
        busy: Duration,
        time: Time,
    ) -> Result<Self> {
        let pool = Pool::of(server);
        pool.check()?;
        let mut lent = pool.lend(Instant::now() + busy)?;
        schema::prepare(&mut lent.session, readonly)?;
        let db = schema::database(&mut lent.session, name, readonly)?;
        lent.give_back();
        let base = getrandom::u64();
        let base = base.map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        let (seen, batches) = (AtomicU64::new(0), (base, AtomicU64::new(0)));
        let (polled, figures) = (AtomicBool::new(false), Mutex::new(None));
        let logs = LeaderLogs::default();
        let leads_as = server.leads_as().filter(|_| !readonly);
        let lease = leads_as.map(|name| Lease::of(&pool, name)).transpose()?;
        let shared = Arc::new(Shared {
            pool,
            db,
            time,
            lease,
            seen,
            polled,
            figures,
            logs,
            value_indexes: Arc::default(),
            batches,
            busy,
        });
        Ok(Self { shared, readonly })
    }

    /// The time of the server, and the random numbers of `inner`.
    #[must_use]
    pub fn env(&self, inner: Arc<dyn Env>) -> Arc<dyn Env> {
        time::env(self.shared.clone(), inner)
    }
}

impl Shared {
    /// Runs one statement outside of a transaction; again on another connection if one is lost. So it
    /// may only read.
    fn query(&self, call: Call<'_>) -> Result<Vec<Row>> {
        let deadline = Instant::now() + self.busy;
        loop {
            let mut lent = self.pool.lend(deadline)?;
            let answer = lent.session.query((call.0, call.1.clone()));
            if answer.is_err() && lent.session.is_closed() && Instant::now() < deadline {
                continue;
            }
            lent.give_back();
            return answer;
        }
    }

    /// The name of a batch, and whether its transaction trims the log.
    fn new_batch(&self) -> (Uuid, bool) {
        let number = self.batches.1.fetch_add(1, Ordering::Relaxed);
        let trims = number % POSTGRES_LOG_TRIM_BATCHES == POSTGRES_LOG_TRIM_BATCHES - 1;
        (Uuid::from_u64_pair(self.batches.0, number), trims)
    }

    /// The part of this process in the database, whose last commit is `version`.
    fn sharing(&self, version: u64) -> Sharing {
        let lag = version.saturating_sub(self.seen.load(Ordering::Relaxed));
        let lag_commits = self.polled.load(Ordering::Relaxed).then_some(lag);
        Sharing { lag_commits, leader: *self.figures.lock() }
    }

    /// Notes a commit of this process. One that follows a commit which this process has not seen
    /// leaves the gap for the poll to find.
    fn committed(&self, before: u64, after: u64) {
        let _gap = self.seen.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Engine for PostgresEngine {
    type Reader = PostgresReader;
    type Writer = PostgresWriter;

    fn capabilities(&self) -> Capabilities {
        Capabilities::POSTGRES
    }

    fn reader(&self) -> Result<PostgresReader> {
        Ok(PostgresReader::new(self.shared.clone()))
    }

    fn reader_at(&self, moment: Moment) -> Result<PostgresReader> {
        Ok(PostgresReader::at(self.shared.clone(), moment))
    }

    fn writer(&self) -> Result<PostgresWriter> {
        if self.readonly {
            return Err(Error::new(Kind::Denied, "the database was opened with readonly: true"));
        }
        PostgresWriter::new(self.shared.clone())
    }

    fn watch_external(&self, tell: TellExternal) -> Result<Option<ExternalWatch>> {
        tail::watch(&self.shared, tell).map(Some)
    }
}

impl Maintenance for PostgresEngine {
    fn backup(&self, _to: &Path, _step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        Err(Capabilities::POSTGRES.refusal(Capability::Backup))
    }

    fn check(&self, _findings_max: usize, _goes_on: &GoesOn) -> Result<Vec<String>> {
        Err(Capabilities::POSTGRES.refusal(Capability::IntegrityCheck))
    }
}
