// Duty: import: the entries of an NDJSON file or stream; it can be resumed after an interruption.

import { open } from "node:fs/promises";
import { type Readable, addAbortSignal } from "node:stream";
import type { Command } from "commander";
import { encodeKey } from "../../interchange/encode.js";
import { type ImportCounts, importLines } from "../../interchange/import.js";
import type { Kv } from "../../api/kv.js";
import { codeOf } from "../../model/errors.js";
import type { KvKey } from "../../model/types.js";
import { inWords } from "../advice.js";
import { ENCODING, key } from "../arguments.js";
import {
  identityOf,
  isMemory,
  locatedBy,
  readsInput,
  requireExisting,
  withDatabase,
} from "../database.js";
import { type ImportIdentity, ImportMark, readMark } from "../import-mark.js";
import { NotDone, asOutcome, untilInterrupted } from "../outcome.js";
import { fail, note, print } from "../output.js";
import { Progress } from "../progress.js";
import { STANDARD } from "./export.js";

/** Bytes of one read. */
const READ_BYTES = 256 * 1024;

export function addImportCommand(program: Command): void {
  program
    .command("import")
    .description("store the entries of an NDJSON file")
    .argument("<file>", "the file to read; - is the standard input")
    .option("--prefix <key>", "a prefix for every key", key)
    .option("--skip-existing", "keep existing entries as they are")
    .option("--resume", "continue an interrupted import of this file")
    .option(...ENCODING)
    .action(async (file: string, options: ImportFlags, command: Command) => {
      const { encoding, resume = false } = options;
      const located = locatedBy(command);
      if (file === STANDARD) readsInput(command);
      // Opened before the database, so that an unreadable input does not create a database.
      const source = await openSource(file);
      try {
        // A mark describes progress in a database. Without the database it means nothing.
        if (resume && source.size !== undefined) await requireExisting(located);
        const opening = encoding === undefined ? {} : { encoding };
        await withDatabase(
          command,
          "any",
          async (kv, { json }) => {
            const { size: sourceBytes, modifiedMs: sourceModifiedMs } = source;
            const database = identityOf(located);
            const prefix = encodeKey(options.prefix ?? []);
            const identity =
              sourceBytes === undefined || isMemory(located)
                ? undefined
                : { database, prefix, sourceBytes, sourceModifiedMs };
            await asOutcome(() => importFrom(kv, source, identity, options, json));
          },
          opening,
        );
      } finally {
        await source.close();
      }
    });
}

interface ImportFlags {
  prefix?: KvKey;
  skipExisting?: boolean;
  resume?: boolean;
  encoding?: "cbor" | "v8";
}

/** The open input. */
interface Source {
  readonly name: string;
  /** In bytes. Only a plain file has a size, and only its import can be resumed. */
  readonly size: number | undefined;
  readonly modifiedMs: number;
  read(start: number): Readable;
  close(): Promise<void>;
}

async function openSource(name: string): Promise<Source> {
  if (name === STANDARD) {
    const close = (): Promise<void> => Promise.resolve();
    return { name, size: undefined, modifiedMs: 0, read: () => process.stdin, close };
  }
  const handle = await open(name, "r");
  const about = await handle.stat();
  if (about.isDirectory()) {
    await handle.close();
    throw new NotDone(`${name} is a folder: name a file`);
  }
  return {
    name,
    size: about.isFile() ? about.size : undefined,
    modifiedMs: about.mtimeMs,
    // Reads of a file name their position. A pipe has none.
    read: (start) =>
      handle.createReadStream({
        highWaterMark: READ_BYTES,
        autoClose: false,
        ...(start > 0 && { start }),
      }),
    close: () => handle.close(),
  };
}

/** The versionstamp of the last commit; undefined if the server does not tell it. */
async function newestOf(kv: Kv): Promise<string | undefined> {
  try {
    return (await kv.stats()).versionstamp;
  } catch (error) {
    if (codeOf(error) === "UNSUPPORTED") return undefined;
    throw error;
  }
}

/** `identity`: of an input whose import can be resumed later. */
async function importFrom(
  kv: Kv,
  source: Source,
  identity: ImportIdentity | undefined,
  flags: ImportFlags,
  json: boolean,
): Promise<void> {
  const start = identity && flags.resume ? readMark(source.name, identity, await newestOf(kv)) : 0;
  const { signal, release } = untilInterrupted();
  const input = addAbortSignal(signal, source.read(start));
  const progress = new Progress("imported", identity && identity.sourceBytes - start);
  const mark =
    identity &&
    new ImportMark(source.name, identity, start, ({ message }) =>
      note(`--resume will not go on from here: ${message}`),
    );
  let counts: ImportCounts;
  try {
    counts = await importLines(kv, input as AsyncIterable<Uint8Array>, {
      prefix: flags.prefix,
      overwrite: flags.skipExisting !== true,
      signal,
      progress: (bytes, { imported }, versionstamp) => {
        mark?.move(start + bytes, versionstamp);
        progress.update(bytes, imported);
      },
      onFailure: (line, error) =>
        fail(`line ${line}${start > 0 ? " from there" : ""}: ${inWords(error.message)}`),
    });
  } finally {
    release();
    mark?.settle();
  }
  const { imported, skipped, failed } = counts;
  const summary = `${progress.end(imported)}, ${skipped} skipped, ${failed} failed`;
  if (signal.aborted) {
    throw new NotDone(`${summary}, interrupted${mark ? ": --resume goes on" : ""}`, true);
  }
  mark?.remove();
  if (json) await print(JSON.stringify(counts));
  else note(summary);
  if (failed > 0) throw new NotDone(`${failed} lines were not stored`);
}
