// Duty: asking before what cannot be undone. Where nobody can be asked, it has to have been said.

import { createInterface } from "node:readline/promises";
import { NotDone, WrongUsage } from "./outcome.js";

/** Returns when it is to be done; else ends the command. */
export async function confirm(what: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return;
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) {
    throw new WrongUsage(`${what}: give --yes, since there is nobody to ask`);
  }
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asking.question(`${what}? [y/N] `);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new NotDone("nothing was done");
  } finally {
    asking.close();
  }
}
