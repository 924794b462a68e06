//! One connection to a server, driven by the thread that uses it.
//!
//! The connection makes progress only while a call waits for it. So a call costs no change of threads,
//! and an unused session costs nothing.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Statement};

use super::errors::{Fault, failure, not_connected};
use super::url::Server;
use crate::model::{BUSY_TIMEOUT_MS_DEFAULT, Error, Kind, Result};

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
pub(super) struct Answer {
    pub(super) rows: Vec<Row>,
}

/// A connection.
pub(super) struct Session {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
    /// Set when the server reports that a commit did not wait for its standby.
    unreplicated: Arc<AtomicBool>,
    // Last: the client's tasks run on it.
    runtime: Runtime,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// `Unavailable` if no host accepts; `Denied` for a wrong user or password.
    pub(super) fn connect(server: &Server) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        let unreplicated = Arc::new(AtomicBool::new(false));
        let client = runtime.block_on(async {
            let client = match server.tls() {
                Some(tls) => {
                    let (client, connection) = server.config().connect(tls).await?;
                    tokio::spawn(drive(connection, unreplicated.clone()));
                    client
                }
                None => {
                    let (client, connection) =
                        server.config().connect(tokio_postgres::NoTls).await?;
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
            Ok(client)
        });
        let client = client.map_err(|error| not_connected(&error, server.tls().is_some()))?;
        Ok(Self { client, prepared: HashMap::new(), unreplicated, runtime })
    }

    /// Whether the connection is lost.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// The error of the server.
    pub(super) fn query(&mut self, call: Call<'_>) -> Result<Vec<Row>> {
        match self.run(&[call]).pop() {
            Some(answer) => answer.map(|answer| answer.rows).map_err(Fault::into_error),
            None => Err(Error::internal("a statement without an answer")),
        }
    }

    /// Runs statements without parameters that return nothing.
    ///
    /// # Errors
    /// The error of the server.
    pub(super) fn execute(&mut self, sql: &str) -> Result<()> {
        let done = self.runtime.block_on(self.client.batch_execute(sql));
        done.map_err(|error| failure(&error))
    }

    /// Sends statements in this order without waiting in between, and answers each.
    pub(super) fn run(&mut self, calls: &[Call<'_>]) -> Vec<std::result::Result<Answer, Fault>> {
        self.unreplicated.store(false, Ordering::Relaxed);
        let Self { client, prepared, runtime, .. } = self;
        runtime.block_on(async {
            for (sql, values) in calls {
                if !prepared.contains_key(sql) {
                    match prepare(client, sql, values).await {
                        Ok(statement) => drop(prepared.insert(sql, statement)),
                        Err(fault) => return vec![Err(fault)],
                    }
                }
            }
            let futures = calls.iter().filter_map(|(sql, values)| {
                let statement = prepared.get(sql)?;
                Some(one(client, statement, values))
            });
            in_order(futures.collect()).await
        })
    }

    /// Whether a commit of the last [`Session::run`] did not wait for its standby, because somebody
    /// cancelled the wait.
    pub(super) fn was_unreplicated(&self) -> bool {
        self.unreplicated.load(Ordering::Relaxed)
    }
}

type Answered<'a> = Pin<Box<dyn Future<Output = std::result::Result<Answer, Fault>> + 'a>>;

/// Prepares a statement, and makes sure that its arguments have the types of its parameters: a later
/// refusal by the driver would leave it out of its transaction, and the others would commit.
async fn prepare(
    client: &Client,
    sql: &str,
    values: &[&Value<'_>],
) -> std::result::Result<Statement, Fault> {
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
        Ok(Answer { rows })
    })
}

/// Polls all futures, always in their order: the first poll of a statement sends it.
async fn in_order<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
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
