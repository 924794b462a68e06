//! Several batches in flight.

use super::*;
use crate::{Progress, Report, Ticket};
use openkv_core::chain::{Entry, encode as encode_entry};
use openkv_core::model::{
    BUCKET_BATCHES_IN_FLIGHT_MAX, BUCKET_IN_FLIGHT_BYTES_MAX, Check, Claim, Limits, Message,
    WriteParts,
};

const NOW: i64 = 1_000_000;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn adds() -> AtomicWrite {
    write(vec![], vec![sum("n", 1)])
}

fn enqueues(value: u8) -> AtomicWrite {
    let message = Message { queue: "q".into(), value: vec![value], ..Message::default() };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).unwrap()
}

impl Process {
    /// What the local copy has, whether or not a read would be answered.
    fn visible(&self) -> u64 {
        number_in(&mut self.local.engine.reader().unwrap())
    }

    /// The number of the next object, as far as the leader knows.
    fn next(&self) -> u64 {
        match &self.lead.state.lock().role {
            Role::Leads(leading) => leading.window.position().next,
            Role::Reads(_) | Role::Rests(_) => panic!("the lead is lost"),
        }
    }
}

fn begin(writer: &mut BucketWriter, writes: Vec<AtomicWrite>) -> Ticket {
    let work = Work { writes, durable: true, ..Work::default() };
    match writer.begin(work, NOW, soon()).unwrap() {
        Progress::UnderWay(ticket) => ticket,
        Progress::Done(_) => panic!("it is in the chain already"),
    }
}

/// The outcome of the oldest batch, which is this one.
fn ended(writer: &mut BucketWriter, ticket: Ticket) -> Result<Report> {
    loop {
        if let Some((of, outcome)) = writer.ended() {
            assert_eq!(of, ticket);
            return outcome;
        }
        std::thread::yield_now();
    }
}

fn put(number: u64) -> &'static str {
    format!("PUT log/{number:016x}").leak()
}

fn has_object(process: &Process, number: u64) -> bool {
    process.lead.objects.object(number).unwrap().is_some()
}

/// Waits until the store has an object.
fn until_created(process: &Process, number: u64) {
    while !has_object(process, number) {
        std::thread::yield_now();
    }
}

#[test]
fn a_batch_is_answered_and_visible_once_its_object_and_all_before_it_exist() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    let mut writer = process.writer();
    let next = process.next();
    store.fail(put(next), Fault::Held);
    let first = begin(&mut writer, vec![adds()]);
    assert!(writer.has_room());
    // It is decided over the one in flight.
    let second = begin(&mut writer, vec![adds()]);
    until_created(&process, next + 1);
    assert!(!has_object(&process, next) && writer.ended().is_none());
    assert_eq!(process.visible(), 0);
    store.let_go();
    ended(&mut writer, first).unwrap();
    ended(&mut writer, second).unwrap();
    assert_eq!((process.visible(), process.next()), (2, next + 2));
    // Another process repeats the same.
    assert_eq!(opened(&store, LeadMode::Never, false).unwrap().visible(), 2);
}

#[test]
fn a_refusal_waits_for_the_batches_on_which_it_was_decided() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    let mut writer = process.writer();
    store.fail("PUT log/", Fault::Held);
    let first = begin(&mut writer, vec![adds()]);
    let absent = Check { key: key("n"), expected: None };
    let second = begin(&mut writer, vec![write(vec![absent], vec![set("other", &[1])])]);
    assert!(writer.ended().is_none());
    store.let_go();
    ended(&mut writer, first).unwrap();
    let report = ended(&mut writer, second).unwrap();
    assert!(matches!(report.decisions[..], [Decision::CheckFailed(_)]), "{report:?}");
}

/// The object behind the gap is void: the fence of the next lead takes the number without one.
#[test]
fn an_object_behind_a_gap_counts_for_nothing() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    let mut writer = process.writer();
    let next = process.next();
    store.fail(put(next), Fault::Denied);
    let first = begin(&mut writer, vec![adds()]);
    let second = begin(&mut writer, vec![adds()]);
    assert_eq!(ended(&mut writer, first).unwrap_err().kind(), Kind::Denied);
    assert_eq!(ended(&mut writer, second).unwrap_err().kind(), Kind::Denied);
    assert!(process.reads() && !has_object(&process, next) && has_object(&process, next + 1));
    // A reader takes the gap for the end.
    let mut reader = opened(&store, LeadMode::Never, false).unwrap();
    assert_eq!((reader.visible(), reader.driver.position.next), (1, next));
    process.lead_again();
    assert!(has_object(&process, next));
    process.add().unwrap();
    assert_eq!((process.visible(), process.next()), (2, next + 3));
    reader.driver.follow().unwrap();
    assert_eq!((reader.visible(), reader.driver.position.next), (2, next + 3));
    process.driver.release().unwrap();
    let other = leader(&store);
    assert_eq!(other.visible(), 2);
}

#[test]
fn a_batch_behind_one_of_unknown_fate_is_as_unknown() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    let mut writer = process.writer();
    let next = process.next();
    store.fail(put(next), Fault::Lost);
    store.fail(put(next), Fault::Denied);
    let first = begin(&mut writer, vec![adds()]);
    let second = begin(&mut writer, vec![adds()]);
    assert_eq!(ended(&mut writer, first).unwrap_err().kind(), Kind::OutcomeUnknown);
    assert_eq!(ended(&mut writer, second).unwrap_err().kind(), Kind::OutcomeUnknown);
    assert!(process.reads());
    process.lead_again();
    // They have happened.
    assert_eq!(process.visible(), 2);
}

#[test]
fn batches_behind_the_fence_of_another_leader_are_refused() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    process.add().unwrap();
    let mut writer = process.writer();
    let next = process.next();
    for number in next..next + 2 {
        store.fail(put(number), Fault::Held);
    }
    let first = begin(&mut writer, vec![adds()]);
    let second = begin(&mut writer, vec![adds()]);
    let position = match &process.lead.state.lock().role {
        Role::Leads(leading) => leading.window.position(),
        Role::Reads(_) | Role::Rests(_) => panic!("the lead is lost"),
    };
    let mut behind = position;
    behind.next += 1;
    let (bytes, _) = encode_entry(&behind.fence(), &[]);
    // The first request that fails is not that of the fence.
    while store.faults() > 0 {
        std::thread::yield_now();
    }
    process.lead.objects.create(next + 1, &bytes).unwrap();
    store.let_go();
    store.let_go();
    // It is before the fence.
    ended(&mut writer, first).unwrap();
    let refused = ended(&mut writer, second).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable, "{refused}");
    assert_eq!(process.visible(), 2);
    assert!(process.reads());
}

/// What a leader has left behind a gap is in the way of the next one's objects.
#[test]
fn a_number_that_a_former_leader_has_taken_moves_the_batches_in_flight() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    process.add().unwrap();
    let mut writer = process.writer();
    let next = process.next();
    let kind = EntryKind::Batch { before: 0, after: 9 };
    let late = Entry { number: next + 1, epoch: 0, previous: [0; 32], kind };
    process.lead.objects.create(next + 1, &encode_entry(&late, b"late").0).unwrap();
    let first = begin(&mut writer, vec![adds()]);
    let second = begin(&mut writer, vec![adds()]);
    ended(&mut writer, first).unwrap();
    ended(&mut writer, second).unwrap();
    assert_eq!((process.visible(), process.next()), (3, next + 3));
    let mut reader = opened(&store, LeadMode::Never, false).unwrap();
    assert_eq!(reader.visible(), 3);
    reader.driver.follow().unwrap();
    assert_eq!(reader.driver.position.next, next + 3);
}

#[test]
fn batches_that_the_file_loses_are_read_from_the_log() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    let mut writer = process.writer();
    store.fail("PUT log/", Fault::Held);
    let first = begin(&mut writer, vec![adds()]);
    let second = begin(&mut writer, vec![adds()]);
    let breaks = "CREATE TRIGGER lost BEFORE INSERT ON openkv_meta WHEN NEW.name = 'bucket'
                  BEGIN SELECT RAISE(ABORT, 'lost'); END";
    process.change_file(breaks);
    store.let_go();
    for ticket in [first, second] {
        assert_eq!(ended(&mut writer, ticket).unwrap_err().kind(), Kind::OutcomeUnknown);
    }
    assert!(process.reads() && !process.may_read_at_once());
    process.change_file("DROP TRIGGER lost");
    process.lead_again();
    assert_eq!(process.count(), 3);
    process.add().unwrap();
    assert_eq!(process.count(), 4);
}

#[test]
fn work_that_runs_alone_waits_for_all_in_flight_and_the_numbers_of_messages_go_on() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    let mut writer = process.writer();
    store.fail("PUT log/", Fault::Held);
    let first = begin(&mut writer, vec![enqueues(1), adds()]);
    let second = begin(&mut writer, vec![enqueues(2)]);
    // A message with a deduplication key cannot be decided ahead.
    let message = Message {
        queue: "q".into(),
        value: vec![3],
        deduplication_key: Some("once".into()),
        ..Message::default()
    };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    let named = AtomicWrite::new(parts, &Limits::default()).unwrap();
    let third = begin(&mut writer, vec![named]);
    assert!(writer.ended().is_none());
    store.let_go();
    for ticket in [first, second, third] {
        let report = ended(&mut writer, ticket).unwrap();
        let made = &report.decisions[0];
        assert!(matches!(made, Decision::Committed(_) | Decision::CommittedWith(..)), "{made:?}");
    }
    let claim = Claim { queue: "q".into(), max: 9, lock_ms: 1_000, lock: 8 };
    let work = Work { claims: vec![claim], ..Work::default() };
    let report = writer.apply(work, NOW + 1, soon()).unwrap();
    let ids: Vec<_> = report.deliveries[0].iter().map(|delivery| delivery.id).collect();
    assert_eq!(ids, [1, 2, 3]);
    let fourth = begin(&mut writer, vec![enqueues(4)]);
    ended(&mut writer, fourth).unwrap();
    assert_eq!(writer.queue_depth("q").unwrap(), 4);
}

#[test]
fn a_bound_of_bytes_and_one_of_batches_are_in_flight() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    let mut writer = process.writer();
    let value = vec![7; BUCKET_IN_FLIGHT_BYTES_MAX / 256];
    let sets = |count: usize| {
        let one = |n: usize| write(vec![], vec![set(&n.to_string(), &value)]);
        (0..count).map(one).collect::<Vec<_>>()
    };
    for (count, has_room) in [(255, true), (256, false)] {
        store.fail("PUT log/", Fault::Held);
        let ticket = begin(&mut writer, sets(count));
        assert_eq!(writer.has_room(), has_room, "{count}");
        store.let_go();
        ended(&mut writer, ticket).unwrap();
    }
    // How many there may be is measured again after 64 batches.
    let mut most = 0;
    for _ in 0..70 {
        let mut tickets = Vec::new();
        while writer.has_room() && tickets.len() < 100 {
            store.fail("PUT log/", Fault::Held);
            tickets.push(begin(&mut writer, vec![adds()]));
        }
        most = most.max(tickets.len());
        for _ in &tickets {
            store.let_go();
        }
        for ticket in tickets {
            ended(&mut writer, ticket).unwrap();
        }
    }
    assert!((2..=BUCKET_BATCHES_IN_FLIGHT_MAX).contains(&most), "{most}");
}
