// Duty: promote: makes a replica a database of its own.

import type { Command } from "commander";
import { isElsewhere, isServer, locate } from "../../arguments/location.js";
import { NativeAnswer } from "../../native/native-answer.js";
import { port } from "../../native/port.js";
import { styleOf } from "../database.js";
import { WrongUsage, asUsage } from "../outcome.js";
import { printFacts } from "../output.js";

export function addPromoteCommand(program: Command): void {
  program
    .command("promote")
    .description("make a closed replica a database of its own, which can be written")
    .argument("<file>", "the file of the replica, which follows nothing afterwards")
    .action(async (file: string, _: object, command: Command) => {
      const path = await asUsage(() => Promise.resolve(locate(file, false)));
      if (isServer(path) || isElsewhere(path) || path === ":memory:") {
        throw new WrongUsage("give the file of a replica");
      }
      const thread = port();
      const answer = new NativeAnswer(thread);
      thread.native.promote(thread.attachment, answer.id, path);
      await answer.answered;
      answer.answer();
      await printFacts({ file, promoted: true }, styleOf(command));
    });
}
