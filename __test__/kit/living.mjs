// Duty: processes that do not outlive the tests of the file that starts them, also when a test has failed: a process
// that goes on keeps the file, until its time is over.

import { once } from "node:events";
import process from "node:process";
import { after } from "node:test";

const living = new Set();

process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});
// A program that is no file of tests would begin a run of tests by a hook.
if (process.argv[1]?.endsWith(".test.mjs")) {
  after(() => Promise.all([...living].map(killed)));
}

/** Has a process end with the tests of this file; answers it. */
export function endsWithTests(child) {
  living.add(child);
  child.once("close", () => living.delete(child));
  return child;
}

/** Kills a process, and waits until it is gone. */
export async function killed(child) {
  const isGone = child.exitCode !== null || child.signalCode !== null;
  // One that could not be started has no id.
  if (isGone || child.pid === undefined) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
