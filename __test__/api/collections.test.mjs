// Duty: collections: what they store, find and change, on a handle and in a transaction.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  KvConflictError,
  KvError,
  KvUniqueError,
  KvValidationError,
  openKv,
} from "../../index.mjs";
import { onEveryKind } from "./databases.mjs";

/** A schema of the Standard Schema: an object with a text `email`, whose case is folded. */
const User = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate(value) {
      if (typeof value?.email !== "string") {
        return { issues: [{ message: "expected a text", path: [{ key: "email" }] }] };
      }
      return { value: { ...value, email: value.email.toLowerCase() } };
    },
  },
};
const free = (value) => value;
const ids = (documents) => documents.map(({ id }) => id);

async function filled(fresh) {
  const kv = await fresh();
  const users = kv.collection(["users"], { schema: User, id: "id" });
  await users.insertMany([
    { id: "ada", email: "Ada@Example.com", age: 36 },
    { id: "bob", email: "bob@example.com", age: 17 },
    { id: "eve", email: "eve@example.com", age: 54 },
  ]);
  return { kv, users };
}

onEveryKind("collections", (fresh) => {
  test("a document is an entry below the prefix, as the schema returns it", async () => {
    const { kv, users } = await filled(fresh);
    const { value, versionstamp } = await kv.get(["users", "ada"]);
    assert.deepEqual(value, { id: "ada", email: "ada@example.com", age: 36 });
    assert.deepEqual(users.key("ada"), ["users", "ada"]);
    const document = { id: "ada", key: ["users", "ada"], value, versionstamp };
    assert.deepEqual(await users.get("ada"), document);
    assert.equal(await users.get("nobody"), null);
  });

  test("entries further below the prefix do not belong to a collection", async () => {
    const { kv, users } = await filled(fresh);
    await kv.set(["users", "ada", "posts", 1], { email: "deep" });
    assert.deepEqual(ids(await users.list().toArray()), ["ada", "bob", "eve"]);
    assert.deepEqual(await users.findMany({ email: "deep" }), []);
    assert.equal(await users.count(), 3);
    assert.equal(await kv.transaction((tx) => users.in(tx).count()).then((done) => done.value), 3);
  });

  test("documents are found, counted and read in pages", async () => {
    const { users } = await filled(fresh);
    assert.equal((await users.find({ email: "bob@example.com" })).id, "bob");
    assert.equal(await users.find({ email: "nobody" }), null);
    const adults = users.where({ age: { $gte: 18 } });
    assert.deepEqual(ids(await adults.toArray()), ["ada", "eve"]);
    assert.deepEqual(ids(await adults.reverse().toArray()), ["eve", "ada"]);
    assert.deepEqual(ids(await users.findMany({ age: { $gte: 18 } }, { limit: 1 })), ["ada"]);
    assert.equal(await adults.limit(1).count(), 2);
    assert.equal((await adults.reverse().first()).id, "eve");
    const seen = [];
    let cursor;
    for (let page = 1; cursor !== null; page++) {
      const one = await users.list().limit(2).page({ cursor });
      seen.push(...ids(one.documents));
      cursor = one.cursor;
      assert.equal(cursor === null, page === 2);
    }
    assert.deepEqual(seen, ["ada", "bob", "eve"]);
    const many = Array.from({ length: 25 }, (_, i) => (i === 24 ? "eve" : `no${i}`));
    const found = await users.getMany(many);
    assert.deepEqual([found.length, found[0], found[24].id], [25, null, "eve"]);
  });

  test("find has what was written before, and passes over what is no document", async () => {
    const { kv, users } = await filled(fresh);
    await kv.set(["users", "ada", "posts"], { email: "bob@example.com" });
    assert.equal((await users.find({ email: "bob@example.com" })).id, "bob");
    const written = kv.set(["users", "cyd"], { id: "cyd", email: "cyd@example.com", age: 20 });
    const found = await users.find({ email: "cyd@example.com" });
    assert.deepEqual(found, await users.get("cyd"));
    assert.equal(found.versionstamp, (await written).versionstamp);
    assert.equal(await users.find({ email: "cyd@example.com", age: { $gt: 20 } }), null);
    assert.equal((await users.list().first()).id, "ada");
    assert.equal((await users.list().reverse().first()).id, "eve");
    assert.equal(await kv.collection(["nobody"], { schema: free, id: "id" }).list().first(), null);
  });

  test("a document that the schema refuses is not written", async () => {
    const { kv, users } = await filled(fresh);
    const refused = (error) => {
      assert.ok(error instanceof KvValidationError && error instanceof TypeError);
      assert.equal(error.name, "KvValidationError");
      assert.equal(error.code, "INVALID");
      assert.match(error.message, /^\w+: email: expected a text$/);
      assert.equal(error.issues[0].message, "expected a text");
      return true;
    };
    await assert.rejects(users.insert({ id: "x" }), refused);
    await assert.rejects(users.insertMany([{ id: "y", email: "y" }, { id: "x" }]), refused);
    await assert.rejects(users.upsert({ id: "ada" }), refused);
    await assert.rejects(users.replace("ada", { id: "ada" }), refused);
    await assert.rejects(users.update("ada", { email: 5 }), refused);
    assert.throws(() => kv.atomic().insert(users, { id: "x" }), refused);
    assert.deepEqual(ids(await users.list().toArray()), ["ada", "bob", "eve"]);
    assert.equal((await users.get("ada")).value.email, "ada@example.com");
  });

  test("an id is taken once, and insertMany inserts all or none", async () => {
    const { kv, users } = await filled(fresh);
    const taken = (error) => {
      assert.ok(error instanceof KvConflictError);
      assert.deepEqual(error.keys, [["users", "ada"]]);
      return true;
    };
    const ada = { id: "ada", email: "other" };
    await assert.rejects(users.insert(ada), taken);
    await assert.rejects(users.insertMany([{ id: "new", email: "n" }, ada]), taken);
    await assert.rejects(
      kv.transaction((tx) => users.in(tx).insert(ada)),
      taken,
    );
    assert.equal((await kv.atomic().insert(users, ada).set(["n"], 1).commit()).ok, false);
    assert.equal(await users.count(), 3);
    assert.equal(
      (
        await kv
          .atomic()
          .insert(users, { ...ada, id: "new" })
          .commit()
      ).ok,
      true,
    );
    assert.equal((await users.get("new")).value.email, "other");
    const [first, second] = ["first", "second"].map((email) => ({ id: "twice", email }));
    const twice = (error) => error instanceof KvConflictError && error.keys[0][1] === "twice";
    await assert.rejects(users.insertMany([first, second]), twice);
    assert.throws(() => kv.atomic().insert(users, first).insert(users, second), twice);
    assert.equal(await users.get("twice"), null);
  });

  test("a document keeps its id, whatever the id is", async () => {
    const kv = await fresh();
    const own = kv.collection(["own"], { schema: free, id: "id" });
    const long = "x".repeat(1000);
    for (const [id, other] of [
      [Uint8Array.of(1, 1), Uint8Array.of(2, 2)],
      [`${long}a`, `${long}b`],
      [2n ** 300n, 2n ** 301n],
      [-0, 0],
      ["ada", null],
    ]) {
      await own.insert({ id });
      const refused = { name: "TypeError", code: "INVALID" };
      await assert.rejects(own.replace(id, { id: other }), refused);
      await assert.rejects(own.update(id, { id: other }), refused);
      await assert.rejects(own.insert({ id }, { id: other ?? "bob" }), refused);
    }
    assert.equal(await own.count(), 5);
    const [a, b] = [Uint8Array.of(1), Uint8Array.of(2)].map((bytes, n) =>
      kv.collection(["t", bytes], { schema: (value) => ({ ...value, n }), id: "id" }),
    );
    await kv.schema({ a, b }).set(["t", Uint8Array.of(2), "x"], { id: "x" });
    assert.equal((await b.get("x")).value.n, 1, "by the schema of its own collection");
  });

  test("the version of a document is no property of its own", async () => {
    const { users } = await filled(fresh);
    const refused = /the property __version is the version of the document/;
    await assert.rejects(users.insert({ id: "new", email: "n", __version: 3 }), refused);
    await assert.rejects(users.update("ada", { __version: 2 }), refused);
    assert.equal((await users.get("ada")).value.age, 36);
  });

  test("update merges, calls, removes, and answers null for none", async () => {
    const { users } = await filled(fresh);
    const older = await users.update("ada", { age: 37, city: "London" });
    assert.deepEqual(older.value, { id: "ada", email: "ada@example.com", age: 37, city: "London" });
    assert.deepEqual(await users.get("ada"), older);
    const { value } = await users.update("ada", { city: undefined });
    assert.ok(!Object.hasOwn(value, "city"));
    await users.update("ada", (user) => ({ ...user, age: user.age + 1 }));
    assert.equal((await users.get("ada")).value.age, 38);
    assert.equal(await users.update("nobody", { age: 1 }), null);
    await assert.rejects(users.update("ada", { id: "eve" }), /has the id .*"eve", and not .*"ada"/);
  });

  test("updates at the same time all count", async () => {
    const { users } = await filled(fresh);
    const older = (user) => ({ ...user, age: user.age + 1 });
    await Promise.all(Array.from({ length: 8 }, () => users.update("bob", older)));
    assert.equal((await users.get("bob")).value.age, 25);
  });

  test("upsert, replace and delete", async () => {
    const { users } = await filled(fresh);
    await users.upsert({ id: "zoe", email: "z" });
    await users.upsert({ id: "zoe", email: "z2" });
    assert.equal((await users.get("zoe")).value.email, "z2");
    assert.equal((await users.replace("bob", { id: "bob", email: "b" })).value.age, undefined);
    assert.equal(await users.replace("nobody", { id: "nobody", email: "n" }), null);
    assert.equal(await users.delete("bob"), true);
    assert.equal(await users.delete("bob"), false);
    assert.deepEqual(ids(await users.list().toArray()), ["ada", "eve", "zoe"]);
  });

  test("a write with an expected version fails if there is another one", async () => {
    const { users } = await filled(fresh);
    const { versionstamp } = await users.get("ada");
    const { versionstamp: next } = await users.update(
      "ada",
      { age: 1 },
      { expectedVersion: versionstamp },
    );
    const stale = { expectedVersion: versionstamp };
    const ada = { id: "ada", email: "x" };
    for (const write of [
      () => users.update("ada", { age: 2 }, stale),
      () => users.upsert(ada, stale),
      () => users.replace("ada", ada, stale),
      () => users.delete("ada", stale),
    ]) {
      await assert.rejects(
        write,
        (error) => error instanceof KvConflictError && /it is 0/.test(error.message),
      );
    }
    await assert.rejects(users.upsert({ id: "no", email: "n" }, stale), /there is none/);
    assert.equal((await users.get("ada")).versionstamp, next);
    assert.equal(await users.delete("ada", { expectedVersion: next }), true);
  });

  test("collections, sums and messages change in one commit", async () => {
    const { kv, users } = await filled(fresh);
    const orders = kv.collection(["orders"], { schema: free, id: "ulid" });
    const { value: order } = await kv.transaction(async (tx) => {
      const buyer = await users.in(tx).update("ada", (user) => ({ ...user, orders: 1 }));
      assert.deepEqual(
        (await users.in(tx).get("ada")).value,
        buyer.value,
        "it reads its own write",
      );
      tx.sum(["sold"], 1n);
      return await orders.in(tx).insert({ buyer: "ada" });
    });
    assert.equal(order.versionstamp, null);
    assert.equal((await orders.get(order.id)).value.buyer, "ada");
    assert.equal((await users.get("ada")).value.orders, 1);
    await assert.rejects(
      kv.transaction(async (tx) => {
        await users.in(tx).delete("ada");
        throw new Error("changed my mind");
      }),
      /changed my mind/,
    );
    assert.notEqual(await users.get("ada"), null);
  });

  test("made ids sort by time, and a caller may give one", async () => {
    const kv = await fresh();
    const shapes = {
      ulid: /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/,
      uuidv7: /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    };
    for (const [id, shape] of Object.entries(shapes)) {
      const things = kv.collection([id], { schema: free, id });
      const made = await things.insertMany([{ n: 1 }, { n: 2 }]);
      for (const thing of made) assert.match(thing.id, shape);
      assert.notEqual(made[0].id, made[1].id);
      await things.insert({ n: 3 }, { id: "own" });
      assert.deepEqual((await things.get("own")).value, { n: 3 });
    }
    const pairs = kv.collection(["pairs"], { schema: free, id: ([left]) => left });
    await pairs.insert([7n, "seven"]);
    assert.deepEqual((await pairs.get(7n)).value, [7n, "seven"]);
  });

  test("earlier versions are migrated when they are read, and all by migrateAll", async () => {
    const { kv, users } = await filled(fresh);
    await users.upsert({ id: "brief", email: "b" }, { expireIn: 3_600_000 });
    const { expireAt } = await kv.ttl(["users", "brief"]);
    const migrate = ({ email, ...rest }, from) => ({ ...rest, email, contact: [email], from });
    const options = { schema: User, id: "id", version: 2, migrate };
    const newer = kv.collection(["users"], options);
    assert.deepEqual((await newer.get("bob")).value.contact, ["bob@example.com"]);
    assert.equal(
      (await kv.get(["users", "bob"])).value.contact,
      undefined,
      "reading writes nothing",
    );
    const steps = [];
    assert.deepEqual(
      await newer.migrateAll({ onProgress: ({ migrated }) => steps.push(migrated) }),
      { migrated: 4 },
    );
    assert.deepEqual(steps, [4]);
    assert.deepEqual((await kv.get(["users", "bob"])).value.contact, ["bob@example.com"]);
    assert.deepEqual(await kv.ttl(["users", "brief"]), { expireAt });
    assert.deepEqual(await newer.migrateAll(), { migrated: 0 });
    assert.deepEqual(Object.keys((await newer.get("bob")).value).sort(), [
      "age",
      "contact",
      "email",
      "from",
      "id",
    ]);
    await assert.rejects(users.get("bob"), (error) => {
      assert.ok(error instanceof KvError && error.code === "UNSUPPORTED");
      assert.match(error.message, /has version 2 of the schema, and this program has 1/);
      return true;
    });
  });

  const declared = {
    email: { unique: true },
    byCity: { on: ["city", { path: "age", order: "desc" }] },
  };
  const people = (kv, more) =>
    kv.collection(["people"], { schema: free, id: "id", indexes: declared, ...more });
  async function peopled() {
    const kv = await fresh();
    await people(kv).insertMany([
      { id: 1, email: "a", city: "Oslo", age: 3 },
      { id: 2, email: "b", city: "Oslo", age: 9 },
      { id: 3, email: "c", city: "Rome", age: 5 },
    ]);
    await kv.set(["people", 1, "deep"], { city: "Oslo", age: 8 });
    return kv;
  }
  const states = async (kv) =>
    (await kv.listIndexes()).map(({ name, state, unique }) => [name, state, unique]);

  test("declared indexes find, and list in their order", async () => {
    const kv = await peopled();
    const all = people(kv);
    await all.ready();
    assert.equal((await all.find({ email: "b" })).id, 2);
    const oldest = all.where({ city: "Oslo" }).orderBy("age", "desc");
    assert.deepEqual(ids(await oldest.toArray()), [2, 1]);
    assert.deepEqual(ids(await oldest.reverse().toArray()), [1, 2]);
    const ordered = all.list().orderBy({ city: "asc", age: "desc" });
    const { documents, cursor } = await ordered.limit(2).page();
    const rest = await ordered.limit(2).page({ cursor });
    assert.deepEqual([ids(documents), ids(rest.documents), rest.cursor], [[2, 1], [3], null]);
    await assert.rejects(all.list().orderBy("age").first(), /no index has the order of orderBy/);
  });

  test("a value of a unique index is taken once, by whatever writes", async () => {
    const kv = await peopled();
    const all = people(kv);
    const twice = { id: 4, email: "a" };
    for (const write of [
      () => all.insert(twice),
      () => all.insertMany([{ id: 5, email: "e" }, twice]),
      () => all.upsert(twice),
      () => all.update(2, { email: "a" }),
      () => all.replace(2, { id: 2, email: "a" }),
      () => kv.transaction((tx) => all.in(tx).insert(twice)),
    ]) {
      await assert.rejects(write, (error) => {
        assert.ok(error instanceof KvUniqueError && error.code === "UNIQUE");
        assert.deepEqual(error.violations[0].other, ["people", 1]);
        return true;
      });
    }
    assert.equal(await all.count(), 3);
    await all.delete(1);
    await all.insert(twice);
  });

  test("indexes follow their declaration, and only those of the collection", async () => {
    const kv = await peopled();
    await kv.createIndex({ type: "value", prefix: ["people"], on: "age", name: "by hand" });
    const [byCity, email] = ['["people"] byCity', '["people"] email'];
    await people(kv).ready();
    assert.deepEqual((await states(kv)).slice(0, 2), [
      [byCity, "ready", false],
      [email, "ready", true],
    ]);
    await people(kv, { indexes: { email: {} } }).ready();
    assert.deepEqual((await states(kv))[0], [email, "ready", false], "it is defined anew");
    await assert.rejects(people(kv, { indexMode: "check" }).count(), (error) => {
      assert.ok(error instanceof KvError && error.code === "UNSUPPORTED");
      assert.match(error.message, /the indexes email, byCity of the collection .* not as declared/);
      return true;
    });
    assert.equal(await people(kv, { indexes: { email: {} }, indexMode: "check" }).count(), 3);
    assert.equal(await people(kv, { indexMode: "off" }).count(), 3);
    await people(kv, { indexes: {} }).ready();
    assert.deepEqual(
      (await kv.listIndexes()).map(({ name }) => name),
      ["by hand"],
    );
  });

  test("collections whose prefixes are alike keep their own indexes", async () => {
    const kv = await fresh();
    const at = ["tenants", "a".repeat(36), "projects", "b".repeat(36)];
    const far = Array.from({ length: 6 }, () => "c".repeat(100));
    const options = { schema: free, id: "id", indexes: { email: { unique: true } } };
    const prefixes = [
      [...at, "users"],
      [...at, "tasks"],
      [...far, "users"],
      [...far, "tasks"],
      ["i", Uint8Array.of(1, 1)],
      ["i", Uint8Array.of(2, 2)],
      ["n", -0],
      ["n", 0],
      ["é😀".repeat(60), "users"],
      ["é😀".repeat(60), "tasks"],
    ];
    for (const prefix of prefixes) {
      const own = kv.collection(prefix, options);
      await own.insert({ id: 1, email: "a" });
      await own.ready();
    }
    assert.equal((await kv.listIndexes()).length, prefixes.length);
    for (const prefix of prefixes) {
      const again = kv.collection(prefix, options).insert({ id: 2, email: "a" });
      await assert.rejects(again, KvUniqueError);
    }
    await kv.collection(prefixes[2], { schema: free, id: "id", indexes: {} }).ready();
    const left = (await kv.listIndexes()).map(({ prefix }) => prefix);
    assert.equal(left.length, prefixes.length - 1);
    assert.ok(!left.some((prefix) => prefix.length === 7 && prefix[6] === "users"));
  });

  test("documents that are not unique fail a unique index", async () => {
    const kv = await peopled();
    await people(kv, { indexes: {} }).update(3, { email: "a" });
    await assert.rejects(people(kv).ready(), KvUniqueError);
  });

  test("a schema of a handle reads and writes documents by their keys", async () => {
    const { kv, users } = await filled(fresh);
    const pairs = kv.collection(["pairs", 1n], { schema: free, id: ([left]) => left });
    const db = kv.schema({ users, pairs });
    await db.set(["users", "zoe"], { id: "zoe", email: "Z" }, { expireIn: 60_000 });
    assert.equal((await db.get(["users", "zoe"])).value.email, "z", "as the schema returns it");
    assert.notEqual((await kv.ttl(["users", "zoe"])).expireAt, null);
    await db.set(["pairs", 1n, 2], [2, "two"]);
    assert.deepEqual((await pairs.get(2)).value, [2, "two"]);
    await db.delete(["users", "zoe"]);
    assert.equal((await db.get(["users", "zoe"])).value, null);
    await assert.rejects(db.set(["users", "zoe"], { id: "zoe" }), KvValidationError);
    assert.equal(db.collections.users, users);
  });

  test("a watch has the document after each change", async () => {
    const { users } = await filled(fresh);
    const reader = users.watch("ada").getReader();
    assert.equal((await reader.read()).value.value.age, 36);
    await users.update("ada", { age: 37 });
    assert.equal((await reader.read()).value.value.age, 37);
    await users.delete("ada");
    assert.equal((await reader.read()).value, null);
    await reader.cancel();
  });

  test("changes has those of documents", async () => {
    const { kv, users } = await filled(fresh);
    const reader = users.changes().getReader();
    await kv.set(["users", "ada", "deep"], 1);
    await users.update("ada", { age: 1 });
    await users.delete("bob");
    const seen = [];
    while (seen.length < 2) {
      const { value } = await reader.read();
      assert.notEqual(value.changes.length, 0);
      for (const change of value.changes) seen.push([change.type, change.id, change.value?.age]);
    }
    await reader.cancel();
    assert.deepEqual(seen, [
      ["set", "ada", 1],
      ["delete", "bob", undefined],
    ]);
  });
});

test("an asynchronous schema is refused, and nothing is written", async () => {
  const kv = await openKv(":memory:");
  const schema = {
    "~standard": { version: 1, vendor: "test", validate: async (value) => ({ value }) },
  };
  for (const late of [schema, async (value) => value]) {
    const things = kv.collection(["things"], { schema: late, id: "ulid" });
    await assert.rejects(
      things.insert({}),
      /the schema is asynchronous: make what it has to wait for/,
    );
    assert.equal(await things.count(), 0);
  }
  const broken = async () => Promise.reject(new Error("late"));
  const things = kv.collection(["things"], { schema: broken, id: "ulid" });
  await assert.rejects(things.insert({}), /asynchronous/);
  await kv.close();
});

test("a watch of a document reads nothing ahead: the newest state counts", async () => {
  const kv = await openKv(":memory:");
  const users = kv.collection(["users"], { schema: free, id: "id" });
  await users.insert({ id: "ada", age: 1 });
  const reader = users.watch("ada").getReader();
  assert.equal((await reader.read()).value.value.age, 1);
  await users.update("ada", { age: 2 });
  await users.update("ada", { age: 3 });
  assert.equal((await reader.read()).value.value.age, 3);
  await reader.cancel();
  await kv.close();
});

test("an asynchronous change is refused, and the document stays", async () => {
  const kv = await openKv(":memory:");
  const copying = kv.collection(["things"], { schema: (value) => ({ ...value }), id: "ulid" });
  const { id } = await copying.insert({ n: 1 });
  const refused = /update: the change is asynchronous: make what it has to wait for before/;
  await assert.rejects(
    copying.update(id, async (old) => ({ ...old, n: 2 })),
    refused,
  );
  await assert.rejects(
    copying.update(id, async () => Promise.reject(new Error("late"))),
    refused,
  );
  assert.deepEqual((await copying.get(id)).value, { n: 1 });
  await kv.close();
});

test("more than one step of a migration counts each document once", async () => {
  const kv = await openKv(":memory:");
  const old = kv.collection(["n"], { schema: free, id: "n" });
  for (let at = 0; at < 250; at += 50) {
    await old.insertMany(Array.from({ length: 50 }, (_, i) => ({ n: at + i })));
  }
  const newer = kv.collection(["n"], {
    schema: free,
    id: "n",
    version: 3,
    indexes: { n: { unique: true } },
  });
  const ending = new AbortController();
  const onProgress = () => ending.abort(new Error("stopped"));
  await assert.rejects(newer.migrateAll({ onProgress, signal: ending.signal }), /stopped/);
  assert.deepEqual(await newer.migrateAll(), { migrated: 150 });
  assert.equal((await kv.listIndexes()).length, 1, "the declared index is made before");
  assert.equal(await kv.count({ prefix: ["n"] }, { where: { __version: 3 } }), 250);
  await kv.close();
});

// A rejection of onProgress was unhandled and ended the process, and the migration went on.
test("migrateAll ends with the error of its callback, and obeys its signal from the beginning", async () => {
  const kv = await openKv(":memory:");
  for (let i = 0; i < 150; i++) await kv.set(["n", i], { i });
  const options = { schema: (value) => value, id: "i", version: 2, migrate: (old) => old };
  const newer = kv.collection(["n"], options);
  const fails = async () => {
    throw new Error("enough");
  };
  await assert.rejects(newer.migrateAll({ onProgress: fails }), { message: "enough" });
  assert.equal(await kv.count({ prefix: ["n"] }, { where: { __version: 2 } }), 100);
  const first = kv.collection(["n"], { schema: (value) => value, id: "i" });
  for (const collection of [first, newer]) {
    const signal = AbortSignal.abort(new Error("stopped"));
    await assert.rejects(collection.migrateAll({ signal }), { message: "stopped" });
    await assert.rejects(collection.migrateAll({ signal: 5 }), /signal must be an AbortSignal/);
  }
  await kv.close();
});
