//! Processes on a real server, each with a thread, and a look at what the server has.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use openkv::engine::postgres::{Actor, PostgresEngine, Server};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use super::schedule::Said;
use crate::postgres_server::fresh_url;

/// Pause between two looks whether a statement waits.
const PAUSE: Duration = Duration::from_millis(1);
/// A statement without an answer hangs by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps the connections of this process open between two schedules.
static OPEN: Mutex<Option<PostgresEngine>> = Mutex::new(None);

/// Lets one schedule of this process run at a time, because all share the connections.
pub(super) fn one_at_a_time() -> impl Sized {
    let mut open = OPEN.lock();
    open.get_or_insert_with(|| {
        let (server, name) = Server::parse(&url()).expect("a URL");
        PostgresEngine::open_in_time_of_caller(&server, &name).expect("opened")
    });
    open
}

/// The name of this process on the server.
fn application() -> String {
    format!("compared-{}", std::process::id())
}

fn url() -> String {
    format!("{}&application_name={}", fresh_url(), application())
}

type Job = Box<dyn FnOnce(&mut Actor) -> Said + Send>;

/// A process: its statements run on a thread of their own, because they may wait.
pub(super) struct Process {
    /// The id of its lease.
    pub(super) id: Vec<u8>,
    jobs: Sender<Job>,
    said: Receiver<Said>,
}

impl Process {
    fn start(url: &str) -> Self {
        let (server, name) = Server::parse(url).expect("a URL");
        let (jobs, taken) = channel::<Job>();
        let (say, said) = channel();
        let (tell_id, id) = channel();
        std::thread::spawn(move || {
            let engine = PostgresEngine::open_in_time_of_caller(&server, &name).expect("opened");
            let mut actor = Actor::of(&engine);
            tell_id.send(actor.id().expect("an id")).expect("heard");
            for job in taken {
                // Nobody listens after a schedule that has failed.
                let _heard = say.send(job(&mut actor));
            }
        });
        Self { id: id.recv().expect("opened"), jobs, said }
    }

    /// Begins a statement.
    pub(super) fn begin(&self, job: impl FnOnce(&mut Actor) -> Said + Send + 'static) {
        self.jobs.send(Box::new(job)).expect("the process runs");
    }

    /// What the statement has answered.
    pub(super) fn said(&self) -> Said {
        self.said.recv_timeout(PATIENCE).expect("an answer")
    }
}

/// A database on the server.
pub(super) struct Real {
    pub(super) processes: Vec<Process>,
    name: Vec<u8>,
    client: Client,
    runtime: Runtime,
}

/// The tables of the database, as far as the model has them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    /// Epoch, version and the number of the last message.
    pub(super) row: (i64, i64, i64),
    pub(super) leader: Option<usize>,
    /// Where each epoch began.
    pub(super) epochs: BTreeMap<i64, i64>,
    /// Version, value and expiry of each key.
    pub(super) entries: BTreeMap<Vec<u8>, (i64, Vec<u8>, Option<i64>)>,
    /// Version, the version before, epoch, time and name of each batch.
    pub(super) log: Vec<(i64, i64, i64, i64, Vec<u8>)>,
}

impl Real {
    /// A new database with so many processes.
    pub(super) fn start(count: usize) -> Self {
        let url = url();
        let start = |at| Process::start(&format!("{url}&lead=process-{at}"));
        let (_, name) = Server::parse(&url).expect("a URL");
        let processes = (0..count).map(start).collect();
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let address = url.split('?').next().expect("a URL");
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
            tokio::spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        });
        let (client, name) = (client.expect("connected"), name.into_bytes());
        Self { processes, name, client, runtime }
    }

    /// Waits until a statement of this process waits for a lock; only one can at a time.
    ///
    /// # Errors
    /// What it has answered instead.
    pub(super) fn waits(&self, who: usize) -> Result<(), Said> {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND \
                   wait_event_type = 'Lock'";
        let application = application();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.processes[who].said.recv_timeout(PAUSE) {
                Ok(said) => return Err(said),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the process has ended"),
            }
            let waiting = self.runtime.block_on(self.client.query(sql, &[&application]));
            if !waiting.expect("rows").is_empty() {
                return Ok(());
            }
        }
        panic!("the statement neither waits nor answers");
    }

    /// The lease of a process ends, or lasts longer than the test.
    pub(super) fn set_lease(&self, who: usize, lives: bool) {
        let sql = "UPDATE openkv.servers SET lease_until = $2::text::timestamptz WHERE id = $1";
        let until = if lives { "infinity" } else { "-infinity" };
        let id = &self.processes[who].id;
        self.runtime.block_on(self.client.execute(sql, &[id, &until])).expect(sql);
    }

    pub(super) fn contents(&self) -> Contents {
        self.runtime.block_on(self.read()).expect("read")
    }

    async fn read(&self) -> Result<Contents, tokio_postgres::Error> {
        let Self { client, name, .. } = self;
        let sql = "SELECT id, epoch, version, last_message, leader FROM openkv.databases \
                   WHERE name = $1";
        let row = client.query_one(sql, &[name]).await?;
        let db: i64 = row.get(0);
        let leader: Option<Vec<u8>> = row.get(4);
        let index = |id| self.processes.iter().position(|process| process.id == id);
        let mut contents = Contents {
            row: (row.get(1), row.get(2), row.get(3)),
            leader: leader.map(|id| index(id).expect("a process")),
            ..Contents::default()
        };
        let sql = "SELECT epoch, start FROM openkv.epochs WHERE db = $1";
        for row in client.query(sql, &[&db]).await? {
            contents.epochs.insert(row.get(0), row.get(1));
        }
        let sql = "SELECT k, version, v, expires_ms FROM openkv.entries WHERE db = $1";
        for row in client.query(sql, &[&db]).await? {
            contents.entries.insert(row.get(0), (row.get(1), row.get(2), row.get(3)));
        }
        let sql = "SELECT version, previous, epoch, at_ms, batch FROM openkv.log WHERE db = $1 \
                   ORDER BY version";
        for row in client.query(sql, &[&db]).await? {
            contents.log.push((row.get(0), row.get(1), row.get(2), row.get(3), row.get(4)));
        }
        Ok(contents)
    }
}
