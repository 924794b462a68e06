// Duty: what is told of the command is what it does: its pages, its examples, its exit codes, its
// completion.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { written } from "../../scripts/cli-reference.mjs";
import { ended, folderOfTests, openkv, start } from "./running.mjs";

const require = createRequire(import.meta.url);
const { makeProgram } = require("../../build/cli/main.js");
const { EXAMPLES } = require("../../build/cli/manual.js");
const { EXIT_CODES } = require("../../build/cli/exit-codes.js");
const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
const path = folderOfTests();

function* leavesOf(command, words = []) {
  for (const one of command.commands) {
    if (one.commands.length === 0) yield [[...words, one.name()].join(" "), one];
    yield* leavesOf(one, [...words, one.name()]);
  }
}

test("the page has every command and option of the program, and no others", () => {
  assert.equal(page, written(), "run npm run generate");
  const program = makeProgram();
  const commands = [program, ...[...leavesOf(program)].map(([, one]) => one)];
  const known = new Set([
    "--help",
    ...commands.flatMap(({ options }) => options.map(({ long }) => long)),
  ]);
  // What stands in front of the section that is made is held to the program too.
  const typed = page
    .slice(0, page.indexOf("## All commands"))
    .matchAll(/(?<![\w-])(--[a-z][a-z-]*[a-z])(?![\w-]|…)/g);
  for (const [, name] of typed) assert.ok(known.has(name), name);
});

test("the page, every --help and the command have the same exit codes", async () => {
  const table = [...page.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, meaning]) => [
    Number(code),
    meaning,
  ]);
  assert.deepEqual(table, EXIT_CODES);
  const db = path("codes.db");
  assert.equal((await openkv("-d", db, "set", "k", "1")).code, 0);
  assert.equal((await openkv("-d", db, "get", "nothing")).code, 1);
  assert.equal((await openkv("-d", db, "get")).code, 2);
  const child = start(["-d", db, "import", "-"]);
  // It listens for the signal once it reads its input, and no pipe holds so much that is not read.
  await new Promise((resolve) => child.stdin.write("\n".repeat(1 << 20), resolve));
  assert.equal(await ended(child, "SIGINT"), 130);
});

test("every command's --help has options, examples and exit codes", async () => {
  const { out, code } = await openkv("list", "--help");
  assert.equal(code, 0);
  for (const part of [
    "Usage: openkv list",
    "Arguments:",
    "Options:",
    "Global Options:",
    "Examples:",
    "Exit codes:",
  ]) {
    assert.ok(out.includes(part), part);
  }
  for (const [code, meaning] of EXIT_CODES)
    assert.match(out.replace(/\s+/g, " "), new RegExp(`${code} ${meaning}`));
  const names = [...leavesOf(makeProgram())].map(([name]) => name).sort();
  assert.deepEqual(Object.keys(EXAMPLES).sort(), names);
});

test("an option that takes a number tells its unit and its default", () => {
  for (const [name, leaf] of leavesOf(makeProgram())) {
    for (const { flags, description, mandatory } of leaf.options) {
      const [, unit] = /<(ms|count|bytes|n|0-9|ms,ms\.\.\.|n,n\.\.\.)>/.exec(flags) ?? [];
      if (unit === undefined || mandatory) continue;
      assert.match(description, /\(default: .+\)/, `${name} ${flags}`);
      if (unit === "ms") assert.match(description, /milliseconds/, `${name} ${flags}`);
    }
  }
});

/** As a shell would part it. */
function wordsOf(line) {
  const bare = line.replace(/ [<>] .*$/, "").replace(/^.*(?:<|\$)\((.*)\)$/, "$1");
  return [...bare.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain);
}

test("every example is a command line that the program takes", async () => {
  for (const [name, examples] of Object.entries(EXAMPLES)) {
    for (const example of examples) {
      const program = makeProgram().configureOutput({ writeErr: () => {} });
      let taken;
      for (const [of, leaf] of leavesOf(program)) leaf.exitOverride().action(() => (taken = of));
      const words = wordsOf(example).map((word) => (word.startsWith("--json=") ? "--json" : word));
      assert.equal(words[0], "openkv", example);
      await program.parseAsync(words.slice(1), { from: "user" });
      assert.equal(taken, name, example);
    }
  }
});

/** What bash offers where the line ends. */
async function completed(script, line) {
  const words = line.split(" ");
  const program = `${script}
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
    _openkv; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync("bash", ["-c", program], { encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout.split("\n").filter((word) => word !== "");
}

test("bash completes commands, options and what they take", {
  skip: spawnSync("bash", ["--version"]).error && "needs bash",
}, async () => {
  const { out: script, code } = await openkv("completion", "bash");
  assert.equal(code, 0);
  const cases = [
    ["openkv wat", ["watch"]],
    [
      "openkv queue ",
      [
        ...["list", "stats", "peek", "delete", "schedule", "unschedule", "schedules"],
        ...["cancel", "pause", "resume", "drain", "result"],
        ...["limit", "limits", "groups", "progress", "events", "receive", "listen"],
      ],
    ],
    ["openkv queue peek mail --state ", ["pending", "delayed", "processing"]],
    ["openkv -d queue queue re", ["resume", "result", "receive"]],
    ["openkv queue receive mail --wa", ["--wait"]],
    ["openkv serve --log ", ["none", "text", "json"]],
    ["openkv set k --raw - --as j", ["json"]],
    ["openkv -d app.sqlite3 get --ra", ["--raw"]],
    ["openkv get us", []],
    ["openkv nothing", []],
  ];
  for (const [line, expected] of cases)
    assert.deepEqual(await completed(script, line), expected, line);
});

test("every shell's script knows every command and option", async () => {
  const program = makeProgram();
  for (const shell of ["bash", "zsh", "fish"]) {
    const { out, code } = await openkv("completion", shell);
    assert.equal(code, 0);
    for (const [name, leaf] of leavesOf(program)) {
      assert.ok(
        out.includes(shell === "fish" ? `"${name}"` : `/${name.replaceAll(" ", "/")})`),
        `${shell}: ${name}`,
      );
      for (const { long } of leaf.options)
        assert.ok(out.includes(shell === "fish" ? `-l ${long.slice(2)}` : long), long);
    }
  }
  assert.equal((await openkv("completion", "tcsh")).code, 2);
});
