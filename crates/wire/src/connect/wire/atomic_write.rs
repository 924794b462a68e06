//! `atomic_write`: checks, mutations and messages.

use prost::Message as _;

use super::bytes::{decode, each_field};
use super::sum::WireBounds;
use super::value::{bad_answer, from_wire, stamp, to_wire};
use crate::connect::schema::{
    self, AtomicWriteOutput, ENCODING_V8, MUTATION_DELETE, MUTATION_MAX, MUTATION_MIN,
    MUTATION_SET, MUTATION_SET_SUFFIXED, MUTATION_SUM, WRITE_CHECK_FAILURE, WRITE_DISABLED,
    WRITE_SUCCESS,
};
use openkv_core::codec::cbor::{encode_bigint, encode_number};
use openkv_core::codec::{key, message_context};
use openkv_core::model::{
    Arith, AtomicWrite, Check, EncodedValue, Encoding, Error, Key, Kind, Limits, Message, Mutation,
    Operand, Result, Time, Versionstamp, Violation, WIRE_BACKOFF_INTERVALS_MAX, WriteParts,
};

/// The outcome of a write in the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteAnswer {
    /// The write has committed.
    Committed(Versionstamp),
    /// These checks failed (many servers do not name them); nothing was written.
    CheckFailed(Vec<usize>),
    /// Unique indexes refuse the write. A client that does not know them sees a failed check.
    NotUnique(Vec<Violation>),
    /// Writes are disabled at the endpoint; nothing was written.
    Disabled,
}

/// Encodes a request for a write.
///
/// # Errors
/// `Unsupported` for a mutation that the protocol does not have; as [`to_wire`].
pub fn write_request(write: AtomicWrite) -> Result<Vec<u8>> {
    let parts = write.into_parts();
    let WriteParts {
        checks,
        ranges,
        acks,
        mutations,
        returns_values,
        messages,
        patches,
        deletion,
        attempt: _,
    } = parts;
    let beyond = [
        (!ranges.is_empty(), "lists of a transaction"),
        (!acks.is_empty(), "ack in a commit"),
        (!patches.is_empty(), "uuidv7()"),
        (deletion.is_some(), "deleteMany"),
        (returns_values, "commit({ values: true })"),
    ];
    if let Some((_, what)) = beyond.into_iter().find(|(is_there, _)| *is_there) {
        return Err(lacking_for(what));
    }
    let checks = checks.into_iter().map(|Check { key, expected }| schema::Check {
        key: key.into_bytes(),
        versionstamp: expected.map(|stamp| stamp.to_bytes().to_vec()).unwrap_or_default(),
    });
    let request = schema::AtomicWrite {
        checks: checks.collect(),
        mutations: mutations.into_iter().map(mutation_to_wire).collect::<Result<_>>()?,
        enqueues: messages.into_iter().map(message_to_wire).collect::<Result<_>>()?,
    };
    Ok(request.encode_to_vec())
}

fn mutation_to_wire(mutation: Mutation) -> Result<schema::Mutation> {
    let (key, value, mutation_type, expire_at_ms) = match mutation {
        Mutation::Set { key, suffixed, value, expiry } => {
            let kind = if suffixed { MUTATION_SET_SUFFIXED } else { MUTATION_SET };
            // Zero means no expiry, so an expiry at 0 becomes 1: both are in the past.
            let expire_at_ms = expiry.map(absolute_ms).transpose()?.map_or(0, |ms| ms.max(1));
            (key, Some(value), kind, expire_at_ms)
        }
        Mutation::Delete { key } => (key, None, MUTATION_DELETE, 0),
        Mutation::Arith { op, key, operand } => (key, Some(operand), kind_of(op), 0),
        Mutation::Calculate { key, calculation, expiry: None } if calculation.bounds.is_none() => {
            (key, Some(operand_value(&calculation.operand)), kind_of(calculation.op), 0)
        }
        Mutation::Calculate { expiry: Some(_), calculation, .. } => {
            let op = calculation.op.name();
            return Err(lacking_for(&format!("expireIn and expireAt of {op}")));
        }
        Mutation::Calculate { .. } => return Err(lacking_for("bounds of sums")),
        other => return Err(lacking_for(other.kind().methods())),
    };
    let value = value.map(|EncodedValue { encoding, bytes }| {
        to_wire(encoding, &bytes).map(|(data, encoding)| schema::KvValue { data, encoding })
    });
    let value = value.transpose()?;
    Ok(schema::Mutation {
        key: key.into_bytes(),
        value,
        mutation_type,
        expire_at_ms,
        ..schema::Mutation::default()
    })
}

/// The protocol has only absolute times.
fn absolute_ms(time: Time) -> Result<i64> {
    match time {
        Time::At(ms) => Ok(ms),
        Time::After(_) => Err(lacking_for("times from the commit")),
    }
}

fn kind_of(op: Arith) -> i32 {
    match op {
        Arith::Sum => MUTATION_SUM,
        Arith::Min => MUTATION_MIN,
        Arith::Max => MUTATION_MAX,
    }
}

/// An operand in Deno's types: a bigint in range is a `KvU64`.
fn operand_value(operand: &Operand) -> EncodedValue {
    let cbor = |bytes| EncodedValue { encoding: Encoding::Cbor, bytes };
    match operand {
        Operand::U64(n) => EncodedValue::le64(*n),
        Operand::BigInt(n) => match u64::try_from(n) {
            Ok(n) => EncodedValue::le64(n),
            Err(_) => cbor(encode_bigint(n)),
        },
        Operand::Number(n) => cbor(encode_number(*n)),
    }
}

fn lacking_for(what: &str) -> Error {
    Error::unsupported(format!(
        "the server lacks an extension of KV Connect that this write needs, for {what}: the \
         protocol has set, delete, sum, min and max"
    ))
}

fn message_to_wire(message: Message) -> Result<schema::Enqueue> {
    if message.is_named() {
        return Err(Error::unsupported(
            "KV Connect has no named queues: use kv.enqueue(), or a database in a file",
        ));
    }
    let Message { due, backoff_ms, keys_if_undelivered, value, .. } = message;
    // The protocol has no place for the context of a message.
    let (payload, _) = to_wire(Encoding::Cbor, message_context::value_of(&value))?;
    let keys = keys_if_undelivered.into_iter().map(Key::into_bytes).collect();
    Ok(schema::Enqueue {
        payload,
        deadline_ms: absolute_ms(due)?,
        keys_if_undelivered: keys,
        backoff_schedule: backoff_ms,
    })
}

/// Decodes a request. Its times are compared with `now_ms`.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over the limits.
pub fn read_request(bytes: &[u8], limits: &Limits, now_ms: i64) -> Result<AtomicWrite> {
    count(bytes, limits)?;
    let request: schema::AtomicWrite = decode(bytes)?;
    let sized = Sized { limits, now_ms };
    let mut parts = WriteParts::default();
    let mut bytes = 0;
    for (at, check) in request.checks.into_iter().enumerate() {
        bytes += check.key.len();
        parts
            .checks
            .push(sized.check(check).map_err(|error| error.about(&format!("checks[{at}]")))?);
    }
    for (at, mutation) in request.mutations.into_iter().enumerate() {
        let value_len = mutation.value.as_ref().map_or(0, |value| value.data.len());
        bytes += mutation.key.len() + value_len;
        let mutation = sized.mutation(mutation);
        parts.mutations.push(mutation.map_err(|error| error.about(&format!("mutations[{at}]")))?);
    }
    for message in request.enqueues {
        let keys: usize = message.keys_if_undelivered.iter().map(Vec::len).sum();
        bytes += message.payload.len() + keys + 4 * message.backoff_schedule.len();
        parts.messages.push(sized.message(message)?);
    }
    if bytes > limits.commit_bytes_max {
        let max = limits.commit_bytes_max;
        return Err(Error::invalid(format!(
            "The total size of the atomic write is too large (max {max} bytes): {bytes} bytes given."
        )));
    }
    // Sizes that were checked on the wire are not checked again in another format.
    let counted = Limits {
        key_bytes_max: limits.range_key_bytes_max,
        value_bytes_max: usize::MAX,
        message_bytes_max: usize::MAX,
        commit_bytes_max: usize::MAX,
        commit_key_bytes_max: usize::MAX,
        backoff_intervals_max: WIRE_BACKOFF_INTERVALS_MAX,
        ..limits.clone()
    };
    // The protocol has one status for all refusals of a write.
    AtomicWrite::new(parts, &counted).map_err(|error| error.known_to(Kind::KNOWN))
}

fn count(bytes: &[u8], limits: &Limits) -> Result<()> {
    let (mut checks, mut mutations) = (0, 0);
    each_field(bytes, &mut |tag, _| {
        checks += usize::from(tag == 1);
        mutations += usize::from(tag == 2 || tag == 3);
        let (checks_max, mutations_max) = (limits.checks_max, limits.mutations_max);
        if checks > checks_max {
            return Err(Error::invalid(format!(
                "Too many checks included in atomic write (max {checks_max})."
            )));
        }
        if mutations > mutations_max {
            return Err(Error::invalid(format!(
                "Too many mutations / enqueues included in atomic write (max {mutations_max})."
            )));
        }
        Ok(())
    })
}

/// The limits for the parts of a request.
struct Sized<'a> {
    limits: &'a Limits,
    now_ms: i64,
}

impl Sized<'_> {
    fn check(&self, check: schema::Check) -> Result<Check> {
        let key = written_key(check.key, self.limits.range_key_bytes_max)?;
        let expected = if check.versionstamp.is_empty() {
            None
        } else {
            let stamp = stamp(&check.versionstamp);
            Some(stamp.map_err(|_| Error::invalid("Invalid versionstamp: it has 0 or 10 bytes."))?)
        };
        Ok(Check { key, expected })
    }

    fn mutation(&self, mutation: schema::Mutation) -> Result<Mutation> {
        let key = written_key(mutation.key, self.limits.key_bytes_max)?;
        if mutation.expire_at_ms < -1 {
            return Err(Error::invalid("Invalid mutation expire at: it is below zero."));
        }
        let schema::Mutation { sum_min, sum_max, sum_clamp, .. } = mutation;
        let bounds = WireBounds { min: sum_min, max: sum_max, clamp: sum_clamp };
        if !bounds.is_empty() && mutation.mutation_type != MUTATION_SUM {
            return Err(Error::invalid(
                "Invalid mutation kind or arguments: only sums have bounds.",
            ));
        }
        if mutation.mutation_type == MUTATION_DELETE {
            return Ok(Mutation::Delete { key });
        }
        let op = match mutation.mutation_type {
            MUTATION_SET | MUTATION_SET_SUFFIXED => None,
            MUTATION_SUM => Some(Arith::Sum),
            MUTATION_MIN => Some(Arith::Min),
            MUTATION_MAX => Some(Arith::Max),
            other => {
                return Err(Error::invalid(format!(
                    "Invalid mutation kind or arguments: there is no mutation type {other}."
                )));
            }
        };
        let value = mutation.value.ok_or_else(|| {
            Error::invalid("Invalid mutation kind or arguments: a value is missing.")
        })?;
        self.value_len(value.data.len(), self.limits.value_bytes_max)?;
        if !bounds.is_empty() {
            return bounds.sum(key, value, self.limits.value_bytes_max);
        }
        let value = from_wire(value.encoding, value.data)?;
        Ok(match op {
            Some(op) => Mutation::Arith { op, key, operand: value },
            None => Mutation::Set {
                key,
                suffixed: mutation.mutation_type == MUTATION_SET_SUFFIXED,
                value,
                expiry: Some(mutation.expire_at_ms).filter(|ms| *ms > 0).map(Time::At),
            },
        })
    }

    fn value_len(&self, given: usize, max: usize) -> Result<()> {
        if given <= max {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "A value exceeds the value size limit (max {max} bytes): {given} bytes given."
        )))
    }

    fn message(&self, message: schema::Enqueue) -> Result<Message> {
        self.value_len(message.payload.len(), self.limits.message_bytes_max)?;
        let latest_ms = self.now_ms.saturating_add(self.limits.delay_ms_max as i64);
        if message.deadline_ms < 0 || message.deadline_ms > latest_ms {
            let max = self.limits.delay_ms_max;
            return Err(Error::invalid(format!(
                "Invalid mutation enqueue deadline: it is from 0 to {max} ms from now."
            )));
        }
        let keys = message.keys_if_undelivered.len();
        if keys > self.limits.undelivered_keys_max {
            let max = self.limits.undelivered_keys_max;
            return Err(Error::invalid(format!(
                "Too many dead letter keys for a single enqueue (max {max}): {keys} given."
            )));
        }
        let intervals = message.backoff_schedule.len();
        if intervals > WIRE_BACKOFF_INTERVALS_MAX {
            return Err(Error::invalid(format!(
                "Too many backoff intervals for a single enqueue (max \
                 {WIRE_BACKOFF_INTERVALS_MAX}): {intervals} given."
            )));
        }
        let longest = message.backoff_schedule.iter().max().copied().unwrap_or(0);
        if longest as usize > self.limits.backoff_interval_ms_max {
            let max = self.limits.backoff_interval_ms_max;
            return Err(Error::invalid(format!(
                "A backoff interval exceeds the maximum (max {max} ms): {longest} ms given."
            )));
        }
        let keys = message.keys_if_undelivered.into_iter();
        let keys = keys.map(|key| written_key(key, self.limits.key_bytes_max));
        Ok(Message {
            due: Time::At(message.deadline_ms.max(self.now_ms)),
            backoff_ms: message.backoff_schedule,
            keys_if_undelivered: keys.collect::<Result<_>>()?,
            value: from_wire(ENCODING_V8, message.payload)?.bytes,
            ..Message::default()
        })
    }
}

fn written_key(bytes: Vec<u8>, max: usize) -> Result<Key> {
    if bytes.len() > max {
        let given = bytes.len();
        return Err(Error::invalid(format!(
            "A key exceeds the key size limit (max {max} bytes): {given} bytes given."
        )));
    }
    key::validate(&bytes)
        .map_err(|why| Error::invalid(format!("A key is not the encoding of a key: {why}")))?;
    Ok(Key::from_encoded(bytes))
}

/// Encodes the outcome of a write.
pub fn write_answer(answer: &WriteAnswer) -> Vec<u8> {
    let output = match answer {
        WriteAnswer::Committed(stamp) => AtomicWriteOutput {
            status: WRITE_SUCCESS,
            versionstamp: stamp.to_bytes().to_vec(),
            ..AtomicWriteOutput::default()
        },
        WriteAnswer::CheckFailed(failed) => AtomicWriteOutput {
            status: WRITE_CHECK_FAILURE,
            failed_checks: failed.iter().filter_map(|at| u32::try_from(*at).ok()).collect(),
            ..AtomicWriteOutput::default()
        },
        WriteAnswer::NotUnique(violations) => AtomicWriteOutput {
            status: WRITE_CHECK_FAILURE,
            violations: violations.iter().map(violation_to_wire).collect(),
            ..AtomicWriteOutput::default()
        },
        WriteAnswer::Disabled => {
            AtomicWriteOutput { status: WRITE_DISABLED, ..AtomicWriteOutput::default() }
        }
    };
    output.encode_to_vec()
}

fn violation_to_wire(Violation { index, key, other }: &Violation) -> schema::UniqueViolation {
    schema::UniqueViolation {
        index: index.clone(),
        key: key.as_bytes().to_vec(),
        other: other.as_bytes().to_vec(),
    }
}

/// Decodes an answer.
///
/// # Errors
/// `Unavailable` for a malformed answer; the outcome of the write is unknown then.
pub fn read_answer(bytes: &[u8]) -> Result<WriteAnswer> {
    let output: AtomicWriteOutput = decode(bytes).map_err(bad_answer)?;
    match output.status {
        WRITE_SUCCESS => {
            stamp(&output.versionstamp).map(WriteAnswer::Committed).map_err(bad_answer)
        }
        WRITE_CHECK_FAILURE if !output.violations.is_empty() => {
            let violations = output.violations.into_iter().map(|violation| {
                let schema::UniqueViolation { index, key, other } = violation;
                let [key, other] = [key, other].map(|key| {
                    key::validate(&key).map_err(bad_answer)?;
                    Ok(Key::from_encoded(key))
                });
                Ok(Violation { index, key: key?, other: other? })
            });
            violations.collect::<Result<_>>().map(WriteAnswer::NotUnique)
        }
        WRITE_CHECK_FAILURE => {
            let failed = output.failed_checks.into_iter().map(|at| at as usize);
            Ok(WriteAnswer::CheckFailed(failed.collect()))
        }
        WRITE_DISABLED => Ok(WriteAnswer::Disabled),
        other => Err(bad_answer(format!("Unspecified write error (code={other})"))),
    }
}
