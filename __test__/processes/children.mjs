// Child processes that cannot outlive the test: each is killed when the tests of the file have ended or this
// process exits, and ends itself when its standard input closes (see child.mjs), which happens even if this
// process is killed with SIGKILL.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

import { endsWithTests } from "../kit/living.mjs";
import { runtimeArguments } from "./target.mjs";

/** No child of any test has a reason to live longer. */
const CHILD_LIFE_MS_MAX = 15 * 60_000;

const living = new Set();
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => process.exit(1));
}

/**
 * Starts `script` (a file URL) in the runtime of this process, with `args` as one JSON argument.
 * Its standard output is read as lines.
 *
 * @param {URL} script
 * @param {object} args
 * @param {{
 *   onLine?: (line: string) => void,
 *   spawn?: object,
 *   command?: (argv: string[]) => string[],
 * }} [options] `command` may wrap the command line (a limit, a mount).
 */
export function startChild(script, args, options = {}) {
  const plain = [
    process.execPath,
    ...runtimeArguments,
    fileURLToPath(script),
    JSON.stringify(args),
  ];
  const [file, ...argv] = options.command ? options.command(plain) : plain;
  const child = spawn(file, argv, { stdio: ["pipe", "pipe", "pipe"], ...options.spawn });
  return new Child(child, options.onLine);
}

class Child {
  /** What it wrote to standard error so far. */
  stderr = "";
  #child;
  #partial = "";
  #lines = [];
  #waiting = [];

  constructor(child, onLine = (line) => this.#keep(line)) {
    this.#child = child;
    living.add(child);
    endsWithTests(child);
    const timer = setTimeout(() => child.kill("SIGKILL"), CHILD_LIFE_MS_MAX);
    timer.unref();
    child.stdin.on("error", () => {}); // it may be gone before we say goodbye
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (this.#partial + text).split("\n");
      this.#partial = lines.pop(); // a line without its end was never fully said
      lines.forEach(onLine);
    });
    child.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
    /**
     * @type {Promise<{ code: number | null, signal: string | null }>} resolves when it is gone and
     * all is read
     */
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        clearTimeout(timer);
        living.delete(child);
        this.#waiting.splice(0).forEach((waiter) => waiter.resolve(undefined));
        resolve({ code, signal });
      });
    });
    this.ended.catch(() => {});
  }

  get pid() {
    return this.#child.pid;
  }

  /** SIGKILL: no handler runs, nothing is flushed. */
  kill() {
    this.#child.kill("SIGKILL");
  }

  /** Stops it until {@link resume}, as a busy machine does; Windows cannot, and lets it run. */
  pause() {
    if (process.platform !== "win32") this.#child.kill("SIGSTOP");
  }

  resume() {
    if (process.platform !== "win32") this.#child.kill("SIGCONT");
  }

  /** One line to its standard input. */
  say(line) {
    this.#child.stdin.write(line + "\n");
  }

  /** Closes its standard input, which ends a child made with child.mjs. */
  hangUp() {
    this.#child.stdin.end();
  }

  /** The next line of its output that was not yet taken; undefined when it ended without one. */
  line() {
    if (this.#lines.length > 0) return Promise.resolve(this.#lines.shift());
    if (!living.has(this.#child)) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#waiting.push({ resolve }));
  }

  #keep(line) {
    const waiter = this.#waiting.shift();
    if (waiter) waiter.resolve(line);
    else this.#lines.push(line);
  }
}
