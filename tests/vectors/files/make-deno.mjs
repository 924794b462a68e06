// Duty: creates deno.sqlite3 in this folder, a file as Deno KV writes it, with the Deno of
// __test__/runtime/package.json:
//
//   deno run -A --unstable-kv tests/vectors/files/make-deno.mjs

import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fill } from "../../../__test__/deno-files/matrix.mjs";

const path = fileURLToPath(new URL("deno.sqlite3", import.meta.url));
for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
const kv = await Deno.openKv(path);
await fill(kv, (n) => new Deno.KvU64(n));
// A value that only Deno can read.
await kv.set(["only Deno", "Blob"], new Blob(["x"]));
const algorithm = { name: "HMAC", hash: "SHA-256" };
await kv.set(
  ["only Deno", "CryptoKey"],
  await crypto.subtle.generateKey(algorithm, false, ["sign"]),
);
await kv.set(["gone"], 1);
await kv.delete(["gone"]);
// In the past when a test reads the file, so that it is due.
await kv.enqueue({ job: 1 }, { backoffSchedule: [1, 2], keysIfUndelivered: [["dead", 1]] });
await kv.enqueue("second", { backoffSchedule: [], keysIfUndelivered: [["dead", 2]] });
await kv.enqueue("in a month", { delay: 30 * 86_400_000 });
kv.close();
