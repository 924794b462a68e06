// Duty: uuidv7: placeholders that a commit turns into UUIDs which sort by commit.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { inspect } from "node:util";
import { KvUuidV7, openKv } from "../../index.mjs";
import { argumentsFor } from "../kit/program.mjs";
import { freshPath, onEveryKind, open } from "./databases.mjs";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

onEveryKind("uuidv7", (fresh) => {
  test("one placeholder is one UUID in all that a commit writes", async () => {
    const kv = await fresh();
    const [id, other] = [kv.uuidv7(), kv.uuidv7()];
    const shared = { id };
    const value = { id, list: [shared, shared, other], map: new Map([[id, other]]), text: "é" };
    const operation = kv.atomic().set(["users", id, 1], value).set(["by", id, "x", other], id);
    operation
      .append(["all"], [id, other])
      .sum(["count", id], 1n)
      .prepend(["all"], [[id]]);
    const result = await operation.commit();
    const [uuid, second] = [id.uuidIn(result), other.uuidIn(result)];
    assert.match(uuid, UUID_V7);
    assert.match(second, UUID_V7);
    assert.notEqual(uuid, second);
    const user = (await kv.get(["users", uuid, 1])).value;
    assert.deepEqual(user, {
      id: uuid,
      list: [{ id: uuid }, { id: uuid }, second],
      map: new Map([[uuid, second]]),
      text: "é",
    });
    assert.equal(user.list[0], user.list[1]);
    assert.equal((await kv.get(["by", uuid, "x", second])).value, uuid);
    assert.deepEqual((await kv.get(["all"])).value, [[uuid], uuid, second]);
    assert.equal((await kv.get(["count", uuid])).value.value, 1n);
  });

  test("UUIDs of later commits sort after earlier ones", async () => {
    const kv = await fresh();
    const uuids = [];
    for (let n = 0; n < 50; n++) {
      const ids = [kv.uuidv7(), kv.uuidv7()];
      const result = await kv.set(["log", ids[0], ids[1]], n);
      uuids.push(...ids.map((id) => id.uuidIn(result)).sort());
    }
    assert.deepEqual(uuids, uuids.toSorted());
    assert.equal(new Set(uuids).size, 100);
    const values = [];
    for await (const { value } of kv.list({ prefix: ["log"] })) values.push(value);
    assert.deepEqual(
      values,
      values.toSorted((a, b) => a - b),
    );
  });

  test("an operation that is committed again makes new ones", async () => {
    const kv = await fresh();
    const id = kv.uuidv7();
    const operation = kv.atomic().set(["a", id], id);
    const [one, two] = [await operation.commit(), await operation.commit()];
    assert.ok(id.uuidIn(one) < id.uuidIn(two));
    assert.equal((await kv.get(["a", id.uuidIn(one)])).value, id.uuidIn(one));
    assert.equal((await kv.get(["a", id.uuidIn(two)])).value, id.uuidIn(two));
  });

  test("writes of one microtask do not mix theirs up", async () => {
    const kv = await fresh();
    const ids = Array.from({ length: 20 }, () => kv.uuidv7());
    const results = await Promise.all(ids.map((id, n) => kv.set([n], n % 3 ? { id } : "none")));
    for (const [n, id] of ids.entries()) {
      if (n % 3 === 0) assert.throws(() => id.uuidIn(results[n]), /not used in the commit/);
      else assert.deepEqual((await kv.get([n])).value, { id: id.uuidIn(results[n]) });
    }
  });

  test("they go into messages, and beside Blobs", async () => {
    const kv = await fresh();
    const id = kv.uuidv7();
    const blob = new Blob(["contents"]);
    const result = await kv.set(["blob", id], { blob, again: blob, id });
    const { value } = await kv.get(["blob", id.uuidIn(result)]);
    assert.equal(value.id, id.uuidIn(result));
    assert.equal(await value.blob.text(), "contents");
    const sent = await kv.enqueue({ id });
    assert.match(id.uuidIn(sent), /^[0-9a-f-]{36}$/);
    const message = await new Promise((resolve) => void kv.listenQueue(resolve));
    assert.deepEqual(message, { id: id.uuidIn(sent) });
  });

  test("a lost check makes none", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    const id = kv.uuidv7();
    const operation = kv
      .atomic()
      .check({ key: ["a"], versionstamp: null })
      .set([id], 1);
    const result = await operation.commit();
    assert.deepEqual(result, { ok: false, failed: [0] });
    assert.throws(() => id.uuidIn(result), /not used in the commit/);
  });

  test("where no commit fills them in they are refused", async () => {
    const kv = await fresh();
    const id = kv.uuidv7();
    const words = /KvUuidV7/;
    await assert.rejects(kv.get([id]), words);
    await assert.rejects(kv.getMany([["a", id]]), words);
    await assert.rejects(kv.list({ prefix: [id] }).next(), words);
    await assert.rejects(kv.ttl([id]), words);
    assert.throws(() => kv.watch([[id]]), words);
    const check = { key: [id], versionstamp: null };
    await assert.rejects(kv.atomic().check(check).commit(), words);
    await assert.rejects(kv.enqueue(1, { keysIfUndelivered: [[id]] }), words);
    // Nothing is left of what was refused.
    assert.deepEqual(Object.keys(await kv.set(["a"], 1)), ["ok", "versionstamp"]);
    assert.equal((await kv.get(["a"])).value, 1);
  });
});

test("a placeholder has no text, and cannot be made by hand", async () => {
  const kv = await open(":memory:");
  const id = kv.uuidv7();
  assert.ok(id instanceof KvUuidV7);
  for (const text of [
    () => `${id}`,
    () => id + "",
    () => ({ [id]: 1 }),
    () => JSON.stringify(id),
  ]) {
    assert.throws(text, /no text before its commit/);
  }
  assert.match(inspect(id), /^KvUuidV7\(#\d+\)$/);
  assert.match(id.toString(), /^KvUuidV7\(#\d+\)$/);
  assert.throws(() => new KvUuidV7(), /use kv\.uuidv7\(\)/);
});

test("UUIDs rise through closing and through processes", async () => {
  const path = freshPath();
  const uuids = [];
  const child = `
    const { openKv } = await import(${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)});
    const kv = await openKv(${JSON.stringify(path)});
    // A clock that is an hour behind would be overtaken too.
    const id = kv.uuidv7();
    console.log(id.uuidIn(await kv.set(["child", id], 1)));
    kv.close();`;
  for (let round = 0; round < 2; round++) {
    const kv = await openKv(path);
    const id = kv.uuidv7();
    uuids.push(id.uuidIn(await kv.set(["parent", id], 1)));
    const out = execFileSync(process.execPath, argumentsFor(child));
    uuids.push(out.toString().trim());
    uuids.push(id.uuidIn(await kv.set(["parent", id], 1)));
    await kv.close();
  }
  assert.equal(new Set(uuids).size, 6);
  assert.deepEqual(uuids, uuids.toSorted());
});
