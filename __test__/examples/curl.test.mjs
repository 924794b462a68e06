// Duty: the commands of docs/http.md, and the example of the README, run, in their order, against a
// server that the first of them starts, and print what the page shows; the page names every route.
//
// Lines behind a command that begin with "# " are what it prints; "…" stands for any text. In a
// command, "…" as the value of a name stands for the value that was printed last under that name. A
// command that ends with & goes on, and prints what the lines behind it or behind the block's last
// command show.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { operations, document as readDocument, written } from "../../scripts/http-reference.mjs";
import { newFolder } from "../kit/folder.mjs";
import { until } from "../kit/time.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (page) => readFileSync(join(root, page), "utf8");
const HOST = "127.0.0.1:4512";
const noCurl = spawnSync("curl", ["--version"]).error && "needs curl";
const noBash = spawnSync("bash", ["--version"]).error && "needs bash";

const running = [];
after(() => running.forEach(({ pid }) => end(pid)));

function end(pid) {
  try {
    process.kill(-pid);
  } catch {
    // It has ended.
  }
}

/** The commands of a page's blocks of shell: `[{ command, expected }]` for each block. */
function blocksOf(text) {
  return [...text.matchAll(/^( *)```sh\n(.*?)```/gms)].map(([, indent, indented]) => {
    const block = indented.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    const commands = [];
    let open;
    for (const line of block.trimEnd().split("\n")) {
      if (open !== undefined) open.command += `\n${line}`;
      else if (line.startsWith("# ")) commands.at(-1).expected.push(line.slice(2));
      else commands.push((open = { command: line, expected: [] }));
      const isWhole =
        open === undefined || (open.command.split("'").length % 2 === 1 && !line.endsWith("\\"));
      if (isWhole) open = undefined;
    }
    return commands;
  });
}

/** A session of a reader of the page: a folder, a server, and what was printed so far. */
class Session {
  #folder = newFolder("curl");
  #printed = "";
  #url;

  #shell(command) {
    const functions = `
      openkv() { ${quoted(process.execPath)} ${quoted(join(root, "dist/cli/openkv.js"))} "$@"; }
      npx() { "$@"; }
      curl() { command curl --silent --show-error --fail-with-body --max-time 20 "$@"; }`;
    const env = { ...process.env };
    delete env.OPENKV_ACCESS_TOKEN;
    return spawn("bash", ["-c", `set -o pipefail\n${functions}\n${command}`], {
      cwd: this.#folder,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  /** Starts a command, whose output is in `text`. */
  start(command) {
    const child = this.#shell(this.#filled(command));
    const process = { pid: child.pid, text: "", errors: "" };
    running.push(process);
    child.stdout.on("data", (piece) => (process.text += piece));
    child.stderr.on("data", (piece) => (process.errors += piece));
    process.ended = new Promise((resolve) => child.on("close", resolve));
    return process;
  }

  async serve(command) {
    const [line] = command.split(" #");
    const server = this.start(`${line} --listen 127.0.0.1:0 --json`);
    await until(
      () => server.text.includes("\n"),
      () => server.errors,
    );
    this.#url = new URL(JSON.parse(server.text.split("\n")[0]).url);
  }

  async run(command) {
    const { ended, ...process } = this.start(command);
    const code = await ended;
    const { text, errors } = running.find(({ pid }) => pid === process.pid);
    assert.equal(code, 0, `${command}\n${text}${errors}`);
    this.#printed += text;
    return text;
  }

  #filled(command) {
    const last = (name) => {
      const all = [...this.#printed.matchAll(new RegExp(`"${name}":("[^"]*"|[^,}\\]]+)`, "g"))];
      assert.ok(all.length > 0, `no ${name} was printed before:\n${command}`);
      return all.at(-1)[1];
    };
    return command
      .replaceAll(HOST, this.#url?.host ?? HOST)
      .replace(/"(\w+)":"…"/g, (_, name) => `"${name}":${last(name)}`);
  }
}

function quoted(text) {
  return `'${text}'`;
}

/** Whether the lines are in the text, in this order and next to each other. */
function shows(text, lines) {
  if (lines.length === 0) return true;
  const escaped = lines.map((line) =>
    line
      .split("…")
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join(".*"),
  );
  return new RegExp(`^${escaped.join("\n")}$`, "m").test(text.trimEnd());
}

async function follow(page, blocks) {
  const session = new Session();
  let commands = 0;
  for (const block of blocks) {
    let background;
    for (const { command, expected } of block) {
      // It needs a connection that broke off: __test__/server/http/backup.test.mjs resumes downloads.
      if (command.includes(" -C - ")) continue;
      commands++;
      if (/^(npx )?openkv serve /.test(command)) {
        await session.serve(command);
      } else if (command.endsWith(" &")) {
        background = session.start(command.slice(0, -2));
        const isThere = () => background.text !== "" && shows(background.text, expected);
        await until(isThere, () => `${command}\n${background.text}${background.errors}`);
      } else {
        const text = await session.run(command);
        if (expected.length === 0) continue;
        if (background === undefined) {
          assert.ok(shows(text, expected), `${page}: ${command}\nprints\n${text}`);
        } else {
          const why = () => `${page}: ${expected.join("\n")}\nis not in\n${background.text}`;
          await until(() => shows(background.text, expected), why);
        }
      }
    }
    if (background !== undefined) end(background.pid);
  }
  return commands;
}

test("every command of docs/http.md prints what the page shows", {
  skip: noCurl || noBash,
}, async () => {
  const blocks = blocksOf(read("docs/http.md"));
  const commands = await follow("docs/http.md", blocks);
  assert.ok(commands >= 10, `only ${commands} commands`);
});

test("every command of docs/keyval.md prints what the page shows", {
  skip: noCurl || noBash,
}, async () => {
  assert.ok((await follow("docs/keyval.md", blocksOf(read("docs/keyval.md")))) >= 4);
});

test("the README's example of curl prints what it shows", { skip: noCurl || noBash }, async () => {
  const blocks = blocksOf(read("README.md")).filter((block) =>
    block.some(({ command }) => command.startsWith("curl ")),
  );
  assert.equal(blocks.length, 1);
  await follow("README.md", blocks);
});

test("docs/http.md has every route of the OpenAPI document, and no others", async () => {
  const page = read("docs/http.md");
  assert.ok(page === written(), "run npm run generate");
  const table = page.slice(page.indexOf("## Routes"), page.indexOf("## Keys"));
  const named = new Set();
  for (const [row] of table.matchAll(/^\| `.*$/gm)) {
    let verbs = "";
    for (const [, method, path] of row.split(" | ")[0].matchAll(/`([A-Z ]+ )?(\/[^`]*)`/g)) {
      verbs = method ?? verbs;
      for (const verb of verbs.trim().split(" ")) named.add(`${verb} ${template(path)}`);
    }
  }
  const known = operations(readDocument()).map(({ method, path }) => `${method} ${path}`);
  // The keys of entries are in the path, or in the parameter that "Keys" describes.
  const expected = known.filter((route) => !/^(PUT|DELETE) \/keys$/.test(route));
  assert.deepEqual([...named].sort(), expected.sort());
});

/** The path of the document for a path of the table, which shows an example. */
function template(path) {
  const keys = path.replace(/^\/keys\/users\/123$/, "/keys/{path}");
  return keys.replace(/\/(dlq|messages)\/5/, "/$1/{id}");
}
