// Duty: get, list, count and watch.

import type { Command } from "commander";
import { KvError } from "../../model/errors.js";
import { supportsExpiry } from "../../interchange/list-with-expiry.js";
import type { Kv } from "../../api/kv.js";
import type { KvEntryMaybe, KvFilter, KvKey, KvListOptions, KvOrder } from "../../model/types.js";
import {
  count,
  EXPLAIN,
  KEY_WORDS,
  key,
  keyOf,
  keys,
  order,
  PREFIX_WORDS,
  type RangeOptions,
  selectorOf,
  some,
  withRange,
  withWhere,
} from "../arguments.js";
import { AT, type AtOptions, withDatabaseReading } from "../at.js";
import { withDatabase } from "../database.js";
import { NotDone, asOutcome, unlessAborted, untilInterrupted } from "../outcome.js";
import {
  note,
  print,
  printChange,
  printEntry,
  printExplanation,
  printGone,
  printKey,
  printValue,
  type Style,
} from "../output.js";
import { putRaw } from "../raw.js";

export function addReadCommands(program: Command): void {
  program
    .command("get")
    .description("print the value and the expiry of a key; exit code 1 if there is no entry")
    .argument("<key...>", KEY_WORDS)
    .option(
      "--raw",
      "only the value: bytes as they are, a string as UTF-8, other values as plain JSON",
    )
    .option(...AT)
    .action(async (words: string[], options: GetOptions, command: Command) => {
      const of = keyOf(words);
      await withDatabaseReading(command, options, async (kv, style) => {
        const entry = await getWithEnd(kv, of);
        if (entry.versionstamp === null) throw new NotDone("there is no such entry");
        if (options.raw) return await putRaw(entry.value);
        if (style.json) return await printEntry(entry, style);
        await printValue(entry.value, style);
        if (entry.expireAt != null) note(`expires at ${entry.expireAt.toISOString()}`);
      });
    });

  const list = program
    .command("list")
    .description("print entries in key order, with their expiry")
    .argument("[prefix...]", PREFIX_WORDS);
  withWhere(withRange(list))
    .option("-n, --limit <count>", "most entries (default: all)", some)
    .option("-r, --reverse", "from the last key to the first")
    .option("-k, --keys-only", "keys without values")
    .option(
      "--depth <count>",
      "only keys with at most so many parts behind the prefix (default: any)",
      count,
    )
    .option(
      "--order-by <order>",
      'in the order of values, which needs a value index: a path, or \'{ city: "asc", joined: "desc" }\'',
      order,
    )
    .option("--sort", "with --order-by: without such an index, sort in memory")
    .option(...EXPLAIN)
    .option(...AT)
    .action(async (words: string[], options: ListOptions, command: Command) => {
      const prefix = keyOf(words);
      await withDatabaseReading(command, options, async (kv, style) => {
        const { start, end, at: _, explain, ...given } = options;
        const selector = selectorOf(prefix, { start, end } as RangeOptions);
        if (explain) return await printExplanation(await kv.explain(selector, given), style);
        const withExpiry = await supportsExpiry(kv, selector);
        const listed = kv.list(selector, { ...given, withExpiry } as KvListOptions);
        const printAll = async () => {
          for await (const entry of listed) {
            if (options.keysOnly) await printKey(entry, style);
            else await printEntry(entry, style);
          }
        };
        // The database may have no index for the order.
        await (options.orderBy === undefined ? printAll() : asOutcome(printAll));
      });
    });

  const counting = program
    .command("count")
    .description("print the number of entries")
    .argument("[prefix...]", PREFIX_WORDS);
  withWhere(withRange(counting))
    .option(...EXPLAIN)
    .option(...AT)
    .action(async (words: string[], options: CountOptions, command: Command) => {
      const selector = selectorOf(keyOf(words), options);
      await withDatabaseReading(command, options, async (kv, style) => {
        if (options.explain) {
          const counted = { ...whereOf(options), keysOnly: true };
          return await printExplanation(await kv.explain(selector, counted), style);
        }
        const entries = await kv.count(selector, whereOf(options));
        await print(style.json ? JSON.stringify({ count: entries }) : `${entries}`);
      });
    });

  program
    .command("watch")
    .description("print entries whenever they change, until interrupted")
    .argument("[key...]", "the keys: prints their state, then each newer one", keys)
    .option(
      "--prefix <key>",
      "instead of keys: every change of every key that extends this one",
      key,
    )
    .option("--since <versionstamp>", "with --prefix: the changes after this commit too")
    .option("--initial", "with --prefix: the present entries first")
    .action(async (listed: KvKey[] | undefined, options: WatchOptions, command: Command) => {
      // Without keys, the parser returns an empty list.
      const of = listed?.length ? listed : undefined;
      const { prefix, since, initial } = options;
      if ((of === undefined) === (prefix === undefined)) {
        command.error("error: give either keys or --prefix");
      }
      if (since !== undefined && prefix === undefined)
        command.error("error: --since needs --prefix");
      if (initial && prefix === undefined) command.error("error: --initial needs --prefix");
      if (initial && since !== undefined)
        command.error("error: give --initial or --since, not both");
      await withDatabase(command, "read", async (kv, style) => {
        if (prefix === undefined) await watchKeys(kv, of!, style);
        else await watchChanges(kv, prefix, initial ? { initial } : since ? { since } : {}, style);
      });
    });
}

type Read = KvEntryMaybe<unknown> & { expireAt?: Date | null };

/** A plain KV Connect server does not send the expiry. */
async function getWithEnd(kv: Kv, of: KvKey): Promise<Read> {
  try {
    return await kv.get(of, { withExpiry: true });
  } catch (error) {
    if (error instanceof KvError && error.code === "UNSUPPORTED") return await kv.get(of);
    throw error;
  }
}

interface Filtered {
  where?: KvFilter;
}

export function whereOf({ where }: Filtered): { where?: KvFilter } {
  return where === undefined ? {} : { where };
}

interface GetOptions extends AtOptions {
  raw?: boolean;
}

interface ListOptions extends RangeOptions, Filtered, AtOptions {
  limit?: number;
  reverse?: boolean;
  keysOnly?: boolean;
  depth?: number;
  orderBy?: KvOrder;
  sort?: boolean;
  explain?: boolean;
}

interface CountOptions extends RangeOptions, Filtered, AtOptions {
  explain?: boolean;
}

interface WatchOptions {
  prefix?: KvKey;
  since?: string;
  initial?: boolean;
}

async function watchKeys(kv: Kv, of: KvKey[], style: Style): Promise<void> {
  await untilCancelled(kv.watch(of), async (entries) => {
    for (const entry of entries) {
      if (entry.versionstamp !== null) await printEntry(entry, style);
      else await printGone(entry.key, style);
    }
  });
}

async function watchChanges(
  kv: Kv,
  prefix: KvKey,
  options: { since?: string; initial?: boolean },
  style: Style,
): Promise<void> {
  let last = options.since;
  const changes = kv.watch({ prefix }, options);
  await untilCancelled(changes, async ({ changes: batch, versionstamp, initial }) => {
    for (const change of batch) await printChange(change, style);
    if (initial !== "more") last = versionstamp;
  });
  if (last !== undefined && !style.json) note(`--since ${last} goes on from here`);
}

async function untilCancelled<T>(
  stream: ReadableStream<T>,
  tell: (read: T) => Promise<void>,
): Promise<void> {
  const { signal, release } = untilInterrupted();
  const reader = stream.getReader();
  signal.addEventListener("abort", () => void reader.cancel());
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await unlessAborted(tell(value), signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    release();
  }
}
