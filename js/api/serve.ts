// Duty: serve(): checks the options, starts a server, returns its handle.

import { existsSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { checkOptions, nameOf, shown } from "../arguments/check.js";
import { checkDuration, inMs, textAdvice } from "../arguments/duration.js";
import { printGiven } from "../codec/key-text.js";
import { refuseElsewhere } from "../arguments/location.js";
import { targetOf } from "../maintenance/archive.js";
import { bare } from "../model/define.js";
import { bugOf, errorOf, invalid, misuse } from "../model/errors.js";
import { NativeAnswer } from "../native/native-answer.js";
import type { NativeServer } from "../native/binding.js";
import { type Port, port } from "../native/port.js";
import type { KvServer, ServeOptions } from "../model/types.js";

/**
 * The kind of an option: a type, a duration, one that Rust gets in milliseconds, the largest whole number, the valid
 * words, or nested options.
 */
type Kind = "string" | "boolean" | "duration" | "milliseconds" | number | readonly string[] | Kinds;
interface Kinds {
  readonly [name: string]: Kind;
}

const COUNT = Number.MAX_SAFE_INTEGER;
const COUNT_U32 = 2 ** 32 - 1;

/** The built files of the studio. In a bundle there are none, and this file has another place. */
const STUDIO = typeof __dirname === "string" ? studioBeside(__dirname) : undefined;

/** The kinds of all options. Rust checks bounds and combinations (crates/server/src/options.rs). */
const OPTIONS: Kinds = {
  path: "string",
  engine: "string",
  cache: "string",
  replicaOf: "string",
  replicaToken: "string",
  advertise: "string",
  region: "string",
  forward: "boolean",
  listen: "string",
  publicUrl: "string",
  corsOrigin: "string",
  studio: "boolean",
  accessToken: "string",
  readToken: "string",
  adminToken: "string",
  tls: { cert: "string", key: "string" },
  readonly: "boolean",
  quotas: { bytes: COUNT, operationsPerSecond: COUNT_U32, queueDepth: COUNT, watches: COUNT_U32 },
  dataTokenMs: "milliseconds",
  connectionsMax: COUNT,
  maxOpen: COUNT,
  archive: { to: "string", snapshotEvery: "duration", retention: "duration" },
  keyvalStrings: "boolean",
  keyvalLockDuration: "milliseconds",
  log: ["none", "text", "json"],
};

/** Servers that are not closed: the garbage collector would close one that its caller does not keep. */
const running = new Set<NativeServer>();

export async function serve(options: ServeOptions): Promise<KvServer> {
  const given = check(options);
  const thread = port();
  const started = new NativeAnswer(thread);
  let native: NativeServer;
  try {
    native = new thread.native.Server(
      thread.attachment,
      started.id,
      JSON.stringify(withStudio(given)),
    );
  } catch (error) {
    started.end(bugOf(error));
    throw errorOf(bugOf(error));
  }
  await started.answered;
  const answer = started.answer();
  // A server keeps the process alive until it is closed.
  thread.pending();
  return new RunningServer(thread, native, answer);
}

/** Whether the files of the studio are built; a checkout has none until `npm run build:studio`. */
export const studioIsBuilt = (): boolean =>
  STUDIO !== undefined && existsSync(join(STUDIO, "index.html"));

/** The folder of the studio beside this code, dist/index.js or dist/cli/openkv.js of the package. */
function studioBeside(folder: string): string | undefined {
  const dist = basename(folder) === "cli" ? dirname(folder) : folder;
  const isPackage = basename(dist) === "dist" && existsSync(join(dist, "native", "binding.js"));
  return isPackage ? join(dist, "studio") : undefined;
}

/** The folder of the studio instead of the option: Rust serves its files. */
function withStudio({ studio = true, ...options }: ServeOptions): object {
  return bare(studio ? { ...options, studio: STUDIO } : options);
}

function check(options: ServeOptions): ServeOptions {
  if (options === undefined || options === null) {
    throw misuse("serve needs options: { path, accessToken } at least");
  }
  if (typeof options === "string") {
    throw misuse(`serve: options must be an object: write serve({ path: ${printGiven(options)} })`);
  }
  if (nameOf(options) === "Kv") {
    throw misuse("serve opens the database itself: give its path, serve({ path }), not a handle");
  }
  const given: Partial<ServeOptions> = checkKinds("", options, OPTIONS);
  const { path, archive } = given;
  if (path === undefined && given.engine === undefined) {
    throw invalid("path must be a string: received undefined");
  }
  if (archive !== undefined) {
    const { to } = archive;
    if (typeof to !== "string" || to === "") {
      throw invalid(`archive.to must be a folder or a URL: received ${shown(to)}`);
    }
    given.archive = bare({ ...archive, to: targetOf(to) });
  }
  if (given.cache !== undefined) given.cache = resolve(given.cache);
  if (path === undefined || path === "") return given as ServeOptions;
  if (path.startsWith(":")) {
    throw invalid(
      `path must be a file or a folder: received ${shown(path)}; write ./${path} for a file of that name`,
    );
  }
  refuseElsewhere(path, "serve", "it is the option engine, not path");
  // A trailing slash distinguishes a folder that does not exist from a file.
  const ends = /[/\\]$/.test(path);
  return bare({ ...given, path: resolve(path) + (ends ? sep : "") });
}

/** The checked options; `within`: the name of the parent option, with a dot. */
function checkKinds(within: string, options: object, kinds: Kinds): object {
  const given: Record<string, unknown> = checkOptions(
    within === "" ? "serve" : `serve: ${within.slice(0, -1)}`,
    options,
    Object.keys(kinds),
  );
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) given[name] = checkKind(within + name, value, kinds[name]);
  }
  return given;
}

function checkKind(name: string, value: unknown, kind: Kind): unknown {
  const refuse = (what: string): never => {
    throw invalid(`${name} must be ${what}: received ${shown(value)}`);
  };
  if (kind === "duration") {
    checkDuration(name, value);
  } else if (kind === "milliseconds") {
    const ms = inMs(value);
    if (Number.isSafeInteger(ms) && (ms as number) >= 0) return ms;
    const words = `${name} must be an integer of milliseconds: received ${shown(value)}`;
    throw invalid(words + textAdvice(value));
  } else if (typeof kind === "string") {
    // The value may be a token, so the message does not contain it.
    if (typeof value !== kind)
      throw invalid(`${name} must be a ${kind}: received ${nameOf(value)}`);
  } else if (typeof kind === "number") {
    const isCount = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= kind;
    if (!isCount) refuse(`an integer from 0 to ${kind}`);
  } else if (Array.isArray(kind)) {
    if (!kind.includes(value)) refuse(`one of ${kind.join(", ")}`);
  } else if (typeof value !== "object" || value === null) {
    refuse(`an object of ${Object.keys(kind).join(", ")}`);
  } else {
    return checkKinds(`${name}.`, value, kind as Kinds);
  }
  return value;
}

class RunningServer implements KvServer {
  readonly url: string;
  readonly port: number;
  readonly #thread: Port;
  readonly #native: NativeServer;
  #closed: Promise<void> | undefined;

  constructor(thread: Port, native: NativeServer, answer: Buffer) {
    this.#thread = thread;
    this.#native = native;
    running.add(native);
    this.port = answer.readUInt16LE(0);
    this.url = answer.toString("utf8", 2);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const closing = new NativeAnswer(this.#thread);
    try {
      this.#native.close(closing.id);
    } catch (error) {
      closing.end(bugOf(error));
    }
    await closing.answered;
    running.delete(this.#native);
    this.#thread.settled();
    closing.answer();
  }

  [Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")](): Promise<void> {
    return this.close();
  }
}

// biome-ignore lint/correctness/noUnusedVariables: merged with the class.
interface RunningServer {
  [Symbol.asyncDispose](): Promise<void>;
}
