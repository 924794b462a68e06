//! Placeholders: UUIDs that the commit generates and writes into keys, values and messages.

use uuid::Uuid;

/// A position in a write at which the commit replaces a nil UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The bytes to change.
    pub target: Target,
    /// The offset of the nil UUID, in bytes.
    pub offset: usize,
    /// The number of the placeholder in this write; equal numbers get the same UUID.
    pub placeholder: u64,
}

/// The bytes that a [`Patch`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The key of the mutation with this index.
    Key(usize),
    /// The value of the mutation with this index.
    Value(usize),
    /// The value of the message with this index.
    Message(usize),
}

/// A UUID that a commit generated, and the number of its placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The number of the placeholder.
    pub placeholder: u64,
    /// The UUID, of version 7.
    pub uuid: Uuid,
}
