//! The writer of a database.

use std::time::{Duration, Instant};

use super::no_messages::no_queues;
use super::{
    DeadLettersChanged, GoesOn, Indexer, NextDeadlines, NextEntries, Progress, Report, Ticket,
    Wake, Work,
};
use openkv_core::model::{
    Checkpoint, DeadLetterChange, Error, Followed, LogSegment, LogSettings, LoggedMessage,
    MessageDeletion, Origin, QueueChange, QueueChanged, Replacement, Result, Vacuumed,
};

/// Writes to a database.
///
/// Several batches can be under way at once. Then the store calls only [`Writer::begin`],
/// [`Writer::has_room`], [`Writer::lingers`] and [`Writer::ended`], and each new batch has writes and nothing else. All
/// other work, and all other methods, have the writer to themselves: the store waits for all
/// outcomes before. Methods that change the database fail as [`Writer::begin`] does, the others with
/// errors of the medium, and with those that they name.
pub trait Writer: Send + Indexer {
    /// Begins to execute work in one transaction. `deadline` limits the wait for other processes.
    /// The transaction comes after all those that are under way: its writes are decided over their
    /// effects.
    ///
    /// # Errors
    /// `Unavailable` if the deadline has passed or the disk is full, `Denied`, `Corrupt`: the
    /// transaction changed nothing. `OutcomeUnknown` if it failed while it became durable.
    fn begin(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Progress>;

    /// Begins the transaction for the next call of [`Writer::begin`], on a thread that must not block for
    /// long; its work then has writes and nothing else. `durable`: as in that work. `false` if this would
    /// wait, or if the commit would come with upkeep of the medium.
    fn begin_at_once(&mut self, _durable: bool) -> bool {
        false
    }

    /// Gives back what it can load again for the next work, because none came for long.
    fn rest(&mut self) {}

    /// Prepares for its end: the next one is made by [`Engine::writer`](super::Engine::writer) when there is work,
    /// and goes on with the same database. `false` if this one must stay.
    fn park(&mut self) -> bool {
        false
    }

    /// Whether a further batch may begin. `true` while none is under way.
    fn has_room(&self) -> bool {
        true
    }

    /// How long a batch of so many writes, the first of which came at `since`, still waits for other writes to join it.
    fn lingers(&self, _since: Instant, _writes: usize) -> Duration {
        Duration::ZERO
    }

    /// The outcome of the oldest batch under way, once it is known, with the errors of
    /// [`Writer::begin`]. A failed batch does not fail those behind it, unless the engine says so in
    /// their own outcomes.
    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        None
    }

    /// Sets what to call whenever [`Writer::ended`] has a new outcome, or [`Writer::has_room`] has
    /// become `true`. Called before the first batch begins. An engine whose batches are never under
    /// way ignores it.
    fn on_ended(&mut self, _wake: Wake) {}

    /// Carries out work and waits for its outcome: for a caller without a store. Nothing may be
    /// under way. Replaces what [`Writer::on_ended`] has set.
    fn apply(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Report> {
        let caller = std::thread::current();
        self.on_ended(Box::new(move || caller.unpark()));
        match self.begin(work, now_ms, deadline)? {
            Progress::Done(report) => Ok(report),
            Progress::UnderWay(_) => loop {
                match self.ended() {
                    Some((_, outcome)) => return outcome,
                    None => std::thread::park(),
                }
            },
        }
    }

    /// Turns on the log for feeds, with the bounds for them, unless it is on: every process logs all later
    /// commits. Returns the last commit. `origin` as in [`Writer::set_log`]; `deadline` limits the wait for
    /// other processes.
    fn log_changes(&mut self, _origin: Origin, _now_ms: i64, _deadline: Instant) -> Result<u64> {
        Err(Error::unsupported("change feeds: this database logs no changes"))
    }

    /// Changes the settings of the replication log and of history, for every process, in one
    /// transaction. Returns the last commit. A database without a name gets that of `origin`; one that has
    /// no number for its copy gets that one too.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` if the engine has no replication log.
    fn set_log(
        &mut self,
        _settings: &LogSettings,
        _origin: Origin,
        _now_ms: i64,
        _deadline: Instant,
    ) -> Result<u64> {
        Err(Error::unsupported("the options log and history: this database has no replication log"))
    }

    /// Repeats the changes of a segment of another copy's log, in one transaction: the commits have
    /// the same versions. Leaves out what is not after the last commit.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Corrupt` for a damaged segment.
    fn replay(&mut self, _segment: LogSegment<'_>, _deadline: Instant) -> Result<Report> {
        Err(Error::unsupported("this database repeats no replication log"))
    }

    /// The database that this one follows; `None` for one that follows none.
    ///
    /// # Errors
    /// Errors of the medium; `Corrupt` if something else has written to the copy.
    fn followed(&mut self) -> Result<Option<Followed>> {
        Ok(None)
    }

    /// Repeats segments of the followed log as [`Writer::replay`] does, and stores the new position, in
    /// one transaction. It need not be synced: what is lost is fetched again. The version of `after` is
    /// not stored, but the last one that the database has.
    ///
    /// # Errors
    /// As [`Writer::replay`]; `Unavailable` if the copy follows something else than the origin of
    /// `after`; those of [`Writer::followed`].
    fn follow(
        &mut self,
        _after: &Followed,
        _segments: &[LogSegment<'_>],
        _deadline: Instant,
    ) -> Result<Report> {
        Err(Error::unsupported("this database follows none"))
    }

    /// Replaces all entries by those of `entries`, in one transaction, so that readers have all old
    /// entries before it and all new ones after it. An error of `entries` rolls back. The logs begin
    /// anew.
    ///
    /// # Errors
    /// As [`Writer::begin`]; those of `entries`; `Unavailable` if the copy does not follow what
    /// `replacement` says.
    fn replace_all(
        &mut self,
        _replacement: &Replacement,
        _entries: NextEntries<'_>,
        _deadline: Instant,
    ) -> Result<Report> {
        Err(Error::unsupported("this database follows none"))
    }

    /// Adds messages to a copy whose entries were replaced.
    fn add_messages(&mut self, _messages: &[LoggedMessage], _deadline: Instant) -> Result<()> {
        Err(Error::unsupported("this database follows none"))
    }

    /// Replaces the kept counters by what `merge` makes of them, in one transaction. Only a file keeps
    /// counters.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` if the engine keeps none.
    fn keep_metrics(
        &mut self,
        _merge: &mut dyn FnMut(Option<&str>) -> String,
        _deadline: Instant,
    ) -> Result<()> {
        Err(Error::unsupported("only a database in a file keeps its metrics"))
    }

    /// When the next timed work is due.
    fn next_deadlines(&mut self) -> Result<NextDeadlines>;

    /// The earliest time at which a message of a queue can be claimed, in ms since the epoch: its
    /// due time, or the expiry of its lock.
    fn next_message_ms(&mut self, _queue: &str) -> Result<Option<i64>> {
        Ok(None)
    }

    /// The number of messages of a queue that wait or are locked.
    fn queue_depth(&mut self, _queue: &str) -> Result<u64> {
        Ok(0)
    }

    /// Changes dead letters of a queue, in one transaction.
    fn change_dead_letters(
        &mut self,
        _queue: &str,
        _change: &DeadLetterChange,
        _now_ms: i64,
        _deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        Err(no_queues())
    }

    /// Deletes a message of a queue that waits, or whose lock has expired. It leaves no dead letter
    /// and no value under its `keysIfUndelivered`.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` for a queue that Deno keeps in tables of its own.
    fn delete_message(
        &mut self,
        _queue: &str,
        _id: i64,
        _now_ms: i64,
        _deadline: Instant,
    ) -> Result<MessageDeletion> {
        Err(no_queues())
    }

    /// Lets locks, retries and delays of a queue that end later than their own length from now count by that length:
    /// the clock was set back since. A date at which a message is due stays.
    fn bound_times(&mut self, _queue: &str, _now_ms: i64, _deadline: Instant) -> Result<()> {
        Ok(())
    }

    /// Changes a queue, in one transaction. A change counts as a commit, so that other processes notice it.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` for a queue that Deno keeps in tables of its own.
    fn change_queue(
        &mut self,
        _queue: &str,
        _change: QueueChange,
        _now_ms: i64,
        _deadline: Instant,
    ) -> Result<QueueChanged> {
        Err(no_queues())
    }

    /// Moves commits from the log into the file, as far as readers permit.
    fn checkpoint(&mut self) -> Result<Checkpoint> {
        Ok(Checkpoint::default())
    }

    /// Moves all commits from the log into the file and empties the log, unless readers or other processes
    /// prevent it. Waits for them for a short time.
    fn empty_log(&mut self) -> Result<()> {
        Ok(())
    }

    /// Gives free pages back: so many that other writes do not wait long, or, where the medium has no such steps, all of
    /// them. `deadline` limits the wait for other processes.
    ///
    /// # Errors
    /// `Closed` if `goes_on` returns `false`, and nothing is given back; errors of the medium.
    fn vacuum(&mut self, _deadline: Instant, _goes_on: &GoesOn) -> Result<Vacuumed> {
        Ok(Vacuumed::default())
    }
}
