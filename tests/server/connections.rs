//! Connections without a token must not keep out clients with one.
//!
//! 4,146 idle connections that had requested `/healthz` held all 4,096 slots of a server: a client with a
//! token waited until some of them had been idle for long enough.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::served::{ACCESS, Served, file, read};

const CONNECTIONS_MAX: usize = 8;

/// Less than the time after which an idle connection ends by itself.
const PATIENCE: Duration = Duration::from_secs(5);

fn small() -> Served {
    file(|options| options.connections_max = Some(CONNECTIONS_MAX))
}

fn dial(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(served.address()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends a request that keeps its connection, and reads the start of the answer.
fn ask(stream: &mut TcpStream, head: &str) -> std::io::Result<String> {
    stream.write_all(format!("{head}\r\nhost: test\r\ncontent-length: 0\r\n\r\n").as_bytes())?;
    let mut piece = [0; 1024];
    let len = stream.read(&mut piece)?;
    Ok(String::from_utf8_lossy(&piece[..len]).into_owned())
}

fn healthy(stream: &mut TcpStream) -> bool {
    ask(stream, "GET /healthz HTTP/1.1").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// Every connection has an answer or its end after the first round, so the second one counts.
fn alive_after_all_were_accepted(connections: &mut [TcpStream]) -> usize {
    for connection in connections.iter_mut() {
        healthy(connection);
    }
    connections.iter_mut().map(healthy).filter(|alive| *alive).count()
}

#[test]
fn connections_without_a_token_do_not_block_clients() {
    let served = small();
    let mut anonymous: Vec<_> = (0..CONNECTIONS_MAX + 4).map(|_| dial(&served)).collect();
    let alive = alive_after_all_were_accepted(&mut anonymous);
    assert!(alive <= CONNECTIONS_MAX, "{alive}");

    let session = served.session("/", ACCESS);
    session.set("a", b"1");
    assert_eq!(session.post("snapshot_read", &read("a")).status, 200);
    assert!(healthy(anonymous.last_mut().expect("one")), "the youngest is still served");
}

#[test]
fn a_connection_that_has_shown_a_token_stays() {
    let served = small();
    let session = served.session("/", ACCESS);
    let headers = session.headers();
    let headers: Vec<_> = headers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
    let head = format!("POST /v2/snapshot_read HTTP/1.1\r\n{}", headers.join("\r\n"));
    let mut known = dial(&served);
    // Any status shows that the token was checked.
    assert!(ask(&mut known, &head).expect("an answer").starts_with("HTTP/1.1 "));

    let mut anonymous: Vec<_> = (0..3 * CONNECTIONS_MAX).map(|_| dial(&served)).collect();
    let alive = alive_after_all_were_accepted(&mut anonymous);
    assert!(alive < CONNECTIONS_MAX, "{alive}");
    assert!(ask(&mut known, &head).is_ok_and(|answer| answer.starts_with("HTTP/1.1 ")));
}
