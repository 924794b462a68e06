// Duty: top: the activity of a database, refreshed at intervals, and the sizes of its prefixes.

import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Kv } from "../../api/kv.js";
import { isServer, withoutLogin } from "../../arguments/location.js";
import type { KvKey } from "../../model/types.js";
import { UNITS, duration, key, some } from "../arguments.js";
import { type GlobalOptions, located, withDatabaseAt } from "../database.js";
import { NotDone, WrongUsage, untilInterrupted } from "../outcome.js";
import { type Style, print, redraw } from "../output.js";
import { Progress } from "../progress.js";
import { ChangeCounter } from "../top/changes.js";
import { linesOf, sizeLines } from "../top/lines.js";
import { type Source, pictureOf } from "../top/picture.js";
import { sizesOf } from "../top/sizes.js";

const INTERVAL_MS_DEFAULT = 2000;
const INTERVAL_MS_MIN = 100;
const INTERVAL_MS_MAX = 86_400_000;
const DEPTH_DEFAULT = 1;

interface TopOptions {
  interval?: number;
  once?: boolean;
  changes: boolean;
  depth?: number;
  sizes?: boolean;
  prefix?: KvKey;
}

export function addTopCommand(program: Command): void {
  program
    .command("top")
    .description(
      "show what a database does now: operations per second and their latencies (of a server), changes and the " +
        "prefixes with the most of them, the slowest operations, queues; until interrupted",
    )
    .argument("[file]", "the database, a file or URL (default: --db)")
    .option(
      "-i, --interval <duration>",
      `time of a picture: ${UNITS} (default: ${INTERVAL_MS_DEFAULT / 1000}s)`,
      duration,
    )
    .option("--once", "one picture, of one interval")
    .option("--no-changes", "do not read the change feed, which has the values of all changes")
    .option("--depth <count>", `parts of a prefix (default: ${DEPTH_DEFAULT})`, some)
    .option(
      "--sizes",
      "instead: entries and bytes below each prefix; reads all entries, Ctrl-C ends it",
    )
    .option("--prefix <key>", "with --sizes: only keys that extend this one", key)
    .action(async (file: string | undefined, options: TopOptions, command: Command) => {
      if (options.prefix !== undefined && !options.sizes) {
        throw new WrongUsage("--prefix needs --sizes");
      }
      const { interval = INTERVAL_MS_DEFAULT } = options;
      if (interval < INTERVAL_MS_MIN || interval > INTERVAL_MS_MAX) {
        throw new WrongUsage(
          `--interval must be from ${INTERVAL_MS_MIN}ms to ${INTERVAL_MS_MAX / 3_600_000}h: ${interval} ms given`,
        );
      }
      const { db } = command.optsWithGlobals<GlobalOptions>();
      const place = file ?? db;
      const at = located(place);
      const source = { database: withoutLogin(at), isServed: isServer(at) };
      await withDatabaseAt(place, command, "read", async (kv, style) => {
        const { signal, release } = untilInterrupted();
        try {
          if (options.sizes) await showSizes(kv, options, style, signal);
          else await show(kv, source, options, style, signal);
        } finally {
          release();
        }
      });
    });
}

async function show(
  kv: Kv,
  source: Source,
  { interval = INTERVAL_MS_DEFAULT, once, changes, depth = DEPTH_DEFAULT }: TopOptions,
  style: Style,
  signal: AbortSignal,
): Promise<void> {
  const counter = changes ? new ChangeCounter(kv, depth) : null;
  const isScreen = process.stdout.isTTY === true && !once && !style.json;
  try {
    let [before, beganMs] = [await kv.metrics(), Date.now()];
    for (let isFirst = true; ; isFirst = false) {
      await sleep(interval, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      const [after, endMs] = [await kv.metrics(), Date.now()];
      const taken = counter?.take(endMs) ?? null;
      const picture = pictureOf(source, [before, after], [beganMs, endMs], taken);
      if (style.json) await print(JSON.stringify(picture));
      else if (isScreen) await redraw(linesOf(picture));
      else for (const line of [...(isFirst ? [] : [""]), ...linesOf(picture)]) await print(line);
      if (once) return;
      [before, beganMs] = [after, endMs];
    }
  } finally {
    await counter?.end();
  }
}

async function showSizes(
  kv: Kv,
  { prefix = [], depth = DEPTH_DEFAULT }: TopOptions,
  style: Style,
  signal: AbortSignal,
): Promise<void> {
  const progress = new Progress("read", undefined);
  const onEntries = (entries: number) => progress.update(entries, entries);
  const { sizes, isWhole } = await sizesOf(kv, { prefix, depth }, signal, onEntries);
  const summary = progress.end(sizes.reduce((sum, { entries }) => sum + entries, 0));
  if (style.json) for (const size of sizes) await print(JSON.stringify(size));
  else for (const line of sizeLines(sizes)) await print(line);
  if (!isWhole) throw new NotDone(`${summary}, interrupted: these are not all`, true);
}
