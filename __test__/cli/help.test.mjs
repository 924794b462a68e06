// Duty: every command, argument and option says what it is.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openkv } from "./running.mjs";

const { makeProgram } = createRequire(import.meta.url)("../../build/cli/main.js");

function* commandsOf(command, path = []) {
  for (const one of command.commands) {
    yield [[...path, one.name()], one];
    yield* commandsOf(one, [...path, one.name()]);
  }
}

const all = [...commandsOf(makeProgram())];

test("every command, argument and option is described", () => {
  assert.ok(all.length > 35, `${all.length}`);
  for (const [path, command] of all) {
    assert.notEqual(command.description(), "", path.join(" "));
    for (const one of [...command.registeredArguments, ...command.options]) {
      const name = `${path.join(" ")} ${one.flags ?? one.name()}`;
      assert.ok(one.description, name);
      if (one.flags) assert.ok(command.helpInformation().includes(one.flags), name);
    }
  }
});

test("no option of a command hides one that all have", () => {
  const names = new Set(makeProgram().options.flatMap(({ short, long }) => [short, long]));
  for (const [path, command] of all) {
    for (const { short, long } of command.options) {
      for (const name of [short, long]) {
        if (name != null) assert.ok(!names.has(name), `${path.join(" ")} ${name}`);
      }
    }
  }
});

test("every option of time takes units", () => {
  const options = all.flatMap(([, command]) => command.options);
  const timed = options.filter(({ flags, parseArg }) => flags.includes("<duration") && parseArg);
  assert.ok(timed.length >= 9, `${timed.length}`);
  for (const { flags, parseArg, description } of timed) {
    assert.deepEqual([parseArg("1h30m")].flat(), [5_400_000], flags);
    assert.deepEqual([parseArg("90")].flat(), [90], flags);
    assert.match(description, /a number alone is milliseconds/, flags);
  }
  for (const { flags } of options) assert.doesNotMatch(flags, /<ms/);
});

test("every command is on the page", () => {
  const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
  for (const [path, command] of all) {
    if (command.commands.length > 0) continue;
    assert.ok(
      page.includes(`\`${path.join(" ")}`) || page.includes(` ${path.join(" ")} `),
      path.join(" "),
    );
  }
});

test("help is an exit code of 0 at every level", async () => {
  const cases = [["--help"], ["dead", "--help"], ["dead", "list", "--help"], ["help", "index"]];
  const helps = await Promise.all(cases.map((args) => openkv(...args)));
  for (const { code, out, err } of helps) {
    assert.deepEqual([code, err], [0, ""]);
    assert.match(out, /^Usage: openkv/);
  }
});
