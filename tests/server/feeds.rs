//! Change feeds: every change arrives once and in order, a gap is reported, and a stream ends with
//! its token, its database or the server.

use openkv::connect::wire::atomic_write::WriteAnswer;
use openkv::model::{Change, Error, Key, KeyRange, Kind, Versionstamp};
use openkv::protocol::feed::{FeedMessage, read_message, write_request};

use crate::client::Stream;
use crate::kit::until;
use crate::served::{ACCESS, ADMIN, READ, Session, delete, file, folder, key, set};

/// All keys that begin with this text.
fn range(prefix: &str) -> KeyRange {
    let bound = |end: &[u8]| Key::from_encoded([&[2], prefix.as_bytes(), end].concat());
    KeyRange { start: bound(&[]), end: bound(&[0xff]) }
}

/// A feed and its position.
struct Feed {
    stream: Stream,
    range: KeyRange,
    position: Option<Versionstamp>,
}

impl Feed {
    fn open(session: &Session, prefix: &str, since: Option<Versionstamp>) -> Self {
        let range = range(prefix);
        let stream = session.stream("openkv/feed", &write_request(&range, since));
        Self { stream, range, position: None }
    }

    /// The next message; `None` at the stream's end.
    fn next(&mut self) -> Option<Result<Vec<Change>, Error>> {
        let message = self.stream.next()?;
        match read_message(&message, &self.range, self.position).expect("a message") {
            FeedMessage::Changes(position, changes) => {
                self.position = Some(position);
                Some(Ok(changes))
            }
            FeedMessage::Ended(error) => Some(Err(error)),
        }
    }

    /// The commit at which it was opened.
    fn opened(&mut self) -> Versionstamp {
        assert_eq!(self.next(), Some(Ok(vec![])), "the place comes first");
        self.position.expect("a place")
    }

    /// The next changes, at least `count`.
    fn take(&mut self, count: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        while changes.len() < count {
            changes.extend(self.next().expect("more").expect("changes"));
        }
        changes
    }

    fn error(&mut self) -> Error {
        let error = self.next().expect("a message").expect_err("an error");
        assert_eq!(self.next(), None, "nothing follows an error");
        error
    }
}

fn stamp(answer: WriteAnswer) -> Versionstamp {
    match answer {
        WriteAnswer::Committed(stamp) => stamp,
        other => panic!("{other:?}"),
    }
}

fn values(changes: &[Change]) -> Vec<Option<Vec<u8>>> {
    changes.iter().map(|change| change.kind.value().map(|value| value.bytes.clone())).collect()
}

#[test]
fn every_change_is_sent_once_and_in_order() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let before = stamp(session.set("a0", b"before"));
    let mut feed = Feed::open(&session, "a", None);
    assert_eq!(feed.opened(), before);
    let first = stamp(session.set("a1", b"1"));
    stamp(session.set("b", b"elsewhere"));
    stamp(session.set("a1", b"2"));
    assert_eq!(session.post("atomic_write", &delete("a0")).status, 200);
    let changes = feed.take(3);
    assert_eq!(values(&changes), [Some(b"1".to_vec()), Some(b"2".to_vec()), None]);
    assert_eq!(changes[2].key, key("a0"));
    assert_eq!(changes[0].version, first.version());
    assert!(changes.is_sorted_by_key(|change| change.version));
    // A feed that continues after the first of them gets the others.
    let mut again = Feed::open(&session, "a", Some(first));
    assert_eq!(again.opened(), first);
    assert_eq!(again.take(2), changes[1..]);
    // A feed that continues from its opening gets all.
    let mut again = Feed::open(&session, "a", Some(before));
    again.opened();
    assert_eq!(again.take(3), changes);
}

#[test]
fn a_late_reader_gets_every_change() {
    const COMMITS: usize = 400;
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mut feed = Feed::open(&session, "a", None);
    feed.opened();
    let large = vec![7; 40_000];
    for n in 0..COMMITS {
        let mut value = large.clone();
        value.extend(n.to_le_bytes());
        session.set(&format!("a{}", n % 9), &value);
    }
    let changes = feed.take(COMMITS);
    for (n, change) in changes.iter().enumerate() {
        let value = change.kind.value().expect("a value");
        assert_eq!(value.bytes[large.len()..], n.to_le_bytes());
    }
}

#[test]
fn a_gap_is_reported_before_the_stream_ends() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let before = stamp(session.set("a", b"1"));
    session.post("atomic_write", &delete("a"));
    for since in [before, Versionstamp::new(u64::MAX)] {
        let mut feed = Feed::open(&session, "a", Some(since));
        assert_eq!(feed.opened(), since);
        let gap = feed.error();
        assert_eq!(gap.kind(), Kind::FeedGap, "{gap}");
        assert!(gap.message().contains(&since.to_string()), "{gap}");
    }
}

#[test]
fn a_database_that_cannot_log_reports_it() {
    let served = file(|_| ());
    served.session("/", ACCESS).set("a", b"1");
    let path = served.folder.path().join("kv.sqlite3");
    let mut served = served;
    served.server.close();
    let readonly = file(|options| {
        options.path = path.clone();
        options.readonly = true;
    });
    let mut feed = Feed::open(&readonly.session("/", ACCESS), "a", None);
    assert_eq!(feed.error().kind(), Kind::Denied);
}

#[test]
fn a_feed_needs_the_right_to_read() {
    let served = file(|_| ());
    let reading = served.session("/", READ);
    let mut feed = Feed::open(&reading, "a", None);
    feed.opened();
    served.session("/", ACCESS).set("a", b"1");
    assert_eq!(feed.take(1).len(), 1);
    let body = write_request(&range("a"), None);
    let mut stranger = served.session("/", ACCESS);
    stranger.token += "x";
    assert_eq!(stranger.post("openkv/feed", &body).status, 401);
    let path = "/v2/openkv/feed";
    assert_eq!(served.ask("GET", path, ACCESS, &[]).status, 405);
    for path in ["openkv/feed/", "openkv/feed/1", "openkv/feeds"] {
        assert_eq!(reading.post(path, &body).status, 404, "{path}");
    }
}

#[test]
fn a_malformed_request_is_rejected() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let good = write_request(&range("a"), Some(Versionstamp::new(1)));
    let backwards = KeyRange { start: key("b"), end: key("a") };
    let long = KeyRange { start: key("a"), end: key(&"b".repeat(3000)) };
    let mut bodies = vec![
        write_request(&backwards, None),
        write_request(&long, None),
        vec![0xff; 64],
        vec![1; 64],
        [&good[..], &[0]].concat(),
    ];
    bodies.extend((0..good.len()).map(|len| good[..len].to_vec()));
    for body in bodies {
        let reply = session.post("openkv/feed", &body);
        assert_eq!(reply.status, 400, "{body:?}: {}", reply.text());
    }
    assert_eq!(session.post("atomic_write", &set("a", b"1")).status, 200);
}

#[test]
fn feeds_count_among_the_watches() {
    let served = folder();
    let token = served.create("few", "{\"watches\":2}");
    let session = served.session("/few", &token);
    let body = write_request(&range("a"), None);
    let first = Feed::open(&session, "a", None);
    let mut second = session.watch(&["a"]);
    assert!(second.next().is_some());
    let over = session.post("openkv/feed", &body);
    assert_eq!(over.status, 429, "{}", over.text());
    assert!(over.headers.contains("retry-after"), "{}", over.headers);
    // The place of a stream is free as soon as the server has noticed its end.
    drop(first);
    until(|| session.status("openkv/feed", &body) == 200);
}

#[test]
fn a_feed_ends_with_its_token() {
    let served = file(|options| options.data_token_ms = Some(1000));
    let mut feed = Feed::open(&served.session("/", ACCESS), "a", None);
    feed.opened();
    assert_eq!(feed.next(), None);
}

#[test]
fn a_feed_ends_when_its_token_is_withdrawn_and_with_its_database() {
    let served = folder();
    for (what, path) in [("withdrawn", "/tokens/"), ("dropped", "")] {
        let token = served.create(what, "{}");
        let mut feed = Feed::open(&served.session(&format!("/{what}"), &token), "a", None);
        feed.opened();
        let database = format!("/v1/admin/databases/{what}");
        let path = if path.is_empty() {
            database
        } else {
            let all = served.ask("GET", &database, ADMIN, &[]).json();
            let id = all["tokens"][0]["id"].as_str().expect("an id").to_owned();
            format!("{database}{path}{id}")
        };
        let done = served.ask("DELETE", &path, ADMIN, &[]);
        assert!(done.status < 300, "{path}: {} {}", done.status, done.text());
        assert_eq!(feed.next(), None, "{what}");
    }
}

#[test]
fn a_server_that_closes_ends_its_feeds() {
    let mut served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mut feeds: Vec<_> = (0..20).map(|_| Feed::open(&session, "a", None)).collect();
    for feed in &mut feeds {
        feed.opened();
    }
    let begun = std::time::Instant::now();
    served.server.close();
    assert!(begun.elapsed().as_secs() < 8, "closing waited for a client");
    for feed in &mut feeds {
        assert_eq!(feed.next(), None);
    }
}

#[test]
fn a_waiting_feed_gets_its_position() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mut feed = Feed::open(&session, "a", None);
    feed.opened();
    let of_other = stamp(session.set("b", b"1"));
    // With the next keep-alive.
    assert_eq!(feed.next(), Some(Ok(vec![])));
    assert_eq!(feed.position, Some(of_other));
    session.set("a", b"1");
    assert_eq!(feed.take(1).len(), 1);
}
