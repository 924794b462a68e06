// Duty: import: the entries of an NDJSON file or stream, and going on where it was cut off.

import { open } from "node:fs/promises";
import { type Readable, addAbortSignal } from "node:stream";
import type { Command } from "commander";
import { encodeKey } from "../../interchange/encode.js";
import { type ImportCounts, importLines } from "../../interchange/import.js";
import type { Kv } from "../../kv.js";
import type { KvKey } from "../../types.js";
import { ENCODING, key } from "../arguments.js";
import { identityOf, isMemory, locatedBy, readsInput, requireExisting, withDatabase } from "../database.js";
import { type ImportIdentity, ImportMark, readMark } from "../import-mark.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { fail, note, print } from "../output.js";
import { Progress } from "../progress.js";
import { STANDARD } from "./export.js";

/** Bytes of one read. */
const READ_BYTES = 256 * 1024;

export function addImportCommand(program: Command): void {
  program
    .command("import")
    .description("store the entries of an NDJSON file")
    .argument("<file>", "where from; - is the standard input")
    .option("--prefix <key>", "put in front of every key", key)
    .option("--skip-existing", "leave entries that are there already as they are")
    .option("--resume", "go on where an import of this file was cut off")
    .option(...ENCODING)
    .action(async (file: string, options: ImportFlags, command: Command) => {
      const { encoding, resume = false } = options;
      const located = locatedBy(command);
      if (file === STANDARD) readsInput(command);
      // Before the database: what cannot be read makes none.
      const source = await openSource(file);
      try {
        // A mark counts what is in a database: without it there is nothing to go on with.
        if (resume && source.size !== undefined) requireExisting(located);
        const opening = encoding === undefined ? {} : { encoding };
        await withDatabase(command, "any", async (kv, { json }) => {
          const { size: sourceBytes, modifiedMs: sourceModifiedMs } = source;
          const database = identityOf(located);
          const prefix = encodeKey(options.prefix ?? []);
          const identity =
            sourceBytes === undefined || isMemory(located)
              ? undefined
              : { database, prefix, sourceBytes, sourceModifiedMs };
          await importFrom(kv, source, identity, options, json);
        }, opening);
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

/** What is imported, open. */
interface Source {
  readonly name: string;
  /** In bytes; only a plain file has one, and can be gone on with. */
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
  return {
    name,
    size: about.isFile() ? about.size : undefined,
    modifiedMs: about.mtimeMs,
    // With a position, which a pipe has none of, the reads name it.
    read: (start) =>
      handle.createReadStream({ highWaterMark: READ_BYTES, autoClose: false, ...(start > 0 && { start }) }),
    close: () => handle.close(),
  };
}

/** `identity`: of what can be gone on with later. */
async function importFrom(
  kv: Kv,
  source: Source,
  identity: ImportIdentity | undefined,
  flags: ImportFlags,
  json: boolean,
): Promise<void> {
  const start = identity && flags.resume ? readMark(source.name, identity) : 0;
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
      progress: (bytes, { imported }) => {
        mark?.move(start + bytes);
        progress.update(bytes, imported);
      },
      onFailure: (line, error) => fail(`line ${line}${start > 0 ? " from there" : ""}: ${error.message}`),
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
