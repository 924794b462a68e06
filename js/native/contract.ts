// Duty: the numbers of js/native/contract.md, by name.
// Generated from crates/wire/src/protocol/numbers.rs, crates/wire/src/protocol/frame/records.rs and crates/wire/src/protocol/command.rs by `npm run generate`: do not edit.

// Negative answers of synchronous calls.

/** There is no entry. */
export const MISS = -1;
/** The asynchronous lane takes the call. */
export const WOULD_BLOCK = -2;
/** The answer does not fit: the asynchronous lane takes the call, or for a page a larger buffer. */
export const TOO_LARGE = -3;
/** The handle is closed. */
export const IS_CLOSED = -4;
/** An error, which `takeError` returns. */
export const ERROR = -5;
/** The asynchronous lane takes the read: the replica may not answer it now, or a scan reads too much. */
export const NOT_HERE = -6;

// Kinds of events.

/** The database is open; with what it lacks. */
export const OPENED = 1;
/** It could not be opened; an error record. */
export const OPEN_FAILED = 2;
/** Range answers. */
export const READ = 3;
/** An error record. */
export const READ_FAILED = 4;
/** Outcomes of writes. */
export const SETTLED = 5;
/** The state of a watch, or a batch of a feed. */
export const WATCH = 6;
/** The end of a watch or feed; nothing or an error record. */
export const WATCH_END = 7;
/** Messages for a listener. */
export const DELIVERY = 8;
/** The end of a listener; nothing or an error record. */
export const LISTEN_END = 9;
/** The answer of a command; nothing if it is empty. */
export const REPLIED = 10;
/** An error record. */
export const CALL_FAILED = 11;
/** The lock of a message of a listener is lost; its number. */
export const LOCK_LOST = 12;

// The mark of a command that a replica may answer, added to its number.

/** A replica may answer it. */
export const EVENTUAL_CALL = 256;

// The `more` byte of a range answer, besides 0 and 1.

/** It failed: no rows, and an error record follows. */
export const ANSWER_FAILED = 2;

// Outcomes of a delivery.

/** The message is handled. */
export const DONE = 0;
/** An attempt has failed. */
export const FAILED = 1;
/** Nobody has seen the message: it goes back. */
export const RETURNED = 2;
/** A commit has acknowledged the message. Only a listener tells so, to take another one. */
export const ACKNOWLEDGED = 3;
/** An attempt has failed, and no other one can help. */
export const DEAD = 4;

// Flags of a range request.

/** The order is descending. */
export const REVERSE = 1;
/** The start is the key, and there is no end. */
export const POINT = 2;
/** For a remote database: eventual consistency is enough. */
export const EVENTUAL = 64;
/** For a remote database: from the same snapshot as the previous request. */
export const TOGETHER = 128;

// Statuses of an outcome.

/** Committed: the versionstamp follows. */
export const COMMITTED = 0;
/** A check failed. */
export const CHECK_FAILED = 1;
/** An error record follows. */
export const REJECTED = 2;
/** Committed: the versionstamp and generated UUIDs follow. */
export const COMMITTED_WITH = 3;
/** Checks failed: their indexes follow. */
export const CHECKS_FAILED = 4;
/** Committed: the versionstamp and the results follow. */
export const COMMITTED_RETURNING = 5;
/** Unique indexes refuse the write: the violations follow. */
export const NOT_UNIQUE = 6;

// Types of a feed's changes.

/** An entry was set. */
export const CHANGE_SET = 0;
/** An entry was deleted. */
export const CHANGE_DELETED = 1;
/** An entry with an expiry was set; only for a reader that knows expiries. */
export const CHANGE_SET_TO_EXPIRE = 2;
/** An entry expired; only for a reader that knows expiries. */
export const CHANGE_EXPIRED = 3;

// Kinds of versions of an entry.

/** The entry was removed. */
export const VERSION_REMOVED = 0;
/** A value was stored. */
export const VERSION_SET = 1;
/** Its expiry changed. */
export const VERSION_EXPIRY = 2;

// Lengths in bytes.

/** A versionstamp: hexadecimal digits. */
export const STAMP_BYTES = 20;
/** What precedes the value of a point answer: the stamp and the encoding id. */
export const POINT_HEAD_BYTES = 21;
/** What precedes the rows of a range answer: their number and the `more` byte. */
export const RANGE_HEAD_BYTES = 5;

// Flags of a scan.

/** The order is descending. */
export const SCAN_REVERSE = 1;
/** Rows have no values. */
export const SCAN_KEYS = 2;
/** A depth follows: u32 length of the prefix in bytes, u32 maximum number of parts after it. */
export const SCAN_DEPTH = 4;
/** A filter follows: u32 length, an object in CBOR. */
export const SCAN_WHERE = 8;
/** Rows have expiries. */
export const SCAN_EXPIRY = 16;
/** Entries that are not selected are rows too, without value and with encoding 0. */
export const SCAN_PASSED = 32;
/** With PASSED: value indexes may leave out entries that are not selected. The answer says whether they did. */
export const SCAN_INDEXED = 64;

// Flags of the answer of a step of a scan.

/** It is complete. */
export const STEP_DONE = 1;
/** Value indexes have found the entries of the step. Only with INDEXED. */
export const STEP_INDEXED = 2;
/** Of a list in an order: its entries were sorted. */
export const STEP_SORTED = 4;
/** Of a list in an order: its positions descend. */
export const STEP_DESCENDS = 8;

// Flags of a preview.

/** A list in an order follows, for the place of the entry in it: its length, its request. */
export const PREVIEW_LIST = 1;

// Flags of a deletion of many.

/** Keys follow, not a range. */
export const DELETE_KEYS = 1;
/** One commit deletes all. */
export const DELETE_ATOMIC = 2;
/** A filter follows. */
export const DELETE_WHERE = 8;

// Records of a write.

/** The write ends. */
export const OP_END = 0x00;
/** A check of an entry. */
export const OP_CHECK = 0x01;
/** Sets an entry. */
export const OP_SET = 0x02;
/** Deletes an entry. */
export const OP_DELETE = 0x03;
/** Adds to a number. */
export const OP_SUM = 0x04;
/** Keeps the smaller number. */
export const OP_MIN = 0x05;
/** Keeps the larger number. */
export const OP_MAX = 0x06;
/** Enqueues a message of Deno's queue. */
export const OP_ENQUEUE = 0x07;
/** Calculates with bounds or an expiry. */
export const OP_CALCULATE = 0x08;
/** Adds items to an array. */
export const OP_APPEND = 0x09;
/** Sets the expiry of an entry. */
export const OP_SET_EXPIRY = 0x0a;
/** ByteSpan of the record before that get generated UUIDs. */
export const OP_PATCHES = 0x0b;
/** A check of a range. */
export const OP_CHECK_RANGE = 0x0c;
/** Enqueues a message of a named queue. */
export const OP_ENQUEUE_NAMED = 0x0e;
/** Return values: what the outcome has besides the versionstamp. */
export const OP_RETURN = 0x0f;
/** The id by which a server recognises a repetition, once in a write; only from a client over a URL. */
export const OP_WRITE_ID = 0x10;
/** Acknowledges a message, if its lock holds. */
export const OP_ACKNOWLEDGE = 0x11;
/** What the message of the record before does if its deduplication key is taken. */
export const OP_DEDUPLICATE = 0x12;
/** Takes from a limiter. */
export const OP_LIMIT = 0x1b;
/** Makes the message of the record before that of a schedule, which is set. */
export const OP_SCHEDULE = 0x13;
/** Removes a schedule. */
export const OP_UNSCHEDULE = 0x14;
/** Makes the check of the record before, of a range, one of the entries that value indexes find in it. */
export const OP_CHECK_FOUND = 0x5a;
/** Makes the check of the record before, of what value indexes find, one of a part of an order. */
export const OP_CHECK_ORDER = 0x5b;

// Flag of the first byte of a record.

/** Its time is in ms from the commit. */
export const RELATIVE = 128;

// Flags of a SET.

/** The expiry follows. */
export const EXPIRES = 1;
/** The commit's versionstamp is appended to the key. */
export const SUFFIXED = 2;

// Flags of a CALCULATE.

/** The lower bound follows. */
export const CALCULATE_MIN = 1;
/** The upper bound follows. */
export const CALCULATE_MAX = 2;
/** A result beyond a bound becomes the bound. */
export const CALCULATE_CLAMP = 4;
/** The expiry follows. */
export const CALCULATE_EXPIRES = 8;

// Flags of an APPEND.

/** The items are added at the start. */
export const APPEND_FRONT = 1;
/** The expiry follows. */
export const APPEND_EXPIRES = 2;

// Flags of a SET_EXPIRY.

/** The expiry follows. */
export const SET_EXPIRY_EXPIRES = 1;
/** The write fails its check if there is no entry. */
export const SET_EXPIRY_REQUIRED = 2;
/** An entry that expires earlier stays as it is. */
export const SET_EXPIRY_SHORTENS = 4;

// Flags of a LIMIT.

/** It only tells, and takes nothing. */
export const LIMIT_PEEK = 1;

// Flags of a RETURN.

/** The results of the calculations. */
export const RETURN_VALUES = 1;

// Capabilities that OPENED says are missing.

/** Synchronous reads. */
export const SYNCHRONOUS_READS = 1;

// Commands of calls.

export const CALL_CHECKPOINT = 1;
export const CALL_STATS = 2;
export const CALL_VACUUM = 3;
export const CALL_METRICS = 4;
export const CALL_BACKUP = 5;
export const CALL_BACKUP_PROGRESS = 6;
export const CALL_CHECK = 7;
export const CALL_COUNT = 10;
export const CALL_SCAN = 11;
export const CALL_TTL = 12;
export const CALL_DELETE_MANY = 13;
export const CALL_ENTRIES = 14;
export const CALL_PREVIEW = 19;
export const CALL_FEED_POSITION = 20;
export const CALL_HISTORY = 21;
export const CALL_CHECK_READS = 22;
export const CALL_SETTLE = 30;
export const CALL_EXTEND = 31;
export const CALL_QUEUE_STATS = 32;
export const CALL_DEAD_LIST = 33;
export const CALL_DEAD_GET = 34;
export const CALL_DEAD_REQUEUE = 35;
export const CALL_DEAD_DELETE = 36;
export const CALL_DEAD_PURGE = 37;
export const CALL_LOCK_UPDATE = 38;
export const CALL_CONSUME_END = 39;
export const CALL_ACKNOWLEDGED = 40;
export const CALL_PEEK = 41;
export const CALL_DELETE_MESSAGE = 42;
export const CALL_SCHEDULES = 43;
export const CALL_CREATE_INDEX = 50;
export const CALL_DROP_INDEX = 51;
export const CALL_LIST_INDEXES = 52;
export const CALL_SEARCH = 53;
export const CALL_CREATE_VALUE_INDEX = 54;
export const CALL_LIST_VALUE_INDEXES = 55;
export const CALL_ORDERED_LIST = 56;
export const CALL_EXPLAIN = 57;
export const CALL_REPLICA_STATUS = 60;
export const CALL_REPLICA_READY = 61;
export const CALL_REPLICA_REACHED = 62;
export const CALL_PAUSE_QUEUE = 70;
export const CALL_DRAIN_QUEUE = 71;
export const CALL_CANCEL_MESSAGE = 72;
export const CALL_SET_LIMITS = 73;
export const CALL_GROUPS = 74;
export const CALL_DEAD_REQUEUE_ALL = 77;
