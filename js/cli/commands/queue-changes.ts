// Duty: queue pause, resume, drain, cancel and result: changes that no consumer makes, and how messages ended.

import type { Command } from "commander";
import { UNITS, duration } from "../arguments.js";
import { withDatabase } from "../database.js";
import { NotDone, interruptibly } from "../outcome.js";
import { note, print, printValued } from "../output.js";

/** The changes without options: command, description, and the note when it is done. */
const CHANGES = [
  ["pause", "deliver none of its messages, to no process, until it resumes", "paused"],
  ["resume", "deliver its messages again", "resumed"],
] as const;

export function addQueueChanges(queue: Command): void {
  queue
    .command("cancel")
    .description(
      "remove messages, also those that a consumer has: this aborts the signal of its handler",
    )
    .argument("<name>", "the queue")
    .argument("<ids...>", "of messages that queue peek prints")
    .action(async (name: string, ids: string[], _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const absent: string[] = [];
        for (const id of ids) if (!(await kv.queue(name).cancel(id))) absent.push(id);
        const cancelled = ids.length - absent.length;
        if (style.json) await print(JSON.stringify({ cancelled, absent }));
        else note(`cancelled ${cancelled}`);
        if (absent.length > 0) throw new NotDone(`not there: ${absent.join(", ")}`);
      });
    });

  for (const [change, description, done] of CHANGES) {
    queue
      .command(change)
      .description(description)
      .argument("<name>", "the queue")
      .option("--group <name>", "only this group of it")
      .action(async (name: string, flags: { group?: string }, command: Command) => {
        await withDatabase(command, "existing", async (kv) => {
          await kv.queue(name)[change](flags);
          note(done);
        });
      });
  }

  queue
    .command("drain")
    .description("delete the messages that wait; they become no dead letters")
    .argument("<name>", "the queue")
    .option("--delayed", "also those that are not due yet")
    .option("--group <name>", "only those of this group")
    .action(async (name: string, flags: DrainFlags, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const deleted = await interruptibly("some messages may be deleted", (signal) =>
          kv.queue(name).drain({ ...flags, signal }),
        );
        if (style.json) await print(JSON.stringify({ deleted }));
        else note(`deleted ${deleted}`);
      });
    });

  queue
    .command("result")
    .description("print how a message has ended whose result is kept; exit code 1 if it has not")
    .argument("<name>", "the queue")
    .argument("<id>", "of the message")
    .option("--wait <duration>", `time to wait for its end: ${UNITS} (default: 0)`, duration)
    .action(async (name: string, id: string, { wait }: { wait?: number }, command: Command) => {
      await withDatabase(command, "read", async (kv, style) => {
        const end = await kv.queue(name).result(id, wait === undefined ? {} : { wait });
        if (end === null) throw new NotDone("it has not ended, or its result is not kept");
        const { state, at } = end;
        const value = end.state === "completed" ? end.value : null;
        const error = end.state === "dead" ? end.error : undefined;
        await printValued({ state, at, ...(error && { error: error.message }) }, value, style);
      });
    });
}

interface DrainFlags {
  delayed?: boolean;
  group?: string;
}
