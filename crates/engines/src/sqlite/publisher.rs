//! Where the commits of a file are made durable, if that is not the file (`published.rs`).

use openkv_core::model::{Result, Segment};

/// Makes commits durable in another place than the file.
pub(crate) trait Publisher: Send {
    /// Waits until a commit is durable; returns the mark of the state after it.
    ///
    /// # Errors
    /// The transaction is rolled back then.
    fn publish(&mut self, commit: Segment) -> Result<Vec<u8>>;

    /// A commit that is published has not reached the file.
    fn behind(&mut self);
}
