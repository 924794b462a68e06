//! Tests of the frames of writes.

use super::super::records::timed::RELATIVE;
use super::super::records::{record, set};
use super::super::{frame_of, no_part_is_parsed};
use super::*;
use openkv_core::model::Time;

/// record::SET of the key `0n` to `null`, with the expiry 1 ms.
const SET_FRAME: [u8; 24] =
    [2, 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 1, 0, 0, 0, 0x14, 67, 1, 0, 0, 0, 0xf6, 0, 0, 0];

#[test]
fn a_message_of_a_named_queue_is_parsed() {
    let mut frame = vec![record::ENQUEUE_NAMED];
    frame.extend_from_slice(&5_f64.to_le_bytes());
    frame.extend_from_slice(&[1, 9, 0, 0, 0, 0, 0, 7]);
    frame.extend_from_slice(&(-1_f64).to_le_bytes());
    frame.extend_from_slice(&[
        1,
        0,
        0,
        0,
        b'q',
        1,
        2,
        0,
        0,
        0,
        b'k',
        b'y',
        1,
        0,
        0,
        0,
        0xf6,
        record::END,
    ]);
    let writes = parse_writes(&frame, 1, &Limits::default()).unwrap();
    let parts = writes.into_iter().next().unwrap().unwrap().into_parts();
    let expected = Message {
        queue: "q".into(),
        priority: 7,
        due: Time::At(5),
        backoff_ms: vec![9],
        deduplication_key: Some("ky".into()),
        value: vec![0xf6],
        ..Message::default()
    };
    assert_eq!(parts.messages, [expected]);
    no_part_is_parsed(&frame, |bytes| parse_writes(bytes, 1, &Limits::default()));
    frame[16] = 10; // the priority
    let writes = parse_writes(&frame, 1, &Limits::default()).unwrap();
    assert_eq!(writes[0].as_ref().unwrap_err().message(), "priority too high (max 9): 10 given");
}

/// One record of each kind that has a time of 5 ms. `relative`: from the commit.
fn timed_records(relative: bool) -> [Vec<u8>; 6] {
    let flag = if relative { RELATIVE } else { 0 };
    let (time, key) = (5_f64.to_le_bytes(), [1, 0, 0, 0, 0x14]);
    let number = [67, 1, 0, 0, 0, 1];
    let value = [1, 0, 0, 0, 0x80];
    let message = [&time[..], &[0, 0, 0]].concat();
    let queue = [&[7][..], &(-1_f64).to_le_bytes(), &[1, 0, 0, 0, b'q', 0]].concat();
    [
        [&[record::SET | flag, set::EXPIRES][..], &time, &key, &number].concat(),
        [&[record::CALCULATE | flag, 0, 8][..], &time, &key, &number].concat(),
        [&[record::APPEND | flag, 2][..], &time, &key, &value].concat(),
        [&[record::SET_EXPIRY | flag, 1][..], &time, &key].concat(),
        [&[record::ENQUEUE | flag][..], &message, &value].concat(),
        [&[record::ENQUEUE_NAMED | flag][..], &message, &queue, &value].concat(),
    ]
}

/// The time of the only record of a frame.
fn time_of(record: &[u8]) -> Time {
    let frame = [record, &[record::END]].concat();
    let write = parse_writes(&frame, 1, &Limits::default()).unwrap().remove(0).unwrap();
    let (_, mutations, messages) = write.parts();
    match mutations.first() {
        None => messages[0].due,
        Some(
            Mutation::Set { expiry, .. }
            | Mutation::Calculate { expiry, .. }
            | Mutation::Append { expiry, .. }
            | Mutation::SetExpiry { expiry, .. },
        ) => expiry.unwrap(),
        Some(other) => panic!("{other:?} has no time"),
    }
}

#[test]
fn a_time_is_absolute_or_relative_to_the_commit() {
    for (absolute, relative) in timed_records(false).iter().zip(timed_records(true)) {
        assert_eq!(time_of(absolute), Time::At(5), "{absolute:?}");
        assert_eq!(time_of(&relative), Time::After(5), "{relative:?}");
        no_part_is_parsed(&[&relative[..], &[record::END]].concat(), |bytes| {
            parse_writes(bytes, 1, &Limits::default())
        });
    }
}

#[test]
fn a_relative_time_is_not_negative_and_not_missing() {
    let refusal = |record: &[u8]| {
        let frame = [record, &[record::END]].concat();
        parse_writes(&frame, 1, &Limits::default()).unwrap_err().what().to_owned()
    };
    for record in timed_records(true) {
        let time = record.windows(8).position(|bytes| bytes == 5_f64.to_le_bytes()).unwrap();
        let mut negative = record.clone();
        negative[time + 7] |= 0x80;
        assert_eq!(refusal(&negative), "a time before the commit", "{record:?}");
    }
    let key = [1, 0, 0, 0, 0x14];
    let set = [&[record::SET | RELATIVE, 0][..], &key, &[67, 1, 0, 0, 0, 1]].concat();
    assert_eq!(refusal(&set), "a relative time that is missing");
    let persist = [&[record::SET_EXPIRY | RELATIVE, 0][..], &key].concat();
    assert_eq!(refusal(&persist), "a relative time that is missing");
}

#[test]
fn two_writes_are_parsed() {
    let frame = &SET_FRAME[..23];
    let writes = parse_writes(frame, 2, &Limits::default()).unwrap();
    let parts = writes.into_iter().map(|write| write.unwrap().into_parts());
    let counts: Vec<_> = parts.map(|parts| parts.mutations.len()).collect();
    assert_eq!(counts, [1, 0]);
}

#[test]
fn a_range_check_has_its_rows() {
    let mut frame = vec![record::CHECK_RANGE, 1, 0, 0, 0, 0x14, 1, 0, 0, 0, 0x15, 1, 0, 0, 0];
    frame.extend_from_slice(b"00000000000000070000");
    frame.extend_from_slice(&[2, 0, 0, 0, 0x14, 0x15, record::END]);
    let write = parse_writes(&frame, 1, &Limits::default()).unwrap().remove(0).unwrap();
    let range = write.into_parts().ranges.remove(0);
    assert_eq!((range.start.as_bytes(), range.end.as_bytes()), (&[0x14][..], &[0x15][..]));
    let key = Key::from_encoded(vec![0x14, 0x15]);
    assert_eq!(range.seen, [(key, Versionstamp::new(7))]);
    no_part_is_parsed(&frame, |bytes| parse_writes(bytes, 1, &Limits::default()));
    let limits = Limits { checked_rows_max: 0, ..Limits::default() };
    let error = parse_writes(&frame, 1, &limits).unwrap().remove(0).unwrap_err();
    assert!(error.message().contains("limits.checkedRowsMax"), "{error}");
}

#[test]
fn a_check_of_what_indexes_found_follows_its_range() {
    let range = |filter: &[u8]| RangeCheck {
        start: Key::from_encoded(vec![0x14]),
        end: Key::from_encoded(vec![0x15]),
        seen: vec![(Key::from_encoded(vec![0x14, 0x15]), Versionstamp::new(7))],
        found_by: Some(FoundBy { filter: filter.to_vec(), now_ms: 5, order: None }),
    };
    let frame = |filter: &[u8]| {
        let parts = WriteParts { ranges: vec![range(filter)], ..WriteParts::default() };
        frame_of(|out| push_write(out, parts))
    };
    let parse = |frame: &[u8]| parse_writes(frame, 1, &Limits::default());
    let whole = frame(b"\xa1\x61n\x01");
    let write = parse(&whole).unwrap().remove(0).unwrap();
    assert_eq!(write.into_parts().ranges, [range(b"\xa1\x61n\x01")]);
    no_part_is_parsed(&whole, parse);
    let refused = parse(&frame(b"\x01")).unwrap().remove(0).unwrap_err();
    assert!(refused.message().contains("where"), "{refused}");
    let mut alone = vec![record::CHECK_FOUND];
    alone.extend(5_f64.to_le_bytes());
    alone.extend([1, 0, 0, 0, 0xa0, record::END]);
    let refused = parse(&alone).unwrap_err();
    assert_eq!(refused.what(), "a filter without its checked range");
}

#[test]
fn a_check_of_an_order_follows_what_indexes_found() {
    let frame = |path: &str, found: bool| {
        let order = Some(OrderPart {
            order: vec![OrderPath { path: path.to_owned(), descending: true }],
            after: None,
            until: Some(vec![1, 7]),
        });
        let found_by = Some(FoundBy { filter: vec![0xa0], now_ms: 5, order });
        let end = Key::from_encoded(vec![0x15]);
        let start = Key::from_encoded(vec![0x14]);
        let ranges = vec![RangeCheck { start, end, seen: vec![], found_by }];
        let whole = WriteParts { ranges: ranges.clone(), ..WriteParts::default() };
        let whole = frame_of(|out| push_write(out, whole));
        let at = whole.iter().position(|byte| *byte == record::CHECK_ORDER).unwrap();
        (ranges, if found { whole } else { whole[at..].to_vec() })
    };
    let parse = |frame: &[u8]| parse_writes(frame, 1, &Limits::default());
    let (ranges, whole) = frame("a.b", true);
    let write = parse(&whole).unwrap().remove(0).unwrap();
    assert_eq!(write.into_parts().ranges, ranges);
    no_part_is_parsed(&whole, parse);
    let long = ["a"; 10_000].join(".");
    let refused = parse(&frame(&long, true).1).unwrap().remove(0).unwrap_err();
    assert!(refused.message().contains("orderBy"), "{refused}");
    let refused = parse(&frame("a", false).1).unwrap_err();
    assert_eq!(refused.what(), "an order without its filter");
}

#[test]
fn truncated_frames_are_rejected() {
    for len in 0..22 {
        assert!(parse_writes(&SET_FRAME[..len], 1, &Limits::default()).is_err(), "{len}");
    }
    assert!(parse_writes(&SET_FRAME[..23], 1, &Limits::default()).is_err());
}

#[test]
fn writes_are_parsed_with_their_bytes_and_records_are_bounded() {
    let frame = &SET_FRAME[..23];
    let limits = Limits::default();
    let writes = parse_writes_apart(frame, 2, &limits, 3).unwrap();
    let places: Vec<_> = writes.into_iter().map(|(_, place)| place).collect();
    assert_eq!(places, [0..22, 22..23]);
    assert!(parse_writes_apart(frame, 2, &limits, 2).is_err());
}

#[test]
fn a_write_over_the_limits_does_not_affect_others() {
    let mut frame = vec![3, 0, 0, 0, 0, record::END]; // delete of the empty key
    frame.extend_from_slice(&SET_FRAME[..22]);
    let writes = parse_writes(&frame, 2, &Limits::default()).unwrap();
    assert_eq!(writes[0].as_ref().unwrap_err().message(), "key cannot be empty");
    assert!(writes[1].is_ok());
}

#[test]
fn an_invalid_versionstamp_does_not_affect_other_writes() {
    let mut frame = vec![record::CHECK, 1];
    frame.extend_from_slice(b"zz000000000000000000");
    frame.extend_from_slice(&[1, 0, 0, 0, 0x14, record::END, record::END]);
    let writes = parse_writes(&frame, 2, &Limits::default()).unwrap();
    assert_eq!(
        writes[0].as_ref().unwrap_err().message(),
        "Invalid check: checks[0].versionstamp must be 20 hexadecimal digits"
    );
    assert!(writes[1].is_ok());
}

#[test]
fn a_write_has_the_id_in_front_of_it() {
    let id = WriteId::new(5, [1, 2]);
    let frame = frame_of(|out| {
        push_write_id(out, id);
        out.extend_from_slice(&[3, 1, 0, 0, 0, 0x14, 0, 0]);
    });
    assert_eq!(frame.len(), WRITE_ID_RECORD_BYTES + 8);
    let parse = |bytes: &[u8]| parse_writes(bytes, 2, &Limits::default());
    let ids: Vec<_> = parse(&frame).unwrap().into_iter().map(|w| w.unwrap().id()).collect();
    assert_eq!(ids, [Some(id), None]);
    no_part_is_parsed(&frame, parse);
    let twice = frame_of(|out| (0..2).for_each(|_| push_write_id(out, id)));
    assert!(parse(&[twice, vec![0, 0]].concat()).is_err());
}
