//! What crosses between JavaScript and Rust inside one process (`js/native/contract.md`).
//!
//! Private to a build: both sides are released together, so there is no version in it. All integers
//! are little-endian. Reading is total all the same: a frame is refused, never believed.

mod answer;
mod change;
mod feed;
mod queue;
mod reader;
mod scan;
mod search;
mod write;

pub use answer::{Answer, Fill, Out, POINT_HEAD_BYTES, push_error, push_outcomes, put_point};
pub use feed::{parse_feed, push_changes};
pub use queue::{
    parse_dead, parse_dead_list, parse_purge, parse_queue, parse_reason, parse_renewal,
    parse_settlement, push_dead, push_deliveries, push_received, push_stats,
};
pub use reader::{next_key, parse_keys, parse_ranges, parse_requests};
pub use scan::{ScanRequest, deleted_answer, parse_deletion, parse_scan, put_seen};
pub use search::{Hits, SearchFrame, parse_choice, parse_index, parse_search, push_indexes};
pub use write::parse_writes;
