//! The connection of a transaction, shared by the tables that take part in it.

use std::cell::RefCell;
use std::rc::Rc;

use tokio_postgres::Row;

use super::errors::Fault;
use super::line::{Call, StatementRows};
use super::pool::Lent;
use openkv_core::model::{Error, Result};

/// A connection with an open transaction.
#[derive(Clone)]
pub(super) struct Link(Rc<RefCell<Lent>>);

impl Link {
    pub(super) fn new(lent: Lent) -> Self {
        Self(Rc::new(RefCell::new(lent)))
    }

    /// Runs one statement and waits for its rows.
    pub(super) fn query(&self, call: Call<'_>) -> Result<Vec<Row>> {
        self.0.borrow_mut().session.query(call)
    }

    /// Runs statements in one trip.
    ///
    /// # Errors
    /// The first error; the transaction is aborted then.
    pub(super) fn run(&self, calls: &[Call<'_>]) -> Result<Vec<StatementRows>> {
        let answers = self.0.borrow_mut().session.run(calls);
        answers.into_iter().map(|answer| answer.map_err(Fault::into_error)).collect()
    }

    /// The connection, once the tables are dropped.
    ///
    /// # Errors
    /// `Internal` while a table still has it.
    pub(super) fn into_lent(self) -> Result<Lent> {
        let lent = Rc::try_unwrap(self.0).map_err(|_| Error::internal("a table is in use"))?;
        Ok(lent.into_inner())
    }
}
