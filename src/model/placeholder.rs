//! What a commit fills in: UUIDs that are only made when it happens.

/// A place of a write where a UUID goes. The room for its text is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// In what.
    pub target: Target,
    /// Where its text begins, in bytes.
    pub offset: usize,
    /// Which UUID of the write: the same number is the same one.
    pub placeholder: u64,
}

/// The bytes in which a [`Patch`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The key of the mutation of that index.
    Key(usize),
    /// Its value.
    Value(usize),
    /// The value of the message of that index.
    Message(usize),
}

/// A UUID that a commit has made, with the number of its placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Which placeholder of the write.
    pub placeholder: u64,
    /// The UUID, most significant byte first.
    pub uuid: u128,
}
