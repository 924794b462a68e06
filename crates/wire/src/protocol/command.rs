//! The table of commands: every property of a command that any layer needs, declared once.
//!
//! A call names a command by its number and carries its frame. `call` takes the handlers and the
//! metrics from this table, the server the rights and bounds, the client the retry safety.
//! `js/native/contract.ts` and the table of `js/native/contract.md` are generated from it
//! (`tests/generated.rs`). A new row is also served over URLs, without other changes.

use openkv_core::model::Capability;

/// Passes the table to the macro `$each`. The columns of a row:
///
/// `Name = number, handler in call, access, retry safety, [traits], [metric], [capability], "feature"`
///
/// The capability is what a local database needs to carry the command out. The feature is the method or option that uses the command; the error of a server without the
/// command names it.
#[macro_export]
macro_rules! commands {
    ($each:ident) => {
        $each! {
            /// Moves the log into the file.
            Checkpoint = 1, maintain::checkpoint, Write, Idempotent, [WholeTimeout], [Checkpoint], [Checkpoint], "checkpoint";
            /// The size of the database.
            Stats = 2, maintain::stats, Read, Idempotent, [EndsWithHandle, WholeTimeout], [], [], "stats";
            /// Returns free pages to the file system.
            Vacuum = 3, maintain::vacuum, Write, Idempotent, [WholeTimeout], [Vacuum], [Vacuum], "vacuum";
            /// The counters of the database.
            Metrics = 4, metrics::metrics, Read, Idempotent, [], [], [], "metrics";
            /// Copies the file to a path.
            Backup = 5, backup::backup, Local(NO_BACKUP), Idempotent, [WholeTimeout], [Backup], [Backup], "backup";
            /// The progress of a backup.
            BackupProgress = 6, backup::progress, Local(NO_BACKUP), Idempotent, [WholeTimeout], [], [], "backup";
            /// Checks the whole file.
            Check = 7, backup::check, Write, Idempotent, [WholeTimeout, OneAtATime], [], [IntegrityCheck], "check";
            /// The number of entries in a range.
            Count = 10, scan::count, Read, Idempotent, [EndsWithHandle, WholeTimeout, OnReplica], [Count], [], "count";
            /// A step of a list with conditions.
            Scan = 11, scan::scan, Read, Idempotent, [EndsWithHandle, OnReplica], [List], [], "lists of a depth, and with where, keysOnly or withExpiry";
            /// The expiry of an entry.
            Ttl = 12, scan::ttl, Read, Idempotent, [OnReplica], [Ttl], [], "ttl";
            /// Deletes many entries. A repetition would delete entries that others have written in
            /// between.
            DeleteMany = 13, deletion::delete_many, Write, Unsafe, [EndsWithHandle, AfterWrites, LongFrame], [DeleteMany], [], "deleteMany";
            /// Entries with their expiry.
            Entries = 14, scan::entries, Read, Idempotent, [OnReplica], [GetWithExpiry], [], "the ends of entries (withExpiry)";
            /// The result of a write, without writing.
            Preview = 19, preview::preview, Read, Idempotent, [], [], [], "a transaction's reads of what it has changed itself";
            /// The commit after which a feed that is opened next has every change. The log
            /// is turned on, if it is off.
            FeedPosition = 20, feed::position, Read, Idempotent, [OnReplica], [], [], "change feeds (watch over a selector) with initial";
            /// A page of the versions of an entry.
            History = 21, history::history, Read, Idempotent, [], [], [], "history";
            /// Whether the reads of a transaction that writes nothing are of one state of the database.
            CheckReads = 22, preview::check_reads, Read, Idempotent, [EndsWithHandle, LongFrame], [Atomic], [], "transactions without writes";
            /// Settles a received message. Its number and lock are never reused.
            Settle = 30, queue::settle, Write, Conditional, [ZeroSaysNothing], [Settle], [], "messages that are received";
            /// Renews the lock of a received message, from now on.
            Extend = 31, queue::extend, Write, Idempotent, [], [Extend], [], "messages that are received";
            /// The number of messages of a queue, by state.
            QueueStats = 32, queue::stats, Read, Idempotent, [EndsWithHandle], [], [], "queues by name";
            /// A page of dead messages.
            DeadList = 33, queue::dead_list, Read, Idempotent, [], [], [], "dead messages";
            /// A dead message.
            DeadGet = 34, queue::dead_get, Read, Idempotent, [], [], [], "dead messages";
            /// Puts a dead message back into its queue.
            DeadRequeue = 35, queue::dead_requeue, Write, Conditional, [ZeroSaysNothing, FillsQueue], [], [], "dead messages";
            /// Deletes a dead message.
            DeadDelete = 36, queue::dead_delete, Write, Conditional, [ZeroSaysNothing], [], [], "dead messages";
            /// Deletes dead messages by their age, one step.
            DeadPurge = 37, queue::dead_purge, Write, Unsafe, [], [], [], "dead messages";
            /// The settlements, renewals and credits of a remote consumer, by number and lock.
            LockUpdate = 38, lock_update::lock_update, Write, Idempotent, [OutOfTurn], [], [], "listening to queues";
            /// Ends the stream of a remote consumer, or its wait for a message.
            ConsumeEnd = 39, lock_update::consume_end, Write, Idempotent, [], [], [], "messages that are received";
            /// Answers once the server has all settlements of the listeners.
            Acknowledged = 40, lock_update::acknowledged, Local("the client answers it, which knows what it has sent"), Idempotent, [], [], [], "listening to queues";
            /// A page of the messages of a queue, which stay where they are.
            Peek = 41, queue::peek, Read, Idempotent, [], [], [], "peek of queues";
            /// Deletes a message that no consumer has.
            DeleteMessage = 42, queue::delete, Write, Conditional, [ZeroSaysNothing], [], [], "deletion of messages";
            /// A page of the schedules of a queue.
            Schedules = 43, schedules::list, Read, Idempotent, [], [], [], "schedules";
            /// Creates a full-text index, unless the same one exists.
            CreateIndex = 50, search::create, Write, Conditional, [FillsStorage], [], [], "search";
            /// Drops an index.
            DropIndex = 51, search::remove, Write, Unsafe, [], [], [], "search";
            /// Describes the indexes.
            ListIndexes = 52, search::list, Read, Idempotent, [EndsWithHandle, WholeTimeout], [], [], "search";
            /// A page of hits.
            Search = 53, search::search, Read, Idempotent, [EndsWithHandle, OnReplica], [Search], [FullTextSearch], "search";
            /// Creates a value index, unless the same one exists.
            CreateValueIndex = 54, value_index::create, Write, Conditional, [FillsStorage], [], [], "value indexes";
            /// Describes the value indexes.
            ListValueIndexes = 55, value_index::list, Read, Idempotent, [EndsWithHandle], [], [], "value indexes";
            /// A page of a list in the order of values.
            OrderedList = 56, value_index::ordered, Read, Idempotent, [EndsWithHandle, WholeTimeout], [List], [], "lists with orderBy";
            /// What a list reads, and how much.
            Explain = 57, value_index::explain, Read, Idempotent, [EndsWithHandle, WholeTimeout, OnReplica], [], [], "explain";
            /// How far a replica is.
            ReplicaStatus = 60, replica::none, Local(NO_REPLICA), Idempotent, [], [], [], "replica";
            /// Waits until a replica has a complete copy.
            ReplicaReady = 61, replica::none, Local(NO_REPLICA), Idempotent, [], [], [], "replica";
            /// Waits until a replica has a commit.
            ReplicaReached = 62, replica::none, Local(NO_REPLICA), Idempotent, [], [], [], "replica";
            /// Pauses a queue, or resumes it.
            PauseQueue = 70, queue::pause, Write, Idempotent, [], [], [], "pause and resume of queues";
            /// Deletes messages that wait, one step.
            DrainQueue = 71, queue::drain, Write, Unsafe, [], [], [], "drain of queues";
            /// Deletes a message, also one that a consumer has.
            CancelMessage = 72, queue::cancel, Write, Conditional, [ZeroSaysNothing], [], [], "cancel of messages";
            /// Gives a queue its limits.
            SetLimits = 73, groups::set_limits, Write, Conditional, [ZeroSaysNothing], [], [], "limits of queues";
            /// The limits of a queue, and a page of its groups.
            Groups = 74, groups::list, Read, Idempotent, [], [], [], "limits of queues";
            /// Puts dead messages back into their queue, one step.
            DeadRequeueAll = 77, queue::dead_requeue_all, Write, Unsafe, [FillsQueue], [], [], "requeueAll of dead messages";
        }
    };
}

/// The rights that a command requires over a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A token that may read.
    Read,
    /// A token that may write: the command changes something, or is work for the whole database.
    Write,
    /// No client may call it: the command belongs to the process that has opened the database, for
    /// this reason.
    Local(&'static str),
}

/// The effect of repeating a request; for several requests, the worst of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetrySafety {
    /// A repetition has no further effect.
    Idempotent,
    /// A repetition is rejected or has no effect, so its answer does not tell whether the first
    /// attempt has succeeded.
    Conditional,
    /// A repetition may have the effect a second time.
    Unsafe,
}

/// Properties that only some commands have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFlag {
    /// Closing the handle ends it.
    EndsWithHandle,
    /// One attempt may take the whole timeout: its duration grows with the database, and a second
    /// attempt beside the first would only double the work.
    WholeTimeout,
    /// Waits for all writes that were called before.
    AfterWrites,
    /// Is not counted among the requests of a client under way.
    OutOfTurn,
    /// An answer of zeros to a repetition does not tell whether the first attempt did the work.
    ZeroSaysNothing,
    /// Its frame may be as long as a write's.
    LongFrame,
    /// The storage quota must have room for its result.
    FillsStorage,
    /// The queue at the start of its frame must have room for its result.
    FillsQueue,
    /// A server runs one at a time for each database.
    OneAtATime,
    /// A replica can carry it out.
    OnReplica,
}

const NO_REPLICA: &str = "only a handle that was opened with the option replica has one";
const NO_BACKUP: &str = "only openkv's own server makes one for its clients; to copy the entries, \
    use openkv copy or export";

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $file:ident :: $handler:ident, $access:expr,
        $retry:ident, [$($trait:ident),*], [$($metric:ident)?], [$($capability:ident)?],
        $feature:literal;)*) => {
        /// The commands. Their numbers are in the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Command { $($(#[$doc])* $name = $number,)* }

        impl Command {
            /// Every command.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The command with this number.
            ///
            /// ```
            /// use openkv_wire::protocol::Command;
            /// assert_eq!(Command::from_number(10), Some(Command::Count));
            /// assert_eq!(Command::from_number(0), None);
            /// ```
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name in JavaScript and in documents: `DeadList` is `DEAD_LIST`.
            pub fn name(self) -> String {
                let mut name = String::new();
                for letter in format!("{self:?}").chars() {
                    if letter.is_ascii_uppercase() && !name.is_empty() {
                        name.push('_');
                    }
                    name.push(letter.to_ascii_uppercase());
                }
                name
            }

            /// The rights that it requires over a URL.
            pub const fn access(self) -> Access {
                use Access::{Local, Read, Write};
                match self { $(Self::$name => $access,)* }
            }

            /// The effect of a repetition.
            pub const fn retry_safety(self) -> RetrySafety {
                match self { $(Self::$name => RetrySafety::$retry,)* }
            }

            /// The feature that uses it, for errors.
            pub const fn feature(self) -> &'static str {
                match self { $(Self::$name => $feature,)* }
            }

            /// What a local database needs to carry it out.
            pub const fn capability(self) -> Option<Capability> {
                match self { $(Self::$name => first(&[$(Capability::$capability)?]),)* }
            }

            const fn flags(self) -> &'static [CommandFlag] {
                match self { $(Self::$name => &[$(CommandFlag::$trait),*],)* }
            }
        }
    };
}

commands!(define);

const fn first(of: &[Capability]) -> Option<Capability> {
    match of {
        [one, ..] => Some(*one),
        [] => None,
    }
}

impl Command {
    /// Its number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Whether it has the property.
    #[must_use]
    pub fn is(self, property: CommandFlag) -> bool {
        self.flags().contains(&property)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> String {
        std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn numbers_round_trip_and_increase_in_the_table() {
        for command in Command::ALL {
            assert_eq!(Command::from_number(command.number()), Some(*command));
        }
        assert!(Command::ALL.is_sorted_by_key(|command| command.number()));
    }

    /// The contract describes each command by `number` NAME, in the order of its capability.
    #[test]
    fn the_contract_describes_each_command() {
        let page = file("js/native/contract.md");
        let list = page.split("\n**Commands**").nth(1).unwrap();
        let list = list.lines().take_while(|line| !line.starts_with("Sized:"));
        let heads = list.filter_map(|line| line.strip_prefix(" - `")?.split([':', '→']).next());
        let mut described: Vec<(u32, String)> = Vec::new();
        for head in heads {
            for part in head.split(", `") {
                let (number, rest) = part.split_once("` ").unwrap();
                let words = |c: char| c != '_' && !c.is_ascii_uppercase();
                let name = rest.split(words).next().unwrap();
                described.push((number.parse().unwrap(), name.to_owned()));
            }
        }
        described.sort();
        let table: Vec<_> = Command::ALL.iter().map(|of| (of.number(), of.name())).collect();
        assert_eq!(described, table);
    }
}
