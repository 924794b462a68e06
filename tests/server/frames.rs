//! Reads and writes of openkv's extension: their bounds, their quotas, and what an untrusted frame
//! may store in a database.

use openkv::model::{Decision, FRAMES_RECORDS_MAX, Kind, Range};
use openkv::protocol::extension::{KINDS_HEADER, RESULTS_HEADER, read_answer, with_count};
use openkv::protocol::frame::{parse_answers, parse_outcomes, push_ranges};
use openkv::protocol::state::{read_message, write_request};

use crate::client::{Reply, Stream};
use crate::served::{ACCESS, READ, Session, file, folder, key};

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

/// SET of encoded key bytes to a value of that encoding, and the write's end.
fn set(key: &[u8], encoding: u8, value: &[u8]) -> Vec<u8> {
    [&[2, 0][..], &sized(key), &[encoding], &sized(value), &[0]].concat()
}

fn delete(name: &str) -> Vec<u8> {
    [&[3][..], &sized(key(name).as_bytes()), &[0]].concat()
}

fn enqueue(queue: &str, due_ms: f64) -> Vec<u8> {
    let mut frame = vec![0x0e];
    frame.extend(due_ms.to_le_bytes());
    frame.extend([0, 0, 0, 0]);
    frame.extend((-1_f64).to_le_bytes());
    frame.extend(sized(queue.as_bytes()));
    frame.push(0);
    frame.extend(sized(&[0xf6]));
    frame.push(0);
    frame
}

fn post(session: &Session, writes: &[Vec<u8>]) -> Reply {
    session.post("openkv/write", &with_count(writes.len(), &writes.concat()))
}

fn write(session: &Session, writes: &[Vec<u8>]) -> Vec<Decision> {
    let reply = post(session, writes);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let frame = read_answer(&reply.body).expect("an answer").expect("outcomes");
    parse_outcomes(frame, writes.len()).expect("outcomes")
}

/// The outcomes for a client that reads every status of them.
fn write_for_results(session: &Session, writes: &[Vec<u8>]) -> Vec<Decision> {
    let body = with_count(writes.len(), &writes.concat());
    let reply = session.post_with("openkv/write", &[(RESULTS_HEADER, "1")], &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let frame = read_answer(&reply.body).expect("an answer").expect("outcomes");
    parse_outcomes(frame, writes.len()).expect("outcomes")
}

/// The number of rows of each range, and which were cut off.
fn read(session: &Session, ranges: &[Range]) -> (Vec<usize>, Vec<bool>) {
    let mut frame = Vec::new();
    push_ranges(&mut frame, ranges);
    let reply = session.post("openkv/read", &with_count(ranges.len(), &frame));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = read_answer(&reply.body).expect("an answer").expect("rows");
    let mut rows = vec![0; ranges.len()];
    let places = parse_answers(answer, ranges.len(), &mut |at, _| rows[at] += 1).expect("rows");
    (rows, places.iter().map(|place| place.more).collect())
}

fn everything(limit: usize) -> Range {
    let bound = |byte| openkv::model::Key::from_encoded(vec![byte]);
    Range::Span { start: bound(0), end: bound(0xff), limit, reverse: false }
}

/// Checks that the first two keys are absent, and deletes.
fn checked(names: [&str; 2]) -> Vec<u8> {
    let absent = |name| [&[1, 0][..], &sized(key(name).as_bytes())].concat();
    [names.map(absent).concat(), delete("x")].concat()
}

#[test]
fn failed_checks_are_sent_only_to_clients_that_request_results() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    write(&session, &[set(key("here").as_bytes(), 3, b"1")]);
    let writes = [checked(["a", "here"]), checked(["here", "here"]), checked(["a", "b"])];
    let received = write_for_results(&session, &writes);
    assert_eq!(received[..2], [Decision::CheckFailed(vec![1]), Decision::CheckFailed(vec![0, 1])]);
    assert!(matches!(received[2], Decision::Committed(_)), "{received:?}");
    // An older client: status bytes that it knows.
    let reply = post(&session, &writes[..2]);
    assert_eq!(read_answer(&reply.body), Ok(Ok(&[1, 1][..])));
}

#[test]
fn a_kind_of_error_is_sent_only_to_clients_that_know_it() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let body = with_count(1, &set(&[[2].as_slice(), &[b'k'; 3000], &[0]].concat(), 3, b"1"));
    let kind = |headers: &[(&str, &str)]| {
        let reply = session.post_with("openkv/write", headers, &body);
        let frame = read_answer(&reply.body).expect("an answer").expect("outcomes");
        match parse_outcomes(frame, 1).expect("outcomes").remove(0) {
            Decision::Rejected(error) => error.kind(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(kind(&[(KINDS_HEADER, "12")]), Kind::TooLarge);
    // An older client: a kind that it knows.
    assert_eq!(kind(&[]), Kind::Invalid);
    assert_eq!(kind(&[(KINDS_HEADER, "x")]), Kind::Invalid);
}

#[test]
fn a_thousand_keys_are_one_state_and_more_are_refused() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let names: Vec<_> = (0..1000).map(|n| format!("key {n}")).collect();
    let writes: Vec<_> =
        names.iter().map(|name| set(key(name).as_bytes(), 3, name.as_bytes())).collect();
    assert!(write(&session, &writes).iter().all(|d| matches!(d, Decision::Committed(_))));
    let mut points: Vec<_> = names.iter().map(|name| Range::Point(key(name))).collect();
    assert_eq!(read(&session, &points).0, vec![1; 1000]);
    points.push(Range::Point(key("one more")));
    let mut frame = Vec::new();
    push_ranges(&mut frame, &points);
    let reply = session.post("openkv/read", &with_count(1001, &frame));
    assert_eq!((reply.status, reply.text().contains("max 1000")), (400, true), "{}", reply.text());
    let (rows, more) = read(&session, &[everything(600), everything(400)]);
    assert_eq!((rows, more), (vec![600, 400], vec![false, false]));
    let mut frame = Vec::new();
    push_ranges(&mut frame, &[everything(600), everything(401)]);
    assert_eq!(session.post("openkv/read", &with_count(2, &frame)).status, 400);
    let too_many = vec![delete("a"); 1001];
    assert_eq!(post(&session, &too_many).status, 400);
}

#[test]
fn a_page_of_large_values_is_truncated_and_marked() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let large = vec![7; 3 << 20];
    for name in ["a", "b", "c", "d", "e"] {
        let done = write(&session, &[set(key(name).as_bytes(), 3, &large)]);
        assert!(matches!(done[..], [Decision::Committed(_)]));
    }
    let (rows, more) = read(&session, &[everything(10), everything(10)]);
    assert_eq!((rows, more), (vec![3, 1], vec![true, true]));
}

#[test]
fn values_that_other_clients_cannot_read_are_not_written() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let good = key("good");
    let bad = [
        ("a key that is none", set(&[0x99], 67, &[0xf6])),
        ("a key cut short", set(&[2, b'a'], 67, &[0xf6])),
        ("no key", set(&[], 67, &[0xf6])),
        ("no value", set(good.as_bytes(), 67, &[])),
        ("a value cut short", set(good.as_bytes(), 67, &[0x82, 1])),
        ("V8's format", set(good.as_bytes(), 1, &[0xff, 0x0f, 0x30])),
        ("a message too far ahead", enqueue("q", 1e15)),
    ];
    let mut writes: Vec<_> = bad.iter().map(|(_, write)| write.clone()).collect();
    writes.push(set(good.as_bytes(), 67, &[0xf6]));
    let decisions = write(&session, &writes);
    for ((what, _), decision) in bad.iter().zip(&decisions) {
        let Decision::Rejected(error) = decision else { panic!("{what}: {decision:?}") };
        assert_eq!(error.kind(), Kind::Invalid, "{what}: {error}");
    }
    assert!(matches!(decisions.last(), Some(Decision::Committed(_))));
    assert_eq!(read(&session, &[everything(10)]).0, [1]);
}

/// A commit writes its UUID over 36 characters, which must be characters of a text.
#[test]
fn placeholders_must_be_in_text() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let nil = b"00000000-0000-0000-0000-000000000000";
    let patched = |key: &[u8], value: &[u8], place: u8, offset: u32| {
        let mut frame = set(key, 67, value);
        frame.pop();
        frame.push(0x0b);
        frame.extend(1_u32.to_le_bytes());
        frame.push(place);
        frame.extend(offset.to_le_bytes());
        frame.extend(5_u64.to_le_bytes());
        frame.push(0);
        frame
    };
    let text = [&[2][..], nil, &[0]].concat();
    // A bigint of 48 bytes, whose length is the digit 0.
    let number = [&[0x1d][..], nil, &[0x31; 13]].concat();
    // The same text as a value, and a byte string whose length is a digit of it.
    let value = [&[0x78, 36][..], nil].concat();
    let bytes = [&[0x58][..], nil, &[1; 13]].concat();
    // A string that has half a surrogate pair before it is a byte string in its tag.
    let odd = [&[0xd9, 1, 0x11, 0x58, 39][..], nil, &[0xed, 0xa0, 0x80]].concat();
    let plain = key("plain");
    let decisions = write(
        &session,
        &[
            patched(&text, &[0xf6], 0, 1),
            patched(plain.as_bytes(), &value, 1, 2),
            patched(plain.as_bytes(), &odd, 1, 5),
            patched(&number, &[0xf6], 0, 1),
            patched(plain.as_bytes(), &bytes, 1, 1),
        ],
    );
    let kinds: Vec<_> = decisions
        .iter()
        .map(|decision| match decision {
            Decision::CommittedWith(_, made) => Ok(made.resolved.len()),
            Decision::Rejected(error) => Err(error.kind()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, [Ok(1), Ok(1), Ok(1), Err(Kind::Invalid), Err(Kind::Invalid)]);
}

/// Each place was checked by decoding the whole value three times, on a thread that serves all
/// requests: a small body kept the server busy for hours.
#[test]
fn many_placeholders_of_a_long_value_need_one_pass() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let patched = |items: u32, places: u32| {
        let nil = b"00000000-0000-0000-0000-000000000000";
        let head = [&[0x9a][..], &(items + 1).to_be_bytes(), &[0x78, 36], nil].concat();
        let value = [head, vec![0; items as usize]].concat();
        let mut frame = set(key("a").as_bytes(), 67, &value);
        frame.pop();
        frame.push(0x0b);
        frame.extend(places.to_le_bytes());
        for _ in 0..places {
            frame.push(1);
            frame.extend(7_u32.to_le_bytes());
            frame.extend(1_u64.to_le_bytes());
        }
        frame.push(0);
        frame
    };
    let decisions = write(&session, &[patched(200_000, 2000)]);
    assert!(matches!(decisions[..], [Decision::CommittedWith(..)]), "{decisions:?}");
    // Each of them is a record.
    let reply = post(&session, &[patched(0, FRAMES_RECORDS_MAX as u32)]);
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("too many records"), "{}", reply.text());
}

#[test]
fn a_watch_in_frames_has_many_keys_and_a_raw_mode() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let keys: Vec<_> = (0..1000).map(|n| key(&format!("key {n}"))).collect();
    let stamps = |stream: &mut Stream| -> Vec<_> {
        let received = read_message(&stream.next().expect("a state"), 1000).expect("a state");
        received.expect("no end").into_iter().map(|held| held.map(|(stamp, _)| stamp)).collect()
    };
    let mut watch = session.stream("openkv/watch", &write_request(&keys, false));
    let mut raw = session.stream("openkv/watch", &write_request(&keys, true));
    assert_eq!(stamps(&mut watch), vec![None; 1000]);
    assert_eq!(stamps(&mut raw), vec![None; 1000]);
    // Only the raw watch reports a touch without a change.
    write(&session, &[delete("key 5")]);
    assert_eq!(stamps(&mut raw), vec![None; 1000]);
    let done = write(&session, &[set(keys[999].as_bytes(), 3, b"x")]);
    let [Decision::Committed(stamp)] = done[..] else { panic!("{done:?}") };
    let mut expected = vec![None; 1000];
    expected[999] = Some(stamp);
    assert_eq!(stamps(&mut watch), expected);
    assert_eq!(stamps(&mut raw), expected);
    let more: Vec<_> = (0..1001).map(|n| key(&format!("key {n}"))).collect();
    for body in [write_request(&more, false), vec![2, 0, 0, 0, 0], vec![], vec![0; 4], vec![0; 6]] {
        assert_eq!(session.post("openkv/watch", &body).status, 400);
    }
}

#[test]
fn only_malformed_frames_are_rejected() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let good = with_count(1, &set(key("a").as_bytes(), 67, &[0xf6]));
    for len in 0..good.len() {
        let reply = session.post("openkv/write", &good[..len]);
        assert_eq!(reply.status, 400, "{len}: {}", reply.text());
    }
    // More than the bytes of the frame, or of any request, can contain.
    for count in [2_u32, 1000, 1001, u32::MAX] {
        let body = [&count.to_le_bytes()[..], &good[4..]].concat();
        assert_eq!(session.post("openkv/write", &body).status, 400, "{count}");
        assert_eq!(session.post("openkv/read", &body).status, 400, "{count}");
    }
    let many = std::iter::repeat_n([3, 0, 0, 0, 0], FRAMES_RECORDS_MAX + 1);
    let records: Vec<u8> = many.flatten().collect();
    let reply = session.post("openkv/write", &with_count(1, &records));
    assert!(reply.text().contains("too many records"), "{}", reply.text());
    assert_eq!(read(&session, &[everything(10)]).0, [0]);
}

#[test]
fn a_read_token_reads_a_thousand_keys_and_writes_nothing() {
    let served = file(|_| ());
    let session = served.session("/", READ);
    let reply = post(&session, &[delete("a")]);
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(read(&session, &[Range::Point(key("a"))]).0, [0]);
    let name = "k".repeat(2040);
    let points = vec![Range::Point(key(&name)); 1000];
    assert_eq!(read(&session, &points).0.len(), 1000);
    let over = vec![0; (4 << 20) + 1];
    assert_eq!(session.post("openkv/read", &over).status, 413);
    let writer = served.session("/", ACCESS);
    let value = vec![1; 16 << 20];
    let done = write(&writer, &[set(key("a").as_bytes(), 3, &value)]);
    assert!(matches!(done[..], [Decision::Committed(_)]), "16 MiB: {done:?}");
}

#[test]
fn quotas_hold_on_these_routes_too() {
    let served = folder();
    let token = served.create("small", "{\"bytes\":4096,\"queueDepth\":2}");
    let session = served.session("/small", &token);
    // The file exceeds the quota: deletes are still accepted, each with its own outcome.
    let mixed = write(&session, &[set(key("a").as_bytes(), 67, &[0xf6]), delete("b")]);
    let [Decision::Rejected(refused), Decision::Committed(_)] = mixed.as_slice() else {
        panic!("{mixed:?}");
    };
    assert_eq!(refused.kind(), Kind::Unavailable);
    let reply = post(&session, &[set(key("a").as_bytes(), 67, &[0xf6])]);
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert!(reply.headers.contains("retry-after"), "{}", reply.headers);
    let token = served.create("queued", "{\"queueDepth\":2}");
    let session = served.session("/queued", &token);
    for _ in 0..2 {
        assert!(matches!(write(&session, &[enqueue("jobs", 0.0)])[..], [Decision::Committed(_)]));
    }
    assert_eq!(post(&session, &[enqueue("jobs", 0.0)]).status, 429);
    assert!(matches!(write(&session, &[enqueue("other", 0.0)])[..], [Decision::Committed(_)]));
    let token = served.create("slow", "{\"operationsPerSecond\":5}");
    let session = served.session("/slow", &token);
    // A group counts as its writes: the next request waits for all of them.
    let group = vec![delete("a"); 100];
    assert_eq!(write(&session, &group).len(), 100);
    let reply = post(&session, &[delete("a")]);
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert!(!reply.headers.contains("retry-after: 1\r\n"), "{}", reply.headers);
}
