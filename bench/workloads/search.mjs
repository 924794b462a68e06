// Full-text search over 100,000 documents of 50 words: the rate of indexing (writing into an index,
// and building it over existing entries) and the latency of a query of two terms. Run separately,
// because no peer has full-text search: node bench/workloads/search.mjs [directory]

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { expect } from "../data.mjs";
import { quantile } from "../measure.mjs";

const DOCUMENTS = 100_000;
const WORDS = 50;
const VOCABULARY = 20_000;
const IN_FLIGHT = 500;
const QUERIES = 1000;
/** Documents per second, and ms. */
const INDEXED_TARGET = 10_000;
const QUERY_P50_TARGET_MS = 5;

/** Numbers that are the same in every run. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Frequent words are much more frequent than rare ones, as in real texts. */
const word = (random) => `w${Math.floor(VOCABULARY ** random()).toString(36)}`;

function documents() {
  const random = randomNumbers(1);
  return Array.from({ length: DOCUMENTS }, () =>
    Array.from({ length: WORDS }, () => word(random)).join(" "),
  );
}

async function write(kv, texts) {
  for (let at = 0; at < texts.length; at += IN_FLIGHT) {
    const batch = texts.slice(at, at + IN_FLIGHT);
    await Promise.all(batch.map((text, i) => kv.set(["docs", at + i], { text })));
  }
}

const perSecond = (start) => Math.round((DOCUMENTS / (performance.now() - start)) * 1000);
const print = (what, value, unit, ratio) =>
  console.log(
    `${what.padEnd(44)} ${String(value).padStart(9)} ${unit}  ${ratio.toFixed(2)}× target`,
  );

async function run(directory) {
  const texts = documents();
  const built = await openKv(join(directory, "built.sqlite3"));
  let start = performance.now();
  await write(built, texts);
  print(
    "documents written without an index",
    perSecond(start),
    "/s",
    perSecond(start) / INDEXED_TARGET,
  );
  start = performance.now();
  const index = await built.createIndex({ prefix: ["docs"], fields: ["text"] });
  await index.ready();
  let rate = perSecond(start);
  print("documents indexed, built over entries", rate, "/s", rate / INDEXED_TARGET);
  start = performance.now();
  await built.dropIndex(["docs"]);
  console.log(`index dropped in ${Math.round(performance.now() - start)} ms`);
  built.close();

  const kv = await openKv(join(directory, "written.sqlite3"));
  await kv.createIndex({ prefix: ["docs"], fields: ["text"] });
  start = performance.now();
  await write(kv, texts);
  rate = perSecond(start);
  print("documents indexed, 500 writes in flight", rate, "/s", rate / INDEXED_TARGET);

  const random = randomNumbers(2);
  const times = [];
  for (let i = 0; i < QUERIES; i++) {
    // Two words of the same document, so that the query has a result.
    const words = texts[Math.floor(random() * DOCUMENTS)].split(" ");
    const pick = () => words[Math.floor(random() * WORDS)];
    const query = `${pick()} ${pick()}`;
    const before = performance.now();
    const { entries } = await kv.search(["docs"], query);
    times.push(performance.now() - before);
    expect(entries.length > 0, query);
  }
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  print("query of two terms, p50", p50.toFixed(2), "ms", p50 / QUERY_P50_TARGET_MS);
  console.log(`query of two terms, p99 ${p99.toFixed(2)} ms`);
  kv.close();
}

const parent = process.argv[2] ?? fileURLToPath(new URL("../.data/", import.meta.url));
mkdirSync(parent, { recursive: true });
const directory = mkdtempSync(join(parent, "search-"));
try {
  await run(directory);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
