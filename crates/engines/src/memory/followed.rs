//! A database in memory that is a copy.

use std::collections::BTreeMap;

use super::Tables;
use super::transaction::MemoryTransaction;
use crate::sqlite::PrivateIndexes;
use crate::{NextEntries, Report};
use openkv_core::commit::{NewRow, replay};
use openkv_core::model::{CopiedEntry, Error, Followed, Key, LogSegment, Replacement, Result};

/// The entries of a copy.
pub(super) fn collect(entries: NextEntries<'_>) -> Result<BTreeMap<Key, NewRow>> {
    let mut rows = BTreeMap::new();
    while let Some(page) = entries()? {
        for CopiedEntry { key, version, value, expire_at_ms } in page {
            rows.insert(key, NewRow { version, value, expire_at_ms });
        }
    }
    Ok(rows)
}

impl Tables {
    pub(super) fn follow(
        &mut self,
        after: &Followed,
        segments: &[LogSegment<'_>],
    ) -> Result<Report> {
        if self.followed.as_ref().map(|before| before.origin) != Some(after.origin) {
            return Err(followed_meanwhile());
        }
        let version = self.version;
        let mut all = Report { versions: (version, version), ..Report::default() };
        self.tell_indexes(PrivateIndexes::begin);
        let mut repeated = Ok(());
        for segment in segments {
            let (version, now_ms) = (all.versions.1, segment.at_ms);
            let begun = self.begun(version, now_ms);
            match replay::run(&mut MemoryTransaction { tables: self, now_ms }, &begun, *segment) {
                Ok(report) => {
                    all.versions.1 = report.versions.1;
                    all.touched.extend(report.touched);
                }
                Err(error) => {
                    repeated = Err(error);
                    break;
                }
            }
        }
        self.tell_indexes(PrivateIndexes::commit);
        // A segment is repeated as a whole, so what was repeated before the fault stays.
        self.followed = Some(Followed { version: all.versions.1, ..after.clone() });
        repeated.map(|()| all)
    }

    pub(super) fn replace_all(
        &mut self,
        replacement: &Replacement,
        rows: BTreeMap<Key, NewRow>,
    ) -> Result<Report> {
        let Replacement { before, after, generation } = replacement;
        if self.followed != *before {
            return Err(followed_meanwhile());
        }
        let version = self.version;
        self.tell_indexes(PrivateIndexes::begin);
        for key in self.rows.keys().cloned().collect::<Vec<_>>() {
            self.put(key, None);
        }
        for (key, row) in rows {
            self.put(key, Some(row));
        }
        self.tell_indexes(PrivateIndexes::commit);
        (self.version, self.removed) = (after.version, after.version);
        if let Some(log) = &mut self.log {
            log.restart(after.origin.database, *generation, after.version, after.at_ms);
        }
        self.followed = Some(after.clone());
        Ok(Report { versions: (version, after.version), ..Report::default() })
    }
}

fn followed_meanwhile() -> Error {
    Error::unavailable("what the replica follows has changed; it is read again")
}
