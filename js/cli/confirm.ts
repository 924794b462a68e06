// Duty: asks before an irreversible command. Without a terminal, the command line must confirm it.

import { createInterface } from "node:readline";
import { askShell } from "./shell-context.js";
import { NotDone, WrongUsage } from "./outcome.js";

/** Returns if the user agrees; otherwise ends the command. */
export async function confirm(what: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return;
  const question = `${what}? [y/N] `;
  const answer = await (askShell() ?? askTerminal)(question);
  if (answer === null) throw new WrongUsage(`${what}: give --yes, since there is nobody to ask`);
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new NotDone("nothing was done");
}

/** null: there is no terminal. Ctrl-C ends the command, and Ctrl-D is no answer. */
async function askTerminal(question: string): Promise<string | null> {
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) return null;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve, reject) => {
      const leave = (settle: () => void): void => {
        process.stderr.write("\n");
        settle();
      };
      asking.once("SIGINT", () => leave(() => reject(new NotDone("nothing was done", true))));
      asking.once("close", () => leave(() => resolve("")));
      asking.question(question, (answer) => {
        asking.removeAllListeners("close");
        resolve(answer);
      });
    });
  } finally {
    asking.removeAllListeners("close").close();
  }
}
