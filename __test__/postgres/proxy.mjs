// Duty: a way to a PostgreSQL server that reads the messages on it, and cuts it at a chosen one.
//
// A connection is cut by `watch(message)`, which sees every message before it goes on: `{ from:
// "client", query }` for a statement that is executed, and `{ from: "server", type, tag, status, after
// }`, where `after` is the newest statement of that connection. It answers "drop" to cut the connection
// without the message, and "late" to cut only the client, and to keep the message and all that follow
// until `release()`; "hold" keeps them and cuts nothing. With `delayMs`, each message takes that long in
// either direction, as if the server were far.

import { once } from "node:events";
import { connect, createServer } from "node:net";

const HOST = "127.0.0.1";
const HEADER_BYTES = 5;

/** Starts a way to `server`. Its `port` stands in for that of the server. */
export async function startProxy(server) {
  const proxy = new Proxy(server);
  await proxy.start();
  return proxy;
}

class Proxy {
  port;
  watch = () => undefined;
  delayMs = 0;
  #listener;
  #target;
  #pairs = new Set();

  constructor({ port }) {
    this.#target = port;
    this.#listener = createServer((near) => this.#join(near));
  }

  async start() {
    this.#listener.listen(0, HOST);
    await once(this.#listener, "listening");
    this.port = this.#listener.address().port;
  }

  /** Lets go what is held. */
  release() {
    for (const pair of this.#pairs) pair.release();
  }

  async close() {
    for (const pair of this.#pairs) pair.cut();
    this.#listener.close();
    await once(this.#listener, "close");
  }

  #join(near) {
    const pair = new Pair(near, connect(this.#target, HOST), this);
    this.#pairs.add(pair);
  }
}

/** One connection, from the client to us and from us to the server. */
class Pair {
  #near;
  #far;
  #proxy;
  #statements = new Map();
  #newest;
  #held = [];
  #isHolding = false;

  constructor(near, far, proxy) {
    this.#near = near;
    this.#far = far;
    this.#proxy = proxy;
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => this.cut());
    }
    const pass = (to, message, bytes) => this.#pass(to, proxy.watch(message), bytes);
    // The first message of a client has no type.
    const fromClient = splitter(0, (type, bytes) => {
      for (const message of this.#requests(type, bytes)) return pass(far, message, bytes);
      this.#pass(far, undefined, bytes);
    });
    const fromServer = splitter(1, (type, bytes) => {
      pass(near, { ...answer(type, bytes), after: this.#newest }, bytes);
    });
    near.on("data", fromClient);
    far.on("data", fromServer);
  }

  cut() {
    this.#near.destroy();
    this.#far.destroy();
  }

  release() {
    this.#isHolding = false;
    for (const [to, bytes] of this.#held.splice(0)) to.write(bytes);
  }

  #pass(to, verdict, bytes) {
    if (verdict === "drop") return this.cut();
    if (verdict === "late") {
      this.#isHolding = true;
      this.#near.removeAllListeners("close").destroy();
    }
    if (verdict === "hold") this.#isHolding = true;
    if (this.#isHolding) this.#held.push([to, bytes]);
    else if (this.#proxy.delayMs === 0) to.write(bytes);
    // Timers of one duration run in the order in which they were set.
    else setTimeout(() => to.write(bytes), this.#proxy.delayMs);
  }

  /** What a message of a client executes. */
  *#requests(type, bytes) {
    const texts = bytes.subarray(HEADER_BYTES).toString("latin1").split("\0");
    if (type === "P") this.#statements.set(texts[0], texts[1]);
    if (type !== "B" && type !== "Q") return;
    this.#newest = type === "B" ? this.#statements.get(texts[1]) : texts[0];
    yield { from: "client", query: this.#newest };
  }
}

function answer(type, bytes) {
  const text = bytes.subarray(HEADER_BYTES).toString("latin1");
  return {
    from: "server",
    type,
    /** What a statement did: "COMMIT", "UPDATE 1". */
    tag: type === "C" ? text.slice(0, -1) : undefined,
    /** Whether a transaction is open: "I", "T", or "E" for one that has failed. */
    status: type === "Z" ? text : undefined,
  };
}

/** Calls `take(type, bytes)` for each whole message of a stream. */
function splitter(typed, take) {
  let rest = Buffer.alloc(0);
  let typeBytes = typed;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      if (rest.length < typeBytes + 4) return;
      const length = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < length) return;
      const type = typeBytes === 1 ? String.fromCharCode(rest[0]) : "";
      take(type, rest.subarray(0, length));
      rest = rest.subarray(length);
      typeBytes = 1;
    }
  };
}
