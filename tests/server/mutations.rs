//! Every kind of mutation through every layer: record of a frame, validation, commit and KV Connect's
//! message. A new kind does not compile here before it has a sample.

use openkv::call::validate_untrusted;
use openkv::connect::wire::atomic_write;
use openkv::model::{AtomicWrite, Decision, Kind, Limits, Mutation, MutationKind, Result};
use openkv::protocol::extension::{read_answer, with_count};
use openkv::protocol::frame::records::timed;
use openkv::protocol::frame::{RECORDS, parse_outcomes, parse_writes};

use crate::served::{ACCESS, file, key};

const NOW_MS: i64 = 1_000_000;
const CBOR: u8 = 67;
const LE64: u8 = 2;

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

fn value(encoding: u8, bytes: &[u8]) -> Vec<u8> {
    [&[encoding][..], &sized(bytes)].concat()
}

/// A mutation as a record of a frame.
struct Sample {
    /// The record about the key `m`.
    record: Vec<u8>,
    /// The same with a value that no client can read, if the mutation stores a value.
    unreadable: Option<Vec<u8>>,
    /// Whether KV Connect's protocol has it.
    in_kv_connect: bool,
}

fn sample(kind: MutationKind) -> Sample {
    let key = sized(key("m").as_bytes());
    let number = value(LE64, &7_u64.to_le_bytes());
    let with = |head: &[u8], tail: &[u8]| [head, &key, tail].concat();
    match kind {
        MutationKind::Set => Sample {
            record: with(&[2, 0], &value(CBOR, &[0xf6])),
            unreadable: Some(with(&[2, 0], &value(CBOR, &[0xff]))),
            in_kv_connect: true,
        },
        MutationKind::Delete => {
            Sample { record: with(&[3], &[]), unreadable: None, in_kv_connect: true }
        }
        MutationKind::Arith => {
            Sample { record: with(&[4], &number), unreadable: None, in_kv_connect: true }
        }
        MutationKind::Calculate => {
            Sample { record: with(&[8, 0, 0], &number), unreadable: None, in_kv_connect: true }
        }
        MutationKind::Append => Sample {
            record: with(&[9, 0], &sized(&[0x81, 0xf6])),
            unreadable: Some(with(&[9, 0], &sized(&[0x81, 0xff]))),
            in_kv_connect: false,
        },
        MutationKind::SetExpiry => {
            Sample { record: with(&[10, 0], &[]), unreadable: None, in_kv_connect: false }
        }
        MutationKind::Limit => {
            let rule = [5_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
            let head = [&[27, 0, 0][..], &rule, &1000_f64.to_le_bytes()].concat();
            Sample { record: with(&head, &[]), unreadable: None, in_kv_connect: false }
        }
    }
}

fn parsed(record: &[u8]) -> AtomicWrite {
    let frame = [record, &[0]].concat();
    let writes = parse_writes(&frame, 1, &Limits::default()).expect("a frame");
    writes.into_iter().next().expect("a write").expect("within the limits")
}

fn validated(record: &[u8]) -> Result<AtomicWrite> {
    validate_untrusted(parsed(record), &Limits::default(), NOW_MS)
}

fn kinds(write: &AtomicWrite) -> Vec<MutationKind> {
    write.parts().1.iter().map(Mutation::kind).collect()
}

#[test]
fn each_mutation_is_parsed_and_validated() {
    for kind in MutationKind::ALL {
        let Sample { record, unreadable, .. } = sample(*kind);
        let write = validated(&record).expect("a mutation that is well formed");
        assert_eq!(kinds(&write), [*kind]);
        for len in 0..record.len() {
            let cut = parse_writes(&record[..len], 1, &Limits::default());
            assert!(cut.is_err(), "{kind:?} cut at {len}");
        }
        if let Some(unreadable) = unreadable {
            let refused = validated(&unreadable).expect_err("a value that no client can read");
            assert_eq!(refused.kind(), Kind::Invalid, "{kind:?}");
        }
        // An invalid key: its only part has an unknown tag.
        let mut bad_key = record.clone();
        let at = record.windows(3).position(|bytes| bytes == [2, b'm', 0]).expect("the key");
        bad_key[at] = 0x7f;
        let refused = validated(&bad_key).expect_err("a key that no client can read");
        assert_eq!(refused.kind(), Kind::Invalid, "{kind:?}");
    }
}

#[test]
fn each_mutation_is_committed_over_a_url() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    for kind in MutationKind::ALL {
        // Each begins without an entry.
        let frame = [&sample(MutationKind::Delete).record, &sample(*kind).record, &[0][..]];
        let reply = session.post("openkv/write", &with_count(1, &frame.concat()));
        assert_eq!(reply.status, 200, "{kind:?}: {}", reply.text());
        let outcomes = read_answer(&reply.body).expect("an answer").expect("outcomes");
        let decisions = parse_outcomes(outcomes, 1).expect("outcomes");
        assert!(matches!(decisions[..], [Decision::Committed(_)]), "{kind:?}: {decisions:?}");
    }
}

#[test]
fn each_mutation_has_a_message_of_kv_connect_or_is_refused_by_name() {
    for kind in MutationKind::ALL {
        let Sample { record, in_kv_connect, .. } = sample(*kind);
        match atomic_write::write_request(parsed(&record)) {
            Ok(body) => {
                assert!(in_kv_connect, "{kind:?}");
                let read = atomic_write::read_request(&body, &Limits::default(), NOW_MS);
                assert_eq!(kinds(&read.expect("our own message")).len(), 1, "{kind:?}");
            }
            Err(error) => {
                assert!(!in_kv_connect, "{kind:?}: {error}");
                assert_eq!(error.kind(), Kind::Unsupported, "{kind:?}: {error}");
            }
        }
    }
}

/// Whether a byte is the first one of a record.
fn is_record(first: u8) -> bool {
    const RELATIVE: u8 = timed::RELATIVE;
    RECORDS.iter().any(|of| first == of.number || of.is_timed() && first == of.number | RELATIVE)
}

#[test]
fn every_other_record_is_unknown() {
    for op in 0..=u8::MAX {
        let error = parse_writes(&[op], 1, &Limits::default()).err();
        let is_unknown = error.is_some_and(|error| error.what().contains("unknown operation"));
        assert_eq!(!is_unknown, is_record(op), "record {op}");
    }
}
