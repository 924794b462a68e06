//! Frames between JavaScript and Rust in one process, which are also the bodies of requests between
//! an openkv client and server (`js/native/contract.md`).
//!
//! A frame has no version: in a process both sides are released together, and on the network the
//! name of the extension has one. All integers are little-endian. Parsing is total: a parser refuses
//! a frame that is cut short or goes on, and what it does not know.

mod answer;
mod consume;
mod feed;
mod follow;
mod form;
mod groups;
mod history;
mod outcomes;
mod queue;
mod reader;
pub mod records;
pub mod scan;
mod schedule;
mod search;
mod value_index;
mod write;

use crate::protocol::numbers::{self, Group};

pub use answer::{
    Answer, AnswerPlace, Fill, Out, parse_answers, parse_error, push_copied, push_error,
    push_failed, push_lacks, put_point,
};
pub use consume::{
    Consume, ConsumeMessage, LockUpdate, Poll, parse_lock_update, parse_number, parse_received,
    push_deliveries, push_lock_update, push_received, push_settlement, read_consume, read_message,
    read_poll, write_consume, write_dispatched, write_opened, write_poll,
};
pub use feed::{parse_changes, parse_feed, push_changes, push_feed};
pub use follow::{
    Follow, parse_copied_indexes, parse_entries, parse_follow, parse_followed, parse_segments,
    parse_specs, push_copied_indexes, push_entry, push_follow, push_followed, push_segments,
    push_specs,
};
pub use form::Layout;
pub use groups::{parse_groups, parse_limits, push_group, push_limits};
pub use history::{parse_history, push_history_head, push_version};
pub use outcomes::{parse_outcomes, push_outcomes, push_plain_outcomes};
pub use queue::{
    first_queue, parse_dead, parse_dead_list, parse_drain, parse_pause, parse_peek, parse_purge,
    parse_queue, parse_reason, parse_renewal, parse_settlement, push_dead, push_drained,
    push_peek_head, push_peeked, push_stats,
};
pub(in crate::protocol) use reader::unreadable;
pub use reader::{next_key, parse_keys, parse_ranges, parse_requests, push_ranges};
pub use records::{Field, Presence, RECORDS, RecordLayout};
pub use scan::{
    PreviewRequest, ScanRequest, StepFlags, deleted_answer, parse_deletion, parse_preview,
    parse_scan, put_absent, put_passed, put_scan_answer, put_seen, read_deleted_stamp, scan_answer,
};
pub use schedule::{parse_schedules, push_schedule};
pub use search::{Hits, SearchFrame, parse_choice, parse_index, parse_search, push_indexes};
pub use value_index::{
    OrderedRequest, parse_ordered, parse_value_index, parse_value_indexes, push_explanation,
    push_value_indexes,
};
pub use write::{
    Placed, WRITE_ID_RECORD_BYTES, parse_writes, parse_writes_apart, push_write, push_write_id,
};

/// All groups of numbers, in the order of the generated files.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    [numbers::GROUPS, scan::GROUPS, records::GROUPS].into_iter().flatten()
}

/// The bytes that `push` appends.
pub fn frame_of(push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    push(&mut frame);
    frame
}

/// Checks that only the whole frame is parsed: not its beginning, and nothing behind it.
#[cfg(test)]
pub(super) fn no_part_is_parsed<T, E>(frame: &[u8], parse: impl Fn(&[u8]) -> Result<T, E>) {
    for len in 0..frame.len() {
        assert!(parse(&frame[..len]).is_err(), "{len}");
    }
    assert!(parse(&[frame, &[0]].concat()).is_err());
}
