// Duty: shell: runs the commands of the program on one open database, a line each.
// Invariant: a line that fails does not end the shell. Ctrl-C ends the command or clears the line;
// Ctrl-D ends the shell.

import { readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Interface, createInterface } from "node:readline";
import type { Command } from "commander";
import type { Kv } from "../../api/kv.js";
import { placesOf, suggest } from "../command-tree.js";
import { type GlobalOptions, share, withDatabase } from "../database.js";
import { INTERRUPTED } from "../exit-codes.js";
import { NotDone, WrongUsage } from "../outcome.js";
import { runInShell } from "../shell-context.js";
import { fail, note } from "../output.js";
import { splitWords } from "../words.js";

/** Creates the program, for each line a new one, and runs it. */
export interface Lines {
  makeProgram(): Command;
  /** Runs a command line, prints its error, and returns its exit code. */
  run(program: Command, words: readonly string[]): Promise<number>;
}

export function addShellCommand(program: Command, lines: Lines): void {
  program
    .command("shell")
    .description("open a database once and run commands on it, typed line by line or piped")
    .action(async (_: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await withDatabase(command, "any", async (kv) => {
        await new Shell(kv, options, lines).run();
      });
    });
}

/** Most lines of the history. */
const HISTORY_LINES_MAX = 1000;
/** Only the owner may read and write the history: a line may hold a secret. */
const HISTORY_MODE = 0o600;
/** Time that an interrupted command has to end before the prompt returns. */
const CANCEL_GRACE_MS = 500;
const HELP = "a command in a line, as 'get users alice'; 'help' lists them; Ctrl-D or 'exit' ends";

class Shell {
  readonly #kv: Kv;
  readonly #options: GlobalOptions;
  readonly #lines: Lines;
  readonly #isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  #reader: Interface;
  /** Ends the command that runs. */
  #cancel: (() => void) | undefined;
  /** Whether the input has ended. A prompt would wait for more of it. */
  #isClosed = false;
  #failed = 0;

  constructor(kv: Kv, options: GlobalOptions, lines: Lines) {
    this.#kv = kv;
    this.#options = options;
    this.#lines = lines;
    const places = placesOf(lines.makeProgram());
    this.#reader = createInterface({
      input: process.stdin,
      ...(this.#isTerminal && { output: process.stdout }),
      terminal: this.#isTerminal,
      prompt: "openkv> ",
      historySize: HISTORY_LINES_MAX,
      removeHistoryDuplicates: true,
      ...(this.#isTerminal && { history: readHistory() }),
      completer: (line: string) => {
        const words = line.trimStart().split(/\s+/);
        const current = words.pop() ?? "";
        return [suggest(places, words, current).map((name) => `${name} `), current];
      },
    });
  }

  async run(): Promise<void> {
    const reader = this.#reader;
    reader.on("close", () => {
      this.#isClosed = true;
    });
    if (this.#isTerminal) {
      note(HELP);
      reader.on("history", (history: string[]) => writeHistory(history));
      reader.on("SIGINT", () => this.#interrupt());
      reader.prompt();
    }
    for await (const line of reader) {
      if (["exit", "quit"].includes(line.trim())) break;
      await this.#take(line);
      if (this.#isTerminal && !this.#isClosed) reader.prompt();
    }
    reader.close();
    if (this.#failed > 0 && !this.#isTerminal) throw new NotDone(`${this.#failed} lines failed`);
  }

  async #take(line: string): Promise<void> {
    let code: number;
    try {
      const words = splitWords(line);
      if (words.length === 0) return;
      if (words[0] === "shell") throw new WrongUsage("this is a shell already");
      code = await this.#execute(words);
    } catch (error) {
      fail((error as Error).message);
      code = 1;
    }
    if (code !== 0) this.#failed++;
  }

  async #execute(words: readonly string[]): Promise<number> {
    const { db, token, json, jsonPlain, color } = this.#options;
    const program = this.#lines.makeProgram();
    share(program, { kv: this.#kv, db });
    const given = [
      ...(db === undefined ? [] : ["--db", db]),
      ...(token === undefined ? [] : ["--token", token]),
      ...(jsonPlain ? ["--json=plain"] : json ? ["--json"] : []),
      ...(color ? [] : ["--no-color"]),
    ];
    const ending = new AbortController();
    const [running, dropOutput] = runInShell(
      (question) => this.#ask(question, ending.signal),
      () => this.#lines.run(program, [...given, ...words]),
    );
    const cancelled = new Promise<number>((resolve) => {
      this.#cancel = () => {
        // Commands that a signal ends listen for it. Others go on, and their output is dropped.
        process.emit("SIGINT");
        dropOutput();
        ending.abort();
        setTimeout(() => resolve(INTERRUPTED), CANCEL_GRACE_MS).unref();
      };
    });
    try {
      return await Promise.race([running, cancelled]);
    } finally {
      this.#cancel = undefined;
    }
  }

  #interrupt(): void {
    if (this.#cancel !== undefined) return this.#cancel();
    this.#reader.write(null, { ctrl: true, name: "e" });
    this.#reader.write(null, { ctrl: true, name: "u" });
    process.stdout.write("\n");
    this.#reader.prompt();
  }

  /** null: there is no terminal to ask on. The answer is empty once the command is to end: the next line is a command. */
  #ask(question: string, signal: AbortSignal): Promise<string> | null {
    if (!this.#isTerminal) return null;
    if (signal.aborted) return Promise.resolve("");
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(""));
      this.#reader.question(question, { signal }, resolve);
    });
  }
}

/** `OPENKV_HISTORY`, empty for none; by default a file in the user's folder. */
function historyFile(): string {
  return process.env.OPENKV_HISTORY ?? join(homedir(), ".openkv_history");
}

/** The newest first. */
function readHistory(): string[] {
  const file = historyFile();
  if (file === "") return [];
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .reverse();
  } catch {
    return [];
  }
}

/** A history that cannot be written does not end the shell. */
function writeHistory(history: readonly string[]): void {
  const file = historyFile();
  if (file === "") return;
  try {
    writeFileSync(file, `${[...history].reverse().join("\n")}\n`, { mode: HISTORY_MODE });
  } catch {
    return;
  }
}
