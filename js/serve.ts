// Duty: serve(): checks the options, starts a server, gives out its handle.

import { resolve, sep } from "node:path";
import { checkOptions, nameOf } from "./check.js";
import { CLOSED, type Failure, bugOf, errorOf, readFailure } from "./errors.js";
import { REPLIED } from "./native.js";
import type { NativeServer } from "./native/binding.js";
import { type Port, type Receiver, port } from "./port.js";
import type { KvServer, ServeOptions } from "./types.js";

const OPTION_NAMES = [
  "path",
  "listen",
  "accessToken",
  "readToken",
  "adminToken",
  "tls",
  "readonly",
  "quotas",
  "dataTokenMs",
  "connectionsMax",
  "log",
];

export async function serve(options: ServeOptions): Promise<KvServer> {
  const given = check(options);
  const thread = port();
  const started = new Pending(thread);
  let native: NativeServer;
  try {
    native = new thread.native.Server(thread.attachment, started.id, JSON.stringify(given));
  } catch (error) {
    started.end(bugOf(error));
    throw errorOf(bugOf(error));
  }
  await started.answered;
  const answer = started.answer();
  // It is there for others: the process lives until it is closed.
  thread.pending();
  return new RunningServer(thread, native, answer);
}

function check(options: ServeOptions): ServeOptions {
  if (options === undefined || options === null) {
    throw new TypeError("serve needs options: { path, accessToken } at least");
  }
  checkOptions("serve", options, OPTION_NAMES);
  if (typeof options.path !== "string") {
    throw new TypeError(`path must be a string: received ${nameOf(options.path)}`);
  }
  if (options.path === "") return options;
  // The end of a folder that is to be made is what tells it from a file.
  const ends = /[/\\]$/.test(options.path);
  return { ...options, path: resolve(options.path) + (ends ? sep : "") };
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
    this.port = answer.readUInt16LE(0);
    this.url = answer.toString("utf8", 2);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const closing = new Pending(this.#thread);
    try {
      this.#native.close(closing.id);
    } catch (error) {
      closing.end(bugOf(error));
    }
    await closing.answered;
    this.#thread.settled();
    closing.answer();
  }

  [Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")](): Promise<void> {
    return this.close();
  }
}

interface RunningServer {
  [Symbol.asyncDispose](): Promise<void>;
}

/** Waits for the one event of an id. */
class Pending implements Receiver {
  readonly id: number;
  readonly answered: Promise<void>;
  #data: Buffer = Buffer.alloc(0);
  #failure: Failure | null = null;
  #resolve!: () => void;
  readonly #thread: Port;

  constructor(thread: Port) {
    this.#thread = thread;
    this.answered = new Promise((resolve) => (this.#resolve = resolve));
    this.id = thread.register(this);
    thread.pending();
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === REPLIED) {
      if (data !== null) this.#data = data;
      this.end(null);
    } else {
      this.end(data === null ? CLOSED : readFailure(data));
    }
  }

  end(failure: Failure | null): void {
    this.#failure = failure;
    this.#thread.forget(this.id);
    this.#thread.settled();
    this.#resolve();
  }

  /** Throws where the caller's own stack shows. */
  answer(): Buffer {
    if (this.#failure !== null) throw errorOf(this.#failure);
    return this.#data;
  }
}
