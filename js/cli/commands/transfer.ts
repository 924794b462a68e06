// Duty: export and import: whole databases as NDJSON, streaming, and going on where they were cut
// off.

import { once } from "node:events";
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import type { Writable } from "node:stream";
import type { Command } from "commander";
import { decodeLine } from "../../interchange/decode.js";
import { exportChunks } from "../../interchange/export.js";
import { type ImportCounts, importLines } from "../../interchange/import.js";
import type { Kv } from "../../kv.js";
import type { KvKey } from "../../types.js";
import { ENCODING, key } from "../arguments.js";
import { withDatabase } from "../database.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { fail, note, print, type Style } from "../output.js";
import { Progress } from "../progress.js";

const STANDARD = "-";

export function addTransferCommands(program: Command): void {
  program
    .command("export")
    .description("write all entries as NDJSON, one a line (the form of @deno/kv-utils)")
    .argument("<file>", "where to; - is the standard output")
    .option("--prefix <key>", "only keys that extend this one", key)
    .option("--resume", "go on behind the last whole line of the file")
    .action(async (file: string, options: { prefix?: KvKey; resume?: boolean }, command: Command) => {
      await withDatabase(command, "existing", (kv, { json }) => exportTo(kv, file, options, json));
    });

  program
    .command("import")
    .description("store the entries of an NDJSON file")
    .argument("<file>", "where from; - is the standard input")
    .option("--prefix <key>", "put in front of every key", key)
    .option("--skip-existing", "leave entries that are there already as they are")
    .option("--resume", "go on where an import of this file was cut off")
    .option(...ENCODING)
    .action(async (file: string, options: ImportFlags, command: Command) => {
      const { encoding } = options;
      const opening = encoding === undefined ? {} : { encoding };
      const run = (kv: Kv, { json }: Style): Promise<void> => importFrom(kv, file, options, json);
      await withDatabase(command, "any", run, opening);
    });
}

async function exportTo(
  kv: Kv,
  file: string,
  { prefix, resume = false }: { prefix?: KvKey; resume?: boolean },
  json: boolean,
): Promise<void> {
  const toFile = file !== STANDARD;
  const after = resume && toFile && existsSync(file) ? lastKeyOf(file) : undefined;
  const output: Writable = toFile
    ? createWriteStream(file, { flags: after === undefined ? "w" : "a" })
    : process.stdout;
  const { signal, release } = untilInterrupted();
  const progress = new Progress("exported", undefined);
  let entries = 0;
  for await (const chunk of exportChunks(kv, { prefix, after, signal, untold })) {
    entries += chunk.entries;
    if (!output.write(chunk.bytes)) await once(output, "drain");
    progress.update(entries, entries);
  }
  if (toFile) {
    output.end();
    await once(output, "finish");
  }
  release();
  const summary = progress.end(entries);
  if (signal.aborted) throw new NotDone(`${summary}, interrupted: --resume goes on`, true);
  if (toFile && json) print(JSON.stringify({ exported: entries }));
  else note(summary);
}

/** Told when the ends of entries stay behind. */
export function untold(): void {
  note("the server does not tell when entries end: they arrive as entries that stay");
}

/** Bytes at the end of a file in which its last line is looked for. */
const TAIL_BYTES = 64 * 1024 * 1024 * 2;

/** The key of the last whole line; what follows it is cut off. */
function lastKeyOf(file: string): KvKey | undefined {
  const { size } = statSync(file);
  const length = Math.min(size, TAIL_BYTES);
  const tail = Buffer.alloc(length);
  const opened = openSync(file, "r");
  readSync(opened, tail, 0, length, size - length);
  closeSync(opened);
  const end = tail.lastIndexOf(0x0a);
  if (end < 0) {
    truncateSync(file, 0);
    return undefined;
  }
  truncateSync(file, size - length + end + 1);
  const start = tail.lastIndexOf(0x0a, end - 1) + 1;
  return decodeLine(tail.toString("utf8", start, end)).key as KvKey;
}

interface ImportFlags {
  prefix?: KvKey;
  skipExisting?: boolean;
  resume?: boolean;
  encoding?: "cbor" | "v8";
}

/** Where an import has come to, beside its file while it runs. */
const markOf = (file: string): string => `${file}.openkv-import`;

async function importFrom(kv: Kv, file: string, flags: ImportFlags, json: boolean): Promise<void> {
  const fromFile = file !== STANDARD;
  const start = fromFile && flags.resume === true ? readMark(file) : 0;
  const total = fromFile ? statSync(file).size - start : undefined;
  const input = fromFile ? createReadStream(file, { start, highWaterMark: 256 * 1024 }) : process.stdin;
  const { signal, release } = untilInterrupted();
  const progress = new Progress("imported", total);
  const mark = new Mark(file, start);
  let counts: ImportCounts;
  try {
    counts = await importLines(kv, input as AsyncIterable<Uint8Array>, {
      prefix: flags.prefix,
      overwrite: flags.skipExisting !== true,
      signal,
      progress: (bytes, { imported }) => {
        if (fromFile) mark.move(bytes);
        progress.update(bytes, imported);
      },
      onFailure: (line, error) => fail(`line ${line}${start > 0 ? " from there" : ""}: ${error.message}`),
    });
  } finally {
    release();
    if (fromFile) mark.settle();
  }
  const { imported, skipped, failed } = counts;
  const summary = `${progress.end(imported)}, ${skipped} skipped, ${failed} failed`;
  if (signal.aborted) throw new NotDone(`${summary}, interrupted: --resume goes on`, true);
  if (fromFile) rmSync(markOf(file), { force: true });
  if (json) print(JSON.stringify(counts));
  else note(summary);
  if (failed > 0) throw new NotDone(`${failed} lines were not stored`);
}

/** How often the mark is written: what is stored twice after a cut does no harm. */
const MARK_MS = 200;

/** Where an import has come to, for one that goes on after this one was cut off. */
class Mark {
  readonly #file: string;
  readonly #start: number;
  #bytes = 0;
  #writtenMs = 0;
  #written = 0;

  constructor(file: string, start: number) {
    this.#file = file;
    this.#start = start;
  }

  /** Everything up to there is stored. */
  move(bytes: number): void {
    this.#bytes = bytes;
    if (Date.now() - this.#writtenMs >= MARK_MS) this.settle();
  }

  /** Writes what is known. */
  settle(): void {
    if (this.#written === this.#bytes) return;
    writeFileSync(markOf(this.#file), `${this.#start + this.#bytes}\n`);
    this.#written = this.#bytes;
    this.#writtenMs = Date.now();
  }
}

function readMark(file: string): number {
  const mark = markOf(file);
  if (!existsSync(mark)) return 0;
  const offset = Number(readFileSync(mark, "utf8"));
  return Number.isSafeInteger(offset) && offset >= 0 ? Math.min(offset, statSync(file).size) : 0;
}
