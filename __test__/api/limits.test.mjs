// Duty: numbers that are told in several places are the same in all: Rust, the addon, declarations.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv } from "../../index.mjs";

const require = createRequire(import.meta.url);
const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
/** How deep values nest is a property of the format, not of a handle. */
const { valueDepthMax, ...limits } = require("../../dist/native/binding.js").limits();

const DAY_MS = 86_400_000;
const WORDS = { "30 days": 30 * DAY_MS, "an hour": DAY_MS / 24 };

test("index.d.ts declares every limit, with its default", () => {
  const [, body] = /export interface KvLimits \{([^]*?)\n\}/.exec(read("index.d.ts"));
  const declared = [...body.matchAll(/Default: ([^.]+)\. \*\/\s+(\w+): number;/g)];
  const defaults = declared.map(([, text, name]) => [name, WORDS[text] ?? Number(text)]);
  assert.deepEqual(Object.fromEntries(defaults), limits);
});

test("the depth of values is the codec's", () => {
  assert.equal(require("../../dist/codec/value/tags.js").VALUE_DEPTH_MAX, valueDepthMax);
});

test("the default backoff schedule is Rust's, and the one that index.d.ts tells", () => {
  const [, list] = / BACKOFF_DEFAULT_MS: [^=]+= \[([^\]]+)\]/.exec(
    read("src/model/limits/queue.rs"),
  );
  const schedule = list.split(",").map((ms) => Number(ms.replaceAll("_", "")));
  assert.deepEqual([...require("../../dist/arguments/check.js").BACKOFF_DEFAULT_MS], schedule);
  assert.ok(read("index.d.ts").includes(`Default: \`[${schedule.join(", ")}]\``));
});

test("the default busy timeout is Rust's, and the one that index.d.ts tells", () => {
  const [, ms] = /BUSY_TIMEOUT_MS_DEFAULT: u64 = (\d+)/.exec(read("src/model/limits/writer.rs"));
  assert.match(read("js/api/open.ts"), new RegExp(`BUSY_TIMEOUT_MS_DEFAULT = ${ms};`));
  assert.match(read("index.d.ts"), new RegExp(`UNAVAILABLE\`\\. Default: ${ms}\\.`));
});

test("a default backoff schedule is cut to the limits of the handle", async () => {
  const limits = { backoffIntervalsMax: 2, backoffIntervalMsMax: 500 };
  const kv = await openKv(":memory:", { limits });
  for (const enqueue of [
    () => kv.enqueue(1),
    () => kv.enqueue(1, {}),
    () => kv.queue("q").enqueue(1),
    () => kv.atomic().enqueue(1).enqueue(1, { queue: "q" }).commit(),
  ])
    assert.equal((await enqueue()).ok, true);
  const words = /max 2 intervals allowed: 3 given; raise limits\.backoffIntervalsMax of openKv/;
  await assert.rejects(kv.enqueue(1, { backoffSchedule: [1, 1, 1] }), words);
  kv.close();
});
