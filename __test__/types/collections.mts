// Duty: what compiles with collections, and what does not. Compiled, never run.

import type { Kv, KvCollection, KvDocument, KvStandardSchema } from "openkv";

declare const kv: Kv;

interface UserInput {
  id: string;
  email: string;
  age?: number;
}
interface User {
  id: string;
  email: string;
  age: number;
  address: { city: string };
}
declare const UserSchema: KvStandardSchema<UserInput, User>;

const users = kv.collection(["users"], { schema: UserSchema, id: "id" });
export const declared: KvCollection<User, UserInput, string> = users;

export const inserted: Promise<KvDocument<User, string>> = users.insert({ id: "ada", email: "a" });
// @ts-expect-error: the schema requires an email
users.insert({ id: "ada" });
// @ts-expect-error: no such property
users.insert({ id: "ada", email: "a", nmae: "Ada" });
users.update("ada", { age: 37 });
users.update("ada", (user) => ({ ...user, age: user.age + 1 }));
// @ts-expect-error: an age is a number
users.update("ada", { age: "37" });
// @ts-expect-error: ids are texts
users.get(5);
users.find({ email: "a", "address.city": { $startsWith: "L" }, age: { $gte: 18 } });
// @ts-expect-error: no such path
users.find({ "address.ctiy": "London" });
// @ts-expect-error: no such operator
users.where({ age: { $gtt: 18 } });
// @ts-expect-error: an age is a number
users.count({ age: "18" });
for await (const { id, value, versionstamp } of users.where({ age: 18 }).reverse().limit(5)) {
  const all: [string, number, string] = [id, value.age, versionstamp];
  console.log(all);
}
kv.atomic().insert(users, { id: "ada", email: "a" }).set(["n"], 1);
// @ts-expect-error: the schema requires an email
kv.atomic().insert(users, { id: "ada" });
await kv.transaction(async (tx) => {
  const ada = await users.in(tx).get("ada");
  const version: string | null | undefined = ada?.versionstamp;
  return version;
});
for await (const { changes } of users.changes()) {
  for (const change of changes) {
    if (change.type === "set") console.log(change.id.toUpperCase(), change.value.age);
  }
}

// A schema may be a function; ids may be made, or be calculated.
const logs = kv.collection(["logs"], { schema: (line: { text: string }) => line, id: "ulid" });
export const made: Promise<string> = logs.insert({ text: "a" }).then(({ id }) => id);
const pairs = kv.collection(["pairs"], {
  schema: (pair: [bigint, string]) => pair,
  id: ([left]) => left,
});
pairs.get(7n);
// @ts-expect-error: ids are bigints
pairs.get(7);
// @ts-expect-error: documents have no such property
kv.collection(["users"], { schema: UserSchema, id: "uid" });
// @ts-expect-error: the ids of documents cannot be objects
kv.collection(["users"], { schema: UserSchema, id: (user) => user.address });

const db = kv.schema({ users, logs, pairs });
await db.set(["users", "ada"], { id: "ada", email: "a" });
// @ts-expect-error: no such property
await db.set(["users", "ada"], { id: "ada", nmae: "a" });
// @ts-expect-error: no such key
await db.get(["user", "ada"]);
// @ts-expect-error: ids are bigints
await db.delete(["pairs", 7]);
export const age: number | undefined = (await db.get(["users", "ada"])).value?.age;
export const pair: [bigint, string] | null = (await db.get(["pairs", 7n])).value;
export const key: [string, string] = users.key("ada");

const people = kv.collection(["people"], {
  schema: UserSchema,
  id: "id",
  indexes: {
    email: { unique: true },
    byCity: { on: ["address.city", { path: "age", order: "desc" }] },
  },
});
people.where({ "address.city": "London" }).orderBy("age", "desc").limit(10);
people.list().orderBy({ "address.city": "asc", age: "desc" });
people.list().orderBy("email");
// @ts-expect-error: no index has the path
people.list().orderBy("id");
// @ts-expect-error: there is no index
users.list().orderBy("email");
kv.collection(["people"], {
  schema: UserSchema,
  id: "id",
  // @ts-expect-error: documents have no such path
  indexes: { byTown: { on: "address.town" } },
});
