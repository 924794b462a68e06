//! The transaction of a read: one snapshot of the server, until the read ends.

use std::time::Instant;

use tokio_postgres::Row;

use super::Shared;
use super::cells::Cells;
use super::errors::Fault;
use super::line::{Call, LOCK_WAIT, unusual_wait_ms};
use super::link::Link;
use openkv_core::model::{Error, Result, Stats, Versionstamp};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const ROLLBACK: &str = "ROLLBACK";

/// A read holds no lock, so it may pause for longer than a writer.
const PAUSES: &str = "SET LOCAL idle_in_transaction_session_timeout = 60000";

/// The bytes of all tables: the server does not count by database.
const SIZE: &str = "\
SELECT sum(pg_total_relation_size(c.oid))::int8, current_setting('block_size')::int8 \
FROM pg_class AS c WHERE c.relnamespace = 'openkv'::regnamespace AND c.relkind = 'r'";

/// Begins the transaction of a read with its first statement, once more if the connection turns out to be lost.
/// Returns the rows of that.
pub(super) fn begin_read(shared: &Shared, first: Call<'_>) -> Result<(Link, Vec<Row>)> {
    let deadline = Instant::now() + shared.busy;
    loop {
        let mut lent = shared.pool.lend(deadline)?;
        let wait_ms = unusual_wait_ms(shared.busy);
        let mut calls: Vec<Call<'_>> = vec![(BEGIN, vec![]), (PAUSES, vec![])];
        let first = (first.0, first.1.clone());
        let answers = match &wait_ms {
            None => {
                calls.push(first);
                lent.session.run(&calls)
            }
            Some(wait_ms) => {
                calls.push((LOCK_WAIT, vec![wait_ms]));
                let mut answers = lent.session.run(&calls);
                // To prepare a statement waits for locks too.
                answers.extend(lent.session.run(&[first]));
                answers
            }
        };
        if lent.session.is_closed() && Instant::now() < deadline {
            continue;
        }
        let link = Link::new(lent);
        let mut rows = Vec::new();
        for answer in answers {
            rows = answer.map_err(Fault::into_error)?.rows;
        }
        return Ok((link, rows));
    }
}

/// Reads with one statement.
pub(super) fn read_once(shared: &Shared, call: Call<'_>) -> Result<Vec<Row>> {
    if unusual_wait_ms(shared.busy).is_none() {
        return shared.query(call);
    }
    // Sessions wait for locks as long as most handles do: only a transaction changes that.
    let (link, rows) = begin_read(shared, call)?;
    end_read(link);
    Ok(rows)
}

/// Ends the transaction of a read.
pub(super) fn end_read(link: Link) {
    if let Ok(mut lent) = link.into_lent()
        && lent.session.execute(ROLLBACK).is_ok()
    {
        lent.give_back();
    }
}

/// The size of a database with this last commit.
pub(super) fn size(link: &Link, stamp: Versionstamp) -> Result<Stats> {
    let rows = link.query((SIZE, vec![]))?;
    let number = |at: usize| {
        let row = rows.first().map(|row| Cells::of("settings", row).get::<Option<i64>>(at));
        Ok::<_, Error>(row.transpose()?.flatten().unwrap_or(0).cast_unsigned())
    };
    let (database_bytes, page_bytes) = (number(0)?, number(1)?);
    Ok(Stats { database_bytes, page_bytes, stamp, ..Stats::default() })
}
