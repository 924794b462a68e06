//! The data types: keys, values, versionstamps, writes, reads, limits, errors.
//!
//! Invariant: a value of a type here is valid by construction. This module does no I/O, knows no
//! byte formats and reads no clock; time, randomness and ids are arguments.

mod calculation;
mod capability;
mod database_change;
mod deletion;
mod env;
mod error;
mod feed;
mod group;
mod key;
pub(crate) mod limit;
mod limiting;
mod limits;
mod logged_message;
mod maintenance;
mod named;
mod page_memory;
mod peek;
mod placeholder;
mod queue;
mod read;
mod replication;
mod request_counts;
mod schedule;
mod search;
mod sharing;
mod subscription;
mod time;
mod value;
mod value_index;
mod versionstamp;
mod write;
mod write_id;
mod write_record;

pub use calculation::{Bounds, Calculation, Numeric, Operand};
pub use capability::{Capabilities, Capability};
pub use database_change::DatabaseChange;
pub use deletion::{Among, Beyond, Deleted, Deletion, FilterResults};
pub use env::Env;
pub use error::{Error, Kind, Result};
pub use feed::{Change, ChangeKind, KeyRange, Logged};
pub use group::{
    GROUP_QUEUES, LIMITED_QUEUES, QueueRule, Rate, RunLimit, check_group, group_of_queue,
    groups_range, queue_of_callers, queue_of_group, turns_queue,
};
pub use key::{Key, KeyPart};
pub use limit::own_queue;
pub use limiting::{LimitAlgorithm, Limiting};
pub use limits::*;
pub use logged_message::{KeptMessage, KeptState, LoggedMessage};
pub use maintenance::{Backup, Checkpoint, Stats, Vacuumed};
pub use page_memory::PageMemory;
pub use peek::{MessagePlace, Peek, PeekCursor, Peeked};
pub use placeholder::{Patch, Resolved, Target};
pub use queue::{
    Ack, Ask, Claim, DeadLetter, DeadLetterChange, Deduplication, Delivery, Enqueued, Freed,
    JOB_ENTRIES, KEEP_RESULT, Message, MessageDeletion, MessageState, Outcome, PAUSED_QUEUES,
    QueueChange, QueueChanged, QueueStats, Reason, Renewal, Settlement, attempts_left, awaited_key,
    mark_of_paused,
};
pub use read::{Needs, Range, Request, Row, Seen, Step, Walk};
pub use replication::{
    Advertised, BEFORE_EXPIRY_MS, CopiedEntry, CopiedIndexes, EntryVersion, Followed,
    HistoryExtent, LogBounds, LogExtent, LogSegment, LogSettings, LogState, Moment, Origin,
    PastEntry, Replacement, Segment, Setting, When,
};
pub use request_counts::RequestCounts;
pub use schedule::{
    Firing, Missed, Schedule, ScheduleChange, Timing, check_name, is_own_queue, schedule_key,
};
pub use search::{
    Highlight, Hit, HitChoice, HitVisitor, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Search,
    Tokenizer,
};
pub use sharing::{LeaderCounts, LeaderFigures, Sharing};
pub use subscription::{
    Batch, ConsumeOptions, Deliver, Dispatched, Entry, FeedReply, Id, ListenerEnd, LockLost,
    Receive, WatchReply,
};
pub use time::{Time, parse_duration};
pub use value::{
    Blob, Boxed, Buffer, DomException, EncodedValue, Encoding, ErrorName, ErrorProperties,
    FileProperties, JsString, Node, NodeId, RegExp, Value, ViewClass, Window, array_index,
    push_number,
};
pub use value_index::{
    BuildFailure, OrderPath, ValueIndexInfo, ValueIndexRequest, ValueIndexSpec, ValueIndexState,
    Violation, check_paths,
};
pub use versionstamp::Versionstamp;
pub(crate) use write::Returned;
pub use write::{
    Arith, AtomicWrite, Check, Decision, FoundBy, Mutation, MutationKind, OrderPart, RangeCheck,
    Results, WriteParts,
};
pub use write_id::{Attempt, WriteId};
pub use write_record::WriteRecord;
