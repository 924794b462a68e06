// Duty: the context of a command that runs in the shell: whether its output is still printed, and how
// it asks the user. A command outside of the shell has no context.

import { AsyncLocalStorage } from "node:async_hooks";

interface ShellContext {
  prints: boolean;
  /** Returns null without a terminal. */
  readonly ask: (question: string) => Promise<string> | null;
}

const contexts = new AsyncLocalStorage<ShellContext>();

/** Runs a command in the shell; returns its result, and a function that drops its later output. */
export function runInShell<T>(
  ask: ShellContext["ask"],
  run: () => Promise<T>,
): [Promise<T>, () => void] {
  const context: ShellContext = { prints: true, ask };
  const dropOutput = (): void => {
    context.prints = false;
  };
  return [contexts.run(context, run), dropOutput];
}

/** Whether the output of the command is printed. */
export function printsOutput(): boolean {
  return contexts.getStore()?.prints ?? true;
}

/** The shell's function for asking the user; undefined outside of the shell. */
export function askShell(): ShellContext["ask"] | undefined {
  return contexts.getStore()?.ask;
}
