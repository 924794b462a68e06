//! KV Connect: no body panics, in either direction; an accepted message can be encoded again with
//! the same meaning; the length of the input bounds the memory. The first byte selects the message.

use super::within;
use openkv::codec::framing::Frames;
use openkv::connect::metadata;
use openkv::connect::versions::Version;
use openkv::connect::wire::{atomic_write, snapshot_read, watch};
use openkv::model::{Key, KeyRange, Limits, Range};
use openkv::protocol::extension;
use openkv::protocol::frame::{parse_outcomes, push_outcomes};
use openkv::protocol::state;
use openkv::protocol::{feed, frame};

fn bytes_max(len: usize) -> usize {
    len * 256 + 512 * 1024
}

pub(crate) fn check(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    let limits = Limits::default();
    within(bytes_max(body.len()), || match kind % 16 {
        0 => {
            if let Ok(ranges) = snapshot_read::read_request(body, &limits) {
                let again = snapshot_read::write_request(&ranges);
                assert_eq!(snapshot_read::read_request(&again, &limits).as_ref(), Ok(&ranges));
            }
        }
        1 => {
            if let Ok(write) = atomic_write::read_request(body, &limits, 0) {
                let again = atomic_write::write_request(write.clone()).map(|bytes| {
                    atomic_write::read_request(&bytes, &limits, 0).map(|w| w.into_parts().checks)
                });
                // V8's format may be longer than the input, and exceed a limit the second time.
                if let Ok(Ok(checks)) = again {
                    assert_eq!(checks, write.into_parts().checks);
                }
            }
        }
        2 => {
            if let Ok(keys) = watch::read_request(body, &limits) {
                assert_eq!(watch::read_request(&watch::write_request(&keys), &limits), Ok(keys));
            }
        }
        3 => {
            let end = Key::from_encoded(vec![0xff]);
            let span = Range::Span { start: Key::default(), end, limit: 100, reverse: false };
            let requested = [Range::Point(Key::default()), span];
            for version in Version::ALL {
                let _ = snapshot_read::read_answer(body, &requested, version);
            }
        }
        4 => {
            if let Ok(answer) = atomic_write::read_answer(body) {
                let again = atomic_write::write_answer(&answer);
                assert_eq!(atomic_write::read_answer(&again), Ok(answer));
            }
        }
        5 => drop(watch::read_answer(body, 3)),
        6 => drop(metadata::read_request(body)),
        7 => {
            if let Ok(read) = metadata::read_answer(body, &Version::ALL) {
                let again = metadata::write_answer(&read).expect("what was read");
                let again = metadata::read_answer(again.as_bytes(), &Version::ALL);
                assert_eq!(again.map(|read| read.endpoints), Ok(read.endpoints));
            }
        }
        8 => {
            if let Ok((range, since)) = feed::read_request(body, &limits) {
                let again = feed::write_request(&range, since);
                assert_eq!(feed::read_request(&again, &limits), Ok((range, since)));
            }
        }
        9 => {
            let range = KeyRange { start: Key::default(), end: Key::from_encoded(vec![0xff]) };
            let read = feed::read_message(body, &range, None);
            if let Ok(feed::FeedMessage::Changes(version, changes)) = read {
                let again = feed::write_batch(version, &changes, true).expect("what was read");
                let message = feed::FeedMessage::Changes(version, changes);
                assert_eq!(feed::read_message(&again[4..], &range, None), Ok(message));
            }
        }
        10 => {
            if let Ok((keys, raw)) = state::read_request(body, &Limits::wide()) {
                let again = state::write_request(&keys, raw);
                assert_eq!(state::read_request(&again, &Limits::wide()), Ok((keys, raw)));
            }
        }
        11 => {
            if let Ok(Ok(held)) = state::read_message(body, 3) {
                let states = held.iter().map(|held| held.as_ref().map(|(at, value)| (*at, value)));
                let again = state::write_state(states).expect("what was read");
                assert_eq!(state::read_message(&again[4..], 3), Ok(Ok(held)));
            }
            if let Ok(decisions) = parse_outcomes(body, 3) {
                let mut again = vec![];
                push_outcomes(&mut again, &decisions);
                assert_eq!(parse_outcomes(&again, 3), Ok(decisions));
            }
            if let Ok(text) = std::str::from_utf8(body)
                && let Ok(limits) = extension::read_limits(text)
            {
                assert_eq!(extension::read_limits(&extension::write_limits(&limits)), Ok(limits));
            }
        }
        12 => {
            if let Ok(request) = frame::read_consume(body) {
                assert_eq!(frame::read_consume(&frame::write_consume(&request)), Ok(request));
            }
        }
        13 => {
            if let Ok(poll) = frame::read_poll(body) {
                assert_eq!(frame::read_poll(&frame::write_poll(&poll)), Ok(poll));
            }
        }
        14 => {
            if let Ok(frame::ConsumeMessage::Dispatched(dispatched)) =
                frame::read_message(body, false)
            {
                let again = frame::write_dispatched(dispatched.iter()).expect("what was read");
                let dispatched = frame::ConsumeMessage::Dispatched(dispatched);
                assert_eq!(frame::read_message(&again[4..], false), Ok(dispatched));
            }
            drop(frame::read_message(body, true));
        }
        _ => {
            let Some((size, body)) = body.split_first() else { return };
            let mut frames = Frames::default();
            let mut taken = 0;
            for piece in body.chunks(usize::from(*size).max(1)) {
                frames.push(piece);
                loop {
                    match frames.next_message() {
                        Ok(Some(message)) => taken += message.len() + 4,
                        Ok(None) => break,
                        Err(_) => return,
                    }
                }
            }
            assert_eq!(frames.is_partial(), taken != body.len());
        }
    });
}
