//! An atomic write: checks, mutations and messages that happen together or not at all.

use super::{
    Calculation, Deleted, Deletion, EncodedValue, Enqueued, Error, Key, Limits, Message, Patch,
    RangeCheck, Resolved, Result, Versionstamp, limit,
};

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
#[derive(Clone, Debug, PartialEq)]
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
    /// Combines the stored number with an operand, by openkv's own rules.
    Calculate {
        /// The key.
        key: Key,
        /// How.
        calculation: Calculation,
        /// When the entry ends from now on, in ms since the epoch; `None`: when it did before.
        expire_at_ms: Option<i64>,
    },
    /// Puts items in front of or behind those of a stored array, or stores them when there is none.
    Append {
        /// The key.
        key: Key,
        /// A CBOR array.
        items: Vec<u8>,
        /// Whether they go in front.
        front: bool,
        /// Most bytes of the result.
        value_bytes_max: usize,
        /// When the entry ends from now on, in ms since the epoch; `None`: when it did before.
        expire_at_ms: Option<i64>,
    },
    /// Sets the expiry of an entry; its value and stamp stay.
    SetExpiry {
        /// The key.
        key: Key,
        /// When the entry ends from now on, in ms since the epoch; `None`: it stays.
        expire_at_ms: Option<i64>,
        /// Whether the write is lost when there is no entry, as by a check; else that is fine.
        required: bool,
    },
}

/// Declares the kinds of mutations, so that the list cannot lack one: [`Mutation::kind`] would not
/// compile.
macro_rules! kinds {
    ($($name:ident),*) => {
        /// The kinds of [`Mutation`]s. `tests/server/mutations.rs` walks each through every layer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum MutationKind {
            $(#[doc = concat!("[`Mutation::", stringify!($name), "`]")] $name,)*
        }

        impl MutationKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }

        impl Mutation {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> MutationKind {
                match self { $(Self::$name { .. } => MutationKind::$name,)* }
            }
        }
    };
}

kinds!(Set, Delete, Arith, Calculate, Append, SetExpiry);

/// What there is to tell of what a mutation leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// The number that is stored.
    Number,
    /// The length of the array that is stored.
    Length,
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
            Self::Delete { key } | Self::SetExpiry { key, .. } => (key.as_bytes().len(), None),
            Self::Arith { key, operand, .. } => (key.as_bytes().len(), Some(operand.bytes.len())),
            Self::Calculate { key, calculation, .. } => (key.len(), Some(calculation.size_bytes())),
            Self::Append { key, items, .. } => (key.len(), Some(items.len())),
        }
    }

    /// Whether the write can fail here, so that what came before it has to be undone.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Set { .. } | Self::Delete { .. } => false,
            Self::Arith { .. } | Self::Calculate { .. } | Self::Append { .. } => true,
            Self::SetExpiry { required, .. } => *required,
        }
    }

    /// The bytes of its value, if it has one of its own.
    pub(crate) fn value_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Set { value, .. } => Some(&mut value.bytes),
            Self::Append { items, .. } => Some(items),
            Self::Delete { .. }
            | Self::Arith { .. }
            | Self::Calculate { .. }
            | Self::SetExpiry { .. } => None,
        }
    }

    /// Changes bytes of its key.
    pub(crate) fn change_key(&mut self, change: impl FnOnce(&mut [u8])) {
        let key = match self {
            Self::Set { key, .. }
            | Self::Delete { key }
            | Self::Arith { key, .. }
            | Self::Calculate { key, .. }
            | Self::Append { key, .. }
            | Self::SetExpiry { key, .. } => key,
        };
        let mut bytes = std::mem::take(key).into_bytes();
        change(&mut bytes);
        *key = Key::from_encoded(bytes);
    }

    /// What there is to tell of what it leaves.
    #[must_use]
    pub(crate) const fn tells(&self) -> Option<Tells> {
        match self {
            Self::Arith { .. } | Self::Calculate { .. } => Some(Tells::Number),
            Self::Append { .. } => Some(Tells::Length),
            Self::Set { .. } | Self::Delete { .. } | Self::SetExpiry { .. } => None,
        }
    }

    /// The key, without a suffix.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Set { key, .. }
            | Self::Delete { key }
            | Self::Arith { key, .. }
            | Self::Calculate { key, .. }
            | Self::Append { key, .. }
            | Self::SetExpiry { key, .. } => key,
        }
    }
}

/// A write within its handle's limits; one that is over them cannot exist.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicWrite {
    checks: Vec<Check>,
    ranges: Vec<RangeCheck>,
    mutations: Vec<Mutation>,
    tells_values: bool,
    messages: Vec<Message>,
    patches: Vec<Patch>,
    deletion: Option<Box<Deletion>>,
    bytes: usize,
}

/// The parts of an [`AtomicWrite`], taken out to be carried out.
#[derive(Debug, Default)]
pub struct WriteParts {
    /// Conditions, all of which must hold.
    pub checks: Vec<Check>,
    /// Conditions on ranges, which are counted with those.
    pub ranges: Vec<RangeCheck>,
    /// Changes, in order.
    pub mutations: Vec<Mutation>,
    /// Whether the results tell what the mutations have calculated.
    pub tells_values: bool,
    /// Messages to enqueue.
    pub messages: Vec<Message>,
    /// Where UUIDs go.
    pub patches: Vec<Patch>,
    /// A deletion of many entries, which is then all that there is.
    pub deletion: Option<Box<Deletion>>,
}

impl AtomicWrite {
    /// Checks the parts against the limits, in the order and with the words of Deno KV.
    ///
    /// # Errors
    /// `Invalid`, naming the limit, its value and what was given.
    pub fn new(parts: WriteParts, limits: &Limits) -> Result<Self> {
        Self::telling(parts, limits, &|_| String::new())
    }

    /// As [`AtomicWrite::new`]; `tell` prints a key for messages.
    ///
    /// # Errors
    /// As [`AtomicWrite::new`].
    pub fn telling(
        parts: WriteParts,
        limits: &Limits,
        tell: &dyn Fn(&Key) -> String,
    ) -> Result<Self> {
        let WriteParts { checks, ranges, mutations, tells_values, messages, patches, deletion } =
            parts;
        limit::checks(checks.len() + ranges.len(), limits)?;
        limit::checked_rows(ranges.iter().map(|range| range.seen.len()).sum(), limits)?;
        limit::mutations(mutations.len() + messages.len(), limits)?;

        let mut bytes = 0;
        let mut key_bytes = 0;
        let written_key = |key: &Key, len: usize| limit::key(key, len, limits, tell);
        for check in &checks {
            let len = check.key.as_bytes().len();
            written_key(&check.key, len)?;
            bytes += len;
        }
        bytes += ranges.iter().map(RangeCheck::size_bytes).sum::<usize>();
        for mutation in &mutations {
            let (key_len, value_len) = mutation.sizes();
            written_key(mutation.key(), key_len)?;
            bytes += key_len;
            if let Some(value_len) = value_len {
                limit::value(value_len, limits.value_bytes_max, &|| tell(mutation.key()))?;
                bytes += key_len + value_len;
                key_bytes += key_len;
            }
        }
        for message in &messages {
            limit::message(message, limits)?;
            let key_len = message.deduplication_key.as_ref().map_or(0, String::len);
            bytes += message.value.len() + 4 * message.backoff_ms.len();
            bytes += message.queue.len() + key_len;
            for key in &message.keys_if_undelivered {
                written_key(key, key.as_bytes().len())?;
            }
        }
        limit::totals(bytes, key_bytes, limits)?;
        Ok(Self { checks, ranges, mutations, tells_values, messages, patches, deletion, bytes })
    }

    /// Bytes of keys, values and messages, for grouping.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Its parts, looked at.
    #[must_use]
    pub fn parts(&self) -> (&[Check], &[Mutation], &[Message]) {
        (&self.checks, &self.mutations, &self.messages)
    }

    /// The ranges that it checks.
    #[must_use]
    pub fn ranges(&self) -> &[RangeCheck] {
        &self.ranges
    }

    /// Whether the results tell what the mutations have calculated.
    #[must_use]
    pub fn tells_values(&self) -> bool {
        self.tells_values
    }

    /// Where it has UUIDs filled in.
    #[must_use]
    pub fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// The queues of its messages.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|message| message.queue.as_str())
    }

    /// Whether it does nothing but delete, so that no quota has to have room for it.
    #[must_use]
    pub fn only_deletes(&self) -> bool {
        let deletes = |mutation: &Mutation| mutation.kind() == MutationKind::Delete;
        self.messages.is_empty() && self.mutations.iter().all(deletes)
    }

    /// The key of its first mutation.
    #[must_use]
    pub fn first_key(&self) -> Option<&Key> {
        self.mutations.first().map(Mutation::key)
    }

    /// Takes the write apart to carry it out.
    #[must_use]
    pub fn into_parts(self) -> WriteParts {
        let Self { checks, ranges, mutations, tells_values, messages, patches, deletion, .. } =
            self;
        WriteParts { checks, ranges, mutations, tells_values, messages, patches, deletion }
    }

    /// Whether something in it is only known when it commits.
    #[must_use]
    pub fn has_placeholders(&self) -> bool {
        !self.patches.is_empty()
    }
}

/// What a commit has made, beside its stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// UUIDs, by their placeholders.
    pub resolved: Vec<Resolved>,
    /// If the write asked for them: for each mutation that calculates or appends, in order, the number
    /// that is stored after it, or the length of the array.
    pub values: Vec<EncodedValue>,
    /// What became of each message, in order.
    pub enqueued: Vec<Enqueued>,
}

impl Results {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resolved.is_empty() && self.values.is_empty() && self.enqueued.is_empty()
    }
}

impl Decision {
    /// A commit with what there is to tell of it.
    #[must_use]
    pub fn committed(stamp: Versionstamp, results: Results) -> Self {
        if results.is_empty() {
            Self::Committed(stamp)
        } else {
            Self::CommittedWith(stamp, Box::new(results))
        }
    }

    /// Notes what became of the next message of a commit.
    pub(crate) fn enqueued(&mut self, enqueued: Enqueued) {
        if let Self::Committed(stamp) = self {
            *self = Self::CommittedWith(*stamp, Box::default());
        }
        if let Self::CommittedWith(_, results) = self {
            results.enqueued.push(enqueued);
        }
    }
}

/// How one write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It happened, under this stamp.
    Committed(Versionstamp),
    /// It happened, under this stamp, and there is this to tell of it.
    CommittedWith(Versionstamp, Box<Results>),
    /// A deletion of many entries happened so far.
    Deleted(Deleted),
    /// These checks did not hold, counted with those of ranges behind the others; nothing happened and no stamp was used.
    CheckFailed(Vec<usize>),
    /// It cannot be carried out; nothing happened.
    Rejected(Error),
}
