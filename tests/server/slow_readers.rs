//! A reader costs a writer nothing: no quota, no log without end.
//!
//! With a quota of 20 MB, a read token began an export and read slowly. Its snapshot kept the log of the file from
//! being reset, the log counted as storage, and every write of the database was 429 until the export ended.

use std::fs::metadata;
use std::io::Read;
use std::net::TcpStream;

use openkv::model::{Kind, WAL_BYTES_MAX, WAL_KEPT_BYTES};
use openkv::protocol::follow::{Follow, FollowMessage, read_message, write_request};

use crate::client::{Reply, ask, send};
use crate::served::{ADMIN, Served, folder};

const ENTRY_BYTES: usize = 1_000_000;
/// Too many for the buffers of a connection.
const ENTRIES: usize = 24;
/// What is stored fits, the log does not.
const QUOTA: &str = "{\"bytes\":40000000}";
/// The length of a log that a walk has kept until its end, and that was reset soon after.
const LOG_BYTES_MOST: u64 = WAL_BYTES_MAX + 3 * WAL_KEPT_BYTES as u64;

struct Tenant {
    served: Served,
    token: String,
    read_token: String,
}

impl Tenant {
    fn new() -> Self {
        let served = folder();
        let token = served.create("a", QUOTA);
        let body = br#"{"rights":"read"}"#;
        let made = served.ask("POST", "/v1/admin/databases/a/tokens", ADMIN, body).json();
        let read_token = made["token"].as_str().expect("a token").to_owned();
        let tenant = Self { served, token, read_token };
        for n in 0..ENTRIES {
            assert_eq!(tenant.put(&n.to_string(), 0).status, 200);
        }
        tenant
    }

    fn put(&self, key: &str, byte: u8) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/octet-stream")];
        let path = format!("/a/api/keys/{key}");
        ask(self.served.address(), "PUT", &path, &headers, &vec![byte; ENTRY_BYTES])
    }

    /// Overwrites an entry until more was written than a log may have.
    fn overwrite(&self) {
        for n in 0..=LOG_BYTES_MOST / ENTRY_BYTES as u64 {
            let reply = self.put("0", n as u8);
            assert_eq!(reply.status, 200, "write {n}: {}", reply.text());
            let log_bytes = self.log_bytes();
            assert!(log_bytes < LOG_BYTES_MOST, "write {n}: the log has {log_bytes} bytes");
        }
    }

    fn log_bytes(&self) -> u64 {
        let files = std::fs::read_dir(self.served.folder.path()).expect("a folder");
        let paths = files.map(|file| file.expect("a file").path());
        let logs = paths.filter(|path| path.to_string_lossy().ends_with("-wal"));
        logs.map(|log| metadata(log).expect("a log").len()).sum()
    }

    fn export(&self) -> TcpStream {
        let bearer = format!("Bearer {}", self.read_token);
        let headers = [("authorization", bearer.as_str())];
        let mut export = send(self.served.address(), "GET", "/a/api/export", &headers, b"");
        let mut head = [0; 12];
        export.read_exact(&mut head).expect("a head");
        assert_eq!(&head, b"HTTP/1.1 200");
        export
    }
}

fn is_complete(mut export: TcpStream) -> bool {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 65536]);
    loop {
        match export.read(&mut piece) {
            Ok(0) => return bytes.ends_with(b"0\r\n\r\n"),
            Ok(len) => bytes.extend_from_slice(&piece[..len]),
            Err(_) => return false,
        }
    }
}

#[test]
fn a_slow_export_does_not_stop_the_writer() {
    let tenant = Tenant::new();
    let slow = [tenant.export(), tenant.export()];
    tenant.overwrite();
    for slow in slow {
        assert!(!is_complete(slow), "it ends where its state was given up");
    }
    // The next one begins with a short log.
    let next = tenant.export();
    assert!(tenant.log_bytes() < WAL_BYTES_MAX, "{}", tenant.log_bytes());
    assert!(is_complete(next));
}

/// Each export began a little before the one before it ended, so the log was never reset.
#[test]
fn exports_that_overlap_keep_no_more_log_than_one() {
    let tenant = Tenant::new();
    let mut slow = Vec::new();
    for n in 0..240_u8 {
        if n % 40 == 0 {
            slow.truncate(1);
            let bearer = format!("Bearer {}", tenant.read_token);
            let headers = [("authorization", bearer.as_str())];
            slow.insert(0, send(tenant.served.address(), "GET", "/a/api/export", &headers, b""));
        }
        assert_eq!(tenant.put("0", n).status, 200);
        assert!(tenant.log_bytes() < LOG_BYTES_MOST, "{}", tenant.log_bytes());
    }
}

/// The copy of a replica kept its snapshot for as long as the replica took nothing. And the replication log, which the
/// first replica turns on, counted as storage.
#[test]
fn a_replica_that_stands_still_does_not_stop_the_writer() {
    let tenant = Tenant::new();
    let session = tenant.served.session("/a", &tenant.read_token);
    let follow = Follow { from: None, prefixes: Vec::new(), beat_ms: 2000, wants_values: false };
    let mut still = session.stream("openkv/follow", &write_request(&follow));
    let begun = read_message(&still.next().expect("a message")).expect("a message");
    assert!(matches!(begun, FollowMessage::CopyBegins(..)), "{begun:?}");
    tenant.overwrite();
    let mut last = None;
    while let Some(message) = still.next() {
        last = Some(read_message(&message).expect("a message"));
    }
    let Some(FollowMessage::Ended(error)) = last else { panic!("{last:?}") };
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.message().contains("the log of the file has reached"), "{error}");
}
