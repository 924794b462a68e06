//! Long bodies of the HTTP API: exports, imports and backups, byte by byte.

use std::io::Read;
use std::net::TcpStream;

use crate::client::{begin, end, send};
use crate::served::{ACCESS, ADMIN, READ, Served, file, folder};

const LINES: (&str, &str) = ("content-type", "application/x-ndjson");
/// The end of a body in chunks.
const END: &[u8] = b"0\r\n\r\n";

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// So many entries of a megabyte: thirty do not fit into the buffers of a connection.
fn fill(served: &Served, base: &str, token: &str, count: usize) {
    let bearer = bearer(token);
    let bytes = vec![7; 1_000_000];
    for n in 0..count {
        let path = format!("{base}/keys/big/{n}");
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/octet-stream")];
        let reply = crate::client::ask(served.address(), "PUT", &path, &headers, &bytes);
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

/// Reads until `count` bytes or the end.
fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 65536]);
    while bytes.len() < count {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => bytes.extend_from_slice(&piece[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    bytes
}

#[test]
fn an_export_ends_regularly_only_when_it_is_complete() {
    let served = folder();
    let token = served.create("a", "{}");
    fill(&served, "/a/api", &token, 30);
    let bearer = bearer(&token);
    let headers = [("authorization", bearer.as_str())];
    let export = || send(served.address(), "GET", "/a/api/export", &headers, b"");
    assert!(read(&mut export(), usize::MAX).ends_with(END));
    let mut cut = export();
    let begun = read(&mut cut, 100_000);
    assert!(begun.starts_with(b"HTTP/1.1 200"));
    let dropped = served.ask("DELETE", "/v1/admin/databases/a", ADMIN, b"");
    assert_eq!(dropped.status, 204, "{}", dropped.text());
    assert!(!read(&mut cut, usize::MAX).ends_with(END), "the database was dropped meanwhile");
}

/// The copy had three megabytes, which fit into the buffers of the connection. A server that had put them
/// all there before the first client was gone counted the copy as taken, and removed it: 412 for the part.
#[test]
fn a_download_of_a_part_has_its_length() {
    let served = file(|_| ());
    fill(&served, "/api", ACCESS, 30);
    let bearer = bearer(ACCESS);
    let headers = [("authorization", bearer.as_str())];
    let mut first = send(served.address(), "GET", "/api/backup", &headers, b"");
    let head = String::from_utf8_lossy(&read(&mut first, 1000)).to_lowercase();
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").to_owned();
    drop(first);
    let more = [headers[0], ("range", "bytes=0-99"), ("if-match", tag.as_str())];
    let part = crate::client::ask(served.address(), "GET", "/api/backup", &more, b"");
    assert_eq!((part.status, part.body.len()), (206, 100), "{}", part.headers);
    assert!(part.body.starts_with(b"SQLite format 3\0"));
    assert!(part.headers.contains("content-length: 100"), "{}", part.headers);
    assert_eq!(served.ask("GET", "/api/backup", READ, b"").status, 403);
}

/// A refused import was answered while the client was still sending, so that it saw a broken connection.
#[test]
fn an_import_that_ends_early_is_answered() {
    let served = file(|_| ());
    let line = |n: usize| {
        let number = format!("{{\"type\":\"number\",\"value\":{n}}}");
        format!("{{\"key\":[{number}],\"value\":{number}}}\n")
    };
    let good: String = (0..2000).map(line).collect();
    let bearer = bearer(ACCESS);
    let headers = [("authorization", bearer.as_str()), LINES];
    let body = [good.as_bytes(), b"nothing\n", good.repeat(20).as_bytes()].concat();
    let sent = begin(served.address(), "/api/import", &headers, Some(body.len()));
    let reply = end(sent, &body);
    assert_eq!(reply.status, 400, "{}", reply.text());
    let problem = reply.json();
    assert_eq!((problem["line"].as_u64(), problem["imported"].as_u64()), (Some(2001), Some(2000)));
    let count = served.ask("GET", "/api/keys/count", ACCESS, b"").json();
    assert_eq!(count["count"].as_u64(), Some(2000));
}
