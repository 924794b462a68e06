//! Walks: entries in key order with their expiries, with or without values, with seeks.

use rusqlite::Connection;

use super::layout::SPILLED;
use super::statement::Statement;
use super::values::{encoding, shown, stamp};
use openkv_core::model::{Result, Row, Seen, Step, Walk};

/// The statements of walks. Those without values do not read `v`, and do not look up spilled
/// values.
pub(super) struct Walker {
    keys: Direction,
    entries: Direction,
    spilled: Statement,
}

struct Direction {
    forward: Statement,
    backward: Statement,
}

impl Direction {
    fn new(connection: &Connection, columns: &str) -> Result<Self> {
        let ascending = format!("SELECT {columns} FROM kv WHERE k >= ?1 AND k < ?2 ORDER BY k");
        Ok(Self {
            backward: Statement::prepare(connection, format!("{ascending} DESC"))?,
            forward: Statement::prepare(connection, ascending)?,
        })
    }
}

impl Walker {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        Ok(Self {
            keys: Direction::new(connection, "k, expiration_ms, version, v_encoding")?,
            entries: Direction::new(connection, "k, expiration_ms, version, v_encoding, v")?,
            spilled: Statement::prepare(connection, "SELECT v FROM openkv_spill WHERE id = ?1")?,
        })
    }

    /// Entries that expire at or before `now_ms` are absent.
    pub(super) fn walk(
        &mut self,
        walk: Walk<'_>,
        now_ms: i64,
        visit: &mut dyn FnMut(Seen<'_>) -> Step,
    ) -> Result<()> {
        let direction = if walk.values { &mut self.entries } else { &mut self.keys };
        let statement = if walk.reverse { &mut direction.backward } else { &mut direction.forward };
        let (mut start, mut end) = (walk.start.to_vec(), walk.end.to_vec());
        loop {
            let mut sought = None;
            let mut run = statement.run().blob(1, &start).blob(2, &end);
            while run.step()? {
                let ends = run.column_int(1);
                if ends >= 0 && ends <= now_ms {
                    continue;
                }
                let id = run.column_int(3);
                let spilled = id >= SPILLED;
                let mut seen = Seen {
                    row: Row {
                        key: run.column_blob(0),
                        stamp: stamp(run.column_int(2)),
                        encoding: encoding(if spilled { id - SPILLED } else { id })?,
                        value: &[],
                    },
                    expire_at_ms: (ends >= 0).then_some(ends),
                };
                let step = match (walk.values, spilled) {
                    (false, _) => visit(seen),
                    (true, false) => {
                        let (encoding, value) = shown(seen.row.encoding, run.column_blob(4));
                        (seen.row.encoding, seen.row.value) = (encoding, &value);
                        visit(seen)
                    }
                    (true, true) => {
                        let mut side = self.spilled.run().int(1, run.column_int(4));
                        side.row("a value in openkv_spill")?;
                        seen.row.value = side.column_blob(0);
                        visit(seen)
                    }
                };
                match step {
                    Step::Next => {}
                    Step::Stop => return Ok(()),
                    Step::Seek(to) => {
                        sought = Some(to);
                        break;
                    }
                }
            }
            drop(run);
            match sought {
                None => return Ok(()),
                Some(to) if walk.reverse => end = to,
                Some(to) => start = to,
            }
        }
    }
}
