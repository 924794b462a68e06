//! A database, here or elsewhere: the closed choice that the binding knows.
//!
//! Invariant: nothing is decided here, and the way to a database of this process costs nothing more
//! for there being another: reads inside the turn go through its own lane.

use std::sync::Arc;

use crate::engine::{GoesOn, Reader, Snapshot};
use crate::model::{Error, Kind, Result};
use crate::remote;
use crate::store::Store;

/// An open database.
#[derive(Clone)]
pub enum Database {
    /// In this process: a file, or memory.
    Store(Arc<Store>),
    /// Behind a URL.
    Remote(Arc<remote::Client>),
}

impl Database {
    /// What reads on the caller's own thread. It never waits, so a database elsewhere always says
    /// that it would have to.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn lane(&self) -> Result<Box<dyn Reader>> {
        match self {
            Self::Store(store) => store.lane(),
            Self::Remote(_) => Ok(Box::new(Elsewhere)),
        }
    }

    /// The store, for what needs one.
    ///
    /// # Errors
    /// `Unsupported`, naming what a database elsewhere does not offer.
    pub fn store(&self, what: &str) -> Result<&Arc<Store>> {
        match self {
            Self::Store(store) => Ok(store),
            Self::Remote(client) => Err(client.lacks(what)),
        }
    }
}

/// Nothing is ever here already.
struct Elsewhere;

impl Reader for Elsewhere {
    fn read(
        &mut self,
        _now_ms: i64,
        _job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        Err(Error::new(Kind::Unavailable, "the database is elsewhere"))
    }

    fn read_while(
        &mut self,
        now_ms: i64,
        _goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.read(now_ms, job)
    }

    fn release(&mut self) {}
}
