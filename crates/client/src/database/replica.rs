//! A replica with the client of its server: reads that may be old are answered here where they can be,
//! everything else goes to the server.

mod figures;
mod parts;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use self::parts::{Merge, failed, newest, split};
pub(super) use self::streams::{Part, part_of};
use super::Database;
use super::requests::{HandleOptions, read_answers};
use crate::remote::{Cancel, Client, CommitReply, SeenNote};
use crate::replica::{Choice, LocalCopy, Seen, covers};
use openkv_core::model::{
    Capabilities, Decision, Error, FRAMES_PAGE_BYTES, Range, Request, Result, Versionstamp,
};
use openkv_store::call::{self, Reply, carry_out};
use openkv_store::{Closing, Store};
use openkv_wire::protocol::Command;
use openkv_wire::protocol::frame::{
    next_key, parse_ordered, parse_requests, parse_scan, parse_search, read_deleted_stamp,
};

/// A replica, as one handle has it.
pub struct Replica {
    /// The local copy.
    pub copy: Arc<LocalCopy>,
    /// The database that it follows: behind a URL, or on PostgreSQL.
    pub primary: Database,
}

/// Says whether a read on the thread of the caller may be answered by the replica now.
pub struct Gate {
    copy: Arc<LocalCopy>,
    seen: Arc<Seen>,
}

impl Gate {
    /// Whether the replica has the key, as new as the handle needs it.
    pub fn admits(&self, key: &[u8]) -> bool {
        let inside = self.copy.prefixes().is_empty() || self.covers(key, key);
        self.copy.choose(&self.seen, inside) == Choice::Local
    }

    /// As [`Gate::admits`], for the keys from `start` (included) to `end` (excluded).
    pub fn admits_range(&self, start: &[u8], end: &[u8]) -> bool {
        self.copy.choose(&self.seen, self.covers(start, end)) == Choice::Local
    }

    fn covers(&self, start: &[u8], end: &[u8]) -> bool {
        covers(self.copy.prefixes(), start, end)
    }
}

/// Notes for a handle what the answers of the server can depend on.
struct Noting {
    copy: Arc<LocalCopy>,
    seen: Arc<Seen>,
}

impl SeenNote for Noting {
    fn past(&self) -> u64 {
        self.copy.version().1
    }

    fn note(&self, past: u64, commit: Versionstamp) {
        self.seen.note(past, commit.version());
    }
}

/// The source of the answer of each request.
struct Plan {
    local: Vec<usize>,
    server: Vec<usize>,
    /// The commit that the local ones wait for.
    wait: Option<u64>,
}

impl Replica {
    pub(super) fn capabilities() -> Capabilities {
        Capabilities::FILE
    }

    pub(super) fn gate(&self, seen: &Arc<Seen>) -> Gate {
        Gate { copy: self.copy.clone(), seen: seen.clone() }
    }

    /// The client of the server that it follows; `None` if it follows a database of this process.
    pub fn client(&self) -> Option<&Arc<Client>> {
        match &self.primary {
            Database::Remote(client) => Some(client),
            Database::Store(_) | Database::Replica(_) | Database::Led(_) => None,
        }
    }

    /// From now on the handle's eventual reads are not older than any answer of the server.
    pub(super) fn note_answers(&self, seen: &Arc<Seen>) {
        if let Some(client) = self.client() {
            let noting = Noting { copy: self.copy.clone(), seen: seen.clone() };
            client.note_seen(Arc::new(noting));
        }
    }

    fn plan(&self, requests: &[Request], seen: &Seen) -> Result<Plan> {
        let mut plan = Plan { local: Vec::new(), server: Vec::new(), wait: None };
        let mut from = 0;
        while from < requests.len() {
            let rest = requests.get(from + 1..).unwrap_or_default();
            let to = from + 1 + rest.iter().take_while(|request| request.together).count();
            let group = requests.get(from..to).unwrap_or_default();
            let eventual = group.iter().all(|request| request.eventual);
            let inside = group.iter().all(|request| self.has(&request.range));
            let choice = if eventual { self.copy.choose(seen, inside) } else { Choice::Primary };
            match choice {
                Choice::Local => plan.local.extend(from..to),
                Choice::WaitFor(version) => {
                    plan.local.extend(from..to);
                    plan.wait = plan.wait.max(Some(version));
                }
                Choice::Primary => plan.server.extend(from..to),
                Choice::Reject => return Err(self.too_old(seen)),
            }
            from = to;
        }
        Ok(plan)
    }

    fn has(&self, range: &Range) -> bool {
        let prefixes = self.copy.prefixes();
        prefixes.is_empty()
            || match range {
                Range::Point(key) => covers(prefixes, key.as_bytes(), key.as_bytes()),
                Range::Span { start, end, .. } => {
                    covers(prefixes, start.as_bytes(), end.as_bytes())
                }
            }
    }

    fn too_old(&self, seen: &Seen) -> Error {
        let most = seen.max_lag().map_or("any".to_owned(), in_ms);
        let age = match self.copy.progress().lag().map(in_ms) {
            Some(lag) => {
                format!("the replica's last state is {lag} ms old, older than maxLag ({most} ms)")
            }
            None => format!(
                "the replica has not heard from the server since it was opened, so that its state may be older \
                 than maxLag ({most} ms)"
            ),
        };
        Error::unavailable(format!(
            "{age}, and the server cannot be reached: read with a larger maxLag, or once it is connected \
             (kv.replica.status())"
        ))
    }

    pub(super) fn read(
        self: &Arc<Self>,
        frame: &[u8],
        count: usize,
        options: &HandleOptions,
        reply: Reply,
    ) {
        let requests = match parse_requests(frame, count) {
            Ok(requests) => requests,
            Err(bug) => return reply.bad(bug),
        };
        let Plan { local, server, wait } = match self.plan(&requests, &options.seen) {
            Ok(plan) => plan,
            Err(error) => return reply.bad(error),
        };
        let pick = |which: &[usize]| -> Vec<Request> {
            let chosen = which.iter().filter_map(|at| requests.get(*at));
            chosen.map(|request| Request { eventual: false, ..request.clone() }).collect()
        };
        let parts = usize::from(!local.is_empty()) + usize::from(!server.is_empty());
        let merge = Merge::new(count, parts, reply);
        if !server.is_empty() {
            let (to, seen, copy) = (merge.clone(), options.seen.clone(), self.copy.clone());
            self.read_primary(pick(&server), options, move |answers| {
                let found = answers.iter().flatten();
                if let Some(stamp) = found.filter_map(|answer| newest(answer)).max() {
                    seen.note(copy.version().1, stamp.version());
                }
                to.answered(&server, answers);
            });
        }
        if !local.is_empty() {
            let ranges: Vec<Range> = pick(&local).into_iter().map(|of| of.range).collect();
            let (copy, options) = (self.copy.clone(), options.clone());
            let to = merge;
            self.once_reached(wait, &options.clone(), move |reached| match reached {
                Err(error) => to.answered(&local, failed(&error, local.len())),
                Ok(()) => read_store(copy.store(), ranges, &options, move |answers| {
                    to.answered(&local, answers);
                }),
            });
        }
    }

    /// Reads from the database that is followed. `then` gets the answer of each request.
    fn read_primary(
        &self,
        requests: Vec<Request>,
        options: &HandleOptions,
        then: impl FnOnce(Result<Vec<Vec<u8>>>) + Send + 'static,
    ) {
        match &self.primary {
            Database::Remote(client) => {
                let is_point = |range: &Range| matches!(range, Range::Point(_));
                let points: Vec<bool> = requests.iter().map(|of| is_point(&of.range)).collect();
                let then = move |found: Vec<_>| then(Ok(read_answers(&found, &points)));
                client.read(requests, Box::new(then));
            }
            Database::Store(store) => {
                let ranges = requests.into_iter().map(|request| request.range).collect();
                read_store(store, ranges, options, then);
            }
            Database::Replica(_) | Database::Led(_) => {
                then(Err(Error::internal("a replica of a database that has a copy")));
            }
        }
    }

    /// How long a read waits for the replica.
    fn patience(&self, options: &HandleOptions) -> Duration {
        match &self.primary {
            Database::Remote(client) => client.timeout(),
            Database::Store(_) | Database::Replica(_) | Database::Led(_) => options.busy,
        }
    }

    fn once_reached(
        &self,
        wait: Option<u64>,
        options: &HandleOptions,
        then: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        match wait {
            None => then(Ok(())),
            Some(version) => {
                let most = Some(self.patience(options));
                self.copy.reached(version, most, wanted(None, options), then);
            }
        }
    }

    /// A reply for writes that notes what the handle has committed.
    pub(super) fn noting(&self, seen: &Arc<Seen>, reply: CommitReply) -> CommitReply {
        let (copy, seen, before) = (self.copy.clone(), seen.clone(), self.copy.version());
        Box::new(move |decisions| {
            let stamps = decisions.iter().filter_map(|decision| match decision {
                Decision::Committed(stamp) | Decision::CommittedWith(stamp, _) => Some(*stamp),
                _ => None,
            });
            if let Some(newest) = stamps.max() {
                copy.committed(&seen, newest, before);
            }
            reply(decisions);
        })
    }

    /// As [`Self::noting`], for a deletion of many.
    fn noting_deletion(&self, seen: &Arc<Seen>, reply: Reply) -> Reply {
        let (copy, seen, before) = (self.copy.clone(), seen.clone(), self.copy.version());
        Reply::new(move |answer| match answer {
            Ok(answer) => {
                if let Some(stamp) = read_deleted_stamp(&answer) {
                    copy.committed(&seen, stamp, before);
                }
                reply.good(answer);
            }
            Err(fault) => reply.bad(fault),
        })
    }

    /// Carries a command out: here if it reads, may be old, and the replica has what it needs.
    pub(super) fn call(
        self: &Arc<Self>,
        (command, eventual): (Command, bool),
        frame: &[u8],
        options: &HandleOptions,
        cancel: Option<Cancel>,
        reply: Reply,
    ) -> Option<Reply> {
        match command {
            Command::ReplicaStatus => {
                reply.good(self.status().into_bytes());
                return None;
            }
            Command::ReplicaReady => {
                let wanted = wanted(cancel, options);
                self.copy.ready(wanted, move |ready| reply.tell(ready.map(|()| Vec::new())));
                return None;
            }
            Command::ReplicaReached => {
                let stamp = Versionstamp::parse(frame);
                let Some(stamp) = stamp else {
                    reply.bad(Error::invalid("a versionstamp has 20 hexadecimal digits"));
                    return None;
                };
                let wanted = wanted(cancel, options);
                self.copy.reached(stamp.version(), None, wanted, move |reached| {
                    reply.tell(reached.map(|()| Vec::new()));
                });
                return None;
            }
            Command::Metrics => return Some(self.adding_figures(frame, reply)),
            Command::DeleteMany => return Some(self.noting_deletion(&options.seen, reply)),
            Command::CreateIndex | Command::CreateValueIndex | Command::DropIndex => {
                return Some(self.noting_indexes(reply));
            }
            _ => {}
        }
        let inside = match self.inside(command, frame) {
            Some(inside) => inside,
            None => return Some(reply),
        };
        let eventual = eventual || command == Command::FeedPosition;
        let choice =
            if eventual { self.copy.choose(&options.seen, inside) } else { Choice::Primary };
        if let (Choice::Primary, Command::Search, true, Database::Store(primary)) =
            (choice, command, inside, &self.primary)
        {
            self.search_newest(primary, frame, options, cancel, reply);
            return None;
        }
        let wait = match choice {
            Choice::Primary => return Some(reply),
            Choice::Reject => {
                reply.bad(self.too_old(&options.seen));
                return None;
            }
            Choice::Local => None,
            Choice::WaitFor(version) => Some(version),
        };
        let (here, options, frame) = (self.clone(), options.clone(), frame.to_vec());
        self.once_reached(wait, &options.clone(), move |reached| match reached {
            Err(error) => reply.bad(error),
            Ok(()) if matches!(command, Command::OrderedList | Command::Explain) => {
                here.in_order(command, frame, options, cancel, reply);
            }
            Ok(()) => {
                let reply = reply.while_wanted(wanted(cancel, &options));
                carry_out(command, &frame, options.call(here.copy.store(), reply));
            }
        });
        None
    }

    /// Lists in the order of values, or explains a list: by the primary until the copy has the index.
    fn in_order(
        self: &Arc<Self>,
        command: Command,
        frame: Vec<u8>,
        options: HandleOptions,
        cancel: Option<Cancel>,
        reply: Reply,
    ) {
        let (here, request) = (self.clone(), frame.clone());
        call::has_order(&request, self.copy.store(), move |has_order| match has_order {
            Err(error) => reply.bad(error),
            Ok(true) => {
                let reply = reply.while_wanted(wanted(cancel, &options));
                carry_out(command, &frame, options.call(here.copy.store(), reply));
            }
            Ok(false) => here.primary.call((command, false), &frame, &options, cancel, reply),
        });
    }

    /// A reply for a change of indexes, which waits until the replica has them, where it gets them at once.
    fn noting_indexes(&self, reply: Reply) -> Reply {
        let copy = Arc::downgrade(&self.copy);
        Reply::new(move |answer| match (answer, copy.upgrade()) {
            (Ok(answer), Some(copy)) => copy.look_for_indexes(move || reply.good(answer)),
            (Ok(answer), None) => reply.good(answer),
            (Err(fault), _) => reply.bad(fault),
        })
    }

    /// Searches here, once the replica has the entries and indexes that the followed database has now:
    /// PostgreSQL cannot search.
    fn search_newest(
        self: &Arc<Self>,
        primary: &Arc<Store>,
        frame: &[u8],
        options: &HandleOptions,
        cancel: Option<Cancel>,
        reply: Reply,
    ) {
        let (here, options, frame) = (Arc::downgrade(self), options.clone(), frame.to_vec());
        primary.last_commit(move |newest: Result<u64>| {
            let (newest, here) = match (newest, here.upgrade()) {
                (Ok(newest), Some(here)) => (newest, here),
                (Err(error), _) => return reply.bad(error),
                (Ok(_), None) => return reply.bad(Error::closed()),
            };
            let copy = here.copy.clone();
            here.once_reached(Some(newest), &options.clone(), move |reached| match reached {
                Err(error) => reply.bad(error),
                Ok(()) => copy.clone().look_for_indexes(move || {
                    let reply = reply.while_wanted(wanted(cancel, &options));
                    carry_out(Command::Search, &frame, options.call(copy.store(), reply));
                }),
            });
        });
    }

    /// Whether the replica has all keys that a command reads; `None` for commands of the server only.
    fn inside(&self, command: Command, frame: &[u8]) -> Option<bool> {
        let prefixes = self.copy.prefixes();
        Some(match command {
            Command::Count | Command::Scan => parse_scan(frame)
                .is_ok_and(|scan| covers(prefixes, scan.start.as_bytes(), scan.end.as_bytes())),
            Command::OrderedList | Command::Explain => parse_ordered(frame).is_ok_and(|list| {
                covers(prefixes, list.scan.start.as_bytes(), list.scan.end.as_bytes())
            }),
            Command::Ttl => covers(prefixes, frame, frame),
            Command::Entries => {
                let (mut rest, mut inside) = (frame, true);
                while let Some((key, after)) = next_key(rest) {
                    inside &= covers(prefixes, key, key);
                    rest = after;
                }
                inside
            }
            Command::Search => parse_search(frame).is_ok_and(|search| {
                let prefix = search.search.prefix.as_bytes();
                covers(prefixes, prefix, prefix)
            }),
            Command::FeedPosition => true,
            _ => return None,
        })
    }
}

/// Reads ranges from a store. `then` gets the answer of each.
fn read_store(
    store: &Arc<Store>,
    ranges: Vec<Range>,
    options: &HandleOptions,
    then: impl FnOnce(Result<Vec<Vec<u8>>>) + Send + 'static,
) {
    let count = ranges.len();
    let reply = Reply::new(move |answer| {
        let apart = answer.map_err(Error::from).and_then(|bytes| split(&bytes, count));
        then(apart.or_else(|error| failed(&error, count)));
    });
    call::read(ranges, FRAMES_PAGE_BYTES, options.call(store, reply));
}

/// Whether the caller of a call still waits.
fn wanted(cancel: Option<Cancel>, options: &HandleOptions) -> impl Fn() -> bool + Send + 'static {
    let closing = options.closing.clone();
    move || Closing::leaves_time(&closing) && !cancel.as_ref().is_some_and(Cancel::is_raised)
}

fn in_ms(time: Duration) -> String {
    time.as_millis().to_string()
}
