// Duty: what unique-index.mjs does, with an index that is declared: a collection of users in which no two have
// one address. Every commit keeps the index, whatever writes.
//
//   node examples/declared-unique-index.mjs [database file]

import { KvConflictError, KvUniqueError, openKv } from "openkv";

const kv = await openKv(process.argv[2] ?? ":memory:");
const users = kv.collection(["users"], {
  schema: (user) => ({ ...user, email: user.email.toLowerCase() }),
  id: "id",
  indexes: { email: { unique: true } },
});

/** Whether a write happened; false when the id or the address is taken, or there is no such user. */
async function done(write) {
  try {
    return (await write) !== null;
  } catch (error) {
    if (error instanceof KvUniqueError || error instanceof KvConflictError) return false;
    throw error;
  }
}

const byAddress = (email) => users.find({ email: email.toLowerCase() });

const ada = { id: 1, email: "ada@example.org", logins: 0 };
console.log("insert ada:", await done(users.insert(ada)));
console.log("insert a second user with her address:", await done(users.insert({ ...ada, id: 2 })));
const alan = { id: 2, email: "alan@example.org", logins: 0 };
console.log("insert alan:", await done(users.insert(alan)));
console.log("by address:", (await byAddress("Ada@Example.org")).id);

const login = (user) => ({ ...user, logins: user.logins + 1 });
for (let round = 0; round < 4; round++) {
  await Promise.all(Array.from({ length: 5 }, () => users.update(1, login)));
}
console.log("20 logins, counted:", (await byAddress("ada@example.org")).value.logins);

const move = (email) => done(users.update(1, { email }));
console.log("take alan's address:", await move("alan@example.org"));
console.log("take a free address:", await move("ada@lovelace.example"));
console.log("by the old address:", await byAddress("ada@example.org"));
console.log("by the new address:", (await byAddress("ada@lovelace.example")).id);
console.log("delete ada:", await users.delete(1), "and again:", await users.delete(1));
console.log("by the new address:", await byAddress("ada@lovelace.example"));
kv.close();
