//! Consumers of queues: a stream of messages, waits for one, and the fate of messages on their way.

use std::time::{Duration, Instant};

use openkv::codec::framing::KEEP_ALIVE;
use openkv::database::Database;
use openkv::model::{
    Ask, AtomicWrite, CONSUME_MESSAGE_BYTES_MAX, Decision, Delivery, Limits, Message, Outcome,
    PageMemory, QueueStats, Renewal, Settlement, WriteParts,
};
use openkv::open::{Target, open};
use openkv::protocol::Command;
use openkv::protocol::extension::read_answer;
use openkv::protocol::frame::{
    Consume, ConsumeMessage, LockUpdate, Poll, parse_received, push_lock_update, read_message,
    write_consume, write_poll,
};

use crate::client::{Reply, Stream, send};
use crate::kit::{PATIENCE, until};
use crate::served::{ACCESS, READ, Served, Session, file};

/// The same file in another process.
fn beside(served: &Served) -> Database {
    let path = served.folder.path().join("kv.sqlite3");
    let busy = Duration::from_secs(5);
    open(&Target::File {
        path,
        readonly: false,
        busy,
        encoding: None,
        memory: PageMemory::default(),
    })
    .expect("the file")
}

fn enqueue(database: &Database, values: std::ops::Range<u8>) {
    let message = |value| Message {
        queue: "mail".into(),
        backoff_ms: vec![0; 5],
        value: vec![value],
        ..Message::default()
    };
    enqueue_all(database, values.map(message).collect());
}

fn enqueue_all(database: &Database, messages: Vec<Message>) {
    let most = usize::MAX;
    let limits = Limits { message_bytes_max: most, commit_bytes_max: most, ..Limits::default() };
    let parts = WriteParts { messages, ..WriteParts::default() };
    let write = AtomicWrite::new(parts, &limits);
    let (tell, answered) = std::sync::mpsc::channel();
    let reply = Box::new(move |decisions: Vec<Decision>| drop(tell.send(decisions)));
    database.store("here").expect("here").commit(vec![write], true, PATIENCE, reply);
    let decisions = answered.recv_timeout(PATIENCE).expect("an answer");
    assert!(matches!(decisions[..], [Decision::CommittedWith(..)]), "{decisions:?}");
}

fn stats(database: &Database) -> QueueStats {
    let (tell, answered) = std::sync::mpsc::channel();
    let store = database.store("here").expect("here");
    let bounds = store.patience("a test", PATIENCE, None);
    store.queue_stats("mail".into(), bounds, move |stats| drop(tell.send(stats)));
    answered.recv_timeout(PATIENCE).expect("an answer").expect("stats")
}

fn request(lock_ms: i64, concurrency: u32, credits: u32) -> Consume {
    Consume { queue: "mail".into(), lock_ms, concurrency, credits }
}

/// A consumer's stream and its number.
struct Consuming(Stream, u64);

fn consume(session: &Session, request: &Consume) -> Consuming {
    let headers = session.headers();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let body = write_consume(request);
    let path = "/v2/openkv/consume";
    let mut stream = Stream::new(send(session.address, "POST", path, &headers, &body));
    let first = read_message(&stream.next().expect("a number"), true).expect("a number");
    let ConsumeMessage::Opened(number) = first else { panic!("{first:?}") };
    Consuming(stream, number)
}

impl Consuming {
    fn next(&mut self) -> Option<Vec<Delivery>> {
        let message = self.0.next()?;
        match read_message(&message, false).expect("messages") {
            ConsumeMessage::Dispatched(dispatched) => Some(dispatched),
            other => panic!("{other:?}"),
        }
    }

    /// The next `count` messages, which are all that its credits allow.
    fn take(&mut self, count: usize) -> Vec<Delivery> {
        let got = self.take_at_least(count);
        assert_eq!(got.len(), count, "never more than there are credits");
        got
    }

    fn take_at_least(&mut self, count: usize) -> Vec<Delivery> {
        let mut got = Vec::new();
        while got.len() < count {
            got.extend(self.next().expect("messages"));
        }
        got
    }
}

fn values(deliveries: &[Delivery]) -> Vec<u8> {
    deliveries.iter().map(|delivery| delivery.value[0]).collect()
}

fn settled(delivery: &Delivery, outcome: Outcome) -> Ask {
    Ask::Settle(Settlement::new(delivery.id, delivery.lock, outcome))
}

fn tell(session: &Session, held: &LockUpdate) -> Vec<u8> {
    let mut frame = Vec::new();
    push_lock_update(&mut frame, held);
    let reply = session.post(&format!("openkv/call/{}", Command::LockUpdate.number()), &frame);
    assert_eq!(reply.status, 200, "{}", reply.text());
    read_answer(&reply.body).expect("an answer").expect("flags").to_vec()
}

#[test]
fn messages_come_in_order_and_never_more_than_there_are_credits() {
    let served = file(|_| ());
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    let mut consumer = consume(&session, &request(60_000, 3, 2));
    enqueue(&here, 0..8);
    let first = consumer.take(2);
    assert_eq!(values(&first), [0, 1]);
    assert_eq!(stats(&here).processing, 2);
    let done = |delivery: &Delivery| settled(delivery, Outcome::Done);
    // The settlements of both and their credits; repeated, and an older report after it.
    let both =
        LockUpdate { stream: consumer.1, granted: 4, asks: first.iter().map(done).collect() };
    assert_eq!(tell(&session, &both), [1, 1]);
    assert_eq!(tell(&session, &both), [0, 0], "reported before");
    let older = LockUpdate { granted: 3, asks: Vec::new(), ..both };
    assert!(tell(&session, &older).is_empty());
    assert_eq!(values(&consumer.take(2)), [2, 3]);
    // Credits beyond its request are not granted.
    tell(&session, &LockUpdate { granted: u64::MAX, ..older.clone() });
    assert_eq!(values(&consumer.take(3)), [4, 5, 6]);
    assert_eq!(stats(&here).processing, 5);
    // The number of another stream, and of none.
    tell(&session, &LockUpdate { stream: consumer.1 + 1, granted: 50, asks: Vec::new() });
    tell(&session, &LockUpdate { stream: 0, granted: 50, asks: Vec::new() });
    assert_eq!(stats(&here).pending, 1);
}

#[test]
fn a_closed_connection_keeps_only_its_locks() {
    let served = file(|_| ());
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    let mut gone = consume(&session, &request(2000, 2, 2));
    enqueue(&here, 0..4);
    let held = gone.take(2);
    drop(gone);
    let begun = Instant::now();
    let mut other = consume(&session, &request(60_000, 10, 10));
    assert_eq!(values(&other.take(2)), [2, 3], "the others are free");
    assert_eq!(stats(&here).processing, 4, "its locks hold");
    // A consumer of another connection reports for it.
    let renewal = Renewal { id: held[0].id, lock: held[0].lock, lock_ms: 60_000 };
    let update = LockUpdate { asks: vec![Ask::Extend(renewal)], ..LockUpdate::default() };
    assert_eq!(tell(&session, &update), [1]);
    let again = other.take(1);
    assert_eq!((again[0].value[0], again[0].attempts), (1, 2));
    assert!(begun.elapsed() >= Duration::from_millis(1000), "before its lock ended");
    let late = LockUpdate { asks: vec![settled(&held[1], Outcome::Done)], ..LockUpdate::default() };
    assert_eq!(tell(&session, &late), [0], "another consumer has its lock");
    let end = LockUpdate { asks: vec![settled(&held[0], Outcome::Done)], ..LockUpdate::default() };
    assert_eq!(tell(&session, &end), [1]);
}

#[test]
fn messages_that_a_connection_did_not_take_are_put_back() {
    let served = file(|_| ());
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    // Large messages, more than the connection can take: the client does not read.
    let large = |value: u8| Message {
        queue: "mail".into(),
        value: [vec![value], vec![0; 60_000]].concat(),
        ..Message::default()
    };
    for value in 0..200 {
        let parts = WriteParts { messages: vec![large(value)], ..WriteParts::default() };
        let write = AtomicWrite::new(parts, &Limits::default());
        let (tell, answered) = std::sync::mpsc::channel();
        let reply = Box::new(move |decisions: Vec<Decision>| drop(tell.send(decisions)));
        here.store("here").expect("here").commit(vec![write], false, PATIENCE, reply);
        answered.recv_timeout(PATIENCE).expect("an answer");
    }
    let deaf = consume(&session, &request(600_000, 1000, 1000));
    until(|| stats(&here).processing > 32);
    std::thread::sleep(Duration::from_millis(200));
    let dispatched = stats(&here).processing;
    assert!(dispatched < 200, "{dispatched}: it was dispatched more than a little ahead");
    drop(deaf);
    until(|| stats(&here).processing + 10 < dispatched);
    let taken = stats(&here).processing;
    let mut other = consume(&session, &request(60_000, 1000, 1000));
    // The server may put more back after `taken` was read.
    let rest = other.take_at_least(200 - usize::try_from(taken).expect("few"));
    assert!(rest.iter().all(|delivery| delivery.attempts == 1), "no handler had seen them");
}

/// The stream ended with such a message. Those beside it were neither delivered nor put back, and
/// each of their locks ran out as a failure.
#[test]
fn a_message_that_fits_no_frame_fails_and_those_beside_it_arrive() {
    let served = file(|_| ());
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    let message = |value: u8, bytes| Message {
        queue: "mail".into(),
        value: vec![value; bytes],
        ..Message::default()
    };
    let (most, long) = (CONSUME_MESSAGE_BYTES_MAX, CONSUME_MESSAGE_BYTES_MAX / 2 + 1);
    let sizes = [1, 1, most + 1, most, long, 1, long, 1];
    let messages = sizes.iter().zip(0..).map(|(bytes, value)| message(value, *bytes)).collect();
    enqueue_all(&here, messages);
    let mut consumer = consume(&session, &request(60_000, 10, 10));
    let got = consumer.take(sizes.len() - 1);
    assert_eq!(values(&got), [0, 1, 3, 4, 5, 6, 7]);
    assert!(got.iter().all(|delivery| delivery.attempts == 1));
    until(|| {
        let stats = stats(&here);
        stats.dead == 1 && stats.processing == 7
    });
}

#[test]
fn a_stream_ends_on_request_and_with_its_token() {
    let served = file(|options| options.data_token_ms = Some(1500));
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    let mut ended = consume(&session, &request(600_000, 10, 10));
    enqueue(&here, 0..1);
    assert_eq!(ended.take(1).len(), 1);
    let end = format!("openkv/call/{}", Command::ConsumeEnd.number());
    assert_eq!(session.post(&end, &ended.1.to_le_bytes()).status, 200);
    assert_eq!(ended.next(), None);
    let mut expired = consume(&session, &request(600_000, 10, 10));
    assert_eq!(expired.next(), None);
    assert_eq!(session.post(&end, &[0; 8]).status, 401);
    let session = served.session("/", ACCESS);
    enqueue(&here, 1..2);
    let mut after = consume(&session, &request(600_000, 10, 10));
    assert_eq!(values(&after.take(1)), [1], "there is no other consumer");
}

fn poll(session: &Session, number: u64, wait_ms: u32) -> Reply {
    let poll = Poll { queue: "mail".into(), lock_ms: 60_000, number, wait_ms };
    session.post("openkv/receive", &write_poll(&poll))
}

fn received(reply: &Reply) -> Option<Delivery> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = read_answer(&reply.body).expect("an answer").expect("no error");
    (!answer.is_empty()).then(|| parse_received(answer).expect("a message"))
}

#[test]
fn receive_returns_a_due_message_waits_or_returns_none() {
    let served = file(|_| ());
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    assert_eq!(received(&poll(&session, 1, 0)), None);
    assert_eq!(received(&poll(&session, 1, 20)), None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| poll(&session, 2, 20_000));
        std::thread::sleep(Duration::from_millis(50));
        enqueue(&here, 7..8);
        let delivery = received(&waiting.join().expect("no panic")).expect("a message");
        assert_eq!((delivery.value[0], delivery.attempts), (7, 1));
        // A wait ends on request.
        let waiting = scope.spawn(|| poll(&session, 3, 20_000));
        std::thread::sleep(Duration::from_millis(50));
        let end = format!("openkv/call/{}", Command::ConsumeEnd.number());
        assert_eq!(session.post(&end, &3_u64.to_le_bytes()).status, 200);
        assert_eq!(received(&waiting.join().expect("no panic")), None);
    });
}

#[test]
fn a_client_that_is_gone_gets_no_message() {
    let served = file(|options| options.quotas.watches = Some(1));
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    let headers = session.headers();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let request = Poll { queue: "mail".into(), lock_ms: 60_000, number: 1, wait_ms: 60_000 };
    let body = write_poll(&request);
    // The server admits one wait: that of the client, until the server notices that it is gone. The look may come before it.
    let is_taken = || poll(&session, 2, 1).status == 429;
    let waiting = || {
        let client = send(session.address, "POST", "/v2/openkv/receive", &headers, &body);
        std::thread::sleep(Duration::from_millis(50));
        is_taken().then_some(client)
    };
    drop((0..100).find_map(|_| waiting()).expect("a client that waits"));
    until(|| !is_taken());
    enqueue(&here, 8..9);
    until(|| poll_for(&session, 8));
}

/// Whether a wait that is admitted gets this message at its first attempt.
fn poll_for(session: &Session, value: u8) -> bool {
    let reply = poll(session, 3, 20_000);
    if reply.status == 429 {
        return false;
    }
    let next = received(&reply).expect("a message");
    assert_eq!((next.value[0], next.attempts), (value, 1));
    true
}

#[test]
fn requests_without_rights_are_rejected() {
    let served = file(|options| options.quotas.watches = Some(1));
    let (reader, session) = (served.session("/", READ), served.session("/", ACCESS));
    let good = write_consume(&request(5000, 10, 10));
    for path in ["openkv/consume", "openkv/receive"] {
        let reply = reader.post(path, &good);
        assert_eq!(reply.status, 403, "{path}");
        assert!(reply.text().contains("may only read"), "{}", reply.text());
        for len in 0..good.len() {
            assert_eq!(session.post(path, &good[..len]).status, 400, "{path} {len}");
        }
        let reply = session.post(path, &KEEP_ALIVE);
        assert!(reply.text().contains("frame cannot be read"), "{}", reply.text());
    }
    for bad in
        [request(99, 10, 10), request(5000, 1001, 10), request(5000, 3, 4), request(5000, 0, 0)]
    {
        assert_eq!(session.post("openkv/consume", &write_consume(&bad)).status, 400, "{bad:?}");
    }
    let _one = consume(&session, &request(5000, 10, 10));
    let reply = session.post("openkv/consume", &good);
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert_eq!(poll(&session, 1, 10).status, 429);
    assert_eq!(poll(&session, 1, 0).status, 200, "one look is no stream");
}

#[test]
fn a_closing_server_ends_consumers_and_puts_messages_back() {
    let mut served = file(|_| ());
    let (here, session) = (beside(&served), served.session("/", ACCESS));
    let mut consumers: Vec<_> =
        (0..5).map(|_| consume(&session, &request(600_000, 10, 10))).collect();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| poll(&session, 1, 20_000));
        std::thread::sleep(Duration::from_millis(50));
        served.server.close();
        assert_eq!(received(&waiting.join().expect("no panic")), None);
    });
    for consumer in &mut consumers {
        assert_eq!(consumer.next(), None);
    }
    enqueue(&here, 0..3);
    assert_eq!(stats(&here), QueueStats { pending: 3, ..QueueStats::default() });
}
