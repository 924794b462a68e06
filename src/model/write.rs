//! An atomic write: checks, mutations and messages that happen together or not at all.

use super::{EncodedValue, Error, Key, Limits, Message, Result, Versionstamp};

/// A condition on one key: its entry has this stamp, or (`None`) there is no entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The key.
    pub key: Key,
    /// The stamp that its entry must have.
    pub expected: Option<Versionstamp>,
}

/// Which arithmetic a [`Mutation::Arith`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arith {
    /// Add.
    Sum,
    /// Keep the smaller.
    Min,
    /// Keep the larger.
    Max,
}

impl Arith {
    /// The name in error messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Stores a value.
    Set {
        /// The key, without the suffix.
        key: Key,
        /// Whether the commit's versionstamp is appended to the key as a string part.
        suffixed: bool,
        /// The value.
        value: EncodedValue,
        /// When the entry ends, in ms since the epoch.
        expire_at_ms: Option<i64>,
    },
    /// Removes an entry; an absent one is fine.
    Delete {
        /// The key.
        key: Key,
    },
    /// Combines the stored number with an operand.
    Arith {
        /// Which arithmetic.
        op: Arith,
        /// The key.
        key: Key,
        /// The operand.
        operand: EncodedValue,
    },
    /// Moves the end of an entry, whose value and stamp stay as they are.
    Retime {
        /// The key.
        key: Key,
        /// When the entry ends from now on, in ms since the epoch; `None`: it stays.
        expire_at_ms: Option<i64>,
        /// Whether the write is lost when there is no entry, as by a check; else that is fine.
        required: bool,
    },
}

/// Encoded bytes that a versionstamp adds to a key: tag, twenty digits, terminator.
const SUFFIX_BYTES: usize = Versionstamp::HEX_BYTES + 2;

impl Mutation {
    /// Key bytes as stored, and value bytes (`None` for a delete).
    fn sizes(&self) -> (usize, Option<usize>) {
        match self {
            Self::Set { key, suffixed, value, .. } => {
                let suffix = if *suffixed { SUFFIX_BYTES } else { 0 };
                (key.as_bytes().len() + suffix, Some(value.bytes.len()))
            }
            Self::Delete { key } | Self::Retime { key, .. } => (key.as_bytes().len(), None),
            Self::Arith { key, operand, .. } => (key.as_bytes().len(), Some(operand.bytes.len())),
        }
    }

    /// Whether the write can fail here, so that what came before it has to be undone.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Set { .. } | Self::Delete { .. } => false,
            Self::Arith { .. } => true,
            Self::Retime { required, .. } => *required,
        }
    }

    fn key(&self) -> &Key {
        match self {
            Self::Set { key, .. }
            | Self::Delete { key }
            | Self::Arith { key, .. }
            | Self::Retime { key, .. } => key,
        }
    }
}

/// A write within its handle's limits; one that is over them cannot exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomicWrite {
    checks: Vec<Check>,
    mutations: Vec<Mutation>,
    messages: Vec<Message>,
    bytes: usize,
}

/// The parts of an [`AtomicWrite`], taken out to be carried out.
#[derive(Debug, Default)]
pub struct WriteParts {
    /// Conditions, all of which must hold.
    pub checks: Vec<Check>,
    /// Changes, in order.
    pub mutations: Vec<Mutation>,
    /// Messages to enqueue.
    pub messages: Vec<Message>,
}

impl AtomicWrite {
    /// Checks the parts against the limits, in the order and with the words of Deno KV.
    ///
    /// # Errors
    /// `Invalid`, naming the limit, its value and what was given.
    pub fn new(parts: WriteParts, limits: &Limits) -> Result<Self> {
        let WriteParts { checks, mutations, messages } = parts;
        at_most("Too many checks", limits.checks_max, "", checks.len())?;
        let count = mutations.len() + messages.len();
        at_most("Too many mutations", limits.mutations_max, "", count)?;

        let mut bytes = 0;
        let mut key_bytes = 0;
        let written_key = |key: &Key, len: usize| {
            if key.as_bytes().is_empty() {
                return Err(Error::invalid("key cannot be empty"));
            }
            at_most("Key too large for write", limits.key_bytes_max, " bytes", len)
        };
        for check in &checks {
            let len = check.key.as_bytes().len();
            written_key(&check.key, len)?;
            bytes += len;
        }
        for mutation in &mutations {
            let (key_len, value_len) = mutation.sizes();
            written_key(mutation.key(), key_len)?;
            bytes += key_len;
            if let Some(value_len) = value_len {
                at_most("Value too large", limits.value_bytes_max, " bytes", value_len)?;
                bytes += key_len + value_len;
                key_bytes += key_len;
            }
        }
        for message in &messages {
            let len = message.value.len();
            at_most("enqueue payload too large", limits.message_bytes_max, " bytes", len)?;
            bytes += len + 4 * message.backoff_ms.len();
            check_message(message, limits)?;
            for key in &message.keys_if_undelivered {
                written_key(key, key.as_bytes().len())?;
            }
        }
        at_most("Total mutation size too large", limits.commit_bytes_max, " bytes", bytes)?;
        at_most("Total key size too large", limits.commit_key_bytes_max, " bytes", key_bytes)?;
        Ok(Self { checks, mutations, messages, bytes })
    }

    /// Bytes of keys, values and messages, for grouping.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the write apart to carry it out.
    #[must_use]
    pub fn into_parts(self) -> WriteParts {
        WriteParts { checks: self.checks, mutations: self.mutations, messages: self.messages }
    }
}

/// How one write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It happened, under this stamp.
    Committed(Versionstamp),
    /// These checks did not hold; nothing happened and no stamp was used.
    CheckFailed(Vec<usize>),
    /// It cannot be carried out; nothing happened.
    Rejected(Error),
}

fn check_message(message: &Message, limits: &Limits) -> Result<()> {
    let intervals = message.backoff_ms.len();
    if intervals > limits.backoff_intervals_max {
        let max = limits.backoff_intervals_max;
        return Err(Error::invalid(format!(
            "Invalid backoffSchedule, max {max} intervals allowed: {intervals} given"
        )));
    }
    let too_long = |ms: &u32| *ms as usize > limits.backoff_interval_ms_max;
    if let Some(at) = message.backoff_ms.iter().position(too_long) {
        return Err(Error::invalid(format!(
            "Invalid backoffSchedule, interval at index {at} is invalid"
        )));
    }
    let keys = message.keys_if_undelivered.len();
    at_most("Too many keysIfUndelivered", limits.undelivered_keys_max, "", keys)
}

fn at_most(what: &str, max: usize, unit: &str, given: usize) -> Result<()> {
    if given <= max {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} (max {max}{unit}): {given}{unit} given")))
}
