//! Both directions of every request against each other, and the requests that are rejected.

use num_bigint::BigInt;
use prost::Message as _;

use super::value::entry_to_wire;
use super::{Entry, atomic_write, snapshot_read, watch};
use hex::hex;
use openkv_core::codec::cbor::{encode_bigint, encode_number};

#[path = "../../../../../tests/kit/hex.rs"]
mod hex;
use crate::connect::schema;
use crate::connect::versions::Version;
use atomic_write::WriteAnswer;
use openkv_core::model::{
    Arith, AtomicWrite, Bounds, Calculation, Check, EncodedValue, Encoding, Key, Kind, Limits,
    Message, Mutation, Numeric, Operand, Range, Result, Row, Time, Versionstamp, WriteParts,
};
use snapshot_read::ReadAnswer;
use watch::WatchAnswer;

const NOW_MS: i64 = 1_000_000;

fn named(name: &str) -> Key {
    Key::from_encoded([b"\x02", name.as_bytes(), b"\0"].concat())
}

fn cbor(n: f64) -> EncodedValue {
    EncodedValue { encoding: Encoding::Cbor, bytes: encode_number(n) }
}

fn entry(name: &str, value: EncodedValue) -> Entry {
    Entry { key: named(name), stamp: Versionstamp::new(7), value }
}

fn on_wire(entry: &Entry) -> schema::KvEntry {
    let Entry { key, stamp, value } = entry;
    let (encoding, value) = (value.encoding, value.bytes.as_slice());
    entry_to_wire(&Row { key: key.as_bytes(), stamp: *stamp, encoding, value }).unwrap()
}

fn read_write(bytes: &[u8]) -> Result<AtomicWrite> {
    atomic_write::read_request(bytes, &Limits::default(), NOW_MS)
}

fn refusal(request: schema::AtomicWrite) -> String {
    let error = read_write(&request.encode_to_vec()).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    error.message().to_owned()
}

#[test]
fn deno_s_own_bytes_are_read() {
    let get = hex("0a0d0a030261001204026100001801");
    let ranges = snapshot_read::read_request(&get, &Limits::default()).unwrap();
    assert_eq!(ranges, [Range::Point(named("a"))]);
    assert_eq!(snapshot_read::write_request(&ranges), get);

    let set = hex("1215 0a03026100 1208 0a04ff104902 1001 1801 2080897a");
    let write = read_write(&set).unwrap();
    let set = Mutation::Set {
        key: named("a"),
        suffixed: false,
        value: cbor(1.0),
        expiry: Some(Time::At(2_000_000)),
    };
    assert_eq!(write.into_parts().mutations, [set]);

    let watched = hex("0a050a03026100");
    let keys = watch::read_request(&watched, &Limits::default()).unwrap();
    assert_eq!(keys, [named("a")]);
    assert_eq!(watch::write_request(&keys), watched);
    let missing = hex("0801 12020801 12020801");
    assert_eq!(watch::write_answer(vec![None, None]), missing);
}

#[test]
fn reads_round_trip() {
    let ranges = [
        Range::Point(named("a")),
        Range::Span { start: Key::default(), end: named("z"), limit: 999, reverse: true },
    ];
    let request = snapshot_read::write_request(&ranges);
    assert_eq!(snapshot_read::read_request(&request, &Limits::default()).unwrap(), ranges);

    let bytes = EncodedValue { encoding: Encoding::Bytes, bytes: vec![1, 2, 3] };
    let one = entry("a", cbor(0.5));
    let two = [entry("b", EncodedValue::le64(9)), entry("c", bytes)];
    let answer = vec![vec![on_wire(&one)], two.iter().map(on_wire).collect()];
    let answer = snapshot_read::write_answer(answer, true);
    let expected = ReadAnswer::Entries { ranges: vec![vec![one], two.to_vec()], strong: true };
    for version in Version::ALL {
        assert_eq!(snapshot_read::read_answer(&answer, &ranges, version).unwrap(), expected);
    }
    for requested in [&ranges[..1], &[ranges[0].clone(), ranges[0].clone()][..]] {
        assert!(snapshot_read::read_answer(&answer, requested, Version::V3).is_err());
    }
    for len in 0..answer.len() {
        assert!(snapshot_read::read_answer(&answer[..len], &ranges, Version::V3).is_err(), "{len}");
    }
    let disabled =
        schema::SnapshotReadOutput { read_disabled: true, status: 2, ..Default::default() };
    for version in Version::ALL {
        let answer = snapshot_read::read_answer(&disabled.encode_to_vec(), &ranges, version);
        assert_eq!(answer, Ok(ReadAnswer::Disabled));
    }
}

#[test]
fn writes_round_trip() {
    let bigint = EncodedValue { encoding: Encoding::Cbor, bytes: encode_bigint(&BigInt::from(-5)) };
    let checks = vec![
        Check { key: named("a"), expected: None },
        Check { key: named("b"), expected: Some(Versionstamp::new(3)) },
    ];
    let set = |suffixed, expire_at_ms: Option<i64>| {
        let expiry = expire_at_ms.map(Time::At);
        let (key, value) = (named("c"), cbor(2.0));
        Mutation::Set { key, suffixed, value, expiry }
    };
    let arith = |op, operand| Mutation::Arith { op, key: named("n"), operand };
    let mutations = vec![
        set(false, None),
        set(true, Some(5)),
        Mutation::Delete { key: named("d") },
        arith(Arith::Sum, bigint),
        arith(Arith::Min, EncodedValue::le64(1)),
        arith(Arith::Max, EncodedValue::le64(2)),
    ];
    let parts = WriteParts { checks, mutations, ..WriteParts::default() };
    let write = AtomicWrite::new(parts, &Limits::default()).unwrap();
    let request = atomic_write::write_request(write.clone()).unwrap();
    let read = read_write(&request).unwrap();
    let (read, write) = (read.into_parts(), write.into_parts());
    assert_eq!((read.checks, read.mutations), (write.checks, write.mutations));
    for len in 0..request.len() {
        // Truncation between two fields gives a valid smaller request; no length may panic.
        let _ = read_write(&request[..len]);
    }
    for answer in [
        WriteAnswer::Committed(Versionstamp::new(1)),
        WriteAnswer::CheckFailed(vec![0, 300]),
        WriteAnswer::Disabled,
    ] {
        let bytes = atomic_write::write_answer(&answer);
        assert_eq!(atomic_write::read_answer(&bytes).unwrap(), answer);
    }
    assert!(atomic_write::read_answer(b"").is_err());
}

#[test]
fn messages_round_trip() {
    let frame = schema::Enqueue {
        payload: hex("ff0f4902"),
        deadline_ms: 0,
        keys_if_undelivered: vec![named("dead").into_bytes()],
        backoff_schedule: vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    };
    let request = schema::AtomicWrite { enqueues: vec![frame], ..Default::default() };
    let bytes = request.encode_to_vec();
    let write = read_write(&bytes).unwrap();
    let again = atomic_write::write_request(write.clone()).unwrap();
    let messages: Vec<Message> = write.into_parts().messages;
    assert_eq!(messages[0].due, Time::At(NOW_MS));
    assert_eq!(messages[0].value, encode_number(1.0));
    let again = read_write(&again).unwrap();
    assert_eq!(again.into_parts().messages, messages);
}

#[test]
fn errors_over_a_limit_name_the_limit() {
    let limits = Limits::default();
    let key = |len: usize| [&[2], vec![b'a'; len - 2].as_slice(), &[0]].concat();
    let value = |len: usize| schema::KvValue { data: vec![0; len], encoding: 3 };
    let set = |key_len, value_len| schema::Mutation {
        key: key(key_len),
        value: Some(value(value_len)),
        mutation_type: 1,
        ..Default::default()
    };
    let write = |mutation| schema::AtomicWrite { mutations: vec![mutation], ..Default::default() };
    let fits = |request: &schema::AtomicWrite| read_write(&request.encode_to_vec()).is_ok();
    assert!(fits(&write(set(2048, 65_536))));
    assert!(refusal(write(set(2049, 1))).contains("exceeds the key size limit (max 2048"));
    assert!(refusal(write(set(9, 65_537))).contains("exceeds the value size limit"));

    let check = |len, stamp: &[u8]| schema::Check { key: key(len), versionstamp: stamp.into() };
    let checks = |check: schema::Check, count| schema::AtomicWrite {
        checks: vec![check; count],
        ..Default::default()
    };
    assert!(fits(&checks(check(2049, b""), 100)));
    assert!(refusal(checks(check(2050, b""), 1)).contains("key size limit"));
    assert!(refusal(checks(check(3, b""), 101)).contains("Too many checks"));
    assert!(refusal(checks(check(3, b"123"), 1)).contains("Invalid versionstamp"));

    let many =
        |count| schema::AtomicWrite { mutations: vec![set(3, 1); count], ..Default::default() };
    assert!(fits(&many(1000)));
    assert!(refusal(many(1001)).contains("Too many mutations / enqueues"));
    let heavy = |count| schema::AtomicWrite {
        mutations: vec![set(2048, 63_488); count],
        ..Default::default()
    };
    assert!(fits(&heavy(12)));
    assert!(refusal(heavy(13)).contains("total size of the atomic write"));

    let of_seven = |encoding| schema::Mutation {
        value: Some(schema::KvValue { data: vec![0; 7], encoding }),
        ..set(3, 1)
    };
    for (odd, words) in [
        (schema::Mutation { mutation_type: 6, ..set(3, 1) }, "no mutation type 6"),
        (of_seven(2), "must be 8 bytes"),
        (of_seven(9), "Unknown encoding 9"),
        (of_seven(1), "A value cannot be read"),
        (schema::Mutation { value: None, ..set(3, 1) }, "a value is missing"),
        (schema::Mutation { expire_at_ms: -2, ..set(3, 1) }, "expire at"),
        (schema::Mutation { key: vec![], ..set(3, 1) }, "key cannot be empty"),
        (schema::Mutation { key: vec![0xff], ..set(3, 1) }, "not the encoding of a key"),
    ] {
        assert!(refusal(write(odd)).contains(words), "{words}");
    }
    assert!(fits(&write(schema::Mutation { expire_at_ms: i64::MAX, ..set(3, 1) })));

    let message = schema::Enqueue { payload: hex("ff0f4902"), ..Default::default() };
    let enqueue = |change: fn(&mut schema::Enqueue)| {
        let mut message = message.clone();
        change(&mut message);
        refusal(schema::AtomicWrite { enqueues: vec![message], ..Default::default() })
    };
    let late = |m: &mut schema::Enqueue| m.deadline_ms = NOW_MS + 2_592_000_001;
    assert!(enqueue(late).contains("enqueue deadline"));
    assert!(enqueue(|m| m.deadline_ms = -1).contains("enqueue deadline"));
    assert!(enqueue(|m| m.keys_if_undelivered = vec![vec![0x26]; 11]).contains("dead letter"));
    assert!(enqueue(|m| m.backoff_schedule = vec![0; 11]).contains("backoff intervals"));
    assert!(enqueue(|m| m.backoff_schedule = vec![3_600_001]).contains("backoff interval"));
    assert!(enqueue(|m| m.payload = vec![0; 65_537]).contains("value size limit"));

    let range =
        |limit, len| schema::ReadRange { start: vec![1; len], end: vec![2], limit, reverse: false };
    let read = |ranges| {
        let request = schema::SnapshotRead { ranges }.encode_to_vec();
        snapshot_read::read_request(&request, &limits).map_err(|e| e.message().to_owned())
    };
    assert!(read(vec![range(100, 2049); 10]).is_ok());
    assert!(read(vec![range(1, 1); 11]).unwrap_err().contains("Too many read ranges"));
    assert!(read(vec![range(0, 1)]).unwrap_err().contains("limit of the snapshot read"));
    assert!(read(vec![range(501, 1); 2]).unwrap_err().contains("total number of entries"));
    assert!(read(vec![range(1, 2050)]).unwrap_err().contains("key size limit"));

    let watched = |count, len| {
        let keys = vec![schema::WatchKey { key: vec![1; len] }; count];
        watch::read_request(&schema::Watch { keys }.encode_to_vec(), &limits)
            .map_err(|error| error.message().to_owned())
    };
    assert!(watched(10, 2048).is_ok());
    assert!(watched(11, 1).unwrap_err().contains("Too many keys watched"));
    assert!(watched(1, 2049).unwrap_err().contains("key size limit"));
}

#[test]
fn states_of_a_watch_round_trip() {
    let one = entry("a", cbor(1.0));
    let answer = watch::write_answer(vec![Some(on_wire(&one)), None]);
    let state = WatchAnswer::State(vec![Some(Some(one)), Some(None)]);
    assert_eq!(watch::read_answer(&answer, 2).unwrap(), state);
    for count in [1, 3] {
        assert!(watch::read_answer(&answer, count).is_err());
    }
    let unchanged = schema::WatchOutput { status: 1, keys: vec![Default::default()] };
    let state = WatchAnswer::State(vec![None]);
    assert_eq!(watch::read_answer(&unchanged.encode_to_vec(), 1).unwrap(), state);
    let disabled = schema::WatchOutput { status: 2, keys: Vec::new() }.encode_to_vec();
    assert_eq!(watch::read_answer(&disabled, 1).unwrap(), WatchAnswer::Disabled);
}

#[test]
fn empty_messages_are_counted_before_they_are_decoded() {
    let body = |tag: u8| [tag, 0].repeat(1_000_000);
    assert!(snapshot_read::read_request(&body(0x0a), &Limits::default()).is_err());
    assert!(watch::read_request(&body(0x0a), &Limits::default()).is_err());
    for tag in [0x0a, 0x12, 0x1a] {
        assert!(read_write(&body(tag)).is_err());
    }
    let ranges = [Range::Point(named("a"))];
    assert!(snapshot_read::read_answer(&body(0x0a), &ranges, Version::V3).is_err());
    assert!(watch::read_answer(&body(0x12), 10).is_err());
}

/// A bigint of one byte in V8's format.
fn v8_bigint(n: u8) -> Vec<u8> {
    vec![0xff, 0x0f, 0x5a, 0x02, n]
}

#[test]
fn a_sum_with_bounds_is_read() {
    let sum = schema::Mutation {
        key: named("n").into_bytes(),
        value: Some(schema::KvValue { data: v8_bigint(5), encoding: schema::ENCODING_V8 }),
        mutation_type: schema::MUTATION_SUM,
        sum_max: v8_bigint(50),
        sum_clamp: true,
        ..Default::default()
    };
    let write = |mutation| schema::AtomicWrite { mutations: vec![mutation], ..Default::default() };
    let limits = Limits::default();
    let bytes = write(sum.clone()).encode_to_vec();
    let read = read_write(&bytes).unwrap().into_parts();
    let max = Some(Numeric::BigInt(50.into()));
    let calculation = Calculation {
        op: Arith::Sum,
        operand: Operand::BigInt(5.into()),
        bounds: Some(Box::new(Bounds { min: None, max, clamp: true })),
        value_bytes_max: limits.value_bytes_max,
    };
    assert_eq!(
        read.mutations,
        [Mutation::Calculate { key: named("n"), calculation, expiry: None }]
    );

    let odd = |change: fn(&mut schema::Mutation)| {
        let mut odd = sum.clone();
        change(&mut odd);
        refusal(write(odd))
    };
    assert!(odd(|sum| sum.mutation_type = schema::MUTATION_MAX).contains("only sums have bounds"));
    let le64 = schema::KvValue { data: vec![0; 8], encoding: schema::ENCODING_LE64 };
    let refused = refusal(write(schema::Mutation { value: Some(le64), ..sum.clone() }));
    assert!(refused.contains("KvU64 operands"));
    // The number 1.
    let number = "Min/max parameters have different types than the operand";
    assert!(odd(|sum| sum.sum_min = vec![0xff, 0x0f, 0x49, 0x02]).contains(number));
    // A string; and no value at all.
    assert!(
        odd(|sum| sum.sum_min = vec![0xff, 0x0f, 0x22, 0x01, b'a']).contains("the min of a sum")
    );
    assert!(odd(|sum| sum.sum_min = vec![0xff, 0x0f, 0x00]).contains("A value cannot be read"));
}
