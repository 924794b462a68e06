// Duty: a unique secondary index. Users are stored by id and found by e-mail address, and no two
// users ever share one. The record and its index entry are written in one commit, so that neither
// exists without the other; a commit that lost a race is tried again from fresh reads.
//
//   node examples/unique-index.mjs [database file]

import { openKv } from "openkv";

/** After so many lost races in a row something is wrong with more than luck. */
const ATTEMPTS_MAX = 100;

const kv = await openKv(process.argv[2] ?? ":memory:");

const userKey = (id) => ["users", id];
const emailKey = (email) => ["users_by_email", email.toLowerCase()];

/** False when the id or the address is taken. */
async function insertUser(user) {
  const { ok } = await kv
    .atomic()
    .check({ key: userKey(user.id), versionstamp: null })
    .check({ key: emailKey(user.email), versionstamp: null })
    .set(userKey(user.id), user)
    .set(emailKey(user.email), user.id)
    .commit();
  // Nothing to retry: the checks ask for absence, so a lost race means that it is taken.
  return ok;
}

/** The user with an address, or null. */
async function getUserByEmail(email) {
  const { value: id } = await kv.get(emailKey(email));
  if (id === null) {
    return null;
  }
  const { value: user } = await kv.get(userKey(id));
  // The address may have moved to another user between the two reads.
  return user?.email.toLowerCase() === email.toLowerCase() ? user : null;
}

/** Applies `change` to a user; false when there is none or the new address is taken. */
function updateUser(id, change) {
  return retryOnConflict(async () => {
    const entry = await kv.get(userKey(id));
    if (entry.value === null) {
      return false;
    }
    const user = { ...change(entry.value), id };
    const operation = kv.atomic().check(entry).set(entry.key, user);
    const [from, to] = [emailKey(entry.value.email), emailKey(user.email)];
    if (from[1] !== to[1]) {
      if ((await kv.get(to)).value !== null) {
        return false;
      }
      operation.check({ key: to, versionstamp: null }).delete(from).set(to, id);
    }
    return (await operation.commit()).ok ? true : "conflict";
  });
}

/** False when there was no such user. */
function deleteUser(id) {
  return retryOnConflict(async () => {
    const entry = await kv.get(userKey(id));
    if (entry.value === null) {
      return false;
    }
    const operation = kv.atomic().check(entry).delete(entry.key);
    const { ok } = await operation.delete(emailKey(entry.value.email)).commit();
    return ok ? true : "conflict";
  });
}

async function retryOnConflict(attempt) {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    const result = await attempt();
    if (result !== "conflict") {
      return result;
    }
  }
  throw new Error(`gave up after ${ATTEMPTS_MAX} conflicts`);
}

const ada = { id: 1, email: "ada@example.org", logins: 0 };
console.log("insert ada:", await insertUser(ada));
console.log("insert a second user with her address:", await insertUser({ ...ada, id: 2 }));
console.log("insert alan:", await insertUser({ id: 2, email: "alan@example.org", logins: 0 }));
console.log("by address:", (await getUserByEmail("Ada@Example.org")).id);

const login = (user) => ({ ...user, logins: user.logins + 1 });
await Promise.all(Array.from({ length: 20 }, () => updateUser(1, login)));
console.log("20 logins at once, counted:", (await getUserByEmail("ada@example.org")).logins);

const move = (email) => (user) => ({ ...user, email });
console.log("take alan's address:", await updateUser(1, move("alan@example.org")));
console.log("take a free address:", await updateUser(1, move("ada@lovelace.example")));
console.log("by the old address:", await getUserByEmail("ada@example.org"));
console.log("by the new address:", (await getUserByEmail("ada@lovelace.example")).id);
console.log("delete ada:", await deleteUser(1), "and again:", await deleteUser(1));
console.log("by the new address:", await getUserByEmail("ada@lovelace.example"));
kv.close();
