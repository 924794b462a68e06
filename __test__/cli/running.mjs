// Duty: the command as a process: with arguments, its output and its exit code; a folder for it, and
// what its files hold then.

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { endsWithTests } from "../kit/living.mjs";

export const bin = fileURLToPath(new URL("../../dist/cli/openkv.js", import.meta.url));

/** A folder that ends with the tests of the file, after the processes that may write there. */
export function folderOfTests() {
  const folder = newFolder("cli");
  after(() => rmSync(folder, { recursive: true, force: true }));
  return (name) => join(folder, name);
}

/** All entries of a database, as pairs. */
export async function contents(file) {
  const kv = await openKv(file);
  const entries = [];
  for await (const { key, value } of kv.list({ prefix: [] })) entries.push([key, value]);
  await kv.close();
  return entries;
}

/** What the machine's user has set says nothing here. */
const NEUTRAL = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(OPENKV_|DENO_KV_)/.test(name)),
);

/** Starts the command; `env` is added to the environment. */
export function start(args, env = {}, cwd = undefined) {
  const options = { cwd, env: { ...NEUTRAL, NO_COLOR: "1", ...env } };
  return endsWithTests(spawn(process.execPath, [bin, ...args], options));
}

/** Runs the command to its end; a last argument `{ input, env, cwd }` is its standard input and more. */
export function openkv(...args) {
  const { input = "", env, cwd } = typeof args.at(-1) === "object" ? args.pop() : {};
  return outcomeOf(start(args, env, cwd), input);
}

/** Runs a line of the shell, in which `$OPENKV` is the command. */
export function shell(line) {
  const OPENKV = `${process.execPath} ${bin}`;
  return outcomeOf(spawn("sh", ["-c", line], { env: { ...NEUTRAL, NO_COLOR: "1", OPENKV } }));
}

/** What a process has printed when it is at its end, and its exit code. */
export function outcomeOf(child, input = "") {
  endsWithTests(child);
  return new Promise((resolve) => {
    const output = { code: null, out: "", err: "" };
    child.stdout.on("data", (data) => (output.out += data));
    child.stderr.on("data", (data) => (output.err += data));
    child.on("close", (code) => resolve({ ...output, code }));
    // A process may end without having read its input.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

/** Why a test of pipes and devices cannot run here, or false. */
export const withoutShell = process.platform === "win32" && "needs a shell and its devices";

/** Resolves to the standard output once it has so many lines. */
export function linesOf(child, count) {
  return new Promise((resolve) => {
    let out = "";
    const take = (data) => {
      out += data;
      if (out.split("\n").length <= count) return;
      child.stdout.off("data", take);
      resolve(out.split("\n").slice(0, count));
    };
    child.stdout.on("data", take);
  });
}

/** Sends a signal; resolves to the exit code. */
export function ended(child, signal) {
  const exit = new Promise((resolve) => child.on("close", resolve));
  child.kill(signal);
  return exit;
}
