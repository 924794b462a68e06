// Duty: the words that many refusals share, and arguments that are just too much.

export const CLOSED =
  /^BadResource: Bad resource ID: this database handle is closed; open another one with openKv/;
export const PART = /expected string, number, bigint, ArrayBufferView, boolean/;
export const KEY_READ = /Key too large for read \(max 2049 bytes\)/;
export const KEY_WRITE = /Key too large for write \(max 2048 bytes\)/;
export const VALUE = /Value too large/;
export const CLONED = /could not be cloned/;

export const NO_ARGUMENTS = "it takes no arguments";
export const NO_OPTIONS = "it takes no options";
export const NO_SIZE = "none of its arguments has a size";
export const NO_HANDLE = "it belongs to no handle";
export const AT_COMMIT = "nothing happens before the commit, which is refused";

/** A key of so many encoded bytes: tag and terminator are two of them. */
export const keyOf = (bytes) => ["k".repeat(bytes - 2)];
/** A key that is too long for everything. */
export const LONG = keyOf(2050);
/** Text that is too long for a value. */
export const BIG = "x".repeat(70_000);
/** Keys, more than any call takes. */
export const keys = (count) => Array.from({ length: count }, (_, i) => ["key", i]);
