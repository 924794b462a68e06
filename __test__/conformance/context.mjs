// Duty: what one case is given: fresh databases that are closed after it, and assertions.
// Invariant: two cases never share a database, a file or a handle, so that they may run at once.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { bucketUrl } from "../kit/folder.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { difference, show } from "./compare.mjs";
import { runtime } from "./subject.mjs";

/** What shows a server of the variant "server" who asks. */
const accessToken = "the-token-of-the-cases";

/** The options of a handle on a variant that has some. */
const OPTIONS = {
  server: { accessToken },
  replica: { accessToken, replica: ":memory:" },
  near: { accessToken, replica: ":memory:", consistency: "eventual" },
};

/** How long `until` waits before it gives up: a hang guard, not a measure. */
const UNTIL_MS_MAX = 15_000;

export class Skip extends Error {}

export class Context {
  #subject;
  #handles = [];
  #folder;
  #paths = new Map();
  #files = 0;
  #servers = [];

  constructor({ subject, variant, folder, oracle }) {
    this.#subject = subject;
    this.#folder = folder;
    /** What `open()` opens: "memory", "file", "server" (a file behind our own server), "replica" and "near" (the same with a replica), "postgres", "bucket" (a folder). */
    this.variant = variant;
    this.oracle = oracle;
    this.runtime = runtime;
    this.KvU64 = subject.KvU64;
    this.Kv = subject.Kv;
    this.AtomicOperation = subject.AtomicOperation;
    this.KvListIterator = subject.KvListIterator;
  }

  /** The bare function under test; the handle it resolves to is closed after the case. */
  openKv = async (...args) => {
    const kv = await this.#subject.openKv(...args);
    this.#handles.push(kv);
    return kv;
  };

  /** The function itself, for its shape. */
  get rawOpenKv() {
    return this.#subject.openKv;
  }

  /** A fresh, empty database of the variant. */
  async open() {
    return await this.#openAt(await this.#place());
  }

  async #place() {
    if (this.variant === "memory") return ":memory:";
    if (this.variant === "file") return this.path();
    if (this.variant === "postgres") return (await sharedPostgres()).url();
    if (this.variant === "bucket") return bucketUrl(this.path(`${this.#files++}.bucket`));
    const options = { path: this.path(), listen: "127.0.0.1:0", accessToken };
    const server = await this.#subject.serve(options);
    this.#servers.push(server);
    return server.url;
  }

  async #openAt(path) {
    const options = OPTIONS[this.variant];
    const kv = await (options ? this.openKv(path, options) : this.openKv(path));
    if (this.variant === "near") await kv.replica.ready();
    this.#paths.set(kv, path);
    return kv;
  }

  /** Another handle on the same database. */
  async another(kv) {
    return await this.#openAt(this.#paths.get(kv));
  }

  /** Closes the handle and opens its database again. */
  async reopen(kv) {
    await kv.close();
    return await this.#openAt(this.#paths.get(kv));
  }

  /** A file path that nobody has used; its folder exists. */
  path(name = `kv${this.#files++}.sqlite3`) {
    return join(this.folder(), name);
  }

  /** The case's own folder. */
  folder() {
    mkdirSync(this.#folder, { recursive: true });
    return this.#folder;
  }

  async closeAll() {
    for (const kv of this.#handles) {
      try {
        await kv.close();
      } catch (error) {
        if (error.name !== "BadResource") throw error;
      }
    }
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  skip(reason) {
    throw new Skip(reason);
  }

  fail(message) {
    throw new Error(message);
  }

  ok(condition, message = "not true") {
    if (!condition) this.fail(message);
  }

  /** Object.is on primitives and references. */
  is(actual, expected, what = "value") {
    if (!Object.is(actual, expected)) {
      this.fail(`${what}: ${show(actual)} is not ${show(expected)}`);
    }
  }

  /** Deep sameness (compare.mjs). */
  same(actual, expected, what = "") {
    const found = difference(actual, expected);
    if (found) this.fail(`${what}${what && ": "}${found}; got ${show(actual)}`);
  }

  match(text, pattern) {
    if (!pattern.test(text)) this.fail(`${show(text)} does not match ${pattern}`);
  }

  /** The words that a refusal of `given` begins with: openkv has the types of strings and bigints. */
  refusal(words, given) {
    const typed = typeof given === "string" || typeof given === "bigint";
    return `${words}: received ${typed ? "" : given}`;
  }

  /**
   * `fn` throws at the call, an error of this class (a constructor, or a name such as
   * "BadResource") whose message has these words.
   */
  throws(fn, kind, words = "") {
    let result;
    try {
      result = fn();
    } catch (error) {
      return this.#error(error, kind, words);
    }
    result?.catch?.(() => {});
    this.fail(`did not throw; expected ${kind.name ?? kind} "${words}"`);
  }

  /** `fn` answers a promise (it must not throw at the call) that rejects so. */
  async rejects(fn, kind, words = "") {
    let promise;
    try {
      promise = typeof fn === "function" ? fn() : fn;
    } catch (error) {
      this.fail(`threw at the call instead of rejecting: ${error}`);
    }
    let value;
    try {
      value = await promise;
    } catch (error) {
      return this.#error(error, kind, words);
    }
    this.fail(`resolved to ${show(value)}; expected ${kind.name ?? kind} "${words}"`);
  }

  #error(error, kind, words) {
    const told = `${error?.name}: ${error?.message}`;
    if (typeof kind === "string") {
      if (error?.name !== kind) this.fail(`threw ${told}; expected ${kind}`);
    } else if (!(error instanceof kind)) {
      this.fail(`threw ${told}; expected ${kind.name}`);
    }
    if (!(words instanceof RegExp ? words.test(error.message) : error.message.includes(words))) {
      this.fail(`threw ${told}; expected the words ${words}`);
    }
    return error;
  }

  /** Polls until `fn` answers something truthy. */
  async until(fn, what = "condition") {
    const end = Date.now() + UNTIL_MS_MAX;
    for (;;) {
      const answer = await fn();
      if (answer) return answer;
      if (Date.now() > end) this.fail(`${what} did not come true in ${UNTIL_MS_MAX} ms`);
      await this.sleep(10);
    }
  }

  sleep(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** Every entry of a list, in order. */
  async all(iterator) {
    const entries = [];
    for await (const entry of iterator) entries.push(entry);
    return entries;
  }

  /** The last key part of every entry of a list, in order. */
  async ends(iterator) {
    return (await this.all(iterator)).map((entry) => entry.key.at(-1));
  }

  async value(kv, key) {
    return (await kv.get(key)).value;
  }

  async stamp(kv, key) {
    return (await kv.get(key)).versionstamp;
  }
}
