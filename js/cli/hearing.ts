// Duty: of the command that runs: whether its output is still wanted, and who can be asked.

import { AsyncLocalStorage } from "node:async_hooks";

interface Hearer {
  wanted: boolean;
  /** null: nobody can be asked. */
  readonly ask: (question: string) => Promise<string> | null;
}

const hearers = new AsyncLocalStorage<Hearer>();

/** Runs a command for a shell; answers its end, and a way to hear no more of it. */
export function hear<T>(ask: Hearer["ask"], run: () => Promise<T>): [Promise<T>, () => void] {
  const hearer: Hearer = { wanted: true, ask };
  const stop = (): void => {
    hearer.wanted = false;
  };
  return [hearers.run(hearer, run), stop];
}

/** Whether what the command prints is still wanted. */
export function isHeard(): boolean {
  return hearers.getStore()?.wanted ?? true;
}

/** The shell's way to ask; undefined outside of one. */
export function askShell(): Hearer["ask"] | undefined {
  return hearers.getStore()?.ask;
}
