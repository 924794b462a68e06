// Duty: random operations through random handles answer what the naive model answers.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { KvU64, openKv } from "../../index.mjs";
import { difference } from "../conformance/compare.mjs";
import { newFolder } from "../kit/folder.mjs";
import { compareKeys, randomKey, randomPart } from "./keys.mjs";
import { Model } from "./model.mjs";
import { seeded } from "./random.mjs";
import { randomValue } from "./values.mjs";

const STEPS = 800;
const HANDLES = 4;

test(`${STEPS} random operations on a database in memory`, () =>
  seeded("memory", async (random) => {
    const kv = await openKv(":memory:");
    const run = new Run(random, { pick: () => kv });
    await run.steps(STEPS);
    await kv.close();
  }));

test(`${STEPS} random operations through ${HANDLES} handles on one file, closed and opened`, () =>
  seeded("file", async (random) => {
    const folder = newFolder("property");
    const path = join(folder, "kv.sqlite3");
    const handles = [];
    for (let i = 0; i < HANDLES; i++) handles.push(await openKv(path));
    const run = new Run(random, {
      pick: () => random.pick(handles),
      reopen: async () => {
        const all = random.chance(0.2);
        for (const i of handles.keys()) {
          if (!all && i > 0) continue;
          handles[i].close();
          handles[i] = await openKv(path);
        }
      },
    });
    await run.steps(STEPS);
    for (const kv of handles) kv.close();
    rmSync(folder, { recursive: true });
  }));

class Run {
  #random;
  #handles;
  #model = new Model();
  #keys;

  constructor(random, handles) {
    this.#random = random;
    this.#handles = handles;
    // Few keys with common beginnings, so that operations meet.
    const roots = random.list(4, () => randomPart(random));
    // Copies: what is read back never shares its bytes with another key.
    const root = () => structuredClone(random.pick(roots));
    this.#keys = random.list(40, () => {
      const key = [root(), ...(random.chance(0.7) ? randomKey(random, 2) : [])];
      return random.chance(0.3) ? [...key, root()] : key;
    });
  }

  async steps(count) {
    const random = this.#random;
    for (let i = 0; i < count; i++) {
      const step = random.pick([
        ...["get", "getMany", "list", "list", "pages", "set", "set", "delete"],
        ...["atomic", "atomic", "atomic", "burst", "reopen", "concurrentReads"],
      ]);
      try {
        await this[step]();
      } catch (error) {
        error.message = `step ${i}, ${step}: ${error.message}`;
        throw error;
      }
    }
    await this.everything();
  }

  #key() {
    const random = this.#random;
    return random.chance(0.95) ? random.pick(this.#keys) : randomKey(random);
  }

  #value() {
    const random = this.#random;
    return random.pick([
      () => random.int(0, 100),
      () => random.bigint(9),
      () => new KvU64(random.bigint(8) & 0xffff_ffff_ffff_ffffn),
      () => random.bytes(random.int(0, 2000)),
      () => random.text(50),
      () => randomValue(random, 15),
    ])();
  }

  #expectEntry(actual, key) {
    const { value, versionstamp } = this.#model.get(key) ?? { value: null, versionstamp: null };
    this.#same(actual, { key, value, versionstamp });
  }

  #same(actual, expected) {
    assert.equal(difference(actual, expected), null);
  }

  async get() {
    const key = this.#key();
    this.#expectEntry(await this.#handles.pick().get(key), key);
  }

  async getMany() {
    const keys = this.#random.list(this.#random.int(0, 10), () => this.#key());
    const entries = await this.#handles.pick().getMany(keys);
    assert.equal(entries.length, keys.length);
    for (const [i, key] of keys.entries()) this.#expectEntry(entries[i], key);
  }

  /** Reads that are not awaited one by one, so that both lanes are taken. */
  async concurrentReads() {
    const keys = this.#random.list(this.#random.int(2, 150), () => this.#key());
    const kv = this.#handles.pick();
    const entries = await Promise.all(keys.map((key) => kv.get(key)));
    for (const [i, key] of keys.entries()) this.#expectEntry(entries[i], key);
  }

  #selector() {
    const random = this.#random;
    const prefix = this.#key().slice(0, random.int(0, 2));
    const inside = () => [...prefix, ...randomKey(random, 2)];
    const near = () => {
      const key = this.#key();
      const common = compareKeys(key.slice(0, prefix.length), prefix) === 0;
      return common && key.length > prefix.length ? key : inside();
    };
    switch (random.int(0, 4)) {
      case 0:
        return { prefix: [] };
      case 1:
        return { prefix };
      case 2:
        return { prefix, start: near() };
      case 3:
        return { prefix, end: near() };
      default: {
        const [start, end] = [this.#key(), this.#key()].sort(compareKeys);
        return { start, end };
      }
    }
  }

  #options() {
    const random = this.#random;
    return {
      reverse: random.chance(0.4),
      ...(random.chance(0.4) ? { limit: random.int(1, 30) } : {}),
      ...(random.chance(0.5) ? { batchSize: random.pick([1, 2, 3, 7, 100, 500, 1000]) } : {}),
    };
  }

  async list() {
    const [selector, options] = [this.#selector(), this.#options()];
    const expected = this.#model.list(selector, options.reverse).slice(0, options.limit);
    const found = [];
    const iterator = this.#handles.pick().list(selector, options);
    if (this.#random.chance(0.3)) {
      const answers = await Promise.all(
        Array.from({ length: expected.length + 2 }, () => iterator.next()),
      );
      found.push(...answers.flatMap(({ value }) => value ?? []));
    } else {
      for await (const entry of iterator) found.push(entry);
    }
    this.#same(found, expected);
    if (!(options.limit <= expected.length)) assert.equal(iterator.cursor, "");
  }

  /** A list in pages by cursor, through any handle, with writes between them. */
  async pages() {
    const random = this.#random;
    const selector = this.#selector();
    const reverse = random.chance(0.5);
    let cursor;
    let after = null;
    for (let page = 0; page < 6; page++) {
      const limit = random.int(1, 6);
      const left = this.#model.list(selector, reverse).filter(({ key }) => {
        if (after === null) return true;
        return reverse ? compareKeys(key, after) < 0 : compareKeys(key, after) > 0;
      });
      const iterator = this.#handles.pick().list(selector, { limit, cursor, reverse });
      const found = [];
      for await (const entry of iterator) found.push(entry);
      this.#same(found, left.slice(0, limit));
      if (found.length < limit) {
        assert.equal(iterator.cursor, "");
        return;
      }
      cursor = iterator.cursor;
      // The bounds' whole common beginning was itself a key: its cursor says nothing, as in Deno.
      if (cursor === "") return;
      after = found.at(-1).key;
      if (random.chance(0.5)) await (random.chance(0.5) ? this.set() : this.delete());
    }
  }

  async set() {
    const [key, value] = [this.#key(), this.#value()];
    const expireIn = this.#random.pick([undefined, undefined, undefined, 0, 3_600_000]);
    const result = await this.#handles.pick().set(key, value, { expireIn });
    this.#committed(result, [{ type: "set", key, value, expireIn }]);
  }

  async delete() {
    const key = this.#key();
    assert.equal(await this.#handles.pick().delete(key), undefined);
    this.#model.entries = this.#model.after([{ type: "delete", key }], "");
  }

  #committed(result, mutations) {
    assert.equal(result.ok, true);
    assert.match(result.versionstamp, /^[0-9a-f]{20}$/);
    assert.ok(result.versionstamp > this.#model.last, "versionstamps rise");
    this.#model.apply(mutations, result.versionstamp);
  }

  /** Checks and mutations, of which some fail. */
  #write() {
    const random = this.#random;
    const checks = random.list(random.int(0, 3), () => {
      const key = this.#key();
      const right = this.#model.get(key)?.versionstamp ?? null;
      const wrong = random.pick([null, "0".repeat(20), this.#model.last || null]);
      return { key, versionstamp: random.chance(0.85) ? right : wrong };
    });
    const mutations = random.list(random.int(0, 8), () => this.#mutation());
    return { checks, mutations };
  }

  #mutation() {
    const random = this.#random;
    // Sums mostly where a number is, so that most of them are accepted.
    const numeric = this.#model.entries.filter(({ value }) => value instanceof KvU64);
    const key = numeric.length && random.chance(0.5) ? random.pick(numeric).key : this.#key();
    const u64 = () => new KvU64(random.bigint(8) & 0xffff_ffff_ffff_ffffn);
    switch (random.int(0, 9)) {
      case 0:
      case 1:
      case 2:
        return { type: "set", key, value: this.#value() };
      case 3:
        return { type: "set", key, value: u64() };
      case 4:
        return { type: "set", key, value: 1, expireIn: random.pick([0, 3_600_000]) };
      case 5:
        return { type: "delete", key };
      case 6:
        return { type: random.pick(["min", "max"]), key, value: u64(), own: random.chance(0.5) };
      case 7:
        return { type: "sum", key, value: random.pick([1.5, -3n, 2n ** 70n, 7n]) };
      default:
        return { type: "sum", key, value: u64(), own: random.chance(0.5) };
    }
  }

  #operation(kv, { checks, mutations }) {
    const op = kv.atomic();
    const pieces = [...checks.map((check) => () => op.check(check))];
    for (const mutation of mutations) pieces.push(() => this.#add(op, mutation));
    for (const piece of pieces) piece();
    return op;
  }

  /** By method or by mutate(), which must be the same but for sums. */
  #add(op, { own, ...mutation }) {
    const { type, key, value, expireIn } = mutation;
    if (own) op[type](key, value.value);
    else if (type === "set" && this.#random.chance(0.5)) op.set(key, value, { expireIn });
    else if (type === "delete" && this.#random.chance(0.5)) op.delete(key);
    else op.mutate(mutation);
  }

  async atomic() {
    const write = this.#write();
    const promise = this.#operation(this.#handles.pick(), write).commit();
    await this.#settle(write, promise);
  }

  async #settle({ checks, mutations }, promise) {
    const failed = this.#model.failedChecks(checks);
    if (failed.length > 0) {
      this.#same(await promise, { ok: false, failed });
    } else if (this.#model.after(mutations, "") === null) {
      await assert.rejects(promise, TypeError);
    } else {
      this.#committed(await promise, mutations);
    }
  }

  /** Writes of one handle that are not awaited: they happen in the order of their calls. */
  async burst() {
    const random = this.#random;
    const kv = this.#handles.pick();
    const begun = random.list(random.int(2, 25), () => {
      // Checks are of the state before the burst: the model decides them one by one.
      const write = this.#write();
      const promise = this.#operation(kv, write).commit();
      promise.catch(() => {});
      return { write, promise };
    });
    for (const { write, promise } of begun) await this.#settle(write, promise);
    await this.everything();
  }

  async reopen() {
    if (this.#random.chance(0.2)) await this.#handles.reopen?.();
  }

  /** The whole database is the whole model. */
  async everything() {
    const found = [];
    for await (const entry of this.#handles.pick().list({ prefix: [] })) found.push(entry);
    this.#same(found, this.#model.list({ prefix: [] }, false));
  }
}
