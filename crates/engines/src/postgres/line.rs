//! One connection to a server. It sends statements in order without waiting in between.
//!
//! It makes progress only while its runtime runs: that of a [`super::session::Session`], or of a
//! leader.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use futures_util::future::maybe_done;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Statement};

use super::errors::Fault;
use super::url::Server;
use openkv_core::model::{BUSY_TIMEOUT_MS_DEFAULT, Error};

pub(super) const BEGIN: &str = "BEGIN";
pub(super) const COMMIT: &str = "COMMIT";

/// Applied to every connection. The planner may not choose a scan of a whole table: the statements
/// have keys, and a new database has no statistics. A commit must never be cancelled, because the
/// cancellation of a wait for a standby reports a commit that no standby has.
const SETTINGS: &str = "SET statement_timeout = 0; \
    SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_material = off; \
    SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning; SET jit = off";

/// The SQLSTATE of the warning that a commit's wait for the standby was cancelled.
const WAIT_CANCELLED: &str = "01000";

/// One statement and its arguments.
pub(super) type Call<'a> = (&'static str, Vec<&'a Value<'a>>);

/// An argument of a statement.
pub(super) type Value<'a> = dyn ToSql + Sync + 'a;

/// The rows of a statement.
#[derive(Default)]
pub(super) struct StatementRows {
    pub(super) rows: Vec<Row>,
}

/// The answers of statements, in their order.
pub(super) type Answers = Vec<Result<StatementRows, Fault>>;

/// A connection.
pub(super) struct Line {
    client: Arc<Client>,
    prepared: HashMap<&'static str, Statement>,
    /// Set when the server reports that a commit did not wait for its standby.
    unreplicated: Arc<AtomicBool>,
}

/// Statements with their arguments.
pub(super) trait Statements {
    /// They, in the order in which they are sent.
    fn calls(&self) -> Vec<Call<'_>>;
}

type Answering = Pin<Box<dyn Future<Output = Answers> + Send>>;

/// Statements that were sent. A task takes their answers from the connection as they arrive: the
/// connection reads nothing further while an answer is not taken, also no answer to another statement.
pub(super) struct Sent(JoinHandle<Answers>);

impl Sent {
    /// Waits for the answers; none after a panic. May be dropped and called again before it has returned.
    pub(super) async fn answers(&mut self) -> Answers {
        (&mut self.0).await.unwrap_or_default()
    }
}

/// Bounds the wait for a lock of another session in a transaction.
pub(super) const LOCK_WAIT: &str = "SELECT set_config('lock_timeout', $1, true)";
/// A wait that differs by less from the usual one is the usual one, which every session has set.
const USUAL_WAIT: Duration = Duration::from_millis(100);

/// The argument of [`LOCK_WAIT`] for a wait; `None` if that is the usual one.
pub(super) fn unusual_wait_ms(wait: Duration) -> Option<String> {
    let usual = Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
    (wait.abs_diff(usual) >= USUAL_WAIT).then(|| wait.as_millis().max(1).to_string())
}

impl Line {
    /// Connects.
    ///
    /// # Errors
    /// The driver's.
    pub(super) async fn connect(server: &Server) -> Result<Self, tokio_postgres::Error> {
        let unreplicated = Arc::new(AtomicBool::new(false));
        let client = match server.tls() {
            Some(tls) => {
                let (client, connection) = server.config().connect(tls).await?;
                tokio::spawn(drive(connection, unreplicated.clone()));
                client
            }
            None => {
                let (client, connection) = server.config().connect(tokio_postgres::NoTls).await?;
                tokio::spawn(drive(connection, unreplicated.clone()));
                client
            }
        };
        // A process that hangs inside a transaction loses it, so that others go on.
        let idle_ms = server.idle_ms();
        let settings = format!(
            "{SETTINGS}; SET lock_timeout = {BUSY_TIMEOUT_MS_DEFAULT}; \
             SET idle_in_transaction_session_timeout = {idle_ms}"
        );
        client.batch_execute(&settings).await?;
        Ok(Self { client: Arc::new(client), prepared: HashMap::new(), unreplicated })
    }

    /// Whether the connection is lost.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters that return nothing.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }

    /// Sends statements in this order without waiting in between, and answers each.
    pub(super) async fn run(&mut self, calls: &[Call<'_>]) -> Answers {
        self.unreplicated.store(false, Ordering::Relaxed);
        match self.prepare(calls).await {
            Ok(statements) => in_order(started(&self.client, &statements, calls)).await,
            Err(fault) => vec![Err(fault)],
        }
    }

    /// Sends statements, and returns without an answer. The first ones of their kind are prepared
    /// before.
    ///
    /// # Errors
    /// The statements could not be prepared; none was sent.
    pub(super) async fn send<S>(&mut self, batch: S) -> Result<Sent, Fault>
    where
        S: Statements + Send + Sync + 'static,
    {
        let statements = self.prepare(&batch.calls()).await?;
        let client = self.client.clone();
        let answers: Answering =
            Box::pin(async move { in_order(started(&client, &statements, &batch.calls())).await });
        let mut answers = Box::pin(maybe_done(answers));
        std::future::poll_fn(|context| {
            // The first poll sends them.
            let _answered = answers.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
        Ok(Sent(tokio::spawn(async move {
            answers.as_mut().await;
            answers.as_mut().take_output().unwrap_or_default()
        })))
    }

    /// Whether a commit did not wait for its standby, because a user cancelled the wait: of the last
    /// [`Line::run`], or since the last call.
    pub(super) fn take_unreplicated(&self) -> bool {
        self.unreplicated.swap(false, Ordering::Relaxed)
    }

    async fn prepare(&mut self, calls: &[Call<'_>]) -> Result<Vec<Statement>, Fault> {
        let mut statements = Vec::with_capacity(calls.len());
        for (sql, values) in calls {
            if !self.prepared.contains_key(sql) {
                self.prepared.insert(sql, prepare(&self.client, sql, values).await?);
            }
            statements.extend(self.prepared.get(sql).cloned());
        }
        Ok(statements)
    }
}

fn started<'a>(
    client: &'a Client,
    statements: &'a [Statement],
    calls: &'a [Call<'a>],
) -> Vec<Answered<'a>> {
    let both = statements.iter().zip(calls);
    both.map(|(statement, (_, values))| one(client, statement, values)).collect()
}

type Answered<'a> = Pin<Box<dyn Future<Output = Result<StatementRows, Fault>> + Send + 'a>>;

/// Prepares a statement, and makes sure that its arguments have the types of its parameters: a later
/// refusal by the driver would leave it out of its transaction, and the others would commit.
async fn prepare(client: &Client, sql: &str, values: &[&Value<'_>]) -> Result<Statement, Fault> {
    let statement = client.prepare(sql).await?;
    for (at, (kind, value)) in statement.params().iter().zip(values).enumerate() {
        if value.to_sql_checked(kind, &mut BytesMut::new()).is_err() {
            let why = format!(
                "the tables in the schema \"openkv\" have columns of other types: parameter {} of \
                 this statement is of the type {kind}: {sql}",
                at + 1
            );
            return Err(Fault::Tables(Error::corrupt(why)));
        }
    }
    Ok(statement)
}

fn one<'a>(
    client: &'a Client,
    statement: &'a Statement,
    values: &'a [&'a Value<'a>],
) -> Answered<'a> {
    Box::pin(async move {
        let mut stream = Box::pin(client.query_raw(statement, values.iter().copied()).await?);
        let mut rows = Vec::new();
        while let Some(row) = stream.try_next().await? {
            rows.push(row);
        }
        Ok(StatementRows { rows })
    })
}

/// Polls all futures, always in their order: the first poll of a statement sends it.
async fn in_order<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut waits = false;
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(answer) => *done = Some(answer),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// Moves bytes between the client and the socket until either ends.
async fn drive<S, T>(mut connection: Connection<S, T>, unreplicated: Arc<AtomicBool>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        match std::future::poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                tracing::warn!(code = notice.code().code(), "PostgreSQL: {}", notice.message());
                if notice.code().code() == WAIT_CANCELLED {
                    unreplicated.store(true, Ordering::Relaxed);
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
                return;
            }
            None => return,
        }
    }
}
