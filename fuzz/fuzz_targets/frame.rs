//! Frames: no input panics; an accepted frame can be encoded again with the same meaning; an
//! accepted write is within its limits; answers stay inside their buffer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openkv::codec::cbor::{encode_bigint, encode_number};
use openkv::model::{
    Arith, AtomicWrite, Calculation, EncodedValue, Encoding, Key, Limits, Mutation, Numeric,
    Operand, Patch, Range, Row, Target, Time, Versionstamp, WriteParts,
};
use openkv::protocol::frame::{Answer, Fill, Out, parse_keys, parse_ranges, parse_writes};
use openkv_fuzz::within;

/// The smallest record with a node of its own is a one-byte write.
fn bytes_max(len: usize) -> usize {
    len * 3 * size_of::<Result<AtomicWrite, openkv::model::Error>>() + 4096
}

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, count, high], frame)) = data.split_first_chunk() else { return };
    let count = usize::from(count) | usize::from(high) << 24;
    let bytes_max = bytes_max(frame.len());
    match kind % 4 {
        0 => {
            if let Ok(keys) = within(bytes_max, || parse_keys(frame, count)) {
                let again: Vec<u8> = keys.iter().flat_map(sized_key).collect();
                assert_eq!(again, frame);
            }
        }
        1 => {
            if let Ok(ranges) = within(bytes_max, || parse_ranges(frame, count)) {
                let again: Vec<u8> = ranges.iter().flat_map(range_bytes).collect();
                assert_eq!(parse_ranges(&again, count), Ok(ranges));
            }
        }
        2 => {
            let limits = Limits::default();
            let Ok(writes) = within(bytes_max, || parse_writes(frame, count, &limits)) else {
                return;
            };
            assert_eq!(writes.len(), count);
            for write in writes.into_iter().flatten() {
                assert!(write.size_bytes() <= limits.commit_bytes_max);
                let again = write_bytes(write.clone().into_parts());
                assert_eq!(parse_writes(&again, 1, &limits), Ok(vec![Ok(write)]));
            }
        }
        _ => answer(count, frame),
    }
});

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn sized_key(key: &Key) -> Vec<u8> {
    sized(key.as_bytes())
}

fn range_bytes(range: &Range) -> Vec<u8> {
    let (flags, limit, start, end) = match range {
        Range::Point(key) => (2, 0, key, &Key::default()),
        Range::Span { start, end, limit, reverse } => (u8::from(*reverse), *limit, start, end),
    };
    let limit = (limit as u32).to_le_bytes();
    [&[flags][..], &limit, &sized_key(start), &sized_key(end)].concat()
}

fn value_bytes(value: &EncodedValue) -> Vec<u8> {
    [vec![value.encoding.id()], sized(&value.bytes)].concat()
}

fn numeric_bytes(number: &Numeric) -> Vec<u8> {
    let bytes = match number {
        Numeric::Number(n) => encode_number(*n),
        Numeric::BigInt(n) => encode_bigint(n),
    };
    value_bytes(&EncodedValue { encoding: Encoding::Cbor, bytes })
}

/// The first byte of a record with this time.
fn op_byte(op: u8, time: Option<Time>) -> u8 {
    if let Some(Time::After(_)) = time { op | 0x80 } else { op }
}

fn time_bytes(time: Time) -> [u8; 8] {
    let (Time::At(ms) | Time::After(ms)) = time;
    (ms as f64).to_le_bytes()
}

fn end_bytes(expiry: Option<Time>) -> Vec<u8> {
    expiry.map(|time| time_bytes(time).to_vec()).unwrap_or_default()
}

fn calculation_bytes(key: &Key, calculation: &Calculation, expiry: Option<Time>) -> Vec<u8> {
    let bounds = calculation.bounds.as_deref();
    let (min, max) = bounds.map_or((None, None), |b| (b.min.as_ref(), b.max.as_ref()));
    let clamps = bounds.is_some_and(|bounds| bounds.clamp);
    let bounds = u8::from(min.is_some()) | u8::from(max.is_some()) << 1 | u8::from(clamps) << 2;
    let flags = bounds | u8::from(expiry.is_some()) << 3;
    let operand = match &calculation.operand {
        Operand::U64(n) => value_bytes(&EncodedValue::le64(*n)),
        Operand::Number(n) => numeric_bytes(&Numeric::Number(*n)),
        Operand::BigInt(n) => numeric_bytes(&Numeric::BigInt(n.clone())),
    };
    let ends = [min, max].into_iter().flatten().flat_map(numeric_bytes).collect();
    let head = [vec![op_byte(8, expiry), calculation.op as u8, flags], end_bytes(expiry)].concat();
    [head, sized_key(key), operand, ends].concat()
}

fn mutation_bytes(mutation: &Mutation) -> Vec<u8> {
    match mutation {
        Mutation::Set { key, suffixed, value, expiry } => {
            let flags = u8::from(expiry.is_some()) | u8::from(*suffixed) << 1;
            let head = [vec![op_byte(2, *expiry), flags], end_bytes(*expiry)].concat();
            [head, sized_key(key), value_bytes(value)].concat()
        }
        Mutation::Delete { key } => [vec![3], sized_key(key)].concat(),
        Mutation::Arith { op, key, operand } => {
            let op = match op {
                Arith::Sum => 4,
                Arith::Min => 5,
                Arith::Max => 6,
            };
            [vec![op], sized_key(key), value_bytes(operand)].concat()
        }
        Mutation::Calculate { key, calculation, expiry } => {
            calculation_bytes(key, calculation, *expiry)
        }
        Mutation::Append { key, items, front, expiry, .. } => {
            let flags = u8::from(*front) | u8::from(expiry.is_some()) << 1;
            let head = [vec![op_byte(9, *expiry), flags], end_bytes(*expiry)].concat();
            [head, sized_key(key), sized(items)].concat()
        }
        Mutation::SetExpiry { key, expiry, required } => {
            let flags = u8::from(expiry.is_some()) | u8::from(*required) << 1;
            [vec![op_byte(10, *expiry), flags], end_bytes(*expiry), sized_key(key)].concat()
        }
    }
}

/// The placeholders of one record, in their original order.
fn patch_bytes(patches: &[Patch], places: &[(u8, Target)]) -> Vec<u8> {
    let mut out = vec![];
    let mut count = 0_u32;
    for patch in patches {
        if let Some((place, _)) = places.iter().find(|(_, target)| *target == patch.target) {
            count += 1;
            out.push(*place);
            out.extend((patch.offset as u32).to_le_bytes());
            out.extend(patch.placeholder.to_le_bytes());
        }
    }
    if count == 0 { out } else { [vec![11], count.to_le_bytes().to_vec(), out].concat() }
}

fn write_bytes(parts: WriteParts) -> Vec<u8> {
    let mut out = vec![];
    if let Some(attempt) = parts.attempt {
        out.push(0x10);
        out.extend(attempt.id.as_bytes());
    }
    for check in &parts.checks {
        out.extend([1, u8::from(check.expected.is_some())]);
        out.extend(check.expected.iter().flat_map(|stamp| stamp.hex()));
        out.extend(sized_key(&check.key));
    }
    for range in &parts.ranges {
        out.push(12);
        out.extend(sized_key(&range.start));
        out.extend(sized_key(&range.end));
        out.extend((range.seen.len() as u32).to_le_bytes());
        for (key, stamp) in &range.seen {
            out.extend(stamp.hex());
            out.extend(sized_key(key));
        }
    }
    for (at, mutation) in parts.mutations.iter().enumerate() {
        out.extend(mutation_bytes(mutation));
        let places = [(0, Target::Key(at)), (1, Target::Value(at))];
        out.extend(patch_bytes(&parts.patches, &places));
    }
    for (at, message) in parts.messages.iter().enumerate() {
        out.push(op_byte(if message.is_named() { 0x0e } else { 7 }, Some(message.due)));
        out.extend(time_bytes(message.due));
        out.push(message.backoff_ms.len() as u8);
        out.extend(message.backoff_ms.iter().flat_map(|ms| ms.to_le_bytes()));
        out.extend((message.keys_if_undelivered.len() as u16).to_le_bytes());
        out.extend(message.keys_if_undelivered.iter().flat_map(sized_key));
        if message.is_named() {
            out.push(message.priority);
            out.extend((message.dead_retention_ms.unwrap_or(-1) as f64).to_le_bytes());
            out.extend(sized(message.queue.as_bytes()));
            out.push(u8::from(message.deduplication_key.is_some()));
            out.extend(message.deduplication_key.iter().flat_map(|key| sized(key.as_bytes())));
        }
        out.extend(sized(&message.value));
        out.extend(patch_bytes(&parts.patches, &[(2, Target::Message(at))]));
    }
    if parts.tells_values {
        out.extend([0x0f, 1]);
    }
    out.push(0);
    out
}

/// Writes rows of the frame's bytes into a buffer of `room` bytes.
fn answer(room: usize, frame: &[u8]) {
    const ROW_HEAD_BYTES: usize = 8 + Versionstamp::HEX_BYTES + 1;
    let room = room % 4096;
    let mut buffer = vec![0xaa; room];
    let mut fill = Fill::new(&mut buffer);
    let mut answer = Answer::new(&mut fill);
    let mut expected = 5;
    let mut rows = 0;
    for chunk in frame.chunks(7) {
        let (key, value) = chunk.split_at(chunk.len() / 2);
        let row = Row { key, stamp: Versionstamp::new(1), encoding: Encoding::Cbor, value };
        let row_bytes = ROW_HEAD_BYTES + chunk.len();
        assert_eq!(answer.push(&row, true), expected + row_bytes <= room.max(5));
        if answer.is_full() {
            break;
        }
        expected += row_bytes;
        rows += 1;
    }
    assert_eq!(answer.rows(), rows);
    answer.finish();
    let len = fill.len();
    assert!(len <= room);
    if room >= 5 {
        assert_eq!(len, expected);
        assert_eq!(buffer[..4], (rows as u32).to_le_bytes());
        assert!(buffer[len..].iter().all(|byte| *byte == 0xaa));
    }
}
