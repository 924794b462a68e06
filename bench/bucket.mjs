// `node bench/bucket.mjs`: a database in an object store beside one in a file, beside a program that reads, replaces
// conditionally and retries, and beside SlateDB, a library of Rust, to which openkv is compared from Rust too. The store
// is an S3-compatible server in memory (__test__/kit/object-store.mjs), so that what it takes itself is small; each
// request "at 20 ms" goes through a way that delays it by 10 ms in either direction. A second column is a folder used as an object store, whose objects are synced.
//
// Arguments: --quick (a tenth of the entries, shorter, no idle lease), --rounds N (default 3), --seconds S of each
// measurement (default 2), --only WORDS (rows whose names have one of these, by commas),
// --dir DIRECTORY (default: bench/.data). The programs in Rust take part once `cargo build --release --manifest-path
// bench/rust/Cargo.toml` has built them. Measures the addon that is built: run `npm run build:addon -- --profile
// release` before.

import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import { environment } from "../__test__/kit/s3.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median, quantile } from "./measure.mjs";
import { short } from "./report.mjs";

const at = (name) => fileURLToPath(new URL(name, import.meta.url));
const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    seconds: { type: "string" },
    only: { type: "string" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const { quick } = options;
const rounds = Number(options.rounds ?? (quick ? 1 : 3));
const seconds = Number(options.seconds ?? (quick ? 0.5 : 2));
const MS_PER_SECOND = 1000;
/** Of a request through the way. */
const DELAY_MS = 20;
const KEYS = 10_000;
const MANY = quick ? 100_000 : 1_000_000;
const LEASE_MS = 3000;
/** The processes of a program without openkv that write one object. */
const RIVALS = 8;
const HELD_MS = quick ? 3000 : 10_000;
/** A leader rests after a minute without a call. */
const REST_MS = quick ? 0 : 65_000;
const RUST = join(process.env.CARGO_TARGET_DIR ?? at("rust/target"), "release", "openkv-bench");

const directory = dataDirectory(options.dir);
const store = await child(at("bucket/store.mjs"), {});
const near = store.first;
const far = await child(at("postgres/far.mjs"), { port: near, delayMs: DELAY_MS / 2 });
const farPort = far.first;
Object.assign(process.env, environment(near));
delete process.env.AWS_ENDPOINT_URL;
delete process.env.AWS_ALLOW_HTTP;

let places = 0;
const place = () => `run-${process.pid}-${++places}`;
const inStore = (port, name = place()) =>
  `s3://bucket/${name}?region=us-east-1&lease=${LEASE_MS}ms&endpoint=http://127.0.0.1:${port}`;
const inFolder = () =>
  `${pathToFileURL(join(directory, place())).href.replace("file:", "bucket+file:")}?lease=${LEASE_MS}ms`;
const inFile = () => join(directory, `${place()}.sqlite3`);

/** Starts a process, and waits for its first message. */
async function child(path, job) {
  const started = fork(path, [JSON.stringify(job)]);
  const first = await message(started);
  return { process: started, first };
}

async function message(of) {
  const ended = once(of, "exit").then(([code]) => {
    throw new Error(`a process ended with ${code}`);
  });
  ended.catch(() => {});
  const [answer] = await Promise.race([once(of, "message"), ended]);
  return answer;
}

const load = async (job) => (await child(at("bucket/load.mjs"), job)).first;
const rate = (url, what, inFlight, keys = KEYS) =>
  load({ do: "rate", url, what, inFlight, keys, seconds });

const agents = new Agent({ keepAlive: true, maxSockets: 64 });
/** One request of a program without openkv. */
function ask(port, method, path, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        method,
        path,
        headers,
        agent: agents,
      },
      async (answer) => {
        const parts = [];
        for await (const part of answer) parts.push(part);
        const { statusCode: status, headers: heads } = answer;
        resolve({ status, etag: heads.etag, body: Buffer.concat(parts) });
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

/** PUTs of new objects, some in flight: how many a second, and how long one takes. */
async function puts(port, inFlight) {
  const times = [];
  const body = Buffer.alloc(300, 1);
  const start = performance.now();
  const name = place();
  let count = 0;
  const one = async () => {
    while (performance.now() - start < seconds * MS_PER_SECOND) {
      const began = performance.now();
      const path = `/bucket/${name}/${++count}`;
      const { status } = await ask(port, "PUT", path, body, { "if-none-match": "*" });
      if (status !== 200) throw new Error(`a PUT was answered by ${status}`);
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  const elapsedMs = performance.now() - start;
  return { perSecond: (times.length * MS_PER_SECOND) / elapsedMs, p50Ms: quantile(times, 0.5) };
}

/** Sums on one object by a program that reads it, replaces it if it is the same, and otherwise tries again. */
async function rivals(port) {
  const path = `/bucket/${place()}/counter`;
  await ask(port, "PUT", path, "0");
  const start = performance.now();
  let count = 0;
  const one = async () => {
    while (performance.now() - start < seconds * MS_PER_SECOND) {
      const { etag, body } = await ask(port, "GET", path);
      const next = String(Number(body) + 1);
      const { status } = await ask(port, "PUT", path, next, { "if-match": etag });
      if (status === 200) count++;
    }
  };
  await Promise.all(Array.from({ length: RIVALS }, one));
  return { perSecond: (count * MS_PER_SECOND) / (performance.now() - start) };
}

/** A program in Rust on the same server: sets that are durable, and gets. `undefined` where it is not built. */
async function fromRust(library, port) {
  if (!existsSync(RUST)) return undefined;
  const job = [library, port, place(), 500, seconds, KEYS].map(String);
  const { stdout } = await promisify(execFile)(RUST, job, { env: process.env });
  return JSON.parse(stdout);
}

/** Opening `MANY` entries: with an empty folder, and with the one that the opening before has left. */
async function opening() {
  const name = place();
  await load({ do: "fill", url: inStore(near, name), keys: MANY });
  const empty = await load({ do: "open", url: inStore(near, name), options: { lead: "never" } });
  const cache = join(directory, place());
  const job = { do: "open", url: inStore(near, name), options: { cache } };
  await load(job);
  const present = await load(job);
  return { emptyMs: empty.openMs, presentMs: present.openMs };
}

/** From the death of a leader to the first answer of a process that was waiting. */
async function takeover() {
  const url = inStore(near);
  const leader = await child(at("bucket/load.mjs"), { do: "lead", url });
  const next = await child(at("bucket/load.mjs"), { do: "takeOver", url });
  await sleep(LEASE_MS);
  const answer = message(next.process);
  const killed = Date.now();
  leader.process.kill("SIGKILL");
  return { ms: (await answer).at - killed };
}

/** Requests and processor time while nothing is called: while the lease is renewed, and once it is released. */
async function idle(restMs) {
  const { process: one } = await child(at("bucket/load.mjs"), { do: "idle", url: inStore(near) });
  const answer = (from) => {
    from.send({});
    return message(from);
  };
  const spent = async () => {
    const { user, system } = await answer(one);
    return { requests: await answer(store.process), cpuMs: (user + system) / MS_PER_SECOND };
  };
  const during = async (ms) => {
    const before = await spent();
    await sleep(ms);
    const after = await spent();
    return {
      requests: after.requests - before.requests,
      cpuMs: after.cpuMs - before.cpuMs,
      seconds: ms / MS_PER_SECOND,
    };
  };
  const held = await during(HELD_MS);
  let released;
  if (restMs > 0) {
    await sleep(restMs);
    released = await during(HELD_MS);
  }
  one.kill();
  return { held, released };
}

const only = options.only?.split(",");
const isWanted = (name) => only === undefined || only.some((word) => name.includes(word));

/** What is measured in each round, by name. */
const MEASURED = {
  "the server: PUTs, 16 in flight": () => puts(near, 16),
  "the server at 20 ms: PUTs, 1 in flight": () => puts(farPort, 1),
  "gets, 500 in flight, file": () => rate(inFile(), "get", 500),
  "gets, 500 in flight, store": () => rate(inStore(near), "get", 500),
  "gets, 500 in flight, folder": () => rate(inFolder(), "get", 500),
  "lists of 100, file": () => rate(inFile(), "list", 1),
  "lists of 100, store": () => rate(inStore(near), "list", 1),
  "lists of 100, folder": () => rate(inFolder(), "list", 1),
  "sets, 1 in flight, file": () => rate(inFile(), "set", 1),
  "sets, 1 in flight, store at 20 ms": () => rate(inStore(farPort), "set", 1),
  "sets, 1 in flight, folder": () => rate(inFolder(), "set", 1),
  "sums on one key, 2,000 in flight, store at 20 ms": () => rate(inStore(farPort), "sum", 2000),
  "sums on one key, If-Match at 20 ms": () => rivals(farPort),
  "sets, 500 in flight, file": () => rate(inFile(), "set", 500),
  "sets, 500 in flight, store": () => rate(inStore(near), "set", 500),
  "sets, 500 in flight, folder": () => rate(inFolder(), "set", 500),
  "sets, 500 in flight, store at 20 ms": () => rate(inStore(farPort), "set", 500),
  "sets, 10,000 in flight, file": () => rate(inFile(), "set", 10_000),
  "sets, 10,000 in flight, store at 20 ms": () => rate(inStore(farPort), "set", 10_000),
  "SlateDB, 500 in flight": () => fromRust("slatedb", near),
  "from Rust, 500 in flight": () => fromRust("openkv", near),
  "SlateDB, 500 in flight at 20 ms": () => fromRust("slatedb", farPort),
  "from Rust, 500 in flight at 20 ms": () => fromRust("openkv", farPort),
};

const results = {};
async function measure(name, job) {
  if (!isWanted(name)) return;
  const result = await job();
  if (result === undefined) return;
  (results[name] ??= []).push(result);
  const shown = Object.entries(result).map(([field, value]) =>
    typeof value === "number" ? `${field} ${short(value)}` : `${field} ${JSON.stringify(value)}`,
  );
  process.stderr.write(`${name}: ${shown.join(", ")}\n`);
}

const of = (name, field = "perSecond") =>
  results[name] && median(results[name].map((result) => result[field]));

/** The ratio of two figures; `undefined` without one of them. */
const over = (one, other) => (one === undefined || other === undefined ? undefined : one / other);

function rows() {
  const at20 = "store at 20 ms";
  const put = of("the server at 20 ms: PUTs, 1 in flight", "p50Ms");
  const per = (count) => put && (count * MS_PER_SECOND) / put;
  const sums = of(`sums on one key, 2,000 in flight, ${at20}`);
  const sets = (inFlight, where) => of(`sets, ${inFlight} in flight, ${where}`);
  const slate = "SlateDB, 500 in flight";
  const rust = "from Rust, 500 in flight";
  const gets = (where) => of(`gets, 500 in flight, ${where}`);
  // By the median time of one call, which other work on the machine changes less than the rate.
  const speed = (name, where) =>
    over(of(`${name}, file`, "p50Ms"), of(`${name}, ${where}`, "p50Ms"));
  const single = (where) => of(`sets, 1 in flight, ${where}`, "p50Ms");
  return [
    ["gets / a file's", speed("gets, 500 in flight", "store"), ">= 0.95"],
    ["gets, folder / a file's", speed("gets, 500 in flight", "folder"), ">= 0.95"],
    ["lists / a file's", speed("lists of 100", "store"), ">= 0.95"],
    ["lists, folder / a file's", speed("lists of 100", "folder"), ">= 0.95"],
    ["one commit at a time, 20 ms / one PUT", over(single(at20), put), "<= 1.15"],
    ["one commit at a time, folder / a file's", over(single("folder"), single("file"))],
    [
      "2,000 sums on one key in flight, 20 ms / 2,000 in one PUT's time",
      over(sums, per(2000)),
      ">= 0.6",
    ],
    [
      "the same / a program with If-Match",
      over(sums, of("sums on one key, If-Match at 20 ms")),
      ">= 500",
    ],
    [
      "500 sets in flight, 0 ms / a file's",
      over(sets("500", "store"), sets("500", "file")),
      ">= 0.5",
    ],
    ["500 sets in flight, folder / a file's", over(sets("500", "folder"), sets("500", "file"))],
    [
      "500 sets in flight, 20 ms / 500 in one PUT's time",
      over(sets("500", at20), per(500)),
      ">= 0.6",
    ],
    [
      "10,000 sets in flight, 20 ms / a file's",
      over(sets("10,000", at20), sets("10,000", "file")),
      ">= 0.3",
    ],
    ["500 sets in flight, 0 ms / SlateDB's", over(sets("500", "store"), of(slate, "sets")), ">= 2"],
    ["the same from Rust", over(of(rust, "sets"), of(slate, "sets")), ">= 2"],
    ["the same at 20 ms", over(sets("500", at20), of(`${slate} at 20 ms`, "sets"))],
    ["from Rust at 20 ms", over(of(`${rust} at 20 ms`, "sets"), of(`${slate} at 20 ms`, "sets"))],
    ["gets / SlateDB's", over(gets("store"), of(slate, "gets")), ">= 3"],
    ["the same from Rust", over(of(rust, "gets"), of(slate, "gets")), ">= 3"],
    [`opening ${MANY} entries, cache empty, ms`, of("opening", "emptyMs"), "<= 5000"],
    [`opening ${MANY} entries, cache present, ms`, of("opening", "presentMs"), "<= 300"],
    [
      `takeover after kill -9, lease ${LEASE_MS} ms, ms`,
      of("takeover", "ms"),
      `<= ${LEASE_MS + 1000}`,
    ],
  ];
}

function meets(value, bound) {
  if (bound === undefined) return "";
  const [sign, limit] = bound.split(" ");
  return (sign === ">=" ? value >= Number(limit) : value <= Number(limit)) ? "met" : "MISSED";
}

try {
  console.log(machineLine(directory));
  for (let round = 0; round < rounds; round++) {
    for (const [name, job] of Object.entries(MEASURED)) await measure(name, job);
  }
  await measure("opening", opening);
  for (let round = 0; round < rounds; round++) await measure("takeover", takeover);
  await measure("idle", () => idle(REST_MS));
  console.log("| what | figure | bound | |\n| --- | --- | --- | --- |");
  for (const [name, value, bound] of rows()) {
    if (value === undefined) continue;
    console.log(`| ${name} | ${short(value)} | ${bound ?? ""} | ${meets(value, bound)} |`);
  }
  const [still] = results.idle ?? [];
  for (const [state, found] of Object.entries(still ?? {}).filter(([, found]) => found?.cpuMs)) {
    const per = `${found.requests} requests and ${found.cpuMs.toFixed(1)} ms of processor time`;
    console.log(`idle, lease ${state}: ${per} in ${found.seconds} s (lease ${LEASE_MS} ms)`);
  }
  if (of("SlateDB, 500 in flight", "sets") === undefined) {
    console.log("The programs in Rust are not built, so their rows are left out.");
  }
} finally {
  far.process.disconnect();
  store.process.disconnect();
  agents.destroy();
  rmSync(directory, { recursive: true, force: true });
}
