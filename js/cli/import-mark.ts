// Duty: where an import has come to, in a file beside its source while it runs, for one that goes on
// after it was cut off.
// Invariant: it is for one database, one prefix and one state of the source; for another it is
// refused, since what it counts as stored is not there.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { NotDone } from "./outcome.js";

/** What tells one import from another. */
export interface ImportIdentity {
  /** The real path or the URL of the database. */
  readonly database: string;
  /** The key in front of every imported one, as it stands in a line. */
  readonly prefix: string;
  /** The source's size in bytes, and when it was last written. */
  readonly sourceBytes: number;
  readonly sourceModifiedMs: number;
}

/** The form of the file: the identity, and how many bytes of the source are stored. */
interface Marked extends ImportIdentity {
  readonly storedBytes: number;
}

export const markOf = (source: string): string => `${source}.openkv-import`;

/** Bytes of the source that are stored; 0 where no import was cut off. */
export function readMark(source: string, identity: ImportIdentity): number {
  const mark = markOf(source);
  if (!existsSync(mark)) return 0;
  const marked = parse(readFileSync(mark, "utf8"));
  const differs = marked === undefined ? "its form" : difference(marked, identity);
  if (differs === undefined) return marked!.storedBytes;
  const why = `${mark} is of another import: ${differs} differs`;
  throw new NotDone(`${why}; import from the beginning, without --resume`);
}

function parse(text: string): Marked | undefined {
  try {
    const marked = JSON.parse(text) as Marked | null;
    const { storedBytes = -1, sourceBytes = -1 } = marked ?? {};
    return storedBytes >= 0 && storedBytes <= sourceBytes ? marked! : undefined;
  } catch {
    return undefined;
  }
}

/** What is not the same, for people. */
function difference(marked: ImportIdentity, now: ImportIdentity): string | undefined {
  if (marked.database !== now.database) return `the database (${marked.database})`;
  if (marked.prefix !== now.prefix) return "--prefix";
  if (marked.sourceBytes !== now.sourceBytes) return "the size of the source";
  return marked.sourceModifiedMs === now.sourceModifiedMs ? undefined : "the time of the source";
}

/** How often the mark is written: what is stored twice after a cut does no harm. */
const MARK_MS = 200;

export class ImportMark {
  readonly #source: string;
  readonly #identity: ImportIdentity;
  readonly #failed: (error: Error) => void;
  #bytes: number;
  #written: number;
  #writtenMs = 0;
  #broken = false;

  /** `start`: what was stored before; `failed`: told once when the mark cannot be kept. */
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

  /** So many bytes of the source are stored. */
  move(bytes: number, nowMs = Date.now()): void {
    this.#bytes = bytes;
    if (nowMs - this.#writtenMs < MARK_MS) return;
    this.settle();
    this.#writtenMs = nowMs;
  }

  /** Writes what is known. */
  settle(): void {
    if (this.#written === this.#bytes) return;
    // The last line counts an end that it may lack.
    const storedBytes = Math.min(this.#bytes, this.#identity.sourceBytes);
    const marked: Marked = { ...this.#identity, storedBytes };
    this.#attempt(() => writeFileSync(markOf(this.#source), `${JSON.stringify(marked)}\n`));
    this.#written = this.#bytes;
  }

  /** The import is at its end. */
  remove(): void {
    this.#attempt(() => rmSync(markOf(this.#source), { force: true }));
  }

  /** Without a mark an import can begin again: that is no reason to end it. */
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
