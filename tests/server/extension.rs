//! openkv's own requests: their announcement, their rights, and untrusted frames.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use openkv::call::{Call, Fault, Reply, carry_out};
use openkv::connect::metadata;
use openkv::connect::versions::Version;
use openkv::database::Database;
use openkv::model::{Error, Kind, Limits, Result};
use openkv::open::{Target, open};
use openkv::protocol::Command;
use openkv::protocol::extension::{FRAMES, read_answer};
use openkv::remote::Client;

use crate::client::ask;
use crate::served::{ACCESS, READ, Served, file};

/// Counts all entries.
pub(crate) fn count_all() -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, 0];
    frame.extend(f64::NAN.to_le_bytes());
    frame.extend([0, 0, 0, 0, 1, 0, 0, 0, 0xff]);
    frame
}

pub(crate) fn connect(served: &Served, token: &str) -> Arc<Client> {
    let target = Target::Url {
        urls: vec![served.server.url()],
        access_token: token.into(),
        timeout: Duration::from_secs(10),
        retries: true,
        replica: None,
    };
    let Database::Remote(client) = open(&target).expect("a client") else {
        panic!("a URL gives a remote database")
    };
    client
}

pub(crate) fn call(client: &Client, command: Command, frame: &[u8]) -> Result<Vec<u8>> {
    let (tell, answered) = channel();
    let reply = Box::new(move |answer| drop(tell.send(answer)));
    client.call(command, frame, &Limits::wide(), None, reply);
    answered.recv().expect("an answer")
}

#[test]
fn only_clients_that_request_extensions_get_them() {
    let served = file(|_| ());
    let bearer = format!("Bearer {ACCESS}");
    let offer = metadata::write_request(&Version::ALL);
    for (requested, packed, offered) in [
        (None, Some("1"), false),
        (Some("1"), Some("1"), true),
        (Some("2"), Some("1"), false),
        (Some(""), Some("1"), false),
        // A client of a version that does not read packed arrays.
        (Some("1"), None, false),
    ] {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(requested.map(|requested| (metadata::EXTENSIONS_HEADER, requested)));
        headers.extend(packed.map(|packed| (metadata::PACKED_HEADER, packed)));
        let reply = ask(served.address(), "POST", "/", &headers, offer.as_bytes());
        assert_eq!(reply.text().contains("extensions"), offered, "{requested:?} {packed:?}");
        let metadata = metadata::read_answer(&reply.body, &Version::ALL).expect("metadata");
        assert_eq!(metadata.extensions.contains(&FRAMES.to_owned()), offered);
    }
}

#[test]
fn a_client_counts_at_the_server() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    for name in ["a", "b", "c"] {
        session.set(name, b"1");
    }
    let client = connect(&served, READ);
    assert!(client.takes_frames());
    assert_eq!(call(&client, Command::Count, &count_all()), Ok(3_f64.to_le_bytes().to_vec()));
}

#[test]
fn a_read_token_calls_reading_commands() {
    let served = file(|_| ());
    let client = connect(&served, READ);
    let reads = [Command::Stats, Command::Metrics, Command::ListIndexes];
    for command in reads {
        assert!(call(&client, command, &[0]).is_ok(), "{command:?}");
    }
    let writes = [
        Command::Checkpoint,
        Command::Vacuum,
        Command::Check,
        Command::DeleteMany,
        Command::Settle,
        Command::Extend,
        Command::LockUpdate,
        Command::ConsumeEnd,
        Command::DeadRequeue,
        Command::DeadDelete,
        Command::DeadPurge,
        Command::DeadRequeueAll,
        Command::DeleteMessage,
        Command::CreateIndex,
        Command::DropIndex,
    ];
    let session = served.session("/", READ);
    for command in writes {
        let reply = session.post(&format!("openkv/call/{}", command.number()), &[]);
        assert_eq!(reply.status, 403, "{command:?}: {}", reply.text());
    }
    let denied = call(&client, Command::Vacuum, &[]).map_err(|error| error.kind());
    assert_eq!(denied, Err(Kind::Denied));
}

#[test]
fn commands_that_write_files_of_the_server_have_no_route() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    for path in [
        "call/5", "call/6", "call/40", "call/0", "call/99", "call/", "call", "call/x", "",
        "call/1/",
    ] {
        assert_eq!(session.post(&format!("openkv/{path}"), &[]).status, 404, "{path}");
    }
    let client = connect(&served, ACCESS);
    let refused = call(&client, Command::Backup, &[]).expect_err("a path of the server");
    assert_eq!(refused.kind(), Kind::Unsupported);
    assert!(refused.message().contains("backup"), "{refused}");
}

#[test]
fn every_frame_is_answered() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let ones = |len| vec![1_u8; len];
    let frames: Vec<Vec<u8>> = vec![vec![], vec![0xff; 40], ones(21), ones(64), vec![0; 64]];
    for command in Command::ALL {
        for frame in &frames {
            let reply = session.post(&format!("openkv/call/{}", command.number()), frame);
            match reply.status {
                200 => match read_answer(&reply.body).expect("an answer") {
                    Ok(_) => {}
                    Err(error) => assert_ne!(error.kind(), Kind::Internal, "{command:?} {error}"),
                },
                400 | 404 => {}
                status => panic!("{command:?} {frame:?}: {status} {}", reply.text()),
            }
        }
    }
    // The server continues.
    let client = connect(&served, ACCESS);
    assert_eq!(call(&client, Command::Count, &count_all()), Ok(0_f64.to_le_bytes().to_vec()));
}

/// The prefix of an index is shown to every client that lists the indexes, so it must be a key.
#[test]
fn an_index_has_a_prefix_that_is_a_key() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let create = |prefix: &[u8]| {
        let mut frame = vec![0, 1, 0, 0, 0, b'n', prefix.len() as u8, 0, 0, 0];
        frame.extend(prefix);
        frame.extend([0, 0, 1, 0, 1, 0, 0, 0, b't']);
        session.post("openkv/call/50", &frame)
    };
    for bad in [&[0x99][..], &[2, b'a'], &[0x21, 1]] {
        let reply = create(bad);
        assert_eq!(reply.status, 400, "{bad:?}: {}", reply.text());
    }
    let made = create(&[2, b'a', 0]);
    assert!(read_answer(&made.body).expect("an answer").is_ok(), "{}", made.text());
}

#[test]
fn errors_of_the_store_are_passed_on() {
    let served = file(|_| ());
    let client = connect(&served, ACCESS);
    // A filter that is no object.
    let mut frame = vec![8, 0, 0, 0, 0];
    frame.extend(f64::NAN.to_le_bytes());
    frame.extend([0, 0, 0, 0, 1, 0, 0, 0, 0xff, 1, 0, 0, 0, 0x01]);
    let error: Error = call(&client, Command::Count, &frame).expect_err("no filter");
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(!error.message().contains("http"), "{error}");
}

#[test]
fn limits_are_a_list_of_numbers() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let bearer = format!("Bearer {}", session.token);
    let ask = |limits: &str| {
        let headers = [
            ("authorization", bearer.as_str()),
            ("x-denokv-version", "3"),
            ("x-denokv-database-id", session.database.as_str()),
            ("x-openkv-limits", limits),
        ];
        ask(session.address, "POST", "/v2/openkv/call/10", &headers, &count_all()).status
    };
    assert_eq!(ask("valueBytesMax=5,mutationsMax=7"), 200);
    assert_eq!(ask("valueBytesMax"), 400);
}

/// Counts of clients that had gone were executed one after the other, and all other reads waited.
#[test]
fn reads_of_disconnected_clients_are_dropped() {
    let database = open(&Target::Memory).expect("a database");
    let ask = |command, frame: &[u8], wanted: bool| {
        let (tell, answered) = channel();
        let reply = Reply::new(move |answer| drop(tell.send(answer))).while_wanted(move || wanted);
        let (store, busy) = (database.store("here").expect("here").clone(), Duration::ZERO);
        let (limits, answer_bytes_max) = (Limits::wide(), usize::MAX);
        let long_most = Duration::from_secs(60);
        let call = Call { store, reply, durable: true, busy, limits, answer_bytes_max, long_most };
        carry_out(command, frame, call);
        answered.recv().expect("an answer")
    };
    let queue = [&[1, 0, 0, 0, b'q'][..]].concat();
    let letter = [&queue[..], &1_f64.to_le_bytes()].concat();
    let reads = [
        (Command::Stats, vec![0]),
        (Command::Stats, vec![1]),
        (Command::ListIndexes, vec![1]),
        (Command::Count, count_all()),
        (Command::Entries, Vec::new()),
        (Command::QueueStats, queue),
        (Command::DeadGet, letter),
    ];
    for (command, frame) in reads {
        assert!(ask(command, &frame, true).is_ok(), "{command:?} {:?}", ask(command, &frame, true));
        let Err(Fault::Failed(error)) = ask(command, &frame, false) else { panic!("{command:?}") };
        assert_eq!(error.kind(), Kind::Closed, "{command:?}");
    }
    // Whether they were counted, and how many there are.
    assert_eq!(ask(Command::Stats, &[1], true).expect("stats")[0], 1);
}
