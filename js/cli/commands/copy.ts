// Duty: copy: all entries of one database into another, files and URLs alike.

import type { Command } from "commander";
import type { AtomicOperation } from "../../atomic.js";
import { listWithEnds } from "../../interchange/ends.js";
import type { Kv } from "../../kv.js";
import { isServer } from "../../location.js";
import { sizeOf } from "../../size.js";
import type { KvKey, OpenKvOptions } from "../../types.js";
import { ENCODING, key } from "../arguments.js";
import {
  type GlobalOptions,
  located,
  openTyped,
  requireExisting,
  sameDatabase,
  styleOf,
} from "../database.js";
import { NotDone, WrongUsage, untilInterrupted } from "../outcome.js";
import { note, print } from "../output.js";
import { Progress } from "../progress.js";
import { untold } from "./export.js";

export function addCopyCommand(program: Command): void {
  program
    .command("copy")
    .description("copy all entries from one database into another, files and URLs alike")
    .argument("<source>", "path or URL")
    .argument("<destination>", "path or URL")
    .option("--prefix <key>", "only keys that extend this one", key)
    .option(...ENCODING)
    .option("--to-token <token>", "access token of the destination, if it is another (env: OPENKV_TO_TOKEN)")
    .action(async (source: string, destination: string, options: CopyFlags, command: Command) => {
      const [from, to] = [located(source), located(destination)];
      if (sameDatabase(from, to)) throw new WrongUsage("source and destination are the same database");
      requireExisting(from);
      const { token } = command.optsWithGlobals<GlobalOptions>();
      const { prefix, encoding, toToken = process.env.OPENKV_TO_TOKEN ?? token } = options;
      const reader = await openTyped(source, withToken(from, token));
      try {
        const writer = await openTyped(destination, {
          ...withToken(to, toToken),
          ...(encoding !== undefined && { encoding }),
        });
        try {
          await copyAll(reader, writer, prefix, styleOf(command).json);
        } finally {
          writer.close();
        }
      } finally {
        reader.close();
      }
    });
}

interface CopyFlags {
  prefix?: KvKey;
  encoding?: "cbor" | "v8";
  toToken?: string;
}

/** A token says nothing to a file. */
function withToken(located: string, accessToken: string | undefined): OpenKvOptions {
  return isServer(located) && accessToken !== undefined ? { accessToken } : {};
}

/** Entries of one read, and at most of one commit. */
const COPY_ENTRIES_MAX = 500;
const COPY_BYTES_MAX = 512 * 1024;
/** Below `commitKeyBytesMax` of every server. */
const COPY_KEY_BYTES_MAX = 64 * 1024;
/** Commits on their way at once. */
const COPY_COMMITS_MAX = 4;

async function copyAll(
  from: Kv,
  to: Kv,
  prefix: KvKey | undefined = [],
  json: boolean,
): Promise<void> {
  const { signal, release } = untilInterrupted();
  const progress = new Progress("copied", undefined);
  const sent: Promise<unknown>[] = [];
  let copied = 0;
  let operation: AtomicOperation = to.atomic();
  let entries = 0;
  let bytes = 0;
  let keyBytes = 0;
  const flush = async (most: number): Promise<void> => {
    if (entries > 0) {
      const commit = operation.commit();
      commit.catch(() => {});
      sent.push(commit);
    }
    copied += entries;
    operation = to.atomic();
    entries = 0;
    bytes = 0;
    keyBytes = 0;
    while (sent.length > most) await sent.shift();
    progress.update(copied, copied);
  };
  const list = await listWithEnds(from, { prefix }, COPY_ENTRIES_MAX, untold);
  for await (const { key, value, expireAt } of list) {
    const expireIn = expireAt == null ? undefined : Math.max(expireAt.getTime() - Date.now(), 0);
    const valueSize = sizeOf(value);
    const keySize = sizeOf.key(key);
    // What is over the bounds with this entry goes without it: it may be the largest there is.
    if (bytes + valueSize > COPY_BYTES_MAX || keyBytes + keySize > COPY_KEY_BYTES_MAX) {
      await flush(COPY_COMMITS_MAX);
    }
    operation.set(key, value, expireIn === undefined ? undefined : { expireIn });
    entries++;
    bytes += valueSize;
    keyBytes += keySize;
    if (entries >= COPY_ENTRIES_MAX) await flush(COPY_COMMITS_MAX);
    if (signal.aborted) break;
  }
  await flush(0);
  release();
  const summary = progress.end(copied);
  if (signal.aborted) throw new NotDone(`${summary}, interrupted`, true);
  if (json) await print(JSON.stringify({ copied }));
  else note(summary);
}
