// Duty: queue limit, groups, progress and events: the limits and groups of a queue, and the progress and events of its messages.

import { type Command, InvalidArgumentError, Option } from "commander";
import { LIMIT_ALGORITHMS } from "../../model/limit-algorithms.js";
import { parseDuration } from "../../arguments/duration.js";
import { count } from "../arguments.js";
import { withDatabase } from "../database.js";
import { paged } from "../message-pages.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { note, print, printFacts, printValued } from "../output.js";

/** A rate like 100/1m. */
function rate(text: string): { limit: number; per: number } {
  const [, limit, time] = /^(\d{1,10})\/(\S+)$/.exec(text) ?? [];
  const per = parseDuration(time ?? "");
  if (limit === undefined || Number.isNaN(per)) {
    throw new InvalidArgumentError("give deliveries and a time, as 100/1m.");
  }
  return { limit: Number(limit), per };
}

interface LimitFlags {
  concurrency?: number;
  rate?: { limit: number; per: number };
  groupConcurrency?: number;
  groupRate?: { limit: number; per: number };
  algorithm?: (typeof LIMIT_ALGORITHMS)[number];
}

export function addQueueLimits(queue: Command): void {
  queue
    .command("limit")
    .description("set what may run of a queue and of each of its groups, over all processes")
    .argument("<name>", "the queue")
    .option("--concurrency <count>", "messages with a consumer at a time (default: any)", count)
    .option("--rate <count/duration>", "deliveries in a time, as 100/1m (default: any)", rate)
    .option(
      "--group-concurrency <count>",
      "messages of each group with a consumer at a time (default: any)",
      count,
    )
    .option(
      "--group-rate <count/duration>",
      "deliveries of each group in a time, as 10/1m (default: any)",
      rate,
    )
    .addOption(
      new Option("--algorithm <name>", "how rates count (default: fixed)").choices(
        LIMIT_ALGORITHMS,
      ),
    )
    .action(async (name: string, flags: LimitFlags, command: Command) => {
      const { algorithm, concurrency, groupConcurrency } = flags;
      const limit = (running?: number, given?: { limit: number; per: number }) => ({
        ...(running !== undefined && { concurrency: running }),
        ...(given !== undefined && { rate: { ...given, ...(algorithm && { algorithm }) } }),
      });
      const group = limit(groupConcurrency, flags.groupRate);
      await withDatabase(command, "any", async (kv, style) => {
        const changed = await kv
          .queue(name)
          .setLimits({ ...limit(concurrency, flags.rate), group });
        if (style.json) await print(JSON.stringify({ changed }));
        else note(changed ? "limited" : "unchanged");
      });
    });

  queue
    .command("limits")
    .description("print what may run of a queue and of each of its groups")
    .argument("<name>", "the queue")
    .action(async (name: string, _: unknown, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const { concurrency, rate, group } = await kv.queue(name).limits();
        const shown = (of: typeof rate) => of && `${of.limit}/${of.per}ms ${of.algorithm}`;
        const facts = {
          concurrency: concurrency ?? "any",
          rate: shown(rate) ?? "any",
          groupConcurrency: group.concurrency ?? "any",
          groupRate: shown(group.rate) ?? "any",
        };
        await printFacts(facts, style);
      });
    });

  queue
    .command("groups")
    .description("print the groups that have messages which wait, by their turns")
    .argument("<name>", "the queue")
    .option("-n, --limit <count>", "most groups (default: all)", count)
    .action(async (name: string, { limit }: { limit?: number }, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const page = async (of: object) => {
          const { groups, cursor } = await kv.queue(name).groups(of);
          return { messages: groups, cursor };
        };
        for await (const { name: group, paused, ...counts } of paged(page, limit)) {
          if (style.json) await print(JSON.stringify({ name: group, ...counts, paused }));
          else {
            const shown = Object.entries(counts).map(([state, of]) => `${state} ${of}`);
            await print(`${group}  ${shown.join("  ")}${paused ? "  paused" : ""}`);
          }
        }
      });
    });

  queue
    .command("progress")
    .description("print the last progress of a message; exit code 1 if none is kept")
    .argument("<name>", "the queue")
    .argument("<id>", "of the message")
    .action(async (name: string, id: string, _: unknown, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const progress = await kv.queue(name).progress(id);
        if (progress === undefined)
          throw new NotDone("it has reported no progress, or none is kept");
        await printValued({ id }, progress, style);
      });
    });

  queue
    .command("events")
    .description("print what happens to messages whose results are kept, until interrupted")
    .argument("<name>", "the queue")
    .option("--since <versionstamp>", "continue behind this event (default: from now on)")
    .option("-n, --limit <count>", "end after so many events (default: never)", count)
    .action(async (name: string, flags: EventFlags, command: Command) => {
      const { since, limit = Number.POSITIVE_INFINITY } = flags;
      await withDatabase(command, "read", async (kv, style) => {
        const { signal, release } = untilInterrupted();
        const from = since === undefined ? {} : { since };
        const events = kv
          .queue(name)
          .events({ ...from, signal })
          .getReader();
        for (let printed = 0; printed < limit; printed++) {
          const event = await events.read().catch((failure: unknown) => {
            if (signal.aborted) return { done: true } as const;
            throw failure;
          });
          if (event.done) break;
          const { value = null, error, ...facts } = event.value;
          await printValued({ ...facts, ...(error && { error: error.message }) }, value, style);
        }
        await events.cancel().catch(() => {});
        release();
      });
    });
}

interface EventFlags {
  since?: string;
  limit?: number;
}
