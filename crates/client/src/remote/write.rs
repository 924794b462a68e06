//! Writes: in frames, many to a request, or in the protocol's own messages, one to a request.
//! Writes of the same key are sent in order.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::executor::{
    AnswerError, HttpRequest, Needs, RequestExecutor, outcome_unknown, repeated_check_failed,
};
use super::extension::{answer_of, limits_header};
use super::order::{WriteSubject, subjects};
use super::retry_safety;
use super::write_ids::{REPEAT_MAX, all_known, for_one_id, frame_with_ids};
use openkv_core::model::{
    AtomicWrite, Decision, Deduplication, Enqueued, Error, FRAMES_GROUP_BYTES, FRAMES_RECORDS_MAX,
    FRAMES_WRITES_MAX, Kind, Limits, MutationKind, Result, Results,
};
use openkv_wire::connect::wire::atomic_write::{WriteAnswer, read_answer, write_request};
use openkv_wire::protocol::RetrySafety;
use openkv_wire::protocol::extension::{
    ACKS, FRAMES, LIMITERS, QUEUES, SCHEDULES, WRITE, WRITE_IDS, with_count,
};
use openkv_wire::protocol::frame::parse_outcomes;

/// A write and its frame.
#[derive(Clone, Debug)]
pub struct Framed {
    /// The write.
    pub write: AtomicWrite,
    /// Its records, up to the end record.
    pub frame: Vec<u8>,
}

/// Writes with their places in the call.
type Line = Vec<(usize, Framed)>;

/// Decisions, with the places of their writes.
type Decided = Vec<(usize, Decision)>;

/// Executes the writes. The decisions keep their order.
pub(super) async fn carry_out(
    executor: Arc<RequestExecutor>,
    writes: Vec<Result<Framed>>,
    limits: &Limits,
) -> Vec<Decision> {
    let unanswered = Error::internal("a write was not answered; please report this");
    let mut decisions = vec![Decision::Rejected(unanswered); writes.len()];
    let mut good = Vec::with_capacity(writes.len());
    let frames = executor.credentials.offers(FRAMES);
    let lacks_queues = frames && !executor.credentials.offers(QUEUES);
    let lacks_schedules = frames && !executor.credentials.offers(SCHEDULES);
    let lacks_acks = frames && !executor.credentials.offers(ACKS);
    let lacks_limiters = frames && !executor.credentials.offers(LIMITERS);
    for ((at, write), place) in writes.into_iter().enumerate().zip(&mut decisions) {
        match write {
            Ok(Framed { write, .. }) if lacks_queues && deduplicates(&write) => {
                *place = Decision::Rejected(executor.credentials.lacks("deduplication"));
            }
            Ok(Framed { write, .. }) if lacks_acks && !write.acks().is_empty() => {
                *place = Decision::Rejected(executor.credentials.lacks("ack in a commit"));
            }
            Ok(Framed { write, .. }) if lacks_limiters && takes_from_limiter(&write) => {
                *place = Decision::Rejected(executor.credentials.lacks("limiter"));
            }
            Ok(Framed { write, .. }) if lacks_schedules && schedules(&write) => {
                *place = Decision::Rejected(executor.credentials.lacks("schedules"));
            }
            Ok(write) => good.push((at, write)),
            Err(error) => *place = Decision::Rejected(error),
        }
    }
    let lines = lines(good);
    let mut in_flight = JoinSet::new();
    if frames {
        for (retry, requests) in groups(lines) {
            let (executor, limits) = (executor.clone(), limits.clone());
            in_flight.spawn(async move {
                let mut done = Vec::new();
                for request in requests {
                    done.extend(commit_all(&executor, retry, request, &limits).await);
                }
                done
            });
        }
    } else {
        for line in lines {
            let executor = executor.clone();
            in_flight.spawn(async move {
                let mut done = Vec::with_capacity(line.len());
                for (at, Framed { write, .. }) in line {
                    let decided = commit(&executor, write).await;
                    done.push((at, decided.unwrap_or_else(Decision::Rejected)));
                }
                done
            });
        }
    }
    while let Some(done) = in_flight.join_next().await {
        // A line that panics leaves only its own writes unanswered.
        for (at, decision) in done.unwrap_or_default() {
            if let Some(place) = decisions.get_mut(at) {
                *place = decision;
            }
        }
    }
    decisions
}

/// Whether a message of the write may replace another one.
fn deduplicates(write: &AtomicWrite) -> bool {
    let (_, _, messages) = write.parts();
    messages.iter().any(|message| message.deduplication != Deduplication::Drop)
}

/// Whether the write takes from a limiter.
fn takes_from_limiter(write: &AtomicWrite) -> bool {
    let (_, mutations, _) = write.parts();
    mutations.iter().any(|mutation| mutation.kind() == MutationKind::Limit)
}

/// Whether the write sets or removes a schedule.
fn schedules(write: &AtomicWrite) -> bool {
    let (_, _, messages) = write.parts();
    messages.iter().any(|message| message.schedule.is_some())
}

/// Sorts the writes into lines: two writes of the same key or queue are in one line, in order. A
/// checked range may overlap any write, so there is only one line then.
fn lines(writes: Line) -> Vec<Line> {
    if writes.len() <= 1 || writes.iter().any(|(_, of)| !of.write.ranges().is_empty()) {
        return if writes.is_empty() { Vec::new() } else { vec![writes] };
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut line_of: HashMap<WriteSubject, usize> = HashMap::new();
    for (at, framed) in writes {
        let subjects: Vec<_> = subjects(&framed.write).collect();
        let mut joined: Vec<usize> =
            subjects.iter().filter_map(|subjects| line_of.get(subjects).copied()).collect();
        joined.sort_unstable();
        joined.dedup();
        let line = match joined.split_first() {
            None => {
                lines.push(Vec::new());
                lines.len() - 1
            }
            Some((first, others)) => {
                for other in others {
                    let moved = lines.get_mut(*other).map(std::mem::take).unwrap_or_default();
                    if let Some(line) = lines.get_mut(*first) {
                        line.extend(moved);
                        line.sort_unstable_by_key(|(at, _)| *at);
                    }
                    line_of.values_mut().filter(|of| *of == other).for_each(|of| *of = *first);
                }
                *first
            }
        };
        line_of.extend(subjects.into_iter().map(|subjects| (subjects, line)));
        if let Some(line) = lines.get_mut(line) {
            line.push((at, framed));
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The used part of a request.
#[derive(Clone, Copy, Default)]
struct Room {
    writes: usize,
    bytes: usize,
    records: usize,
}

impl Room {
    fn of(framed: &Framed) -> Self {
        let (checks, mutations, messages) = framed.write.parts();
        let conditions = checks.len() + framed.write.ranges().len() + framed.write.acks().len();
        let tells = usize::from(framed.write.returns_values());
        // A mutation or message may have a placeholder record. The id and the end are records too.
        let places = framed.write.patches().len();
        let records = conditions + 2 * mutations.len() + 3 * messages.len() + places + tells + 2;
        Self { writes: 1, bytes: framed.frame.len(), records }
    }

    fn with(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
        }
    }

    fn is_over(self) -> bool {
        self.writes > FRAMES_WRITES_MAX
            || self.records > FRAMES_RECORDS_MAX
            || self.writes > 1 && self.bytes > FRAMES_GROUP_BYTES
    }
}

/// Groups lines into requests. The requests of a group are sent in order; groups run in parallel.
/// Requests never mix writes that are safe to repeat with others.
fn groups(lines: Vec<Line>) -> Vec<(RetrySafety, Vec<Line>)> {
    let mut groups: Vec<(RetrySafety, Vec<Line>)> = Vec::new();
    // The last group of each kind, while it is one request with room.
    let mut open: [Option<(usize, Room)>; 3] = [None; 3];
    for line in lines {
        let retry = line.iter().map(|(_, of)| retry_safety::of(&of.write)).max();
        let retry = retry.unwrap_or(RetrySafety::Idempotent);
        let whole = line.iter().fold(Room::default(), |room, (_, of)| room.with(Room::of(of)));
        let [idempotent, conditional, unsafe_] = &mut open;
        let open = match retry {
            RetrySafety::Idempotent => idempotent,
            RetrySafety::Conditional => conditional,
            RetrySafety::Unsafe => unsafe_,
        };
        if let Some((at, taken)) = open
            && !taken.with(whole).is_over()
            && let Some((_, requests)) = groups.get_mut(*at)
            && let Some(request) = requests.first_mut()
        {
            *taken = taken.with(whole);
            request.extend(line);
            continue;
        }
        if !whole.is_over() {
            *open = Some((groups.len(), whole));
        }
        groups.push((retry, cut(line)));
    }
    groups
}

/// Splits a line into as many requests as it needs.
fn cut(line: Line) -> Vec<Line> {
    let mut requests: Vec<Line> = Vec::new();
    let mut taken = Room::default();
    for (at, framed) in line {
        taken = taken.with(Room::of(&framed));
        match requests.last_mut() {
            Some(request) if !taken.is_over() => request.push((at, framed)),
            _ => {
                taken = Room::of(&framed);
                requests.push(vec![(at, framed)]);
            }
        }
    }
    requests
}

/// Sends the writes of one request.
async fn commit_all(
    executor: &RequestExecutor,
    retry: RetrySafety,
    request: Line,
    limits: &Limits,
) -> Decided {
    let (count, begun) = (request.len(), Instant::now());
    let (answer, recognised) = loop {
        let ids_ms = executor.credentials.write_id_ms();
        let ids_ms = ids_ms.filter(|_| retry != RetrySafety::Idempotent);
        let tried = Instant::now();
        let (limited, has_more) = for_one_id(executor, begun);
        let recognised = ids_ms.is_some();
        let executor = if recognised { &limited } else { executor };
        let answer = send_all(executor, (retry, ids_ms), &request, limits).await;
        match answer {
            // Nothing of it was done, so it may have other ids, which are younger.
            Err(error)
                if recognised
                    && has_more
                    && error.kind() == Kind::Unavailable
                    && tried.elapsed() >= REPEAT_MAX / 2 => {}
            answer => break (answer, recognised),
        }
    };
    let (decisions, sent_before) =
        answer.unwrap_or_else(|error| (vec![Decision::Rejected(error); count], false));
    let decided = request.into_iter().zip(decisions).map(|((at, framed), decision)| {
        let decided = match (retry_safety::of(&framed.write), &decision) {
            (RetrySafety::Idempotent, _) => decision,
            // The leader remembers the refusal of a repetition, so no earlier try commits after it.
            (_, Decision::CheckFailed(_) | Decision::NotUnique(_)) if recognised => decision,
            _ if sent_before => after_repetition(decision),
            _ => decision,
        };
        (at, decided)
    });
    decided.collect()
}

/// Sends the writes of one request, with ids that are made at `ids_ms`, if the server remembers them. The
/// decisions, and whether the server may have executed an earlier try too.
async fn send_all(
    executor: &RequestExecutor,
    (retry, ids_ms): (RetrySafety, Option<i64>),
    request: &Line,
    limits: &Limits,
) -> Result<(Vec<Decision>, bool)> {
    let count = request.len();
    let frames = request.iter().map(|(_, framed)| framed.frame.as_slice());
    let (frame, extension) = match ids_ms {
        Some(at_ms) => (frame_with_ids(frames, at_ms, &*executor.env), WRITE_IDS),
        None => (frames.flatten().copied().collect(), FRAMES),
    };
    let needs = Needs { extension, what: "writes beyond Deno KV's" };
    let http_request = HttpRequest {
        limits: limits_header(limits),
        results: true,
        recognised: ids_ms.is_some(),
        ..HttpRequest::extension(WRITE, retry, with_count(count, &frame), needs)
    };
    let answer = executor.execute(&http_request, |_, bytes| {
        let outcomes = answer_of(bytes)?;
        let decisions = parse_outcomes(&outcomes, count)
            .map_err(|bad| AnswerError::Malformed(bad.what().to_owned()))?;
        if http_request.recognised { all_known(decisions) } else { Ok(decisions) }
    });
    answer.await
}

/// The meaning of a decision about a changing write whose earlier try may have been executed.
fn after_repetition(decision: Decision) -> Decision {
    match decision {
        Decision::CheckFailed(_) | Decision::NotUnique(_) => {
            Decision::Rejected(repeated_check_failed())
        }
        Decision::Rejected(error) if !error.kind().is_of_input() => {
            Decision::Rejected(outcome_unknown(&format!(
                "The answer to a write was lost; sent again, it failed. The first try may have been \
                 executed: read to find out. {error}"
            )))
        }
        decided => decided,
    }
}

async fn commit(executor: &RequestExecutor, write: AtomicWrite) -> Result<Decision> {
    let retry = retry_safety::of(&write);
    let (checks, _, messages) = write.parts();
    let (checks, messages) = (checks.len(), messages.len());
    let http_request = HttpRequest::plain("atomic_write", retry, write_request(write)?);
    let (answer, sent_before) = executor
        .execute(&http_request, |_, bytes| match read_answer(bytes) {
            Ok(WriteAnswer::Disabled) => {
                Err(AnswerError::Disabled(Error::denied("Writes are disabled for this database")))
            }
            Ok(answer) => Ok(answer),
            Err(error) => Err(AnswerError::Malformed(error.message().to_owned())),
        })
        .await?;
    match answer {
        // The protocol has no message ids, so it does not deduplicate.
        WriteAnswer::Committed(stamp) => {
            let enqueued = vec![Enqueued { id: None, deduplicated: false }; messages];
            Ok(Decision::committed(stamp, Results { enqueued, ..Results::default() }))
        }
        WriteAnswer::CheckFailed(_) | WriteAnswer::NotUnique(_)
            if sent_before && retry != RetrySafety::Idempotent =>
        {
            Err(repeated_check_failed())
        }
        // Some servers do not name the failed check. With only one check it is clear.
        WriteAnswer::CheckFailed(failed) if failed.is_empty() && checks == 1 => {
            Ok(Decision::CheckFailed(vec![0]))
        }
        WriteAnswer::CheckFailed(failed) => Ok(Decision::CheckFailed(failed)),
        WriteAnswer::NotUnique(violations) => Ok(Decision::NotUnique(violations)),
        WriteAnswer::Disabled => Err(Error::internal("a disabled write was answered twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{Check, Key, Message, Mutation, RangeCheck, Versionstamp, WriteParts};

    fn delete(names: &[u8]) -> Framed {
        let key = |name: &u8| Key::from_encoded(vec![2, *name, 0]);
        let mutations = names.iter().map(|name| Mutation::Delete { key: key(name) }).collect();
        framed(WriteParts { mutations, ..WriteParts::default() })
    }

    fn framed(parts: WriteParts) -> Framed {
        let write = AtomicWrite::new(parts, &Limits::wide()).unwrap();
        Framed { write, frame: vec![0] }
    }

    fn placed(writes: Vec<Framed>) -> Line {
        writes.into_iter().enumerate().collect()
    }

    fn places(lines: &[Line]) -> Vec<Vec<usize>> {
        lines.iter().map(|line| line.iter().map(|(at, _)| *at).collect()).collect()
    }

    #[test]
    fn writes_of_one_key_keep_their_order_and_others_do_not_wait() {
        let writes = vec![
            delete(b"a"),
            delete(b"b"),
            delete(b"a"),
            delete(b"c"),
            delete(b"bc"),
            delete(b"b"),
        ];
        assert_eq!(places(&lines(placed(writes))), [vec![0, 2], vec![1, 3, 4, 5]]);
    }

    #[test]
    fn a_checked_range_waits_for_all_and_messages_of_a_queue_for_each_other() {
        let ranges = vec![RangeCheck {
            start: Key::from_encoded(vec![2]),
            end: Key::from_encoded(vec![3]),
            seen: Vec::new(),
            found_by: None,
        }];
        let checked = framed(WriteParts { ranges, ..WriteParts::default() });
        assert_eq!(places(&lines(placed(vec![delete(b"a"), checked]))), [vec![0, 1]]);
        let message = |queue: &str| {
            let messages = vec![Message { queue: queue.into(), ..Message::default() }];
            framed(WriteParts { messages, ..WriteParts::default() })
        };
        let writes = vec![message("a"), message("b"), message("a")];
        assert_eq!(places(&lines(placed(writes))), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn requests_are_filled_and_idempotent_writes_are_sent_apart() {
        let check = |name: u8, changes: bool| {
            let key = Key::from_encoded(vec![2, name, 0]);
            let expected = Some(Versionstamp::new(1));
            let checks = vec![Check { key: key.clone(), expected }];
            let mutations = changes.then_some(Mutation::Delete { key }).into_iter().collect();
            framed(WriteParts { checks, mutations, ..WriteParts::default() })
        };
        let mut large = delete(b"l");
        large.frame = vec![0; FRAMES_GROUP_BYTES + 1];
        let writes = vec![
            delete(b"a"),
            check(b'b', true),
            delete(b"c"),
            large,
            check(b'e', false),
            check(b'd', true),
        ];
        let groups = groups(lines(placed(writes)));
        let decided: Vec<_> =
            groups.iter().map(|(retry, requests)| (*retry, places(requests))).collect();
        assert_eq!(
            decided,
            [
                (RetrySafety::Unsafe, vec![vec![0, 2]]),
                (RetrySafety::Conditional, vec![vec![1, 5]]),
                (RetrySafety::Unsafe, vec![vec![3]]),
                (RetrySafety::Idempotent, vec![vec![4]]),
            ]
        );
        // One line that is longer than a request.
        let many = placed((0..FRAMES_WRITES_MAX + 5).map(|_| delete(b"x")).collect());
        let cut = cut(many);
        assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [FRAMES_WRITES_MAX, 5]);
    }

    #[test]
    fn the_answer_to_a_repetition_is_reinterpreted() {
        let known = Decision::Committed(Versionstamp::new(3));
        assert_eq!(after_repetition(known.clone()), known);
        let kind = |decision| match after_repetition(decision) {
            Decision::Rejected(error) => error.kind(),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(Decision::CheckFailed(vec![0])), Kind::OutcomeUnknown);
        assert_eq!(kind(Decision::Rejected(Error::closed())), Kind::OutcomeUnknown);
        assert_eq!(kind(Decision::Rejected(Error::invalid("no"))), Kind::Invalid);
    }
}
