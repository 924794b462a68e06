// Duty: the first five minutes with openkv. Run it with `npm start`.
// It keeps its database in a temporary folder and removes it at the end.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openKv } from "openkv";

const folder = await mkdtemp(join(tmpdir(), "openkv-quickstart-"));
const path = join(folder, "kv.sqlite3");

let kv = await openKv(path);
console.log("Opened a new database.");

// A key is an array of parts; a value is nearly anything JavaScript can hold.
await kv.set(["users", "ada"], { name: "Ada", born: new Date("1815-12-10"), tags: new Set(["x"]) });
await kv.set(["users", "alan"], { name: "Alan", born: new Date("1912-06-23"), tags: new Set() });
const ada = await kv.get(["users", "ada"]);
console.log(`Stored and read back: ${ada.value.name}, born in ${ada.value.born.getUTCFullYear()}.`);

// Keys are sorted, so a prefix is a folder that can be listed.
for await (const { key, value } of kv.list({ prefix: ["users"] })) {
  console.log(`Listed: ${key.join("/")} is ${value.name}.`);
}

// A commit happens completely or not at all, and only if the checked entry is unchanged.
const renamed = { ...ada.value, name: "Ada Lovelace" };
const first = await kv.atomic().check(ada).set(ada.key, renamed).commit();
const second = await kv.atomic().check(ada).set(ada.key, { name: "too late" }).commit();
console.log(`First writer: ${outcome(first)}. Second, who had read the same: ${outcome(second)}.`);

// Sums need no check: a thousand callers may add at once and none is lost.
await Promise.all(Array.from({ length: 1000 }, () => kv.atomic().sum(["visits"], 1n).commit()));
console.log(`Counted ${(await kv.get(["visits"])).value} visits.`);

// An entry can expire.
await kv.set(["session", "s1"], "short-lived", { expireIn: 50 });
await new Promise((resolve) => setTimeout(resolve, 400));
const session = (await kv.get(["session", "s1"])).value;
console.log(`After its time, the session is ${session === null ? "gone" : "still there"}.`);

// Every acknowledged write is on the disk.
kv.close();
kv = await openKv(path);
const again = await kv.get(["users", "ada"]);
console.log(`Closed and opened again: ${again.value.name} is still here.`);

kv.close();
await rm(folder, { recursive: true });
console.log("Done. Now read README.md, or the other files in examples/.");

function outcome(result) {
  return result.ok ? "committed" : "refused";
}
