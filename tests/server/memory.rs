//! The memory of clients' requests is bounded, and one database's requests leave memory to the
//! others.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use openkv::connect::wire::snapshot_read;
use openkv::model::{FRAMES_ANSWER_BYTES_MAX, Kind, Limits, Range};
use openkv::protocol::extension::with_count;
use openkv::protocol::state::{read_message, write_request};

use crate::client::{begin, send};
use crate::served::{ACCESS, READ, Session, file, folder, key};

const LARGEST: usize = 16 * 1024 * 1024;

/// SET of a key to this many bytes, by the extension.
fn set_large(session: &Session, bytes: usize) -> u16 {
    let name = key("large");
    let mut frame = vec![2, 0];
    frame.extend((name.len() as u32).to_le_bytes());
    frame.extend(name.as_bytes());
    frame.push(3);
    frame.extend((bytes as u32).to_le_bytes());
    frame.resize(frame.len() + bytes, 7);
    frame.push(0);
    session.post("openkv/write", &with_count(1, &frame)).status
}

fn read_times(times: usize) -> Vec<u8> {
    snapshot_read::write_request(&vec![Range::Point(key("large")); times])
}

#[test]
fn answers_are_bounded_on_every_route() {
    let served = file(|_| ());
    let (reader, writer) = (served.session("/", READ), served.session("/", ACCESS));
    assert_eq!(set_large(&writer, LARGEST), 200);
    let reply = reader.post("snapshot_read", &read_times(FRAMES_ANSWER_BYTES_MAX / LARGEST + 1));
    assert_eq!(reply.status, 422, "{}", reply.text());
    assert!(reply.text().contains("fewer entries"), "{}", reply.text());
    assert_eq!(reader.post("snapshot_read", &read_times(2)).status, 200);
    // A state of a watch is dropped where it gets too long.
    let keys = vec![key("large"); Limits::wide().watched_keys_max];
    let mut watch = reader.stream("openkv/watch", &write_request(&keys, false));
    let ended = read_message(&watch.next().expect("an end"), keys.len()).expect("an end");
    assert_eq!(ended.expect_err("too long").kind(), Kind::Unsupported);
    assert_eq!(watch.next(), None);
}

/// Unread answers were held in memory, as many as were requested.
#[test]
fn an_answer_waits_for_memory_of_earlier_answers() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    assert_eq!(set_large(&session, LARGEST), 200);
    let headers = session.headers();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let body = read_times(6);
    let request = || send(session.address, "POST", "/v2/snapshot_read", &headers, &body);
    let mut head = [0; 12];
    let mut unread = request();
    // The answer is there: its head has arrived.
    unread.read_exact(&mut head).expect("a head");
    let mut second = request();
    second.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout");
    assert!(second.read_exact(&mut head).is_err(), "there is no room for two");
    // A short body needs no memory.
    assert_eq!(set_large(&session, 10), 200);
    drop(unread);
    second.set_read_timeout(None).expect("no timeout");
    second.read_exact(&mut head).expect("a head");
    assert_eq!(&head, b"HTTP/1.1 200");
}

/// A request whose body had no length took one of two places for long bodies of the server, and a
/// wait for a message kept it to its end.
#[test]
fn waits_of_one_database_do_not_block_another() {
    let served = folder();
    let evil = served.session("/evil", &served.create("evil", "{}"));
    let good = served.session("/good", &served.create("good", "{}"));
    let poll = |number: u64| {
        let wait = [&5000_f64.to_le_bytes()[..], &20_000_u32.to_le_bytes()].concat();
        [&number.to_le_bytes()[..], &wait, &[1, 0, 0, 0, b'q']].concat()
    };
    let mut waiting: Vec<_> = (1..4)
        .map(|number| {
            let poll = poll(number);
            let headers = evil.headers();
            let mut headers: Vec<_> =
                headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            headers.push(("transfer-encoding", "chunked"));
            let mut stream = begin(evil.address, "/v2/openkv/receive", &headers, None);
            write!(stream, "{:x}\r\n", poll.len()).expect("a chunk");
            stream.write_all(&poll).expect("a chunk");
            stream.write_all(b"\r\n0\r\n\r\n").expect("the end");
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(set_large(&good, 3 << 20), 200);
    for waiting in &mut waiting {
        waiting.set_nonblocking(true).expect("no wait");
        let error = waiting.read(&mut [0; 1]).expect_err("it is answered");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}
