//! Requests as JavaScript hands them over: frames of reads, writes and commands.
//!
//! A store answers them here. An openkv server gets the frame of a command as it is. A plain KV Connect
//! server has no commands; counts and scans are then made of its pages.

use std::sync::Arc;
use std::time::Duration;

use super::{Database, backup, pages};
use crate::remote::{Cancel, Client, CommitReply, Entry, Framed, Page};
use crate::replica::Seen;
use openkv_core::codec::Malformed;
use openkv_core::model::{
    ANSWER_BYTES_MAX, Decision, Error, FRAMES_PAGE_BYTES, LONG_READ_MS_MAX, Limits, Range, Result,
    Row,
};
use openkv_store::call::{self, Call, Reply, carry_out};
use openkv_store::{Closing, Store};
use openkv_wire::protocol::frame::{
    Answer, parse_ranges, parse_requests, parse_writes, parse_writes_apart, push_failed,
};
use openkv_wire::protocol::{Access, Command, CommandFlag};

/// The options of a handle for all of its requests.
#[derive(Clone)]
pub struct HandleOptions {
    /// Whether commits wait for the disk.
    pub durable: bool,
    /// Longest wait for other processes.
    pub busy: Duration,
    /// The limits of writes.
    pub limits: Limits,
    /// Raised when the handle closes.
    pub closing: Closing,
    /// The commits that it has seen of a database with a replica.
    pub seen: Arc<Seen>,
}

impl HandleOptions {
    /// Of a new handle. `max_lag`: how old its eventual reads of a replica may be.
    #[must_use]
    pub fn new(durable: bool, busy: Duration, limits: Limits, max_lag: Option<Duration>) -> Self {
        let seen = Arc::new(Seen::new(max_lag));
        Self { durable, busy, limits, closing: Closing::default(), seen }
    }

    pub(super) fn call(&self, store: &Arc<Store>, reply: Reply) -> Call {
        Call {
            store: store.clone(),
            reply,
            durable: self.durable,
            busy: self.busy,
            limits: self.limits.clone(),
            answer_bytes_max: ANSWER_BYTES_MAX,
            long_most: Duration::from_millis(LONG_READ_MS_MAX),
        }
    }
}

impl Database {
    /// Answers the `count` range requests of a frame, all from one snapshot.
    pub fn read(&self, frame: &[u8], count: usize, options: &HandleOptions, reply: Reply) {
        match self {
            Self::Store(store) => match parse_ranges(frame, count) {
                Ok(ranges) => call::read(ranges, FRAMES_PAGE_BYTES, options.call(store, reply)),
                Err(bug) => reply.bad(bug),
            },
            Self::Remote(client) => read_remote(client, frame, count, reply),
            Self::Replica(replica) => replica.read(frame, count, options, reply),
            Self::Led(led) => Self::Store(led.store.clone()).read(frame, count, options, reply),
        }
    }

    /// Carries out the `count` writes of a frame.
    pub fn write(&self, frame: &[u8], count: usize, options: &HandleOptions, reply: CommitReply) {
        let HandleOptions { durable, busy, limits, .. } = options;
        let malformed = match self {
            Self::Store(store) => match parse_writes(frame, count, limits) {
                Ok(writes) => return store.commit(writes, *durable, *busy, reply),
                Err(malformed) => malformed,
            },
            Self::Remote(client) => match framed(frame, count, limits) {
                Ok(writes) => return client.commit(writes, limits, reply),
                Err(malformed) => malformed,
            },
            Self::Replica(replica) => {
                let reply = replica.noting(&options.seen, reply);
                return replica.primary.write(frame, count, options, reply);
            }
            Self::Led(led) => {
                return Self::Remote(led.leader.clone()).write(frame, count, options, reply);
            }
        };
        reply(vec![Decision::Rejected(Error::internal(malformed.to_string())); count]);
    }

    /// As [`Database::write`], on this thread if that takes at most `most`; returns the decisions then.
    /// Otherwise the reply that `reply` makes gets them.
    pub fn write_immediately(
        &self,
        frame: &[u8],
        count: usize,
        options: &HandleOptions,
        most: Duration,
        reply: impl FnOnce() -> CommitReply,
    ) -> Option<Vec<Decision>> {
        let HandleOptions { durable, busy, limits, .. } = options;
        if let Self::Store(store) = self
            && let Ok(writes) = parse_writes(frame, count, limits)
        {
            return store.commit_inline(writes, (*durable, *busy), most, reply);
        }
        self.write(frame, count, options, reply());
        None
    }

    /// Carries out a command; `eventual`: a replica may answer it. Its work ends within one of its steps when `cancel` is raised, and for
    /// some commands also when the handle closes.
    pub fn call(
        &self,
        (command, eventual): (Command, bool),
        frame: &[u8],
        options: &HandleOptions,
        cancel: Option<Cancel>,
        reply: Reply,
    ) {
        match self {
            Self::Store(store) => {
                let closing =
                    command.is(CommandFlag::EndsWithHandle).then(|| options.closing.clone());
                let reply = match (closing, cancel) {
                    (None, None) => reply,
                    (closing, cancel) => reply.while_wanted(move || {
                        closing.as_ref().is_none_or(Closing::leaves_time)
                            && !cancel.as_ref().is_some_and(Cancel::is_raised)
                    }),
                };
                carry_out(command, frame, options.call(store, reply));
            }
            Self::Remote(client) => call_remote(client, command, frame, options, cancel, reply),
            Self::Replica(replica) => {
                let request = (command, eventual);
                if let Some(reply) = replica.call(request, frame, options, cancel.clone(), reply) {
                    replica.primary.call(request, frame, options, cancel, reply);
                }
            }
            Self::Led(led) => {
                let writes = command.access() == Access::Write || command == Command::Acknowledged;
                let database = match writes {
                    true => Self::Remote(led.leader.clone()),
                    false => Self::Store(led.store.clone()),
                };
                database.call((command, eventual), frame, options, cancel, reply);
            }
        }
    }
}

fn read_remote(client: &Client, frame: &[u8], count: usize, reply: Reply) {
    let requests = match parse_requests(frame, count) {
        Ok(requests) => requests,
        Err(bug) => return reply.bad(bug),
    };
    let is_point = |range: &Range| matches!(range, Range::Point(_));
    let points: Vec<bool> = requests.iter().map(|request| is_point(&request.range)).collect();
    client
        .read(requests, Box::new(move |found| reply.good(read_answers(&found, &points).concat())));
}

/// The answer of each request.
pub(super) fn read_answers(found: &[Result<Page>], points: &[bool]) -> Vec<Vec<u8>> {
    let mut answers = Vec::with_capacity(found.len());
    for (found, is_point) in found.iter().zip(points) {
        let mut out = Vec::new();
        match found {
            Err(error) => push_failed(&mut out, error),
            Ok(Page::Frame(frame, place)) => {
                out.extend_from_slice(frame.get(place.clone()).unwrap_or_default());
            }
            Ok(Page::Entries(rows)) => {
                let mut answer = Answer::new(&mut out);
                for Entry { key, stamp, value } in rows {
                    let (encoding, value) = (value.encoding, value.bytes.as_slice());
                    let row = Row { key: key.as_bytes(), stamp: *stamp, encoding, value };
                    answer.push(&row, !is_point);
                }
                answer.end(false);
            }
        }
        answers.push(out);
    }
    answers
}

/// The writes of a frame, each with its own bytes.
fn framed(frame: &[u8], count: usize, limits: &Limits) -> Result<Vec<Result<Framed>>, Malformed> {
    let writes = parse_writes_apart(frame, count, limits, usize::MAX)?;
    let framed = writes.into_iter().map(|(write, place)| {
        let frame = frame.get(place).unwrap_or_default().to_vec();
        write.map(|write| Framed { write, frame })
    });
    Ok(framed.collect())
}

fn call_remote(
    client: &Arc<Client>,
    command: Command,
    frame: &[u8],
    options: &HandleOptions,
    cancel: Option<Cancel>,
    reply: Reply,
) {
    match command {
        Command::Count if !client.takes_frames() => pages::count(frame, client, cancel, reply),
        Command::Scan if !client.takes_frames() => pages::scan(frame, client, reply),
        Command::Backup if client.takes_frames() => backup::backup(frame, client, cancel, reply),
        Command::BackupProgress => call::backup_progress(frame, reply),
        Command::Acknowledged => client.acknowledged(Box::new(move || reply.good(Vec::new()))),
        _ => {
            let answered = Box::new(move |answer| reply.tell(answer));
            client.call(command, frame, &options.limits, cancel, answered);
        }
    }
}
