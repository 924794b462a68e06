//! The numbers of frames, which JavaScript and Rust, or a client and a server, both know: declared here, and those
//! of the records of a write and of scans beside their layouts (`frame/records.rs`, `frame/scan.rs`), and nowhere else.
//!
//! `js/native/contract.ts` and the tables of `js/native/contract.md` are generated from it, and from the
//! table of commands; a test says when they are not current (`tests/generated`).

/// Numbers of one kind.
#[derive(Debug)]
pub struct Group {
    /// Its name in Rust.
    pub name: &'static str,
    /// What they are.
    pub what: &'static str,
    /// What their names begin with in JavaScript.
    pub prefix: &'static str,
    /// The numbers.
    pub numbers: &'static [Number],
}

/// A number of a frame.
#[derive(Debug)]
pub struct Number {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its value.
    pub value: i64,
    /// What it says.
    pub meaning: &'static str,
}

/// Declares groups: a module with a constant for each number, and the table of all.
macro_rules! numbers {
    ($(
        #[doc = $what:literal]
        $group:ident: $type:ty, $prefix:literal {
            $(#[doc = $meaning:literal] $name:ident = $value:expr;)+
        }
    )+) => {
        $(
            #[doc = $what]
            pub mod $group {
                $(#[doc = $meaning] pub const $name: $type = $value;)+
                /// The bits of all of them: what a byte of flags may have.
                pub const ALL: $type = $($name)|+;
            }
        )+

        /// The groups declared here.
        pub const GROUPS: &[Group] = &[$(Group {
            name: stringify!($group),
            what: $what,
            prefix: $prefix,
            numbers: &[$(Number {
                name: stringify!($name),
                value: $group::$name as i64,
                meaning: $meaning,
            }),+],
        }),+];
    };
}

pub(super) use numbers;

numbers! {
    /// Negative answers of synchronous calls.
    code: i32, "" {
        /// There is no entry.
        MISS = -1;
        /// The asynchronous lane takes the call.
        WOULD_BLOCK = -2;
        /// The answer does not fit: the asynchronous lane takes the call, or for a page a larger buffer.
        TOO_LARGE = -3;
        /// The handle is closed.
        IS_CLOSED = -4;
        /// An error, which `takeError` returns.
        ERROR = -5;
        /// The asynchronous lane takes the read: the replica may not answer it now, or a scan reads too much.
        NOT_HERE = -6;
    }

    /// Kinds of events.
    event: u8, "" {
        /// The database is open; with what it lacks.
        OPENED = 1;
        /// It could not be opened; an error record.
        OPEN_FAILED = 2;
        /// Range answers.
        READ = 3;
        /// An error record.
        READ_FAILED = 4;
        /// Outcomes of writes.
        SETTLED = 5;
        /// The state of a watch, or a batch of a feed.
        WATCH = 6;
        /// The end of a watch or feed; nothing or an error record.
        WATCH_END = 7;
        /// Messages for a listener.
        DELIVERY = 8;
        /// The end of a listener; nothing or an error record.
        LISTEN_END = 9;
        /// The answer of a command; nothing if it is empty.
        REPLIED = 10;
        /// An error record.
        CALL_FAILED = 11;
        /// The lock of a message of a listener is lost; its number.
        LOCK_LOST = 12;
    }

    /// The mark of a command that a replica may answer, added to its number.
    mark: u32, "" {
        /// A replica may answer it.
        EVENTUAL_CALL = 256;
    }

    /// The `more` byte of a range answer, besides 0 and 1.
    range_answer: u8, "ANSWER_" {
        /// It failed: no rows, and an error record follows.
        FAILED = 2;
    }

    /// Outcomes of a delivery.
    outcome: u8, "" {
        /// The message is handled.
        DONE = 0;
        /// An attempt has failed.
        FAILED = 1;
        /// Nobody has seen the message: it goes back.
        RETURNED = 2;
        /// A commit has acknowledged the message. Only a listener tells so, to take another one.
        ACKNOWLEDGED = 3;
        /// An attempt has failed, and no other one can help.
        DEAD = 4;
    }

    /// Flags of a range request.
    range: u8, "" {
        /// The order is descending.
        REVERSE = 1;
        /// The start is the key, and there is no end.
        POINT = 2;
        /// For a remote database: eventual consistency is enough.
        EVENTUAL = 64;
        /// For a remote database: from the same snapshot as the previous request.
        TOGETHER = 128;
    }

    /// Statuses of an outcome.
    status: u8, "" {
        /// Committed: the versionstamp follows.
        COMMITTED = 0;
        /// A check failed.
        CHECK_FAILED = 1;
        /// An error record follows.
        REJECTED = 2;
        /// Committed: the versionstamp and generated UUIDs follow.
        COMMITTED_WITH = 3;
        /// Checks failed: their indexes follow.
        CHECKS_FAILED = 4;
        /// Committed: the versionstamp and the results follow.
        COMMITTED_RETURNING = 5;
        /// Unique indexes refuse the write: the violations follow.
        NOT_UNIQUE = 6;
    }

    /// Types of a feed's changes.
    change: u8, "CHANGE_" {
        /// An entry was set.
        SET = 0;
        /// An entry was deleted.
        DELETED = 1;
        /// An entry with an expiry was set; only for a reader that knows expiries.
        SET_TO_EXPIRE = 2;
        /// An entry expired; only for a reader that knows expiries.
        EXPIRED = 3;
    }

    /// Kinds of versions of an entry.
    version: u8, "VERSION_" {
        /// The entry was removed.
        REMOVED = 0;
        /// A value was stored.
        SET = 1;
        /// Its expiry changed.
        EXPIRY = 2;
    }

    /// Lengths in bytes.
    length: usize, "" {
        /// A versionstamp: hexadecimal digits.
        STAMP_BYTES = 20;
        /// What precedes the value of a point answer: the stamp and the encoding id.
        POINT_HEAD_BYTES = STAMP_BYTES + 1;
        /// What precedes the rows of a range answer: their number and the `more` byte.
        RANGE_HEAD_BYTES = 5;
    }
}
