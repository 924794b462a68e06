// Duty: two installed copies of the package in one process, on one file whose locks do not exclude
// them: the second is rejected as long as the first has the file open. Both were once admitted, and
// acknowledged commits were lost.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { newFolder } from "../kit/folder.mjs";
import { OFD, makeFaults, skip } from "./background/subject-process.mjs";

/** Opens one file with both copies in turn; prints what each attempt answered. */
async function subject([one, two], folder) {
  const path = `${folder}/kv`;
  const openings = [];
  const open = async (copy, at) => {
    try {
      const kv = await require(copy).openKv(at);
      openings.push("open");
      return kv;
    } catch ({ code, message }) {
      openings.push({ code, message });
    }
  };
  const a = await open(one, path);
  await a.set(["a"], 1);
  await open(two, path);
  require("node:fs").symlinkSync(path, `${folder}/link`);
  await open(two, `${folder}/link`);
  const again = await open(one, path);
  const other = await open(two, `${folder}/other`);
  await a.close();
  await open(two, path);
  await again.close();
  const b = await open(two, path);
  openings.push((await b.get(["a"])).value);
  await open(one, path);
  await b.close();
  await other.close();
  console.log(JSON.stringify(openings));
}

test("a second copy of openkv is rejected until the first has closed the file", { skip }, () => {
  const folder = realpathSync(newFolder("copies"));
  const copies = ["one", "two"].map((name) => {
    const to = join(folder, name);
    mkdirSync(to);
    for (const each of ["dist", "index.cjs", "index.js", "package.json"]) {
      cpSync(new URL(`../../${each}`, import.meta.url), join(to, each), { recursive: true });
    }
    return join(to, "index.js");
  });
  const { env, controlPath } = makeFaults(folder);
  writeFileSync(controlPath, new Uint8Array(new Int32Array([OFD, 1, 0x3fffffff, 0]).buffer));
  const source = `(${subject})(${JSON.stringify(copies)}, ${JSON.stringify(folder)})`;
  const options = { env: { ...process.env, ...env }, encoding: "utf8", timeout: 60_000 };
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", source], options);
  const openings = JSON.parse(stdout || JSON.stringify(stderr));
  const { version } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  const refused = (at, holder, asker) => {
    const { code, message } = openings[at];
    assert.equal(code, "UNAVAILABLE", message);
    const named = (name) => `openkv ${version} at ${join(folder, name)}/`;
    const order = [named(holder), " has it, ", named(asker)].map((words) => message.indexOf(words));
    assert.ok(order[0] >= 0 && order[0] < order[1] && order[1] < order[2], message);
  };
  assert.equal(openings.length, 9, JSON.stringify(openings));
  assert.equal(openings[0], "open");
  refused(1, "one", "two");
  refused(2, "one", "two");
  assert.deepEqual(openings.slice(3, 5), ["open", "open"]);
  refused(5, "one", "two");
  assert.deepEqual(openings.slice(6, 8), ["open", 1]);
  refused(8, "two", "one");
});
