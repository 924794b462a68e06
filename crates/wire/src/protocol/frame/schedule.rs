//! Calls about schedules, and their answers.

use super::reader::{Reader, push_f64, push_sized};
use openkv_core::codec::Malformed;
use openkv_core::codec::schedule::KeptSchedule;
use openkv_core::model::{PeekCursor, Peeked, Timing};

/// Parses a request for a page of schedules: the queue, the number of schedules, and the cursor (empty: from the
/// start).
///
/// # Errors
/// A malformed frame.
pub fn parse_schedules(bytes: &[u8]) -> Result<(String, usize, Option<PeekCursor>), Malformed> {
    Reader::whole(bytes, |reader| {
        let (queue, limit) = (reader.string()?, reader.u32()? as usize);
        let after = match reader.text()? {
            "" => None,
            cursor => Some(
                PeekCursor::parse(cursor)
                    .ok_or_else(|| reader.refused("a cursor of another list"))?,
            ),
        };
        Ok((queue, limit, after))
    })
}

/// Appends a schedule: its name, u8 missed, u8 priority, f64 next due time, f64 interval (0: a cron pattern), f64
/// offset, the pattern, the zone, the value.
pub fn push_schedule(out: &mut Vec<u8>, row: &Peeked, kept: &KeptSchedule) {
    let schedule = &kept.schedule;
    push_sized(out, schedule.name().as_bytes());
    out.extend_from_slice(&[schedule.missed() as u8, row.priority]);
    push_f64(out, row.due_ms);
    let (every_ms, offset_ms, pattern, zone) = match schedule.timing() {
        Timing::Cron { pattern, zone } => (0, 0, pattern.as_str(), zone.as_str()),
        Timing::Every { every_ms, offset_ms } => (*every_ms, *offset_ms, "", ""),
    };
    push_f64(out, every_ms);
    push_f64(out, offset_ms);
    push_sized(out, pattern.as_bytes());
    push_sized(out, zone.as_bytes());
    push_sized(out, &kept.value);
}
