// Duty: export, import and copy: whole databases in and out, streaming, and going on where they
// were cut off.

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
import type { AtomicOperation } from "../../atomic.js";
import { decodeLine } from "../../interchange/decode.js";
import { exportChunks } from "../../interchange/export.js";
import { type ImportCounts, importLines } from "../../interchange/import.js";
import type { Kv } from "../../kv.js";
import type { KvKey } from "../../types.js";
import { openTyped, requireExisting, withDatabase } from "../database.js";
import { parseKey } from "../literal.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { fail, note, print } from "../output.js";
import { Progress } from "../progress.js";

const STANDARD = "-";

export function addTransferCommands(program: Command): void {
  const key = (text: string): KvKey => parseKey(text) as KvKey;

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
    .action(async (file: string, options: ImportFlags, command: Command) => {
      await withDatabase(command, "any", (kv, { json }) => importFrom(kv, file, options, json));
    });

  program
    .command("copy")
    .description("copy all entries from one database into another, files and URLs alike")
    .argument("<source>", "path or URL")
    .argument("<destination>", "path or URL")
    .option("--prefix <key>", "only keys that extend this one", key)
    .action(async (source: string, destination: string, { prefix }: { prefix?: KvKey }) => {
      if (source === destination) throw new TypeError("source and destination are the same");
      requireExisting(source);
      const from = await openTyped(source);
      try {
        const to = await openTyped(destination);
        try {
          await copyAll(from, to, prefix);
        } finally {
          to.close();
        }
      } finally {
        from.close();
      }
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
  for await (const chunk of exportChunks(kv, { prefix, after, signal })) {
    entries += chunk.entries;
    if (!output.write(chunk.text)) await once(output, "drain");
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
  let counts: ImportCounts;
  try {
    counts = await importLines(kv, input as AsyncIterable<Uint8Array>, {
      prefix: flags.prefix,
      overwrite: flags.skipExisting !== true,
      signal,
      progress: (bytes, { imported }) => {
        if (fromFile) writeFileSync(markOf(file), `${start + bytes}\n`);
        progress.update(bytes, imported);
      },
      onFailure: (line, error) => fail(`line ${line}${start > 0 ? " from there" : ""}: ${error.message}`),
    });
  } finally {
    release();
  }
  const { imported, skipped, failed } = counts;
  const summary = `${progress.end(imported)}, ${skipped} skipped, ${failed} failed`;
  if (signal.aborted) throw new NotDone(`${summary}, interrupted: --resume goes on`, true);
  if (fromFile) rmSync(markOf(file), { force: true });
  if (json) print(JSON.stringify(counts));
  else note(summary);
  if (failed > 0) throw new NotDone(`${failed} lines were not stored`);
}

function readMark(file: string): number {
  const mark = markOf(file);
  if (!existsSync(mark)) return 0;
  const offset = Number(readFileSync(mark, "utf8"));
  return Number.isSafeInteger(offset) && offset >= 0 ? Math.min(offset, statSync(file).size) : 0;
}

/** Entries of one commit of a copy, and commits on their way at once. */
const COPY_ENTRIES_MAX = 500;
const COPY_BYTES_MAX = 512 * 1024;
const COPY_COMMITS_MAX = 4;

async function copyAll(from: Kv, to: Kv, prefix: KvKey = []): Promise<void> {
  const { signal, release } = untilInterrupted();
  const progress = new Progress("copied", undefined);
  const sent: Promise<unknown>[] = [];
  let copied = 0;
  let operation: AtomicOperation = to.atomic();
  let entries = 0;
  const flush = async (most: number): Promise<void> => {
    if (entries > 0) {
      const commit = operation.commit();
      commit.catch(() => {});
      sent.push(commit);
    }
    copied += entries;
    operation = to.atomic();
    entries = 0;
    while (sent.length > most) await sent.shift();
    progress.update(copied, copied);
  };
  const list = from.list({ prefix }, { batchSize: COPY_ENTRIES_MAX, withExpiry: true } as object);
  let bytes = 0;
  for await (const entry of list) {
    const { key, value, expireAt } = entry as typeof entry & { expireAt?: Date | null };
    const expireIn = expireAt == null ? undefined : Math.max(expireAt.getTime() - Date.now(), 0);
    operation.set(key, value, expireIn === undefined ? undefined : { expireIn });
    entries++;
    bytes += sizeGuess(value);
    if (entries < COPY_ENTRIES_MAX && bytes < COPY_BYTES_MAX) continue;
    bytes = 0;
    await flush(COPY_COMMITS_MAX);
    if (signal.aborted) break;
  }
  await flush(0);
  release();
  const summary = progress.end(copied);
  if (signal.aborted) throw new NotDone(`${summary}, interrupted`, true);
  note(summary);
}

/** Enough to keep commits of large values small; exact for what is large most often. */
function sizeGuess(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  return 512;
}
