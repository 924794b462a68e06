//! The log of changes in a file, for the writer and for readers.

use rusqlite::Connection;

use super::layout::SPILLED;
use super::statement::{Run, Statement};
use super::values::{encoding, shown};
use crate::feed::{Amount, Extent, FeedLog, FeedState, Shelf, trim};
use openkv_core::model::{
    Change, ChangeKind, Encoding, FEED_TRIM_COMMITS, FEED_VALUE_BYTES_MAX, Logged, Result,
};

/// The encoding id of a removal.
const REMOVED: i64 = 0;

/// The encoding id of a change of only the expiry. A version of format 2 that has the file open takes
/// it for a value that is neither here nor in its entry, and leaves it out.
const EXPIRY_SET: i64 = SPILLED;

/// The log in the writer's transaction.
pub(super) struct FeedWriter {
    state: Statement,
    start: Statement,
    raise: Statement,
    keep: Statement,
    insert: Statement,
    first: Statement,
    sum_sets: Statement,
    sum_removals: Statement,
    drop_sets: Statement,
    drop_removals: Statement,
    drop_all: Statement,
    lose: Statement,
    /// That of the open transaction; `None` if nothing is logged.
    extent: Option<Extent>,
    on: bool,
}

impl FeedWriter {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            state: prepare(
                "SELECT complete, removed, sets, set_bytes, removals, removal_bytes \
                 FROM openkv_feed_state WHERE k = 0",
            )?,
            start: prepare(
                "INSERT INTO openkv_feed_state (k, complete, removed) \
                 SELECT 0, version, seq FROM data_version WHERE k = 0",
            )?,
            raise: prepare("UPDATE openkv_meta SET value = value + 1 WHERE name = 'features'")?,
            keep: prepare(
                "UPDATE openkv_feed_state SET complete = ?1, removed = ?2, sets = ?3, \
                 set_bytes = ?4, removals = ?5, removal_bytes = ?6 WHERE k = 0",
            )?,
            insert: prepare(
                "INSERT INTO openkv_feed (version, seq, at_ms, encoding, k, v, expire_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?,
            first: prepare(
                "SELECT version, at_ms FROM openkv_feed WHERE version > ?1 \
                 ORDER BY version, seq LIMIT 1",
            )?,
            sum_sets: prepare(
                "SELECT count(*), sum(length(k) + ifnull(length(v), 0)) FROM openkv_feed \
                 WHERE version = ?1 AND encoding <> 0",
            )?,
            sum_removals: prepare(
                "SELECT count(*), sum(length(k)) FROM openkv_feed \
                 WHERE version = ?1 AND encoding = 0",
            )?,
            drop_sets: prepare("DELETE FROM openkv_feed WHERE version = ?1 AND encoding <> 0")?,
            drop_removals: prepare("DELETE FROM openkv_feed WHERE version = ?1 AND encoding = 0")?,
            drop_all: prepare("DELETE FROM openkv_feed")?,
            lose: prepare(
                "UPDATE openkv_feed_state SET complete = ?1, removed = ?1, sets = 0, \
                 set_bytes = 0, removals = 0, removal_bytes = 0 WHERE k = 0",
            )?,
            extent: None,
            on: false,
        })
    }

    /// Reads whether changes are logged.
    pub(super) fn reload(&mut self) -> Result<()> {
        self.on = self.state.run().step()?;
        Ok(())
    }

    /// Whether changes are logged, as of the last [`Self::reload`].
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Must be called at the start of a transaction; returns whether its changes are logged.
    pub(super) fn begin(&mut self) -> Result<bool> {
        self.extent = None;
        if self.on {
            let mut run = self.state.run();
            if run.step()? {
                let number = |at| run.column_int(at).cast_unsigned();
                self.extent = Some(Extent {
                    complete: number(0),
                    removed: number(1),
                    sets: Amount { rows: number(2), bytes: number(3) },
                    removals: Amount { rows: number(4), bytes: number(5) },
                });
            }
        }
        Ok(self.extent.is_some())
    }

    /// Restarts the log after `version`, because a program without the log has committed.
    pub(super) fn lose(&mut self, version: u64) -> Result<()> {
        self.drop_all.execute()?;
        self.lose.run().int(1, version.cast_signed()).finish()
    }

    /// Turns the log on, in the transaction of the caller.
    pub(super) fn start(&mut self) -> Result<()> {
        if self.state.run().step()? {
            return Ok(());
        }
        self.start.execute()?;
        self.raise()
    }

    /// Makes the writers of all processes load anew what they maintain.
    pub(super) fn raise(&mut self) -> Result<()> {
        self.raise.execute()
    }

    /// Logs the changes of the transaction, in order, and trims old ones.
    pub(super) fn log(&mut self, changes: &[Change], now_ms: i64) -> Result<()> {
        let Some(mut extent) = self.extent.take() else { return Ok(()) };
        if changes.is_empty() {
            return Ok(());
        }
        let mut seq = 0;
        let mut commits = 0;
        let mut last = 0;
        for change in changes {
            if change.version != last {
                (last, seq) = (change.version, 0);
                commits += 1;
            }
            seq += 1;
            let mut run = self.insert.run().int(1, last.cast_signed()).int(2, seq);
            run = run.int(3, now_ms).blob(5, change.key.as_bytes());
            let expire_ms = match change.kind {
                ChangeKind::Set { expire_at_ms, .. } | ChangeKind::ExpirySet { expire_at_ms } => {
                    expire_at_ms
                }
                ChangeKind::Expired => Some(now_ms),
                ChangeKind::Deleted => None,
            };
            run = match expire_ms {
                Some(end) => run.int(7, end),
                None => run.null(7),
            };
            match &change.kind {
                ChangeKind::Deleted | ChangeKind::Expired => {
                    extent.removals.add(change.size_bytes());
                    run.int(4, REMOVED).null(6).finish()?;
                }
                ChangeKind::ExpirySet { .. } => {
                    extent.sets.add(change.size_bytes());
                    run.int(4, EXPIRY_SET).null(6).finish()?;
                }
                ChangeKind::Set { value, .. } if value.bytes.len() > FEED_VALUE_BYTES_MAX => {
                    extent.sets.add(change.key.len());
                    run.int(4, i64::from(value.encoding.id()) + SPILLED).null(6).finish()?;
                }
                ChangeKind::Set { value, .. } => {
                    extent.sets.add(change.size_bytes());
                    run.int(4, i64::from(value.encoding.id())).blob(6, &value.bytes).finish()?;
                }
            }
        }
        trim(self, &mut extent, now_ms, FEED_TRIM_COMMITS.max(2 * commits))?;
        let numbers = [
            extent.complete,
            extent.removed,
            extent.sets.rows,
            extent.sets.bytes,
            extent.removals.rows,
            extent.removals.bytes,
        ];
        let mut run = self.keep.run();
        for (at, number) in (1..).zip(numbers) {
            run = run.int(at, number.cast_signed());
        }
        run.finish()
    }
}

/// The rows and bytes that a query has summed up.
fn amount(mut run: Run<'_, '_>) -> Result<Amount> {
    run.step()?;
    let number = |at| run.column_int(at).cast_unsigned();
    Ok(Amount { rows: number(0), bytes: number(1) })
}

impl Shelf for FeedWriter {
    fn first_after(&mut self, after: u64) -> Result<Option<(u64, i64)>> {
        let mut run = self.first.run().int(1, after.cast_signed());
        Ok(if run.step()? {
            Some((run.column_int(0).cast_unsigned(), run.column_int(1)))
        } else {
            None
        })
    }

    fn drop_sets(&mut self, version: u64) -> Result<Amount> {
        let dropped = amount(self.sum_sets.run().int(1, version.cast_signed()))?;
        self.drop_sets.run().int(1, version.cast_signed()).finish()?;
        Ok(dropped)
    }

    fn drop_removals(&mut self, version: u64) -> Result<Amount> {
        let dropped = amount(self.sum_removals.run().int(1, version.cast_signed()))?;
        self.drop_removals.run().int(1, version.cast_signed()).finish()?;
        Ok(dropped)
    }
}

/// The log in a snapshot.
pub(super) struct FeedReader {
    state: Statement,
    changes: Statement,
    present: Statement,
    spilled: Statement,
    /// The format of the file's values.
    file: Encoding,
}

impl FeedReader {
    pub(super) fn new(connection: &Connection, file: Encoding) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            state: prepare(
                "SELECT d.version, d.seq, s.complete, s.removed FROM data_version AS d \
                 LEFT JOIN openkv_feed_state AS s ON s.k = 0 WHERE d.k = 0",
            )?,
            changes: prepare(
                "SELECT version, encoding, k, v, expire_ms FROM openkv_feed WHERE version > ?1 \
                 ORDER BY version, seq",
            )?,
            present: prepare("SELECT v, v_encoding FROM kv WHERE k = ?1 AND version = ?2")?,
            spilled: prepare("SELECT v FROM openkv_spill WHERE id = ?1")?,
            file,
        })
    }
}

impl FeedLog for &mut FeedReader {
    fn state(&mut self) -> Result<FeedState> {
        let mut run = self.state.run();
        run.row("the commit counter")?;
        let number = |at| run.column_int(at).cast_unsigned();
        let version = number(0);
        let on = !run.column_is_null(2);
        // Deno has committed, and it logs no removals.
        if self.file == Encoding::V8 && number(1) != version {
            return Ok(FeedState { on, version, complete: version, removed: version });
        }
        Ok(if !on {
            FeedState { on: false, version, complete: version, removed: number(1) }
        } else {
            FeedState { on: true, version, complete: number(2), removed: number(3) }
        })
    }

    fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        let mut run = self.changes.run().int(1, after.cast_signed());
        while run.step()? {
            let (version, id) = (run.column_int(0), run.column_int(1));
            let key = run.column_blob(2);
            let expire_at_ms = (!run.column_is_null(4)).then(|| run.column_int(4));
            let logged = |kind| Logged { version: version.cast_unsigned(), key, kind };
            let set = |value| logged(ChangeKind::Set { value, expire_at_ms });
            let goes_on = if id == REMOVED {
                visit(logged(match expire_at_ms {
                    Some(_) => ChangeKind::Expired,
                    None => ChangeKind::Deleted,
                }))
            } else if id == EXPIRY_SET {
                visit(logged(ChangeKind::ExpirySet { expire_at_ms }))
            } else if id < SPILLED {
                visit(set((encoding(id)?, run.column_blob(3))))
            } else {
                let mut row = self.present.run().blob(1, key).int(2, version);
                if !row.step()? {
                    continue;
                }
                let encoding = encoding(id - SPILLED)?;
                let stored = row.column_int(1);
                if stored < SPILLED {
                    let (encoding, value) =
                        shown(super::values::encoding(stored)?, row.column_blob(0));
                    visit(set((encoding, &value)))
                } else {
                    let mut side = self.spilled.run().int(1, row.column_int(0));
                    side.row("a value in openkv_spill")?;
                    visit(set((encoding, side.column_blob(0))))
                }
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}
