// A server of a folder with a long registry is killed while databases are created and dropped: it starts again with
// exactly those that were acknowledged, or were under way.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { newFolder } from "../kit/folder.mjs";
import { kill, spawnServer } from "./children.mjs";

const KILLS = 5;
const LANES = 4;
/** Enough for a registry of which changes lie beside. */
const DATABASES = 1500;
const CHANGES_MAX = 40;
const adminToken = "admin-token-of-the-killed-server";
const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/json" };

/** A registry as an earlier version has written it; its databases have no files. */
function writeRegistry(file) {
  const token = { id: "0a0b0c0d0e0f", rights: "admin", sha256: "A".repeat(43), createdMs: 1 };
  const databases = Array.from({ length: DATABASES }, (_, n) => ({
    name: `db-${n}`,
    id: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
    createdMs: 1,
    quotas: {},
    tokens: [token],
  }));
  writeFileSync(file, JSON.stringify({ format: 1, databases }, null, 2));
}

test("a killed server has all changes of its registry that were acknowledged", async () => {
  const path = newFolder("registry-kill");
  const registry = join(path, "openkv-server.json");
  writeRegistry(registry);
  const known = new Set(Array.from({ length: DATABASES }, (_, n) => `db-${n}`));
  let next = 0;
  for (let turn = 0; turn < KILLS; turn++) {
    const server = await spawnServer({ path, adminToken, listen: "127.0.0.1:0" });
    const admin = async (method, name, body) => {
      const url = `${server.url}/v1/admin/databases${name}`;
      const answer = await fetch(url, { method, headers, body }).catch(() => undefined);
      // The answer of a killed server may have come in part.
      const text = await answer?.text().catch(() => undefined);
      if (text === undefined) return undefined;
      assert.ok(answer.ok, `${method} ${name}: ${text}`);
      return text;
    };
    const under = new Set();
    let changes = 0;
    const dies = 1 + Math.floor(Math.random() * CHANGES_MAX);
    let killed;
    const lane = async () => {
      const own = [];
      while (killed === undefined) {
        const drops = own.length > 3;
        const name = drops ? own.shift() : `new-${next++}`;
        under.add(name);
        const body = drops ? undefined : JSON.stringify({ name });
        const done = await admin(drops ? "DELETE" : "POST", drops ? `/${name}` : "", body);
        if (done === undefined) return;
        under.delete(name);
        if (drops) known.delete(name);
        else known.add(name) && own.push(name);
        if (++changes === dies) killed = kill(server);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    await killed;
    assert.equal(JSON.parse(readFileSync(registry, "utf8")).format, 4);

    const again = await spawnServer({ path, adminToken, listen: "127.0.0.1:0" });
    const listed = await fetch(`${again.url}/v1/admin/databases`, { headers });
    const names = new Set((await listed.json()).map(({ name }) => name));
    for (const name of new Set([...names, ...known])) {
      if (under.has(name)) known[names.has(name) ? "add" : "delete"](name);
      else assert.equal(names.has(name), known.has(name), `${name}, turn ${turn}`);
    }
    await kill(again);
  }
  const beside = readdirSync(path).filter((name) => name.startsWith("openkv-server.changes-"));
  assert.equal(beside.length, 1);
});
