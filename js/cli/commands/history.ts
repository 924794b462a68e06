// Duty: history and diff: the versions of an entry, and what differs between two moments.
// Invariant: constant memory, however many entries there are: both moments are read in pages, and one
// value at a time.

import type { Command } from "commander";
import type { Kv } from "../../api/kv.js";
import type { ExportedEntry } from "../../interchange/encode.js";
import type { KvHistoryOptions, KvKey } from "../../model/types.js";
import { KEY_WORDS, key, keyOf, some } from "../arguments.js";
import { atMoment, type Moment, moment } from "../at.js";
import { type GlobalOptions, withDatabase, withDatabaseAt } from "../database.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { type Difference, note, printDifference, printVersion, type Style } from "../output.js";
import { type Stamped, sideBySide } from "../side-by-side.js";

export function addHistoryCommands(program: Command): void {
  program
    .command("history")
    .description(
      "print the versions of an entry, the newest first; exit code 1 if the history has none",
    )
    .argument("<key...>", KEY_WORDS)
    .option("-n, --limit <count>", "most versions (default: all)", some)
    .option("--before <versionstamp>", "only versions of commits before this one")
    .action(async (words: string[], options: KvHistoryOptions, command: Command) => {
      const of = keyOf(words);
      await withDatabase(command, "read", async (kv, style) => {
        let any = false;
        for await (const version of kv.history(of, options)) {
          await printVersion(version, style);
          any = true;
        }
        if (!any) throw new NotDone("the history has no version of this entry");
      });
    });

  program
    .command("diff")
    .description("print the entries that differ between two moments, in key order")
    .argument("[file]", "the database (default: --db)")
    .requiredOption(
      "--from <moment>",
      "a time (2026-11-24T15:00:00Z) or a versionstamp; needs the history of the database",
      moment,
    )
    .option("--to <moment>", "a time or a versionstamp (default: the present)", moment)
    .option("--prefix <key>", "only keys that extend this one", key)
    .action(async (file: string | undefined, options: DiffOptions, command: Command) => {
      const { db } = command.optsWithGlobals<GlobalOptions>();
      await withDatabaseAt(file ?? db, command, "read", (kv, style) => diff(kv, options, style));
    });
}

interface DiffOptions {
  from: Moment;
  to?: Moment;
  prefix?: KvKey;
}

/** Keys of one read. */
const PAGE_KEYS = 1000;

async function diff(kv: Kv, { from, to, prefix = [] }: DiffOptions, style: Style): Promise<void> {
  const before = await atMoment(kv, from);
  try {
    const after = await (to === undefined ? presentOf(kv) : atMoment(kv, to));
    try {
      await compare({ before, after }, prefix, style);
    } finally {
      await after.close();
    }
  } finally {
    await before.close();
  }
}

/** The present as a moment, which does not change while it is read. */
async function presentOf(kv: Kv): Promise<Kv> {
  const { versionstamp } = await kv.stats();
  try {
    // By the time, so that what has expired is absent.
    const now = await kv.at(new Date());
    if ((await now.stats()).versionstamp >= versionstamp) return now;
    await now.close();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  // The clock of a writer was ahead, or that of this machine is.
  return await kv.at(versionstamp);
}

async function compare(
  { before, after }: { before: Kv; after: Kv },
  prefix: KvKey,
  style: Style,
): Promise<void> {
  const { signal, release } = untilInterrupted();
  const counts = { added: 0, changed: 0, removed: 0 };
  try {
    const pairs = sideBySide(stampsOf(before, prefix), stampsOf(after, prefix));
    for await (const { source: old, destination: now } of pairs) {
      if (signal.aborted) throw new NotDone("interrupted", true);
      if (old !== null && now !== null && isSame(old, now)) continue;
      const type = old === null ? "added" : now === null ? "removed" : "changed";
      counts[type]++;
      const difference: Difference = {
        type,
        before: old === null ? null : await entryOf(before, old.key),
        after: now === null ? null : await entryOf(after, now.key),
      };
      await printDifference(difference, style);
    }
  } finally {
    release();
  }
  if (!style.json) {
    note(`${counts.added} added, ${counts.changed} changed, ${counts.removed} removed`);
  }
}

type StampedWithExpiry = Stamped & { readonly expireAt: Date | null };

function stampsOf(kv: Kv, prefix: KvKey): AsyncIterable<StampedWithExpiry> {
  const options = { keysOnly: true, withExpiry: true, batchSize: PAGE_KEYS } as const;
  return kv.list({ prefix }, options) as AsyncIterable<StampedWithExpiry>;
}

function isSame(one: StampedWithExpiry, other: StampedWithExpiry): boolean {
  return (
    one.versionstamp === other.versionstamp && one.expireAt?.getTime() === other.expireAt?.getTime()
  );
}

/** A moment does not change, so its entry is there. */
async function entryOf(kv: Kv, of: KvKey): Promise<ExportedEntry> {
  return (await kv.get(of, { withExpiry: true })) as ExportedEntry;
}
