//! Untrusted frames of commands: every call is answered without an error of kind INTERNAL, and
//! every stored value can be read. The first byte is the command, or 0 for a write.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use openkv::call::{Call, Fault, Reply, carry_out, read, validate_untrusted};
use openkv::codec::{cbor, key};
use openkv::model::{Decision, Encoding, Key, Kind, Limits, Range};
use openkv::open::{Target, open};
use openkv::protocol::Command;
use openkv::protocol::frame::{parse_answers, parse_writes_apart};
use openkv::store::Store;

/// Records of a request, far below a server's.
const RECORDS_MAX: usize = 100;
/// Calls that share a database.
const SHARED_MAX: u32 = 500;

thread_local! {
    static DATABASE: std::cell::RefCell<Option<(u32, Arc<Store>)>> = const { std::cell::RefCell::new(None) };
}

/// A database with some entries, messages and indexes.
fn database() -> Arc<Store> {
    DATABASE.with_borrow_mut(|place| {
        let fresh = || open(&Target::Memory).unwrap().store("a test").unwrap().clone();
        let (calls, store) = place.get_or_insert_with(|| (0, fresh()));
        *calls += 1;
        if *calls > SHARED_MAX {
            (*calls, *store) = (0, fresh());
        }
        store.clone()
    })
}

fn answer(work: impl FnOnce(Call)) -> Result<Vec<u8>, Fault> {
    let (sender, receiver) = channel();
    let call = Call {
        store: database(),
        reply: Reply::new(move |answer| drop(sender.send(answer))),
        durable: false,
        busy: Duration::from_secs(1),
        limits: Limits::default(),
        answer_bytes_max: 1 << 20,
        long_most: Duration::from_secs(10),
    };
    work(call);
    receiver.recv().expect("an answer")
}

fn everything() -> Range {
    let bound = |bytes: &[u8]| Key::from_encoded(bytes.to_vec());
    Range::Span { start: bound(&[]), end: bound(&[0xff]), limit: 1000, reverse: false }
}

pub(crate) fn check(data: &[u8]) {
    let Some((&command, frame)) = data.split_first() else { return };
    if command == 0 {
        return write(frame);
    }
    let Some(command) = Command::from_number(command.into()) else { return };
    if matches!(command, Command::Backup | Command::BackupProgress) {
        return;
    }
    if let Err(Fault::Failed(error)) = answer(|call| carry_out(command, frame, call)) {
        assert_ne!(error.kind(), Kind::Internal, "{command:?}: {error}");
        assert_ne!(error.kind(), Kind::Corrupt, "{command:?}: {error}");
    }
}

fn write(data: &[u8]) {
    let Some((&[count, _], frame)) = data.split_first_chunk() else { return };
    let limits = Limits::default();
    let Ok(writes) = parse_writes_apart(frame, count.into(), &limits, RECORDS_MAX) else { return };
    let store = database();
    let now_ms = store.now_ms();
    let validate = |write| validate_untrusted(write, &limits, now_ms);
    let validated = writes.into_iter().map(|(write, _)| write.and_then(validate));
    let (sender, receiver) = channel();
    let reply = Box::new(move |decisions| drop(sender.send(decisions)));
    store.commit(validated.collect(), false, Duration::from_secs(1), reply);
    for decision in receiver.recv().expect("decisions") {
        if let Decision::Rejected(error) = decision {
            assert_ne!(error.kind(), Kind::Internal, "{error}");
        }
    }
    let rows = answer(|call| read(vec![everything()], usize::MAX, call));
    let Ok(rows) = rows else { return };
    parse_answers(&rows, 1, &mut |_, row| {
        key::validate(row.key).expect("a key");
        assert!(!row.key.is_empty());
        if row.encoding == Encoding::Cbor {
            cbor::decode(row.value).expect("a value");
        }
    })
    .expect("rows");
}
