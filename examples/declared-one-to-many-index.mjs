// Duty: what one-to-many-index.mjs does, with an index that is declared: tasks are listed by their owner.
//
//   node examples/declared-one-to-many-index.mjs [database file]

import { KvConflictError, openKv } from "openkv";

const kv = await openKv(process.argv[2] ?? ":memory:");
const tasks = kv.collection(["tasks"], {
  schema: (task) => task,
  id: "id",
  indexes: { owner: {} },
});

const idsOf = async (owner) => (await tasks.findMany({ owner })).map(({ id }) => id);
const show = async (owner) => (await idsOf(owner)).join(" ") || "none";

for (const id of [1, 2, 3]) {
  await tasks.insert({ id, owner: "ada", title: `engine part ${id}` });
}
await tasks.insert({ id: 4, owner: "alan", title: "the tape" });
const taken = await tasks.insert({ id: 4, owner: "ada", title: "?" }).catch((error) => error);
console.log("insert a taken id:", !(taken instanceof KvConflictError));
console.log("ada has:", await show("ada"), "| alan has:", await show("alan"));

// Two hand the same task over at once: it ends with one of them, never with both or neither.
await Promise.all([tasks.update(2, { owner: "alan" }), tasks.update(2, { owner: "grace" })]);
const holders = await Promise.all(["ada", "alan", "grace"].map(idsOf));
console.log("holders of task 2:", holders.flat().filter((id) => id === 2).length);

console.log("delete task 1:", await tasks.delete(1), "and again:", await tasks.delete(1));
console.log("ada has:", await show("ada"));
kv.close();
