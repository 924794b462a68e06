// Duty: enqueue and queue: messages in, messages out.

import type { Command } from "commander";
import type { Kv } from "../../kv.js";
import type { KvMessage } from "../../message.js";
import type { KvKey } from "../../types.js";
import { count, counts, keys } from "../arguments.js";
import { withDatabase } from "../database.js";
import { parseWord } from "../literal.js";
import { NotDone, unlessAborted, untilInterrupted } from "../outcome.js";
import { note, print, printFacts, printValued, type Style } from "../output.js";

export function addQueueCommands(program: Command): void {
  addEnqueue(program);
  const queue = program.command("queue").description("look into a named queue, take messages out of it");

  queue
    .command("list")
    .description("print the named queues that have messages")
    .action(async (_: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const { queues } = await kv.metrics();
        for (const [name, { pending, delayed, processing, dead }] of Object.entries(queues)) {
          // The one without a name is that of kv.enqueue().
          if (name === "") continue;
          if (style.json) await print(JSON.stringify({ name, pending, delayed, processing, dead }));
          else await print(`${name}  pending ${pending}  delayed ${delayed}  processing ${processing}  dead ${dead}`);
        }
      });
    });

  queue
    .command("stats")
    .description("how many messages are in which state")
    .argument("<name>", "the queue")
    .action(async (name: string, _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        await printFacts({ ...(await kv.queue(name).stats()) }, style);
      });
    });

  queue
    .command("receive")
    .description("print one message, which is then done; exit code 1 when none is due")
    .argument("<name>", "the queue")
    .option("--wait <ms>", "milliseconds to wait for one (default: 0)", count)
    .option("--nack", "it was not handled: it is delivered again, by its schedule")
    .option("--retry-in <ms>", "with --nack: milliseconds until then (default: by its schedule)", count)
    .option("--error <text>", "with --nack: what is kept if this is its death")
    .option("--keep", "leave it with nobody until its lock ends, then it is delivered again")
    .option("--lock <ms>", "milliseconds of its lock (default: 30000)", count)
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
    .description("print messages as they come, each then done, until interrupted")
    .argument("<name>", "the queue")
    .action(async (name: string, _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        await listen(kv, name, style);
      });
    });
}

function addEnqueue(program: Command): void {
  program
    .command("enqueue")
    .description("put a message into the queue of kv.enqueue(), or into a named one")
    .argument("<value>", "the message: a literal, or a word that is a string", parseWord)
    .option("--queue <name>", "the named queue")
    .option("--delay <ms>", "milliseconds until the first delivery (default: 0)", count)
    .option("--backoff <ms,ms...>", "milliseconds before each new delivery of a failed message (default: 100,1000,5000,30000,60000)", counts)
    .option("--keys-if-undelivered <key...>", "where it is stored when its last delivery failed", keys)
    .option("--key <text>", "with --queue: while a message with this key is there, another adds nothing")
    .option("--priority <0-9>", "with --queue: the highest are delivered first (default: 0)", count)
    .option("--dead-retention <ms>", "with --queue: milliseconds for which it is kept when it is dead (default: until it is removed)", count)
    .action(async (value: unknown, options: EnqueueFlags, command: Command) => {
      const { queue, delay, backoff: backoffSchedule, keysIfUndelivered } = options;
      const { key: deduplicationKey, priority, deadRetention } = options;
      const named = defined({ deduplicationKey, priority, deadRetention });
      if (queue === undefined && Object.keys(named).length > 0) {
        command.error("error: --key, --priority and --dead-retention need --queue");
      }
      const common = defined({ delay, backoffSchedule, keysIfUndelivered });
      await withDatabase(command, "any", async (kv, style) => {
        const { versionstamp } = queue === undefined
          ? await kv.enqueue(value, common)
          : await kv.queue(queue).enqueue(value, { ...common, ...named });
        if (style.json) await print(JSON.stringify({ versionstamp }));
        else note("enqueued");
      });
    });
}

interface EnqueueFlags {
  queue?: string;
  delay?: number;
  backoff?: number[];
  keysIfUndelivered?: KvKey[];
  key?: string;
  priority?: number;
  deadRetention?: number;
}

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

/** A message that could not be printed is given back, and ends the listening: the next could not be either. */
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
  await kv.queue(name).listen(tell, { concurrency: 1, signal: ending.signal });
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
  if (!settled) throw new NotDone("its lock has ended: somebody else may have it");
}
