//! The writes with ids that a leader remembers, from the log of batches.

use super::Shared;
use super::cells::Cells;
use super::line::Call;
use openkv_core::codec::write_log;
use openkv_core::layer::{Lead, NewestWrites, Remembered};
use openkv_core::model::{
    Error, POSTGRES_LOG_KEPT_MS, POSTGRES_WRITES_PAGE_BATCHES, Result, WRITE_ID_KEPT_MS,
    WriteRecord,
};

const _: () = assert!(
    POSTGRES_LOG_KEPT_MS >= WRITE_ID_KEPT_MS,
    "the log has all ids that a leader remembers"
);

/// The newest batches before a version, within the time for which ids are remembered.
const RECENT: &str = "\
SELECT version, at_ms, previous, writes FROM openkv.log \
WHERE db = $1 AND version < $2 AND at_ms >= $3 ORDER BY version DESC LIMIT $4";

/// The cell of a batch; `None` without such writes. `previous`: the version before the batch.
pub(super) fn encoded(records: &[WriteRecord], previous: u64) -> Option<Vec<u8>> {
    Some(write_log::encode(records, previous)).filter(|bytes| !bytes.is_empty())
}

/// The writes with ids that were decided for good before this lead, as far as they are remembered. No
/// earlier leader can commit any more.
///
/// # Errors
/// The error of the server; `Corrupt` for rows of another form.
pub(super) fn remembered(shared: &Shared, lead: &Lead) -> Result<Remembered> {
    let mut newest = NewestWrites::before(lead.clock_ms);
    let (from_ms, mut before) = (newest.from_ms(), i64::MAX);
    loop {
        let call: Call<'_> =
            (RECENT, vec![&shared.db, &before, &from_ms, &POSTGRES_WRITES_PAGE_BATCHES]);
        let rows = shared.query(call)?;
        for row in &rows {
            let cells = Cells::of("log", row);
            before = cells.get(0)?;
            let (at_ms, previous): (i64, _) = (cells.get(1)?, cells.unsigned(2)?);
            let Some(writes) = cells.get::<Option<&[u8]>>(3)? else { continue };
            let has_room = newest.add(at_ms, previous, writes);
            if !has_room.map_err(|error| Error::corrupt(format!("openkv.log.writes: {error}")))? {
                return Ok(newest.all());
            }
        }
        if i64::try_from(rows.len()).is_ok_and(|count| count < POSTGRES_WRITES_PAGE_BATCHES) {
            return Ok(newest.all());
        }
    }
}
