//! Frames: no input panics; an accepted frame can be encoded again with the same meaning; an
//! accepted write is within its limits; answers stay inside their buffer.

use super::within;
use openkv::model::{AtomicWrite, Encoding, Key, Limits, Range, Row, Versionstamp};
use openkv::protocol::frame::{
    Answer, Fill, Out, parse_keys, parse_ranges, parse_writes, push_write,
};

/// The smallest record with a node of its own is a one-byte write.
fn bytes_max(len: usize) -> usize {
    len * 3 * size_of::<Result<AtomicWrite, openkv::model::Error>>() + 4096
}

pub(crate) fn check(data: &[u8]) {
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
                let mut again = vec![];
                push_write(&mut again, write.clone().into_parts());
                assert_eq!(parse_writes(&again, 1, &limits), Ok(vec![Ok(write)]));
            }
        }
        _ => answer(count, frame),
    }
}

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
