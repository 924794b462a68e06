// A recorded run of a process (probe/src/write_log.rs), and the disks that losing power within it could
// leave.

import { writeFileSync } from "node:fs";

const HEAD_BYTES = 14;
const FILES = ["", "-wal", "-journal"];
/** The number of the directory: syncing it settles which files there are. */
const DIRECTORY = 3;
/** The number of a file without a name. */
const NAMELESS = 4;
/** What a disk writes whole or not at all. */
const SECTOR_BYTES = 512;

/**
 * @typedef {object} Act
 * @property {number} index
 * @property {"write" | "truncate" | "sync" | "unlink" | "said" | "link"} kind
 * @property {number} file
 * @property {number} at
 * @property {Buffer} bytes
 */

/** @returns {Act[]} */
export function readWriteLog(log) {
  const acts = [];
  for (let at = 0; at + HEAD_BYTES <= log.length; ) {
    const end = at + HEAD_BYTES + log.readUInt32LE(at + 10);
    if (end > log.length) break; // the last record, cut off by the end of the process
    acts.push({
      index: acts.length,
      kind: ["write", "truncate", "sync", "unlink", "said", "link"][log[at] - 1],
      file: log[at + 1],
      at: Number(log.readBigInt64LE(at + 2)),
      bytes: log.subarray(at + HEAD_BYTES, end),
    });
    at = end;
  }
  return acts;
}

/** The lines that the process had said by the cut. */
export function saidBefore(acts, cut) {
  const said = acts.slice(0, cut).filter(({ kind }) => kind === "said");
  const lines = Buffer.concat(said.map(({ bytes }) => bytes))
    .toString()
    .split("\n");
  lines.pop();
  return lines;
}

/**
 * Leaves at `path` what a power loss after `cut` acts leaves: all that was synced, and of what was
 * not, each sector or not, as `random` has it; in one disk of four all of it, in one of four
 * nothing.
 */
export function leave(acts, cut, path, random) {
  const kept = random.pick([0, 50, 50, 100]);
  const keeps = () => random.between(1, 100) <= kept;
  const directory = acts.findLastIndex(
    ({ kind, file }, index) => index < cut && kind === "sync" && file === DIRECTORY,
  );
  FILES.forEach((suffix, file) => {
    const before = acts.slice(0, cut).filter(({ kind }) => kind !== "said");
    // What was written before the file had its name. Without a name it is gone.
    const link = before.findLast((act) => act.kind === "link" && act.file === file);
    const isNamed = link === undefined || link.index < directory || keeps();
    const own = before.filter(
      (act) =>
        (act.file === file && act.kind !== "link") ||
        (act.file === NAMELESS && act.index < link?.index),
    );
    const synced = own.findLast(({ kind }) => kind === "sync");
    const left = new Left(own);
    for (const act of own) {
      const settled =
        act.index <= synced?.index || (act.kind === "unlink" && act.index < directory);
      if (settled) left.take(act);
      else left.takeSome(act, keeps);
    }
    if (left.exists && isNamed) writeFileSync(path + suffix, left.content);
  });
}

/** A file as it grows out of acts. */
class Left {
  exists = false;
  #bytes;
  #length = 0;

  constructor(acts) {
    this.#bytes = Buffer.alloc(Math.max(0, ...acts.map(({ at, bytes }) => at + bytes.length)));
  }

  get content() {
    return this.#bytes.subarray(0, this.#length);
  }

  take({ kind, at, bytes }) {
    if (kind === "sync") return;
    this.exists = kind !== "unlink";
    if (kind === "write") {
      bytes.copy(this.#bytes, at);
      this.#length = Math.max(this.#length, at + bytes.length);
    } else {
      this.#length = kind === "truncate" ? at : 0;
      this.#bytes.fill(0, this.#length);
    }
  }

  /** Of a write, some sectors; of anything else, it or nothing. */
  takeSome(act, keeps) {
    const { kind, at, bytes } = act;
    if (kind !== "write") {
      if (keeps()) this.take(act);
      return;
    }
    for (let from = 0; from < bytes.length; ) {
      const to = Math.min(bytes.length, from + SECTOR_BYTES - ((at + from) % SECTOR_BYTES));
      if (keeps()) this.take({ kind, at: at + from, bytes: bytes.subarray(from, to) });
      from = to;
    }
  }
}
