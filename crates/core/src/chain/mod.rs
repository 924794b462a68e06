//! The log of a database in an object store: which objects count, who may write, what may be deleted.
//!
//! Objects of the log have consecutive numbers and are only ever created. A *fence* begins an epoch, a
//! *batch* takes the database from one version to another. Readers walk the numbers upwards and judge each
//! object by the same rule ([`Position::take`]), so that all of them see the same chain, whatever late
//! writes of a former leader land where.
//!
//! Duty: judge objects; say which of them to merge, and make and read merged copies; number the batches of a leader and
//! say when each is in the chain; count leases; say which objects no reader needs.
//! Invariant: a batch is answered only when every object up to its own exists and it is valid there. A leader
//! answers only in the first half of a lease, counted from the start of its last renewal by its own clock, and
//! another leads only after it has seen no renewal for a whole lease by its own.
//! Never: I/O, a clock, randomness, a thread. A time that another process has written.

mod defect;
mod deletion;
mod lease;
mod merged;
mod object;
mod position;
#[cfg(test)]
mod tests;
mod window;

pub use defect::ChainDefect;
pub use deletion::{Deletion, Mark};
pub use lease::{EndWatch, LeaseState, LeaseWatch, Tenure};
pub use merged::{Merged, Merging, cover, covers, next_merge, unmerge};
pub use object::{Digest, Entry, EntryKind, decode, encode};
pub use position::{Position, Standing};
pub use window::{Step, Window};
