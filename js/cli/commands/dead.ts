// Duty: dead: the dead letters of a named queue.

import type { Command } from "commander";
import type { DeadMessage } from "../../queue/dead-letters.js";
import type { KvQueue } from "../../queue/named-queue.js";
import { UNITS, YES, count, duration } from "../arguments.js";
import { confirm } from "../confirm.js";
import { withDatabase } from "../database.js";
import { paged } from "../message-pages.js";
import { NotDone, interruptibly } from "../outcome.js";
import { note, print, printValued, type Style } from "../output.js";

export function addDeadCommands(program: Command): void {
  const dead = program.command("dead").description("the dead letters of a named queue");

  dead
    .command("list")
    .description("print the dead letters, oldest first")
    .argument("<name>", "the queue")
    .option("-n, --limit <count>", "most messages (default: all)", count)
    .action(async (name: string, { limit }: { limit?: number }, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        for await (const message of all(kv.queue(name), limit)) await printDead(message, style);
      });
    });

  dead
    .command("get")
    .description("print one; exit code 1 if there is none with this id")
    .argument("<name>", "the queue")
    .argument("<id>", "its id")
    .action(async (name: string, id: string, _: unknown, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const message = await kv.queue(name).dead.get(id);
        if (message === null) throw new NotDone(`no dead letter has the id ${id}`);
        await printDead(message, style);
      });
    });

  for (const method of ["requeue", "delete"] as const) {
    const what = method === "requeue" ? "put them back into their queue, due now" : "delete them";
    dead
      .command(method)
      .description(`${what}; exit code 1 if one did not exist`)
      .argument("<name>", "the queue")
      .argument("[id...]", "their ids")
      .option("--all", "instead of ids: all of them")
      .option(...YES)
      .action(
        async (name: string, ids: string[], { all: every, yes }: AllFlags, command: Command) => {
          if (ids.length > 0 === (every === true)) command.error("error: give either ids or --all");
          if (every && method === "delete")
            await confirm(`Delete all dead letters of ${name}`, yes);
          await withDatabase(command, "existing", async (kv, style) => {
            const queue = kv.queue(name);
            const done = `some may be ${method}d`;
            const settled = await interruptibly(done, async (signal) =>
              every && method === "requeue"
                ? { done: await queue.dead.requeueAll({ signal }), absent: [] }
                : await settle(queue, method, every ? null : ids, signal),
            );
            await tell(method, settled, style);
          });
        },
      );
  }

  dead
    .command("purge")
    .description("delete the old ones, or all")
    .argument("<name>", "the queue")
    .option(
      "--older-than <duration>",
      `only those that became dead letters longer ago than this: ${UNITS} (default: all)`,
      duration,
    )
    .option(...YES)
    .action(
      async (name: string, options: { olderThan?: number; yes?: boolean }, command: Command) => {
        const { olderThan, yes } = options;
        if (olderThan === undefined) await confirm(`Delete all dead letters of ${name}`, yes);
        await withDatabase(command, "existing", async (kv, style) => {
          const { dead: letters } = kv.queue(name);
          const which = olderThan === undefined ? {} : { olderThan };
          const purged = await interruptibly("some may be deleted", (signal) =>
            letters.purge({ ...which, signal }),
          );
          if (style.json) await print(JSON.stringify({ purged }));
          else note(`deleted ${purged}`);
        });
      },
    );
}

interface AllFlags {
  all?: boolean;
  yes?: boolean;
}

const all = (queue: KvQueue, limit?: number): AsyncGenerator<DeadMessage> =>
  paged((page) => queue.dead.list(page), limit);

interface Settled {
  done: number;
  /** The ids that none has. */
  absent: string[];
}

/** `ids`: null for all. */
async function settle(
  queue: KvQueue,
  method: "requeue" | "delete",
  ids: string[] | null,
  signal: AbortSignal,
): Promise<Settled> {
  const settled: Settled = { done: 0, absent: [] };
  const one = async (id: string): Promise<void> => {
    if (await queue.dead[method](id, { signal })) settled.done++;
    // A dead letter that is gone before its turn in all of them is none that the caller has named.
    else if (ids !== null) settled.absent.push(id);
  };
  if (ids !== null) for (const id of ids) await one(id);
  else for await (const { id } of all(queue)) await one(id);
  return settled;
}

async function tell(
  method: "requeue" | "delete",
  { done, absent }: Settled,
  style: Style,
): Promise<void> {
  if (style.json) await print(JSON.stringify({ [method]: done, absent }));
  else note(`${method === "requeue" ? "requeued" : "forgot"} ${done}`);
  if (absent.length > 0) throw new NotDone(`no such dead letters: ${absent.join(", ")}`);
}

async function printDead({ value, ...facts }: DeadMessage, style: Style): Promise<void> {
  const { error, ...rest } = facts;
  await printValued(
    style.json ? facts : { ...rest, error: `${error.name}: ${error.message}` },
    value,
    style,
  );
}
