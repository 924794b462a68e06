// Clients behind a network that delays, splits and cuts, under exact checkers:
//
// - transactions: every acknowledged transfer is stored, the balances are what the stored transfers
//   make them, and each account's turns are 1, 2, 3 … without a gap or a second one;
// - feeds: every client is told every stored transfer once, in the order of their commits;
// - queues: no message is with two handlers at once, and every acknowledged one is handled.
//
//   node __test__/processes/network.mjs [--seconds 60]

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { kill, spawnServer } from "../server/children.mjs";
import { startChild } from "./children.mjs";
import { startLink } from "./network/link.mjs";
import { ACCOUNTS, BALANCE, CLIENTS } from "./network/plan.mjs";
import { openKv } from "./target.mjs";

const CLIENT = new URL("./network/client.mjs", import.meta.url);
const HANG_MS = 120_000;
const OUTAGE_MS_MAX = 800;
const OUTAGE_EVERY_MS = 3000;
const accessToken = "token-behind-a-bad-network";

/** Runs the clients for so long; answers what was counted, or throws what the checkers found. */
export async function badNetwork(path, seconds) {
  const server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
  const link = await startLink(server.url);
  const kv = await openKv(path);
  const since = await prepare(kv);
  const told = new Told();
  const clients = Array.from({ length: CLIENTS }, (_, id) =>
    startChild(
      CLIENT,
      { url: link.url, accessToken, id, since },
      {
        onLine: (line) => told.take(id, JSON.parse(line)),
      },
    ),
  );
  const end = Date.now() + seconds * 1000;
  for (let left; (left = end - Date.now()) > 0; ) {
    await sleep(Math.min(left, Math.random() * 2 * OUTAGE_EVERY_MS));
    await link.outage(Math.random() * OUTAGE_MS_MAX);
    assert.deepEqual(told.faults, []);
  }
  for (const client of clients) client.say("stop");
  await told.until("every client has stopped", () => told.stopped.size === CLIENTS, clients);
  const stored = await transfersOf(kv);
  await told.until(
    "every feed has told the last transfer",
    () => told.haveAllFollowed(stored),
    clients,
  );
  const isEmpty = async () => (await kv.queue("work").stats()).total === 0;
  await told.until("every message is handled", isEmpty, clients);
  for (const client of clients) client.hangUp();
  const ends = await Promise.all(clients.map(({ ended }) => ended));
  clients.forEach(({ stderr }, id) => assert.equal(stderr, "", `client ${id}`));
  assert.deepEqual(
    ends.map(({ code }) => code),
    ends.map(() => 0),
  );
  await checkTransfers(kv, stored, told);
  told.checkFeeds(stored);
  told.checkQueue();
  assert.deepEqual((await kv.queue("work").dead.list()).messages, []);
  assert.ok(link.cuts > 0 && stored.length > 0 && told.handled.size > 0, "there was a load");
  await kv.close();
  await link.close();
  await kill(server);
  return {
    transfers: stored.length,
    refused: told.refused,
    unknown: told.unknown,
    messages: told.enqueued.size,
    again: told.again,
    cuts: link.cuts,
    pieces: link.pieces,
  };
}

/** The accounts; answers the versionstamp of the commit that made them. */
async function prepare(kv) {
  const operation = kv.atomic();
  for (let n = 0; n < ACCOUNTS; n++) operation.set(["account", n], { balance: BALANCE, turn: 0 });
  return (await operation.commit()).versionstamp;
}

/** Every stored transfer, in the order of the commits. */
async function transfersOf(kv) {
  const found = [];
  for await (const { key, value, versionstamp } of kv.list({ prefix: ["transfer"] })) {
    found.push({ of: key[1], ...value, versionstamp });
  }
  return found.sort((a, b) => (a.versionstamp < b.versionstamp ? -1 : 1));
}

async function checkTransfers(kv, stored, told) {
  const ids = new Set(stored.map(({ of }) => of));
  const lost = [...told.transferred].filter((of) => !ids.has(of));
  assert.deepEqual(lost, [], "acknowledged transfers are lost");
  const accounts = Array.from({ length: ACCOUNTS }, () => ({ balance: BALANCE, turn: 0 }));
  for (const { of, from, to, amount, turns } of stored) {
    for (const [account, change, turn] of [
      [from, -amount, turns[0]],
      [to, amount, turns[1]],
    ]) {
      accounts[account].balance += change;
      accounts[account].turn++;
      assert.equal(turn, accounts[account].turn, `${of}: the turns of account ${account}`);
    }
  }
  for (const [n, account] of accounts.entries()) {
    assert.deepEqual((await kv.get(["account", n])).value, account, `account ${n}`);
  }
}

/** What the clients have told. */
class Told {
  transferred = new Set();
  enqueued = new Set();
  handled = new Set();
  stopped = new Set();
  unknown = 0;
  /** Transactions that ran out of retries. */
  refused = 0;
  /** Messages that were handled once more: how they had ended was lost on the way. */
  again = 0;
  faults = [];
  /** By client: the transfers that its feed has told. */
  #followed = Array.from({ length: CLIENTS }, () => []);
  /** By message: the client that handles it. */
  #begun = new Map();

  take(id, { event, of, type, versionstamp }) {
    if (event === "transferred") this.transferred.add(of);
    else if (event === "enqueued") this.enqueued.add(of);
    else if (event === "unknown") this.unknown++;
    else if (event === "refused") this.refused++;
    else if (event === "followed") this.#followed[id].push({ of, type, versionstamp });
    else if (event === "stopped") this.stopped.add(id);
    else if (event === "begin") this.#begin(id, of);
    else if (event === "end") this.#end(of);
    else this.faults.push(`client ${id} told ${event}`);
  }

  #begin(id, of) {
    const holder = this.#begun.get(of);
    if (holder !== undefined) this.faults.push(`${of} went to ${id} while ${holder} had it`);
    this.#begun.set(of, id);
  }

  #end(of) {
    this.#begun.delete(of);
    if (this.handled.has(of)) this.again++;
    this.handled.add(of);
  }

  haveAllFollowed(stored) {
    return this.#followed.every((followed) => followed.length >= stored.length);
  }

  async until(what, isSo, clients) {
    const so = (async () => {
      while (!(await isSo())) {
        const died = clients.find(({ stderr }) => stderr !== "");
        assert.equal(died?.stderr ?? "", "", what);
        await sleep(20);
      }
    })();
    await guard(so, HANG_MS, what);
    assert.deepEqual(this.faults, []);
  }

  checkFeeds(stored) {
    const expected = stored.map(({ of, versionstamp }) => ({ of, type: "set", versionstamp }));
    for (const followed of this.#followed) assert.deepEqual(followed, expected);
  }

  checkQueue() {
    const unhandled = [...this.enqueued].filter((of) => !this.handled.has(of));
    assert.deepEqual(unhandled, [], "acknowledged messages are lost");
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({ options: { seconds: { type: "string", default: "60" } } });
  const folder = newFolder("network");
  console.log(await badNetwork(join(folder, "kv.sqlite3"), Number(values.seconds)));
  process.exit();
}
