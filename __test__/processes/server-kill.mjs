// A server that is killed under the load of four clients, again and again: they go on by
// themselves. Every acknowledged commit is there, every acknowledged message was handled, no message
// is with two handlers at once, and watches end on the last value.
//
//   node __test__/processes/server-kill.mjs [--rounds 20] [--kills 4]

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { kill, spawnServer } from "../server/children.mjs";
import { startChild } from "./children.mjs";
import { openKv } from "./target.mjs";

const CLIENT = new URL("./server-kill/client.mjs", import.meta.url);
const CLIENTS = 4;
const HANG_MS = 120_000;
const accessToken = "token-of-the-killed-server";

/** One round; answers what was counted. */
export async function killServer(path, kills) {
  let server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
  const { url } = server;
  const options = { path, accessToken, listen: new URL(url).host };
  const told = new Told();
  const clients = Array.from({ length: CLIENTS }, (_, id) => {
    const onLine = (line) => told.take(id, JSON.parse(line));
    return startChild(CLIENT, { url, accessToken, id }, { onLine });
  });
  await told.until("every client is at work", () => told.handled.size > 0);
  for (let n = 0; n < kills; n++) {
    await sleep(300 + Math.random() * 700);
    await kill(server);
    const before = told.handled.size;
    server = await spawnServer(options);
    await told.until("clients go on after a kill", () => told.handled.size > before + CLIENTS);
  }
  for (const client of clients) client.say("stop");
  await told.until("every client has stopped", () => told.stopped.size === CLIENTS);
  const kv = await openKv(url, { accessToken });
  await kv.set(["last"], "the end");
  await told.until("every watch sees the end", () =>
    Array.from({ length: CLIENTS }, (_, id) => told.seen.get(id)).every((v) => v === "the end"),
  );
  const queue = kv.queue("work");
  const empty = async () => (await queue.stats()).total === 0;
  await told.until("every message is handled", empty);
  await kv.close();
  for (const client of clients) client.hangUp();
  const ends = await Promise.all(clients.map(({ ended }) => ended));
  clients.forEach(({ stderr }, id) => assert.equal(stderr, "", `client ${id}`));
  assert.deepEqual(
    ends.map(({ code }) => code),
    ends.map(() => 0),
  );
  await kill(server);
  const file = await openKv(path);
  await told.compare(file);
  file.close();
  const { committed, enqueued, handled, again, unknown } = told;
  return {
    committed: committed.length,
    enqueued: enqueued.length,
    handled: handled.size,
    again,
    unknown,
  };
}

/** What the clients have told. */
class Told {
  committed = [];
  enqueued = [];
  handled = new Set();
  stopped = new Set();
  /** By client: the last value that its watch has shown. */
  seen = new Map();
  unknown = 0;
  /** Messages that were handled once more, since nobody knew how it had ended. */
  again = 0;
  #begun = new Map();
  #faults = [];

  take(id, { event, of, value }) {
    if (event === "committed") this.committed.push(of);
    else if (event === "enqueued") this.enqueued.push(of);
    else if (event === "unknown") this.unknown++;
    else if (event === "saw") this.seen.set(id, value);
    else if (event === "stopped") this.stopped.add(id);
    else if (event === "begin") this.#begin(id, of);
    else if (event === "end") this.#end(of);
  }

  #begin(id, of) {
    const holder = this.#begun.get(of);
    if (holder !== undefined) this.#faults.push(`${of} went to ${id} while ${holder} had it`);
    this.#begun.set(of, id);
  }

  #end(of) {
    this.#begun.delete(of);
    if (this.handled.has(of)) this.again++;
    this.handled.add(of);
  }

  async until(what, isSo) {
    const so = (async () => {
      while (!(await isSo())) await sleep(20);
    })();
    await guard(so, HANG_MS, what);
    assert.deepEqual(this.#faults, []);
  }

  async compare(kv) {
    const stored = new Set();
    for await (const { key } of kv.list({ prefix: ["k"] })) stored.add(key.slice(1).join("/"));
    const lost = this.committed.filter((of) => !stored.has(of));
    assert.deepEqual(lost, [], "acknowledged commits are lost");
    const unhandled = this.enqueued.filter((of) => !this.handled.has(of));
    assert.deepEqual(unhandled, [], "acknowledged messages are lost");
    assert.deepEqual((await kv.queue("work").dead.list()).messages, []);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "20" },
      kills: { type: "string", default: "4" },
    },
  });
  const folder = newFolder("server-kill");
  for (let round = 1; round <= Number(values.rounds); round++) {
    const path = join(folder, `${round}.sqlite3`);
    console.log(`round ${round}:`, await killServer(path, Number(values.kills)));
  }
}
