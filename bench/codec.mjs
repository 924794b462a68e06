// The value codec beside JSON, node:v8, cbor-x and msgpackr, in one run: microseconds of processor
// time of an encode and of a decode, and what the first 10,000 cost a new program. Runs in Node.js, Bun and Deno.
//
//     npm run build:ts && node bench/codec.mjs [name…]
//
//   --set plain,realistic   the sets of values (values.mjs); both are the default
//   --codecs NAMES          only these codecs, by commas
//   --beside DIRECTORY      also another build of openkv's codec, for instance an older dist/
//   --rounds N              rounds of a cell; the cell is their median
//   --least                 the fastest round instead: on a busy machine it says more
//   --no-warm-up            without the second table
//   --keys                  keys instead of values

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { loadavg } from "node:os";
import { cpuUsage } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { codecs } from "./codecs.mjs";
import { PLAIN, REALISTIC } from "./values.mjs";

const { values: options, positionals: wanted } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    set: { type: "string", default: "plain,realistic" },
    codecs: { type: "string" },
    beside: { type: "string" },
    rounds: { type: "string", default: "25" },
    least: { type: "boolean", default: false },
    "no-warm-up": { type: "boolean", default: false },
    keys: { type: "boolean", default: false },
    /** Of the processes that measure a warm-up: the codec and the value. */
    cold: { type: "string" },
  },
});

const dist = process.env.OPENKV_BENCH_DIST ?? "../dist";
const rounds = Number(options.rounds);
/** Values of a round take about so long, so that no other work falls on all rounds. */
const ROUND_MS = 3;
const BATCH_MAX = 4000;
const BATCH_MIN = 8;
/** What each codec does with each form of value before it is measured. */
const WARM_MS = 120;
/** Decodes of a new program whose cost is told. */
const COLD_DECODES = 10_000;
/** Distinct values among them. */
const COLD_VALUES = 1000;
const COLD_PAUSE_MS = 300;

const sets = { plain: PLAIN, realistic: REALISTIC };
let made = 0;
let sink;

/** Values that no codec has seen, and whose strings are flat, as those from the network are. */
function fresh(make, count) {
  return Array.from({ length: count }, () => structuredClone(make(made++)));
}

function answer(numbers) {
  const sorted = Float64Array.from(numbers).sort();
  return options.least ? sorted[0] : sorted[sorted.length >> 1];
}

/** Whether the codec gives the value back. JSON may give a date as text. */
function isRight(codec, value) {
  try {
    const back = codec.decode(codec.bytesOf(value));
    if (codec.name !== "JSON") return same(back, value);
    return !hasBytes(value) && isDeepStrictEqual(back, JSON.parse(JSON.stringify(value)));
  } catch {
    return false;
  }
}

/** Equal, but for the class of bytes: some codecs answer a Buffer. */
function same(a, b) {
  if (b instanceof Uint8Array) return a instanceof Uint8Array && Buffer.compare(a, b) === 0;
  return isDeepStrictEqual(a, b);
}

/** What JSON does not know; dates become text. */
function hasBytes(value) {
  if (value instanceof Uint8Array || typeof value === "bigint" || value instanceof Map) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(hasBytes);
}

/** Milliseconds of processor time of `count` calls: other work on the machine does not count. */
function processorMs(run, items) {
  const before = cpuUsage();
  for (let i = 0; i < items.length; i++) sink = run(items[i]);
  const { user, system } = cpuUsage(before);
  return (user + system) / 1000;
}

/** One round: a batch of fresh values is encoded, and decoded again. */
function once(codec, make, count) {
  const values = fresh(make, count);
  const encode = processorMs(codec.encode, values);
  const bytes = values.map(codec.bytesOf);
  const decode = processorMs(codec.decode, bytes);
  if (codec.name !== "JSON" && !same(sink, values[count - 1])) {
    throw new Error(`wrong answer: ${codec.name}`);
  }
  return { encode: (encode / count) * 1000, decode: (decode / count) * 1000 };
}

/** Microseconds of each codec's encode and decode of one form of value; undefined: a wrong answer. */
function measure(make, all) {
  const able = all.map((codec) => fresh(make, 8).every((value) => isRight(codec, value)));
  const encode = all.map(() => []);
  const decode = all.map(() => []);
  let batch = BATCH_MIN;
  all.forEach((codec, which) => {
    if (!able[which]) return;
    for (let spent = 0; spent < WARM_MS; ) {
      const times = once(codec, make, batch);
      spent += ((times.encode + times.decode) * batch) / 1000;
      const fitting = Math.round((ROUND_MS * 1000) / Math.max(times.encode, times.decode, 0.1));
      if (which === 0) batch = Math.min(BATCH_MAX, Math.max(BATCH_MIN, fitting));
    }
  });
  for (let round = 0; round < rounds; round++) {
    // Each round begins with another codec.
    for (let n = 0; n < all.length; n++) {
      const which = (n + round) % all.length;
      if (!able[which]) continue;
      const times = once(all[which], make, batch);
      encode[which].push(times.encode);
      decode[which].push(times.decode);
    }
  }
  const cell = (times) => (times.length === 0 ? undefined : answer(times));
  return { encode: encode.map(cell), decode: decode.map(cell) };
}

const microseconds = (time) =>
  time === undefined ? "–" : time >= 100 ? time.toFixed(0) : time.toPrecision(3);
const row = (head, cells) =>
  console.log(head.padEnd(26), cells.map((cell) => cell.padStart(10)).join(" "));

/** The ratio to JSON, and to the best of cbor-x and msgpackr; more than 1 is faster. */
function ratios(all, times) {
  const of = (name) => times[all.findIndex((codec) => codec.name === name)];
  const best = ["cbor-x", "msgpackr", "msgpackr+r"].map(of).filter((time) => time !== undefined);
  const ratio = (other) => (other === undefined ? "–" : (other / times[0]).toFixed(2));
  const cells = [ratio(of("JSON")), ratio(best.length === 0 ? undefined : Math.min(...best))];
  return options.beside ? [...cells, ratio(of("beside"))] : cells;
}

function chosen() {
  const names = options.set.split(",");
  return names.flatMap((set) => {
    if (sets[set] === undefined) throw new Error(`No set is called ${set}: plain, realistic`);
    return sets[set]
      .filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)))
      .map((value) => ({ ...value, set }));
  });
}

async function table() {
  const names = options.codecs?.split(",");
  const all = codecs(dist, options.beside).filter(
    (codec) => names === undefined || codec.name === "openkv" || names.includes(codec.name),
  );
  const values = chosen();
  const measured = values.map(({ make }) => measure(make, all));
  const others = ["× JSON", "× best", ...(options.beside ? ["× beside"] : [])];
  for (const what of ["encode", "decode"]) {
    row(`${what}, µs`, [...all.map((codec) => codec.name), ...others]);
    values.forEach(({ name }, i) => {
      const times = measured[i][what];
      row(name, [...times.map(microseconds), ...ratios(all, times)]);
    });
    console.log();
  }
  if (!options["no-warm-up"]) warmUps(all, values);
}

/** The cost of a program's first decodes and encodes: a process for each codec and value. */
function warmUps(all, values) {
  const own = fileURLToPath(import.meta.url);
  const run = process.versions.deno === undefined ? [] : ["run", "--allow-all", "--no-config"];
  for (const what of ["encode", "decode"]) {
    row(`first ${COLD_DECODES} ${what}s, ms`, [...all.map((codec) => codec.name), "÷ JSON"]);
    for (const { set, name } of values.filter((value) => value.cold)) {
      const times = all.map((codec) => {
        const args = ["--cold", `${codec.name}/${set}/${name}/${what}`];
        if (options.beside) args.push("--beside", options.beside);
        const { stdout, status } = spawnSync(
          process.execPath,
          [...process.execArgv, ...run, own, ...args],
          { encoding: "utf8" },
        );
        return status === 0 && stdout.length > 1 ? JSON.parse(stdout) : undefined;
      });
      const steady = times[all.findIndex((codec) => codec.name === "JSON")]?.steady;
      const ratio = steady === undefined ? "–" : (times[0].first / steady).toFixed(2);
      row(name, [...times.map((time) => (time ? microseconds(time.first) : "–")), ratio]);
    }
    console.log();
  }
  console.log(
    "÷ JSON: by what as many cost JSON once it is warm; processor time of all threads.\n",
  );
}

/** Prints the processor time of the first decodes, and of as many later ones. */
async function cold(which) {
  const [codecName, set, name, what] = which.split("/");
  const codec = codecs(dist, options.beside).find((one) => one.name === codecName);
  const { make } = sets[set].find((value) => value.name === name);
  const values = fresh(make, COLD_VALUES);
  const bytes = what === "decode" ? values.map((value) => codec.bytesOf(value)) : values;
  if (!isRight(codec, values[0])) return;
  const run = what === "decode" ? codec.decode : codec.encode;
  // What the engine still compiles of the other direction would count.
  await sleep(COLD_PAUSE_MS);
  const items = Array.from({ length: COLD_DECODES }, (_, i) => bytes[i % COLD_VALUES]);
  const first = processorMs(run, items);
  const later = Array.from({ length: 3 }, () => processorMs(run, items));
  console.log(JSON.stringify({ first, steady: Math.min(...later) }));
}

/** Microseconds of encoding and decoding keys. */
function keys() {
  const require = createRequire(import.meta.url);
  const kinds = {
    "text, text, n": (i) => ["users", `user${i}`, i],
    "text, uuid": (i) => ["sessions", `0190163d-8694-739b-aea5-${String(i).padStart(12, "0")}`],
    "text, email": (i) => ["users_by_email", `user${i}@example.com`],
    "text, umlauts": (i) => ["städte", `Kraków ${i}`],
  };
  const folders = options.beside ? [dist, options.beside] : [dist];
  const all = folders.map((folder) => ({
    ...require(`${folder}/codec/key.js`),
    ...require(`${folder}/codec/writer.js`),
  }));
  row(
    "key, µs",
    folders.flatMap((_, i) => (i === 0 ? ["encode", "decode"] : ["beside", "beside"])),
  );
  for (const [name, make] of Object.entries(kinds)) {
    const times = all.flatMap(() => [[], []]);
    for (let round = -10; round < rounds; round++) {
      all.forEach(({ Writer, encodeKey, decodeKey }, which) => {
        const writer = new Writer();
        const encode = (key) => {
          writer.pos = 0;
          return encodeKey(writer, key);
        };
        const fresh = Array.from({ length: BATCH_MAX }, (_, i) => make(i + round * BATCH_MAX));
        const encoded = processorMs(encode, fresh);
        const bytes = fresh.map((key) => {
          encode(key);
          return writer.copy();
        });
        const decoded = processorMs((one) => decodeKey(one, 0, one.length), bytes);
        if (!isDeepStrictEqual(sink, fresh.at(-1))) throw new Error(`wrong answer: key ${name}`);
        if (round < 0) return;
        times[which * 2].push((encoded / BATCH_MAX) * 1000);
        times[which * 2 + 1].push((decoded / BATCH_MAX) * 1000);
      });
    }
    row(
      name,
      times.map((list) => microseconds(answer(list))),
    );
  }
  console.log();
}

if (options.cold) await cold(options.cold);
else {
  const { bun, deno, node, v8 } = process.versions;
  const runtime = bun
    ? `Bun ${bun}`
    : deno
      ? `Deno ${deno}, V8 ${v8}`
      : `Node.js ${node}, V8 ${v8}`;
  console.log(`${runtime}; load before the run ${loadavg()[0].toFixed(1)}; fresh values;`);
  console.log(
    `processor time, ${options.least ? "fastest" : "median"} of ${rounds} interleaved rounds.\n`,
  );
  if (options.keys) keys();
  else await table();
}
void sink;
