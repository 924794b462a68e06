//! An atomic write: its checks, mutations and messages take effect together or not at all.

use super::{
    Ack, Attempt, Calculation, Deleted, Deletion, EncodedValue, Encoding, Enqueued, Error, Key,
    LIMITER_STATE_BYTES_MAX, Limiting, Limits, Message, OrderPath, Patch, Resolved, Result, Time,
    Versionstamp, Violation, WriteId, limit,
};

/// A condition on one key: its entry has this versionstamp, or (`None`) there is no entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The key.
    pub key: Key,
    /// The versionstamp that the entry must have.
    pub expected: Option<Versionstamp>,
}

/// A condition on a range: the entries with `start <= key < end` are exactly these, which a transaction has listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCheck {
    /// First key, included.
    pub start: Key,
    /// Last key, excluded.
    pub end: Key,
    /// The entries that the transaction has read, in key order.
    pub seen: Vec<(Key, Versionstamp)>,
    /// It is about those entries of the range alone that value indexes find for this filter.
    pub found_by: Option<FoundBy>,
}

/// A filter by which value indexes have found entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBy {
    /// An object in CBOR.
    pub filter: Vec<u8>,
    /// The value of `$now`, in ms since the epoch.
    pub now_ms: i64,
    /// It is about the entries of a part of this order alone.
    pub order: Option<OrderPart>,
}

/// The part of a list in the order of values that a transaction has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderPart {
    /// The order.
    pub order: Vec<OrderPath>,
    /// The position behind which the list has begun; `None` for its beginning.
    pub after: Option<Vec<u8>>,
    /// The position up to which it was read; `None` for its end.
    pub until: Option<Vec<u8>>,
}

impl OrderPart {
    fn size_bytes(&self) -> usize {
        let paths: usize = self.order.iter().map(|path| path.path.len()).sum();
        let positions = self.after.iter().chain(&self.until);
        paths + positions.map(Vec::len).sum::<usize>()
    }
}

impl RangeCheck {
    /// Bytes of its keys and of its filter, for limits and groups.
    pub(super) fn size_bytes(&self) -> usize {
        let seen: usize = self.seen.iter().map(|(key, _)| key.len()).sum();
        let filter = self
            .found_by
            .as_ref()
            .map_or(0, |by| by.filter.len() + by.order.as_ref().map_or(0, OrderPart::size_bytes));
        self.start.len() + self.end.len() + seen + filter
    }
}

/// The operation of a [`Mutation::Arith`].
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
        /// The expiry.
        expiry: Option<Time>,
    },
    /// Removes an entry, if it exists.
    Delete {
        /// The key.
        key: Key,
    },
    /// Combines the stored number with an operand.
    Arith {
        /// The operation.
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
        /// The calculation.
        calculation: Calculation,
        /// The new expiry; `None` keeps the stored one.
        expiry: Option<Time>,
    },
    /// Adds items at the start or end of a stored array, or stores them if there is no entry.
    Append {
        /// The key.
        key: Key,
        /// A CBOR array.
        items: Vec<u8>,
        /// Whether they are added at the start.
        front: bool,
        /// Maximum size of the result.
        value_bytes_max: usize,
        /// The new expiry; `None` keeps the stored one.
        expiry: Option<Time>,
    },
    /// Sets the expiry of an entry; its value and versionstamp stay.
    SetExpiry {
        /// The key.
        key: Key,
        /// The new expiry; `None` removes it.
        expiry: Option<Time>,
        /// Whether a missing entry fails the write like a check; otherwise it is ignored.
        required: bool,
        /// Whether an entry that expires earlier stays as it is.
        shortens: bool,
    },
    /// Takes from a limiter. Without enough points the entry stays as it is, and the write commits.
    Limit {
        /// The key.
        key: Key,
        /// The rule, and what is taken.
        limiting: Limiting,
    },
}

/// Declares the kinds of mutations together with [`Mutation::kind`], so that no kind is missing, and
/// the access to the key, which every kind has, and the methods that make one.
macro_rules! kinds {
    ($($name:ident $methods:literal),* $(,)?) => {
        /// The kinds of [`Mutation`]s. `tests/server/mutations.rs` takes each through every layer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum MutationKind {
            $(#[doc = concat!("[`Mutation::", stringify!($name), "`]")] $name,)*
        }

        impl MutationKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The methods that make one, as messages name them.
            pub const fn methods(self) -> &'static str {
                match self { $(Self::$name => $methods,)* }
            }
        }

        impl Mutation {
            /// The kind.
            pub const fn kind(&self) -> MutationKind {
                match self { $(Self::$name { .. } => MutationKind::$name,)* }
            }

            /// The key, without the suffix.
            pub const fn key(&self) -> &Key {
                match self { $(Self::$name { key, .. } => key,)* }
            }

            const fn key_mut(&mut self) -> &mut Key {
                match self { $(Self::$name { key, .. } => key,)* }
            }
        }
    };
}

kinds! {
    Set "set",
    Delete "delete",
    Arith "sum, min and max",
    Calculate "sum, min and max",
    Append "append and prepend",
    SetExpiry "touch and persist",
    Limit "limiter",
}

/// What a result reports of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// The stored number.
    Number,
    /// The length of the stored array.
    Length,
    /// What a limiter answers.
    Limiter,
}

/// Bytes that a versionstamp adds to an encoded key: tag, 20 digits, terminator.
const SUFFIX_BYTES: usize = Versionstamp::HEX_BYTES + 2;

impl Mutation {
    /// Bytes of the stored key, and of the value (`None` for a delete).
    fn sizes(&self) -> (usize, Option<usize>) {
        let suffix = if let Self::Set { suffixed: true, .. } = self { SUFFIX_BYTES } else { 0 };
        let value = match self {
            Self::Set { value, .. } => Some(value.bytes.len()),
            Self::Delete { .. } | Self::SetExpiry { .. } => None,
            Self::Arith { operand, .. } => Some(operand.bytes.len()),
            Self::Calculate { calculation, .. } => Some(calculation.size_bytes()),
            Self::Append { items, .. } => Some(items.len()),
            Self::Limit { .. } => Some(LIMITER_STATE_BYTES_MAX),
        };
        (self.key().len() + suffix, value)
    }

    /// Whether the mutation can fail, so that the ones before it have to be undone.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Set { .. } | Self::Delete { .. } => false,
            Self::Arith { .. }
            | Self::Calculate { .. }
            | Self::Append { .. }
            | Self::Limit { .. } => true,
            Self::SetExpiry { required, .. } => *required,
        }
    }

    /// The value that it stores as it is; others are calculated, and written anew.
    pub fn stored_value(&self) -> Option<(Encoding, &[u8])> {
        match self {
            Self::Set { value, .. } => Some((value.encoding, &value.bytes)),
            Self::Append { items, .. } => Some((Encoding::Cbor, items)),
            Self::Delete { .. }
            | Self::Arith { .. }
            | Self::Calculate { .. }
            | Self::SetExpiry { .. }
            | Self::Limit { .. } => None,
        }
    }

    /// Whether its decision needs the entry, and then whether with the value.
    pub(crate) const fn needs_entry(&self) -> Option<bool> {
        match self {
            Self::Set { .. } | Self::Delete { .. } => None,
            Self::SetExpiry { shortens, .. } => Some(*shortens),
            Self::Arith { .. }
            | Self::Calculate { .. }
            | Self::Append { .. }
            | Self::Limit { .. } => Some(true),
        }
    }

    /// Whether the entry of its key has another versionstamp after it, or none. A new expiry keeps the versionstamp,
    /// and a key with the versionstamp in it is another key.
    pub const fn changes_versionstamp(&self) -> bool {
        match self {
            Self::Set { suffixed, .. } => !*suffixed,
            Self::Delete { .. }
            | Self::Arith { .. }
            | Self::Calculate { .. }
            | Self::Append { .. }
            | Self::Limit { .. } => true,
            Self::SetExpiry { .. } => false,
        }
    }

    /// The bytes of its value, if it carries one.
    pub fn value_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Set { value, .. } => Some(&mut value.bytes),
            Self::Append { items, .. } => Some(items),
            Self::Delete { .. }
            | Self::Arith { .. }
            | Self::Calculate { .. }
            | Self::SetExpiry { .. }
            | Self::Limit { .. } => None,
        }
    }

    /// Modifies the bytes of the key.
    pub(crate) fn change_key(&mut self, change: impl FnOnce(&mut [u8])) {
        let key = self.key_mut();
        let mut bytes = std::mem::take(key).into_bytes();
        change(&mut bytes);
        *key = Key::from_encoded(bytes);
    }

    /// What a result reports of this mutation.
    pub(crate) const fn returned(&self) -> Option<Returned> {
        match self {
            Self::Arith { .. } | Self::Calculate { .. } => Some(Returned::Number),
            Self::Append { .. } => Some(Returned::Length),
            Self::Limit { .. } => Some(Returned::Limiter),
            Self::Set { .. } | Self::Delete { .. } | Self::SetExpiry { .. } => None,
        }
    }
}

/// A write within the limits of its handle; one over them cannot be constructed.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicWrite {
    parts: WriteParts,
    bytes: usize,
}

/// The parts of an [`AtomicWrite`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteParts {
    /// Conditions, all of which must hold.
    pub checks: Vec<Check>,
    /// Conditions on ranges, numbered after those on keys.
    pub ranges: Vec<RangeCheck>,
    /// Messages that the commit acknowledges. That their locks hold is a condition, numbered after
    /// those on ranges.
    pub acks: Vec<Ack>,
    /// Changes, in order.
    pub mutations: Vec<Mutation>,
    /// Whether the results contain the calculated values.
    pub returns_values: bool,
    /// Messages to enqueue.
    pub messages: Vec<Message>,
    /// Positions of UUIDs.
    pub patches: Vec<Patch>,
    /// A deletion of many entries; the other parts are empty then.
    pub deletion: Option<Box<Deletion>>,
    /// By which a repetition is recognised.
    pub attempt: Option<Attempt>,
}

impl AtomicWrite {
    /// Checks the parts against the limits, in the order and with the texts of Deno KV.
    ///
    /// # Errors
    /// `Invalid`, with the limit, its value and the given value.
    pub fn new(parts: WriteParts, limits: &Limits) -> Result<Self> {
        Self::telling(parts, limits, &|_| String::new())
    }

    /// As [`AtomicWrite::new`]; `tell` formats a key for messages.
    pub fn telling(
        parts: WriteParts,
        limits: &Limits,
        tell: &dyn Fn(&Key) -> String,
    ) -> Result<Self> {
        let WriteParts { checks, ranges, acks, mutations, messages, .. } = &parts;
        limit::checks(checks.len() + ranges.len() + acks.len(), limits)?;
        limit::checked_rows(ranges.iter().map(|range| range.seen.len()).sum(), limits)?;
        limit::mutations(mutations.len() + messages.len(), limits)?;

        let mut bytes = 0;
        let mut key_bytes = 0;
        let written_key = |key: &Key, len: usize| limit::key(key, len, limits, tell);
        for (at, check) in checks.iter().enumerate() {
            let len = check.key.as_bytes().len();
            written_key(&check.key, len).map_err(|error| error.about(&format!("checks[{at}]")))?;
            bytes += len;
        }
        bytes += ranges.iter().map(RangeCheck::size_bytes).sum::<usize>();
        for mutation in mutations {
            let (key_len, value_len) = mutation.sizes();
            written_key(mutation.key(), key_len)?;
            bytes += key_len;
            if let Some(value_len) = value_len {
                limit::value(value_len, limits.value_bytes_max, &|| tell(mutation.key()))?;
                bytes += key_len + value_len;
                key_bytes += key_len;
            }
        }
        for message in messages {
            limit::message(message, limits)?;
            let key_len = message.deduplication_key.as_ref().map_or(0, String::len);
            bytes += message.value.len() + 4 * message.backoff_ms.len();
            bytes += message.queue.len() + key_len;
            for key in &message.keys_if_undelivered {
                written_key(key, key.as_bytes().len())?;
            }
        }
        limit::totals(bytes, key_bytes, limits)?;
        Ok(Self { parts, bytes })
    }

    /// Bytes of keys, values and messages, for groups.
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Its parts, borrowed.
    pub fn parts(&self) -> (&[Check], &[Mutation], &[Message]) {
        (&self.parts.checks, &self.parts.mutations, &self.parts.messages)
    }

    /// The ranges that it checks.
    pub fn ranges(&self) -> &[RangeCheck] {
        &self.parts.ranges
    }

    /// The messages that it enqueues.
    pub fn messages(&self) -> &[Message] {
        &self.parts.messages
    }

    /// The messages that it acknowledges.
    pub fn acks(&self) -> &[Ack] {
        &self.parts.acks
    }

    /// Whether the results contain the calculated values.
    pub fn returns_values(&self) -> bool {
        self.parts.returns_values
    }

    /// The id by which a repetition is recognised.
    pub fn id(&self) -> Option<WriteId> {
        self.parts.attempt.map(|attempt| attempt.id)
    }

    /// Which attempt of its client it is, if it has an id.
    pub fn attempt(&self) -> Option<Attempt> {
        self.parts.attempt
    }

    /// The same write as a repetition: an earlier attempt may still arrive.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        if let Some(attempt) = &mut self.parts.attempt {
            attempt.repeated = true;
        }
        self
    }

    /// The positions of UUIDs.
    pub fn patches(&self) -> &[Patch] {
        &self.parts.patches
    }

    /// The queues of its messages.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.parts.messages.iter().map(|message| message.queue.as_str())
    }

    /// Whether it only deletes, so that a quota on size must not reject it.
    pub fn only_deletes(&self) -> bool {
        let deletes = |mutation: &Mutation| mutation.kind() == MutationKind::Delete;
        self.parts.messages.is_empty() && self.parts.mutations.iter().all(deletes)
    }

    /// Whether it has checks alone, so that it changes nothing.
    pub fn is_only_checks(&self) -> bool {
        let WriteParts { acks, mutations, messages, deletion, .. } = &self.parts;
        acks.is_empty() && mutations.is_empty() && messages.is_empty() && deletion.is_none()
    }

    /// The key of its first mutation.
    pub fn first_key(&self) -> Option<&Key> {
        self.parts.mutations.first().map(Mutation::key)
    }

    /// Its parts, moved out.
    pub fn into_parts(self) -> WriteParts {
        self.parts
    }

    /// Whether its keys are all that its decision depends on: it has no range, no placeholder, no
    /// deduplicated message and no schedule, and acknowledges no message.
    #[must_use]
    pub fn names_all_needs(&self) -> bool {
        self.parts.ranges.is_empty()
            && self.parts.acks.is_empty()
            && self.parts.patches.is_empty()
            && self.parts.deletion.is_none()
            && (self.parts.messages.iter())
                .all(|message| message.deduplication_key.is_none() && message.schedule.is_none())
    }

    /// Whether the commit generates UUIDs for it.
    pub fn has_placeholders(&self) -> bool {
        !self.parts.patches.is_empty()
    }
}

/// The results of a commit, beside its versionstamp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// UUIDs, with their placeholders.
    pub resolved: Vec<Resolved>,
    /// If requested: for each mutation that calculates, appends or takes from a limiter, in order, the stored
    /// number, the length of the stored array, or the answer of the limiter.
    pub values: Vec<EncodedValue>,
    /// The result for each message, in order.
    pub enqueued: Vec<Enqueued>,
}

impl Results {
    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.resolved.is_empty() && self.values.is_empty() && self.enqueued.is_empty()
    }
}

impl Decision {
    /// A commit, with its results if there are any.
    #[must_use]
    pub fn committed(stamp: Versionstamp, results: Results) -> Self {
        if results.is_empty() {
            Self::Committed(stamp)
        } else {
            Self::CommittedWith(stamp, Box::new(results))
        }
    }

    /// Adds the result for the next message of a commit.
    pub(crate) fn enqueued(&mut self, enqueued: Enqueued) {
        if let Self::Committed(stamp) = self {
            *self = Self::CommittedWith(*stamp, Box::default());
        }
        if let Self::CommittedWith(_, results) = self {
            results.enqueued.push(enqueued);
        }
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        match self {
            Self::CheckFailed(_) | Self::NotUnique(_) | Self::Rejected(_) => true,
            Self::Committed(_) | Self::CommittedWith(..) | Self::Deleted(_) => false,
        }
    }
}

/// The outcome of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It happened, with this versionstamp.
    Committed(Versionstamp),
    /// It happened, with this versionstamp and these results.
    CommittedWith(Versionstamp, Box<Results>),
    /// A step of a deletion of many entries happened.
    Deleted(Deleted),
    /// These checks did not hold, by index; checks of ranges follow those of keys, and locks of
    /// acknowledged messages those of ranges. Nothing happened.
    CheckFailed(Vec<usize>),
    /// It would have broken unique indexes; nothing happened.
    NotUnique(Vec<Violation>),
    /// It is invalid; nothing happened.
    Rejected(Error),
}
