// Duty: a one-to-many secondary index. Tasks are stored by id and listed by their owner. The index
// key carries owner and id, so that one owner has many entries; it holds no copy of the task.
// Record and index entry are written in one commit, tried again from fresh reads after a conflict.
//
//   node examples/one-to-many-index.mjs [database file]

import { openKv } from "openkv";

/** After so many lost races in a row something is wrong with more than luck. */
const ATTEMPTS_MAX = 100;

const kv = await openKv(process.argv[2] ?? ":memory:");

const taskKey = (id) => ["tasks", id];
const ownerKey = (owner, id) => ["tasks_by_owner", owner, id];

/** False when the id is taken. */
async function insertTask(task) {
  const { ok } = await kv
    .atomic()
    .check({ key: taskKey(task.id), versionstamp: null })
    .set(taskKey(task.id), task)
    .set(ownerKey(task.owner, task.id), true)
    .commit();
  return ok;
}

/** All tasks of an owner, in the order of their ids. */
async function getTasksOf(owner) {
  const ids = [];
  for await (const { key } of kv.list({ prefix: ["tasks_by_owner", owner] })) {
    ids.push(key[2]);
  }
  const entries = await Promise.all(ids.map((id) => kv.get(taskKey(id))));
  // A task may have been deleted or given away since its index entry was read.
  return entries.map((entry) => entry.value).filter((task) => task?.owner === owner);
}

/** Applies `change` to a task and moves its index entry along; false when there is none. */
function updateTask(id, change) {
  return retryOnConflict(async () => {
    const entry = await kv.get(taskKey(id));
    if (entry.value === null) {
      return false;
    }
    const task = { ...change(entry.value), id };
    const operation = kv.atomic().check(entry).set(entry.key, task);
    if (task.owner !== entry.value.owner) {
      operation.delete(ownerKey(entry.value.owner, id)).set(ownerKey(task.owner, id), true);
    }
    return (await operation.commit()).ok ? true : "conflict";
  });
}

/** False when there was no such task. */
function deleteTask(id) {
  return retryOnConflict(async () => {
    const entry = await kv.get(taskKey(id));
    if (entry.value === null) {
      return false;
    }
    const operation = kv.atomic().check(entry).delete(entry.key);
    const { ok } = await operation.delete(ownerKey(entry.value.owner, id)).commit();
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

const show = async (owner) => (await getTasksOf(owner)).map((task) => task.id).join(" ") || "none";

for (const id of [1, 2, 3]) {
  await insertTask({ id, owner: "ada", title: `engine part ${id}`, edits: 0 });
}
await insertTask({ id: 4, owner: "alan", title: "the tape", edits: 0 });
console.log("insert a taken id:", await insertTask({ id: 4, owner: "ada", title: "?", edits: 0 }));
console.log("ada has:", await show("ada"), "| alan has:", await show("alan"));

const edit = (task) => ({ ...task, edits: task.edits + 1 });
await Promise.all(Array.from({ length: 20 }, () => updateTask(4, edit)));
console.log("20 edits at once, counted:", (await getTasksOf("alan"))[0].edits);

// Two hand the same task over at once: it ends with one of them, never with both or neither.
const give = (owner) => (task) => ({ ...task, owner });
await Promise.all([updateTask(2, give("alan")), updateTask(2, give("grace"))]);
const holders = await Promise.all(["ada", "alan", "grace"].map(getTasksOf));
console.log("holders of task 2:", holders.flat().filter((task) => task.id === 2).length);

console.log("delete task 1:", await deleteTask(1), "and again:", await deleteTask(1));
console.log("ada has:", await show("ada"));
kv.close();
