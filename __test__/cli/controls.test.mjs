// Duty: what is stored cannot steer the terminal: control characters of keys, values, names and
// errors are printed as escapes, in text, in JSON and on standard error.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { folderOfTests, openkv } from "./running.mjs";

const path = folderOfTests();

/** Clears the screen, sets the title, goes back over the line, deletes, and is CSI in one character. */
const BAD = "\x1b[2J\x1b]0;owned\x07\r\b\x7f\x9b31m\x00\u0085";
const CONTROL = /[\0-\x09\x0b-\x1f\x7f-\x9f]/;

function refuse(text, what) {
  const found = CONTROL.exec(text);
  assert.equal(
    found,
    null,
    `${what}: U+${found?.[0].charCodeAt(0).toString(16)} in ${JSON.stringify(text)}`,
  );
}

const values = {
  string: BAD,
  named: { [BAD]: [BAD, new Map([[BAD, BAD]])] },
  error: Object.assign(new Error(BAD), { stack: `Error: ${BAD}\n    at ${BAD}` }),
  regexp: new RegExp(BAD.replaceAll("[", "\\[").replaceAll("]", "\\]")),
  exception: new DOMException(BAD, BAD),
  boxed: Object(BAD),
  file: new File(["a"], BAD),
};

test("nothing that is stored reaches the terminal as a control character", async () => {
  const file = path("controls.db");
  const kv = await openKv(file);
  for (const [name, value] of Object.entries(values)) await kv.set([BAD, name], value);
  await kv.queue(BAD).enqueue(BAD);
  await kv.queue(BAD).enqueue("dies", { backoffSchedule: [] });
  const failing = async () => {
    const message = await kv.queue(BAD).receive();
    await message.nack({ error: Object.assign(new Error(BAD), { name: BAD }) });
  };
  await kv.queue("dead").enqueue(BAD, { backoffSchedule: [] });
  const dead = await kv.queue("dead").receive();
  await dead.nack({ error: Object.assign(new Error(BAD), { name: BAD }) });
  await failing();
  await kv.set(["docs", BAD], { [`t`]: `word ${BAD} and more\nin two lines` });
  await (await kv.createIndex({ prefix: ["docs"], fields: ["t"], name: BAD })).ready();
  await kv.close();

  const key = `["${JSON.stringify(BAD).slice(1, -1).replace("\x7f", "\\x7f").replace("\x9b", "\\x9b").replace("\u0085", "\\x85")}", "string"]`;
  const commands = [
    ["list"],
    ["list", "--keys"],
    ["get", key],
    ["get", '["nobody"]'],
    ["queue", "list"],
    ["queue", "stats", BAD.replaceAll("\0", "")],
    ["dead", "list", "dead"],
    ["index", "list"],
    ["search", "docs", "word"],
    ["search", "docs", "word", "--highlight"],
    ["search", BAD.replaceAll("\0", ""), "word"],
    ["get", `["${BAD.replaceAll("\0", "")}`],
  ];
  for (const command of commands) {
    for (const json of [[], ["--json"]]) {
      const { out, err, code } = await openkv("-d", file, ...json, ...command);
      assert.ok(code === 0 || err !== "", command.join(" "));
      refuse(out, `${command[0]} ${json}: standard output`);
      refuse(err, `${command[0]} ${json}: standard error`);
    }
  }
});

// A key from a script that began with a dash was an unknown option, and steered the terminal.
test("nor does a word of the command line in an error", async () => {
  const bad = BAD.replaceAll("\0", "");
  for (const args of [[`-${bad}`], [bad], ["list", "--limit", bad], ["token", "create", bad]]) {
    const { code, err } = await openkv(...args);
    assert.equal(code, 2);
    refuse(err, args.join(" "));
  }
});

test("what is printed of a key, typed again, is the same key", async () => {
  const file = path("again.db");
  const kv = await openKv(file);
  await kv.set([BAD, 1], "found");
  await kv.close();
  const { out } = await openkv("-d", file, "list");
  const key = /^\[.*?\](?= @)/.exec(out)[0];
  assert.match((await openkv("-d", file, "get", key)).out, /found/);
  const { out: line } = await openkv("-d", file, "--json", "list");
  assert.equal(JSON.parse(line).key[0].value, BAD);
});

test("with colours too, which stay where there is nothing to escape", () => {
  const output = JSON.stringify(
    fileURLToPath(new URL("../../build/cli/output.js", import.meta.url)),
  );
  const program = `
    const { printEntry, printValued } = require(${output});
    const style = { json: false, color: true };
    const BAD = ${JSON.stringify(BAD)};
    (async () => {
      await printEntry({ key: [BAD], value: { plain: 1 }, versionstamp: "0" }, style);
      await printEntry({ key: ["k"], value: new RegExp("\\x9b31m"), versionstamp: "0" }, style);
      await printValued({ error: BAD }, BAD, style);
    })();`;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8" });
  assert.equal(stderr, "");
  assert.match(stdout, /\x1b\[33m1\x1b\[39m/);
  refuse(stdout.replace(/\x1b\[\d+m/g, ""), "in colours");
  assert.ok(!stdout.includes("\x9b"));
});
