//! Watches: every state arrives, and the stream ends with its token or the server.

use openkv::connect::wire::watch::{WatchAnswer, read_answer};

use crate::served::{ACCESS, file};

fn values(message: &[u8], count: usize) -> Vec<Option<Vec<u8>>> {
    let WatchAnswer::State(state) = read_answer(message, count).expect("a state") else {
        panic!("reads are disabled")
    };
    let keys = state.into_iter().map(|key| key.expect("every key changed, as Deno's server says"));
    keys.map(|entry| entry.map(|entry| entry.value.bytes)).collect()
}

#[test]
fn each_state_is_sent() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mut watch = session.watch(&["a", "b"]);
    assert_eq!(values(&watch.next().expect("a state"), 2), [None, None]);
    session.set("b", b"1");
    assert_eq!(values(&watch.next().expect("a state"), 2), [None, Some(b"1".to_vec())]);
    session.set("other", b"x");
    session.set("a", b"2");
    let both = [Some(b"2".to_vec()), Some(b"1".to_vec())];
    assert_eq!(values(&watch.next().expect("a state"), 2), both);
}

#[test]
fn a_watch_ends_with_its_token() {
    let served = file(|options| options.data_token_ms = Some(1000));
    let session = served.session("/", ACCESS);
    let mut watch = session.watch(&["a"]);
    assert!(watch.next().is_some());
    assert_eq!(watch.next(), None);
    assert_eq!(session.post("snapshot_read", b"").status, 401);
}

#[test]
fn a_server_that_closes_ends_its_watches() {
    let mut served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mut watches: Vec<_> = (0..20).map(|_| session.watch(&["a"])).collect();
    for watch in &mut watches {
        assert!(watch.next().is_some());
    }
    let idle = std::net::TcpStream::connect(served.address()).expect("a connection");
    let begun = std::time::Instant::now();
    served.server.close();
    assert!(begun.elapsed().as_secs() < 8, "closing waited for a client");
    for watch in &mut watches {
        assert_eq!(watch.next(), None);
    }
    drop(idle);
    assert!(std::net::TcpStream::connect(served.address()).is_err());
}
