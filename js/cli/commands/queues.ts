// Duty: enqueue and queue: they add messages and take them.

import { type Command, Option } from "commander";
import type { Kv } from "../../api/kv.js";
import type { KvMessage } from "../../queue/message.js";
import type { KvQueue } from "../../queue/named-queue.js";
import type { PeekedMessage } from "../../queue/peek.js";
import { MESSAGE_STATES } from "../../queue/queue-options.js";
import type { KvKey } from "../../model/types.js";
import { addQueueChanges } from "./queue-changes.js";
import { addQueueLimits } from "./queue-limits.js";
import { UNITS, count, duration, durations, keys } from "../arguments.js";
import { withDatabase } from "../database.js";
import { parseWord } from "../literal.js";
import { paged } from "../message-pages.js";
import { NotDone, unlessAborted, untilInterrupted } from "../outcome.js";
import { note, print, printFacts, printValued, type Style } from "../output.js";

export function addQueueCommands(program: Command): void {
  addEnqueue(program);
  const queue = program.command("queue").description("the state and the messages of a named queue");

  queue
    .command("list")
    .description("print the named queues that have messages")
    .action(async (_: unknown, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const { queues } = await kv.metrics();
        for (const [name, { pending, delayed, processing, dead }] of Object.entries(queues)) {
          // The queue of kv.enqueue() has no name.
          if (name === "") continue;
          if (style.json) await print(JSON.stringify({ name, pending, delayed, processing, dead }));
          else
            await print(
              `${name}  pending ${pending}  delayed ${delayed}  processing ${processing}  dead ${dead}`,
            );
        }
      });
    });

  queue
    .command("stats")
    .description("print the number of messages in each state")
    .argument("<name>", "the queue")
    .action(async (name: string, _: unknown, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        await printFacts({ ...(await kv.queue(name).stats()) }, style);
      });
    });

  queue
    .command("peek")
    .description("print its messages without taking them")
    .argument("<name>", "the queue")
    .addOption(new Option("--state <state>", "only those in this state").choices(MESSAGE_STATES))
    .option("-n, --limit <count>", "most messages (default: all)", count)
    .action(async (name: string, flags: PeekFlags, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        for await (const { value, group, ...facts } of peeked(kv.queue(name), flags))
          await printValued({ ...facts, ...(group !== null && { group }) }, value, style);
      });
    });

  queue
    .command("delete")
    .description("delete messages that no consumer has")
    .argument("<name>", "the queue")
    .argument("<ids...>", "of messages that queue peek prints")
    .action(async (name: string, ids: string[], _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const kept: string[] = [];
        for (const id of ids) if (!(await kv.queue(name).delete(id))) kept.push(id);
        const deleted = ids.length - kept.length;
        if (style.json) await print(JSON.stringify({ deleted, kept }));
        else note(`deleted ${deleted}`);
        if (kept.length > 0) throw new NotDone(`not there, or with a consumer: ${kept.join(", ")}`);
      });
    });

  addSchedules(queue);

  addQueueChanges(queue);
  addQueueLimits(queue);

  queue
    .command("receive")
    .description("print one message and acknowledge it; exit code 1 if none is due")
    .argument("<name>", "the queue")
    .option("--wait <duration>", `time to wait for a message: ${UNITS} (default: 0)`, duration)
    .option("--nack", "reject it: it is delivered again by its backoff schedule")
    .option(
      "--retry-in <duration>",
      `with --nack: time until the next delivery: ${UNITS} (default: by its backoff schedule)`,
      duration,
    )
    .option(
      "--error <text>",
      "with --nack: the reason to keep if the message becomes a dead letter",
    )
    .option(
      "--keep",
      "neither acknowledge nor reject it; it is delivered again when its lock expires",
    )
    .option("--lock <duration>", `time of its lock: ${UNITS} (default: 30s)`, duration)
    .action(async (name: string, options: ReceiveFlags, command: Command) => {
      const { nack, keep, retryIn, error } = options;
      if (nack && keep) command.error("error: give either --nack or --keep");
      if (!nack && (retryIn !== undefined || error !== undefined)) {
        command.error("error: --retry-in and --error need --nack");
      }
      await withDatabase(command, "existing", (kv, style) => receive(kv, name, options, style));
    });

  queue
    .command("listen")
    .description("print and acknowledge messages as they arrive, until interrupted")
    .argument("<name>", "the queue")
    .action(async (name: string, _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        await listen(kv, name, style);
      });
    });
}

function addSchedules(queue: Command): void {
  queue
    .command("schedule")
    .description("set a schedule: the queue gets a message at each due time")
    .argument("<name>", "the queue")
    .argument("<schedule>", "the name of the schedule; another one of this name is replaced")
    .argument("<value>", "the value of its messages: a literal, or else a string")
    .option("--cron <pattern>", "the due times: five fields, or six with seconds in front")
    .option("--time-zone <name>", "with --cron: the IANA name of its zone (default: UTC)")
    .option("--every <duration>", `in place of --cron: the interval, ${UNITS}`, duration)
    .option(
      "--offset <duration>",
      `with --every: added to each due time (default: 0): ${UNITS}`,
      duration,
    )
    .addOption(
      new Option(
        "--missed <rule>",
        "messages for times that no process kept (default: once)",
      ).choices(["skip", "once", "all"]),
    )
    .option("--key <text>", "a message with a key that is in the queue already is not added")
    .option("--priority <0-9>", "the highest are delivered first (default: 0)", count)
    .option("--handler-timeout <duration>", `longest time of a handler: ${UNITS}`, duration)
    .option("--group <name>", "the group of its messages")
    .action(
      async (
        name: string,
        schedule: string,
        given: string,
        flags: ScheduleFlags,
        command: Command,
      ) => {
        const {
          cron,
          timeZone,
          every,
          offset,
          missed,
          key,
          priority,
          handlerTimeout: timeout,
          group,
        } = flags;
        if ((cron === undefined) === (every === undefined)) {
          command.error("error: give either --cron or --every");
        }
        const timing = defined({ cron, timeZone, every, offset, missed });
        const options = defined({ deduplicationKey: key, priority, timeout, group });
        await withDatabase(command, "any", async (kv, style) => {
          const value = parseWord(given);
          const changed = await kv.queue(name).schedule(schedule, timing, value, options);
          if (style.json) await print(JSON.stringify({ changed }));
          else note(changed ? "scheduled" : "unchanged");
        });
      },
    );

  queue
    .command("unschedule")
    .description("remove a schedule; the messages that it has made stay")
    .argument("<name>", "the queue")
    .argument("<schedule>", "the name of the schedule")
    .action(async (name: string, schedule: string, _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const removed = await kv.queue(name).unschedule(schedule);
        if (style.json) await print(JSON.stringify({ removed }));
        if (!removed) throw new NotDone("the queue has no such schedule");
        if (!style.json) note("removed");
      });
    });

  queue
    .command("schedules")
    .description("print the schedules of a queue by their next due times")
    .argument("<name>", "the queue")
    .option("-n, --limit <count>", "most schedules (default: all)", count)
    .action(async (name: string, { limit }: { limit?: number }, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const page = async (of: object) => {
          const { schedules, cursor } = await kv.queue(name).schedules(of);
          return { messages: schedules, cursor };
        };
        for await (const { value, ...facts } of paged(page, limit)) {
          await printValued({ ...facts }, value, style);
        }
      });
    });
}

interface ScheduleFlags {
  cron?: string;
  timeZone?: string;
  every?: number;
  offset?: number;
  missed?: string;
  key?: string;
  priority?: number;
  handlerTimeout?: number;
  group?: string;
}

function addEnqueue(program: Command): void {
  program
    .command("enqueue")
    .description("put a message into the queue of kv.enqueue(), or into a named one")
    .argument("<value>", "the message: a literal, or else a string")
    .option("--string", "the message is a string as it is: 42, true, {a}; not a literal")
    .option("--queue <name>", "the named queue")
    .option("--delay <duration>", `time until the first delivery: ${UNITS} (default: 0)`, duration)
    .option(
      "--backoff <duration,duration...>",
      `times before each new delivery of a failed message: ${UNITS} (default: 100ms,1s,5s,30s,1m)`,
      durations,
    )
    .option(
      "--keys-if-undelivered <key...>",
      "the keys for its value if its last delivery fails",
      keys,
    )
    .option(
      "--key <text>",
      "with --queue: a message with a key that is in the queue already is not added",
    )
    .option(
      "--deduplication <mode>",
      "with --key, if it is taken: drop the message, replace the one that waits, debounce it, or run it again after the run under way (default: drop)",
    )
    .option("--priority <0-9>", "with --queue: the highest are delivered first (default: 0)", count)
    .option(
      "--dead-retention <duration>",
      `with --queue: time to keep it as a dead letter: ${UNITS} (default: until it is removed)`,
      duration,
    )
    .option(
      "--handler-timeout <duration>",
      `with --queue: longest time of a handler: ${UNITS}`,
      duration,
    )
    .option(
      "--keep-result <duration>",
      `with --queue: time to keep its result for queue result: ${UNITS} (default: none is kept)`,
      duration,
    )
    .option("--group <name>", "with --queue: its group, which takes turns with the other ones")
    .action(async (given: string, options: EnqueueFlags, command: Command) => {
      const value = options.string ? given : parseWord(given);
      const { queue, delay, backoff: backoffSchedule, keysIfUndelivered } = options;
      const { key: deduplicationKey, deduplication, priority, deadRetention, keepResult } = options;
      const { handlerTimeout: timeout, group } = options;
      const named = defined({
        deduplicationKey,
        deduplication,
        priority,
        deadRetention,
        timeout,
        keepResult,
        group,
      });
      if (queue === undefined && Object.keys(named).length > 0) {
        command.error(
          "error: --key, --deduplication, --priority, --dead-retention, --handler-timeout, --keep-result and --group need --queue",
        );
      }
      if (deduplication !== undefined && deduplicationKey === undefined) {
        command.error("error: --deduplication needs --key");
      }
      const common = defined({ delay, backoffSchedule, keysIfUndelivered });
      await withDatabase(command, "any", async (kv, style) => {
        const { versionstamp, id } =
          queue === undefined
            ? await kv.enqueue(value, common)
            : await kv.queue(queue).enqueue(value, { ...common, ...named });
        if (style.json) await print(JSON.stringify({ versionstamp, id }));
        else note(queue === undefined ? "enqueued" : `enqueued ${id}`);
      });
    });
}

interface EnqueueFlags {
  string?: boolean;
  queue?: string;
  delay?: number;
  backoff?: number[];
  keysIfUndelivered?: KvKey[];
  key?: string;
  deduplication?: "drop" | "replace" | "debounce" | "again";
  priority?: number;
  deadRetention?: number;
  handlerTimeout?: number;
  keepResult?: number;
  group?: string;
}

interface PeekFlags {
  state?: string;
  limit?: number;
}

const peeked = (queue: KvQueue, { state, limit }: PeekFlags): AsyncGenerator<PeekedMessage> =>
  paged((page) => queue.peek({ ...defined({ state }), ...page }), limit);

interface ReceiveFlags {
  wait?: number;
  nack?: boolean;
  retryIn?: number;
  error?: string;
  keep?: boolean;
  lock?: number;
}

type Info = Pick<KvMessage, "id" | "value" | "attempts" | "enqueuedAt">;

function defined(options: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function printMessage({ id, value, attempts, enqueuedAt }: Info, style: Style): Promise<void> {
  return printValued({ id, attempts, enqueuedAt }, value, style);
}

/** A message that cannot be printed is returned, and ends the listening: the output is broken. */
async function listen(kv: Kv, name: string, style: Style): Promise<void> {
  const { signal, release } = untilInterrupted();
  const ending = new AbortController();
  const end = (): void => ending.abort();
  signal.addEventListener("abort", end);
  let failure: unknown;
  const tell = async (_value: unknown, message: Info): Promise<void> => {
    try {
      await unlessAborted(printMessage(message, style), signal);
    } catch (error) {
      failure = error;
      end();
      throw error;
    }
  };
  // The command reports the failure.
  const onError = (): void => {};
  await kv.queue(name).listen(tell, { concurrency: 1, signal: ending.signal, onError });
  release();
  if (failure !== undefined && !signal.aborted) throw failure;
}

async function receive(kv: Kv, name: string, options: ReceiveFlags, style: Style): Promise<void> {
  const { wait, lock: lockDuration, nack, keep, retryIn: delay, error } = options;
  const { signal, release } = untilInterrupted();
  let message: KvMessage | null;
  try {
    message = await kv.queue(name).receive({ ...defined({ wait, lockDuration }), signal });
  } catch (failure) {
    if (signal.aborted) throw new NotDone("interrupted", true);
    throw failure;
  } finally {
    release();
  }
  if (message === null) throw new NotDone("no message is due");
  try {
    await printMessage(message, style);
  } catch (failure) {
    await message.nack({ error: failure });
    const { message: why } = failure as Error;
    throw new NotDone(`${why}: message ${message.id} is not done, and is delivered again`);
  }
  if (keep) return;
  const settled = nack ? await message.nack(defined({ delay, error })) : await message.ack();
  if (!settled) throw new NotDone("its lock has expired: another consumer may have it");
}
