// Duty: the numbers of js/native/contract.md, by name.

/** Negative answers of the addon's sync calls. */
export const MISS = -1;
export const WOULD_BLOCK = -2;
export const TOO_LARGE = -3;
export const IS_CLOSED = -4;
export const ERROR = -5;

/** The replica may not answer the read now: the asynchronous lane waits, or asks the server. */
export const NOT_HERE = -6;

/** Kinds of events. */
export const OPENED = 1;
export const OPEN_FAILED = 2;
export const READ = 3;
export const READ_FAILED = 4;
export const SETTLED = 5;
export const WATCH = 6;
export const WATCH_END = 7;
export const DELIVERY = 8;
export const LISTEN_END = 9;
export const REPLIED = 10;
export const CALL_FAILED = 11;

/** The capability of synchronous reads, which OPENED says is missing if it is. */
export const SYNCHRONOUS_READS = 1;

/** Commands of calls. */
export const CALL_CHECKPOINT = 1;
export const CALL_BACKUP = 5;
export const CALL_BACKUP_PROGRESS = 6;
export const CALL_CHECK = 7;
export const CALL_COUNT = 10;
export const CALL_SCAN = 11;
export const CALL_STATS = 2;
export const CALL_VACUUM = 3;
export const CALL_METRICS = 4;
export const CALL_TTL = 12;
export const CALL_SETTLE = 30;
export const CALL_EXTEND = 31;
export const CALL_QUEUE_STATS = 32;
export const CALL_DEAD_LIST = 33;
export const CALL_DEAD_GET = 34;
export const CALL_DEAD_REQUEUE = 35;
export const CALL_DEAD_DELETE = 36;
export const CALL_DEAD_PURGE = 37;
export const CALL_ACKNOWLEDGED = 40;
export const CALL_PEEK = 41;
export const CALL_DELETE_MESSAGE = 42;
export const CALL_CREATE_INDEX = 50;
export const CALL_DROP_INDEX = 51;
export const CALL_LIST_INDEXES = 52;
export const CALL_SEARCH = 53;
export const CALL_REPLICA_STATUS = 60;
export const CALL_REPLICA_READY = 61;
export const CALL_REPLICA_REACHED = 62;
export const CALL_DELETE_MANY = 13;
export const CALL_ENTRIES = 14;
export const CALL_PREVIEW = 19;
export const CALL_FEED_POSITION = 20;
export const CALL_HISTORY = 21;

/** Added to the number of a command that a replica may answer. */
export const EVENTUAL_CALL = 256;

/** The `more` byte of a range answer that failed: an error record follows. */
export const ANSWER_FAILED = 2;

/** Outcomes of a delivery. */
export const DONE = 0;
export const FAILED = 1;
export const RETURNED = 2;

/** Flags of a range request. */
export const REVERSE = 1;
export const POINT = 2;
/** Flags of a range request to a remote database. */
export const EVENTUAL = 64;
export const TOGETHER = 128;

/** Flags of a scan. */
export const SCAN_REVERSE = 1;
export const SCAN_KEYS = 2;
export const SCAN_DEPTH = 4;
export const SCAN_WHERE = 8;
export const SCAN_EXPIRY = 16;
export const SCAN_PASSED = 32;

/** Flags of a deletion of many. */
export const DELETE_KEYS = 1;
export const DELETE_ATOMIC = 2;

/** Records of a write. */
export const OP_END = 0;
export const OP_CHECK = 1;
export const OP_SET = 2;
export const OP_DELETE = 3;
export const OP_SUM = 4;
export const OP_MIN = 5;
export const OP_MAX = 6;
export const OP_ENQUEUE = 7;
export const OP_CALCULATE = 8;
export const OP_APPEND = 9;
export const OP_SET_EXPIRY = 10;
export const OP_PATCHES = 11;
export const OP_ENQUEUE_NAMED = 0x0e;
export const OP_CHECK_RANGE = 12;
export const OP_TELL = 0x0f;

/** Flag of the first byte of a record: its time is in ms from the commit. */
export const RELATIVE = 0x80;

/** Flags of a SET record. */
export const EXPIRES = 1;
export const SUFFIXED = 2;
/** Flags of a CALCULATE. */
export const CALCULATE_MIN = 1;
export const CALCULATE_MAX = 2;
export const CALCULATE_CLAMP = 4;
export const CALCULATE_EXPIRES = 8;
/** Flags of an APPEND. */
export const APPEND_FRONT = 1;
export const APPEND_EXPIRES = 2;
/** Flag of a SET_EXPIRY: the write fails its check if there is no entry. */
export const REQUIRED = 2;

/** Flag of a TELL: the outcome has the results of the calculations. */
export const TELL_VALUES = 1;

/** Status of an outcome. */
export const COMMITTED = 0;
export const CHECK_FAILED = 1;
export const COMMITTED_WITH = 3;
export const CHECKS_FAILED = 4;
export const COMMITTED_TELLING = 5;

/** Types of a feed's changes: a set, 1 for a deletion, a set of an entry that expires, an expiry. */
export const CHANGE_SET = 0;
export const CHANGE_SET_TO_EXPIRE = 2;
export const CHANGE_EXPIRED = 3;

/** Kinds of versions, besides 1: a stored value. */
export const VERSION_REMOVED = 0;
export const VERSION_EXPIRY = 2;

/** Bytes of a versionstamp in a frame: hexadecimal digits. */
export const STAMP_BYTES = 20;
/** Bytes before the value of a point answer: the stamp and the encoding id. */
export const POINT_HEAD_BYTES = STAMP_BYTES + 1;
/** Bytes before the rows of a range answer: their number and the `more` flag. */
export const RANGE_HEAD_BYTES = 5;
