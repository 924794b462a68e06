// Duty: a small KV Connect server that can misbehave. A script gets a request first, and returns
// true if it has answered it.

import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { after } from "node:test";
import { openKv } from "../../index.mjs";
import { fields, message } from "./protobuf.mjs";

export const ACCESS_TOKEN = "user-token";
const NO_BYTES = Buffer.alloc(0);

const mocks = [];
const handles = [];

/** A server that is closed when the file's tests have run. */
export async function start(options) {
  const mock = new Mock(options);
  mocks.push(mock);
  await mock.listen();
  return mock;
}

/** The URL of no server: no test gets this port. */
export const NOBODY = "http://127.0.0.1:1/";

/** A handle on a server, closed when the file's tests have run. */
export async function connect(mock, options) {
  const kv = await openKv(mock.url, { accessToken: ACCESS_TOKEN, timeout: 5000, ...options });
  handles.push(kv);
  return kv;
}

after(async () => {
  for (const kv of handles) kv[Symbol.dispose ?? Symbol.for("nodejs.dispose")]();
  for (const mock of mocks) await mock.close();
});

export class Mock {
  entries = new Map();
  version = 0n;
  /** Requests by path, and all of them with their headers. */
  counts = { metadata: 0, snapshot_read: 0, atomic_write: 0, watch: 0, feed: 0, receive: 0 };
  requests = [];
  /** By path: `(request, response, body, count) => boolean`. */
  scripts = {};
  /** What metadata says, beside the usual. */
  metadata = {};
  dataToken = "data-token";
  lifeMs = 86_400_000;
  #watches = new Set();
  #sessions = new Set();

  constructor({ h2 = false, tls } = {}) {
    this.scheme = tls ? "https" : "http";
    if (tls) this.server = h2 ? http2.createSecureServer(tls) : https.createServer(tls);
    else this.server = h2 ? http2.createServer() : http.createServer();
    this.server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => {});
      session.on("close", () => this.#sessions.delete(session));
    });
    this.server.on("request", (request, response) => {
      const chunks = [];
      request.on("data", (chunk) => chunks.push(chunk));
      request.on("error", () => {});
      response.on("error", () => {});
      request.on("end", () => this.#answer(request, response, Buffer.concat(chunks)));
    });
  }

  listen(port = 0) {
    return new Promise((resolve) => {
      this.server.listen(port, "127.0.0.1", () => {
        this.url = `${this.scheme}://127.0.0.1:${this.server.address().port}/`;
        resolve();
      });
    });
  }

  async close() {
    this.cutWatches();
    for (const session of this.#sessions) session.destroy();
    this.server.closeAllConnections?.();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #answer(request, response, body) {
    const path = request.url.split("/").at(-1);
    const name = path in this.counts ? path : "metadata";
    const count = ++this.counts[name];
    this.requests.push({ name, headers: request.headers, url: request.url, body });
    if (this.scripts[name]?.(request, response, body, count)) return;
    const wanted = name === "metadata" ? ACCESS_TOKEN : this.dataToken;
    if (request.headers.authorization !== `Bearer ${wanted}`) {
      return reply(response, 401, "text/plain", "Invalid access token.");
    }
    this[name === "metadata" ? "exchange" : name](response, body);
  }

  exchange(response) {
    reply(response, 200, "application/json", this.metadataText());
  }

  metadataText() {
    return JSON.stringify({
      version: 3,
      databaseId: "01234567-89ab-cdef-0123-456789abcdef",
      endpoints: [{ url: "/v2", consistency: "strong" }],
      token: this.dataToken,
      expiresAt: new Date(Date.now() + this.lifeMs).toISOString(),
      ...this.metadata,
    });
  }

  snapshot_read(response, body) {
    reply(response, 200, "application/x-protobuf", this.readBytes(body));
  }

  readBytes(body) {
    const ranges = (fields(body)[1] ?? []).map((bytes) => {
      const {
        1: [start],
        2: [end],
        3: [limit],
        4: [reverse] = [0n],
      } = fields(bytes);
      const within = ([key]) => {
        const bytes = Buffer.from(key, "hex");
        return bytes.compare(start) >= 0 && bytes.compare(end) < 0;
      };
      const found = [...this.entries].filter(within).sort(([a], [b]) => (a < b ? -1 : 1));
      if (reverse) found.reverse();
      return message(...found.slice(0, Number(limit)).map((entry) => [1, entryBytes(entry)]));
    });
    return message(...ranges.map((range) => [1, range]), [4, 1], [8, 1]);
  }

  atomic_write(response, body) {
    reply(response, 200, "application/x-protobuf", this.commit(body));
  }

  /** Carries a write out; answers what the server says. */
  commit(body) {
    const { 1: checks = [], 2: mutations = [] } = fields(body);
    const holds = checks.every((bytes) => {
      const {
        1: [key],
        2: [stamp] = [NO_BYTES],
      } = fields(bytes);
      const entry = this.entries.get(key.toString("hex"));
      return (entry?.stamp ?? NO_BYTES).equals(stamp);
    });
    if (!holds) return message([1, 2], [4, Buffer.from([0])]);
    const stamp = Buffer.alloc(10);
    stamp.writeBigUInt64BE(++this.version);
    for (const bytes of mutations) {
      const {
        1: [key],
        2: [value] = [NO_BYTES],
        3: [type],
      } = fields(bytes);
      if (type === 2n) {
        this.entries.delete(key.toString("hex"));
      } else {
        const { 1: [data] = [NO_BYTES], 2: [encoding] = [1n] } = fields(value);
        this.entries.set(key.toString("hex"), { data, encoding, stamp });
      }
    }
    for (const watch of this.#watches) this.tell(watch);
    return message([1, 1], [2, stamp]);
  }

  watch(response, body) {
    const keys = (fields(body)[1] ?? []).map((bytes) => fields(bytes)[1][0].toString("hex"));
    response.writeHead(200, { "content-type": "application/octet-stream" });
    const watch = { response, keys };
    this.#watches.add(watch);
    response.on("close", () => this.#watches.delete(watch));
    response.write(Buffer.alloc(4));
    this.tell(watch);
  }

  /** openkv's own, which it has by its scripts only. */
  feed(response) {
    reply(response, 404, "text/plain", "Resource not found.");
  }

  receive(response) {
    this.feed(response);
  }

  get watching() {
    return this.#watches.size;
  }

  tell({ response, keys }) {
    response.write(frame(this.stateBytes(keys)));
  }

  stateBytes(keys) {
    const states = keys.map((key) => {
      const entry = this.entries.get(key);
      return message([1, 1], ...(entry ? [[2, entryBytes([key, entry])]] : []));
    });
    return message([1, 1], ...states.map((state) => [2, state]));
  }

  /** Cuts the streams of all watches. */
  cutWatches() {
    for (const { response } of this.#watches) (response.stream ?? response).destroy();
  }
}

function entryBytes([key, { data, encoding, stamp }]) {
  return message([1, Buffer.from(key, "hex")], [2, data], [3, encoding], [4, stamp]);
}

/** A message behind its length. */
export function frame(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

export function reply(response, status, type, body, headers = {}) {
  response.writeHead(status, { "content-type": type, ...headers });
  response.end(body);
  return true;
}

/** Ends a response as a broken connection does, after some of the body that was announced. */
export function cut(response, type, body, bytes) {
  response.writeHead(200, { "content-type": type, "content-length": body.length });
  response.flushHeaders?.();
  const end = () => (response.stream ?? response).destroy();
  if (bytes === 0) setTimeout(end, 5);
  else response.write(body.subarray(0, bytes), () => setTimeout(end, 5));
  return true;
}
