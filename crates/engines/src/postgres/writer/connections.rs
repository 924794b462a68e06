//! The two connections of a leader, each in a place of the pool: one for commits, one for reads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::postgres::Shared;
use crate::postgres::errors::not_connected;
use crate::postgres::line::Line;
use crate::postgres::pool::Place;
use openkv_core::model::{Error, POSTGRES_LEADER_TURN_MS, Result};

/// How long a busy leader keeps its connections while others wait for one.
const TURN: Duration = Duration::from_millis(POSTGRES_LEADER_TURN_MS);

/// A connection of its own, one of the pool's number.
struct Connection {
    line: Line,
    _place: Place,
}

/// Why there is no connection for commits.
pub(super) enum Unconnected {
    /// The process has as many as it may have, and all are in use.
    NoPlace(Error),
    NotConnected(Error),
}

impl From<Unconnected> for Error {
    fn from(why: Unconnected) -> Self {
        match why {
            Unconnected::NoPlace(error) | Unconnected::NotConnected(error) => error,
        }
    }
}

/// Opens each connection when it is needed.
pub(super) struct Connections {
    shared: Arc<Shared>,
    commits: Option<Connection>,
    reads: Option<Connection>,
    /// When it took the first of the places that it has.
    since: Instant,
}

impl Connections {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, commits: None, reads: None, since: Instant::now() }
    }

    /// Whether one of them has a place of the pool.
    pub(super) fn has_place(&self) -> bool {
        self.commits.is_some() || self.reads.is_some()
    }

    /// Whether it has had its places for as long as a leader may keep them from others.
    pub(super) fn have_had_a_turn(&self) -> bool {
        self.has_place() && self.since.elapsed() >= TURN
    }

    /// Whether the connection for commits is lost, or not open.
    pub(super) fn has_lost_commits(&self) -> bool {
        self.commits.as_ref().is_none_or(|commits| commits.line.is_closed())
    }

    /// As [`Line::take_unreplicated`], of the connection for commits.
    pub(super) fn take_unreplicated(&self) -> bool {
        self.commits.as_ref().is_some_and(|commits| commits.line.take_unreplicated())
    }

    /// Closes both, and frees their places.
    pub(super) fn close(&mut self) {
        (self.commits, self.reads) = (None, None);
    }

    /// The connection for commits. Nothing is held while it waits for a place.
    ///
    /// # Errors
    /// `NoPlace` after the busy timeout; `NotConnected` if the server does not accept.
    pub(super) async fn line_for_commits(&mut self) -> std::result::Result<&mut Line, Unconnected> {
        let open = self.commits.take().filter(|commits| !commits.line.is_closed());
        let open = match open {
            Some(open) => open,
            None => {
                let place = match self.free_place() {
                    Some(place) => place,
                    None => self.wait_for_place().await.map_err(Unconnected::NoPlace)?,
                };
                // The wait for the place is not part of the turn.
                self.since = Instant::now();
                self.connect(place).await.map_err(Unconnected::NotConnected)?
            }
        };
        Ok(&mut self.commits.insert(open).line)
    }

    /// The connection for reads, or the one for commits if no other is free: there a read waits for
    /// the batches before it.
    ///
    /// # Errors
    /// `Unavailable` without a place, or if the server does not accept; `Denied`.
    pub(super) async fn line_for_reads(&mut self) -> Result<&mut Line> {
        let open = self.reads.take().filter(|reads| !reads.line.is_closed());
        let open = match open {
            Some(open) => open,
            None => match self.free_place() {
                Some(place) => self.connect(place).await?,
                None => return Ok(self.line_for_commits().await?),
            },
        };
        Ok(&mut self.reads.insert(open).line)
    }

    async fn wait_for_place(&mut self) -> Result<Place> {
        self.reads = None;
        let (pool, deadline) = (self.shared.pool.clone(), Instant::now() + self.shared.busy);
        let place = tokio::task::spawn_blocking(move || pool.reserve(deadline)).await;
        place.map_err(|error| Error::internal(error.to_string()))?
    }

    /// A free place of the pool.
    fn free_place(&self) -> Option<Place> {
        let (place, idle) = self.shared.pool.try_reserve()?;
        if let Some(idle) = idle {
            // It has a runtime of its own, which cannot end on a thread that drives another.
            drop(tokio::task::spawn_blocking(move || drop(idle)));
        }
        Some(place)
    }

    /// Connects, in a place of the pool.
    async fn connect(&self, place: Place) -> Result<Connection> {
        let server = self.shared.pool.server();
        let line = Line::connect(server).await;
        let line = line.map_err(|error| not_connected(&error, server))?;
        Ok(Connection { line, _place: place })
    }
}
