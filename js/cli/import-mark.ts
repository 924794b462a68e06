// Duty: the mark: a file beside the source with the progress of an import, so that an interrupted
// import can be resumed.
// Invariant: a mark belongs to one database, one prefix and one state of the source. With any other
// it is refused, because the entries that it counts as stored are not there.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { NotDone } from "./outcome.js";

/** The facts that identify an import. */
export interface ImportIdentity {
  /** The real path or the URL of the database. */
  readonly database: string;
  /** The prefix of all imported keys, as text. */
  readonly prefix: string;
  /** The size of the source in bytes, and the time of its last change. */
  readonly sourceBytes: number;
  readonly sourceModifiedMs: number;
}

/** The content of the file: the identity, how many bytes of the source are stored, and by which commit at the latest. */
interface Marked extends ImportIdentity {
  readonly storedBytes: number;
  readonly versionstamp: string;
}

export const markOf = (source: string): string => `${source}.openkv-import`;

/**
 * The number of bytes of the source that are stored; 0 without a mark. `present`: the newest commit of the database, if
 * that can be known.
 */
export function readMark(
  source: string,
  identity: ImportIdentity,
  present: string | undefined,
): number {
  const mark = markOf(source);
  if (!existsSync(mark)) return 0;
  const marked = parse(readFileSync(mark, "utf8"));
  const differs = marked === undefined ? "its form" : difference(marked, identity, present);
  if (differs === undefined) return marked!.storedBytes;
  const why = `${mark} is of another import: ${differs} differs`;
  throw new NotDone(`${why}; import from the beginning, without --resume`);
}

function parse(text: string): Marked | undefined {
  try {
    const marked = JSON.parse(text) as Marked | null;
    const { storedBytes = -1, sourceBytes = -1, versionstamp } = marked ?? {};
    if (typeof versionstamp !== "string") return undefined;
    return storedBytes >= 0 && storedBytes <= sourceBytes ? marked! : undefined;
  } catch {
    return undefined;
  }
}

/** The first difference, for an error message. */
function difference(
  marked: Marked,
  now: ImportIdentity,
  present: string | undefined,
): string | undefined {
  if (marked.database !== now.database) return `the database (${marked.database})`;
  // One that was put in its place begins to count anew.
  if (present !== undefined && marked.versionstamp > present)
    return "the database, which lacks commits of that import,";
  if (marked.prefix !== now.prefix) return "--prefix";
  if (marked.sourceBytes !== now.sourceBytes) return "the size of the source";
  return marked.sourceModifiedMs === now.sourceModifiedMs ? undefined : "the time of the source";
}

/** Interval of writing the mark. Storing lines twice after an interruption does no harm. */
const MARK_MS = 200;

export class ImportMark {
  readonly #source: string;
  readonly #identity: ImportIdentity;
  readonly #failed: (error: Error) => void;
  #bytes: number;
  #versionstamp = "";
  #written: number;
  #writtenMs = 0;
  #broken = false;

  /** `start`: bytes stored before; `failed`: called once if the mark cannot be written. */
  constructor(
    source: string,
    identity: ImportIdentity,
    start: number,
    failed: (error: Error) => void,
  ) {
    this.#source = source;
    this.#identity = identity;
    this.#failed = failed;
    this.#bytes = this.#written = start;
  }

  /** Records the number of stored bytes, and the newest commit; writes the mark at intervals. */
  move(bytes: number, versionstamp: string, nowMs = Date.now()): void {
    this.#bytes = bytes;
    this.#versionstamp = versionstamp;
    if (nowMs - this.#writtenMs < MARK_MS) return;
    this.settle();
    this.#writtenMs = nowMs;
  }

  /** Writes the mark, if it has changed. */
  settle(): void {
    if (this.#written === this.#bytes) return;
    // The count includes a line feed that the last line may not have.
    const storedBytes = Math.min(this.#bytes, this.#identity.sourceBytes);
    const marked: Marked = { ...this.#identity, storedBytes, versionstamp: this.#versionstamp };
    this.#attempt(() => writeFileSync(markOf(this.#source), `${JSON.stringify(marked)}\n`));
    this.#written = this.#bytes;
  }

  /** Removes the mark, when the import is complete. */
  remove(): void {
    this.#attempt(() => rmSync(markOf(this.#source), { force: true }));
  }

  /** Ignores errors after the first: without a mark, an import can start from the beginning. */
  #attempt(act: () => void): void {
    if (this.#broken) return;
    try {
      act();
    } catch (error) {
      this.#broken = true;
      this.#failed(error as Error);
    }
  }
}
