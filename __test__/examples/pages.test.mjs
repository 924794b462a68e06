// Duty: the examples of README and of all pages run when they are pasted into an empty project: every
// block of JavaScript or TypeScript is a program, in the file that its first line names, and TypeScript
// compiles under `strict`. A program that ends by SIGTERM is a server: it gets the signal once it is ready
// and the commands of `curl` below it had the answers that the page shows.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { serve } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";

/** The pages whose programs other tests run. */
const ELSEWHERE = {
  "docs/bundlers.md": "__test__/bundlers/bundles.mjs, __test__/bundlers/next.mjs",
  "docs/bullmq.md": "__test__/integrations/documentation.spec.mjs",
  "docs/integrations.md": "__test__/integrations/documentation.spec.mjs",
  "docs/watching.md": "__test__/examples/watching.test.mjs",
};

const accessToken = "a-long-and-secret-token";
/** Pages whose programs need a server: what they find in the environment, and in place of which text. */
const SERVERS = {
  "docs/remote.md": async () => {
    const path = join(newFolder("remote"), "kv.sqlite3");
    const server = await serve({ path, listen: "127.0.0.1:0", accessToken });
    after(() => server.close());
    return { variables: { KV_URL: server.url, KV_TOKEN: accessToken } };
  },
  "docs/postgres.md": async () => {
    const url = (await sharedPostgres()).url();
    return { instead: ["postgres://shop:secret@db.example.com/app?kv=shop", url] };
  },
};

const COMPILER_OPTIONS = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  types: ["node"],
  module: "nodenext",
  strict: true,
};

/** A hang guard. */
const SERVER_MS_MAX = 60_000;

const root = fileURLToPath(new URL("../../", import.meta.url));
const project = newFolder("pages");
mkdirSync(join(project, "node_modules"));
symlinkSync(root, join(project, "node_modules", "openkv"), "junction");
symlinkSync(join(root, "node_modules/@types"), join(project, "node_modules/@types"), "junction");
writeFileSync(
  join(project, "tsconfig.json"),
  JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ["**/*.mts"] }),
);

/** The blocks of code of a page, each with the file that it is run from, in a folder of the page. */
function programsOf(page) {
  const text = readFileSync(join(root, page), "utf8");
  const folder = join(project, page.replace(/\.md$/, ""));
  mkdirSync(folder, { recursive: true });
  return [...text.matchAll(/```(js|ts)\n(.*?)```([^]*?)(?=```(?:js|ts)\n|$)/gs)].map(
    ([, language, source, below], at) => {
      const [, name = `program-${at}`] = /^\/\/ (\S+)\.m[jt]s\n/.exec(source) ?? [];
      const file = join(folder, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(`${file}.${language === "ts" ? "mts" : "mjs"}`, source);
      const [, commands = ""] = /```sh\n(.*?)```/s.exec(below) ?? [];
      return { source, commands, folder, typed: language === "ts", file: `${file}.mjs` };
    },
  );
}

/** Runs a server until it has said its first line, then the commands of `curl`, and ends it. */
async function runServer(file, cwd, commands, variables = {}) {
  const port = await freePort();
  const server = spawn(process.execPath, [file], {
    cwd,
    env: { ...process.env, ...variables, PORT: port },
    stdio: ["ignore", "pipe", "inherit"],
    timeout: SERVER_MS_MAX,
  });
  await once(server.stdout, "data");
  if (commands.includes("curl")) {
    const script = commands.replaceAll("127.0.0.1:3000", `127.0.0.1:${port}`);
    const lines = script.replace(/^curl .*$/gm, "$&; echo");
    const { stdout } = spawnSync("bash", ["-c", lines], { encoding: "utf8" });
    const told = [...commands.matchAll(/^# (.*)$/gm)].map(([, line]) => line);
    const said = stdout.split("\n").filter((line) => line !== "");
    assert.equal(said.length, told.length, stdout);
    for (const [at, line] of told.entries()) {
      const pattern = line.split("…").map((part) => part.replace(/[[\]{}.*+?^$()|]/g, "\\$&"));
      assert.match(said[at], new RegExp(`^${pattern.join(".+")}$`));
    }
  }
  server.kill("SIGTERM");
  const [code, signal] = await once(server, "exit");
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
}

const pages = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)]
  .filter((page) => page.endsWith(".md"))
  .map((page) => [page, programsOf(page)]);

const compiled = spawnSync(
  process.execPath,
  [join(root, "node_modules/typescript/bin/tsc"), "-p", project],
  { cwd: root, encoding: "utf8" },
);

test("the TypeScript of README and docs compiles under strict", () => {
  assert.equal(compiled.status, 0, compiled.stdout);
  const typed = pages.filter(([, programs]) => programs.some(({ typed }) => typed));
  assert.ok(typed.length >= 5, "few pages show types");
});

for (const [page, programs] of pages) {
  if (page in ELSEWHERE) continue;
  for (const [at, { source, file, folder, commands }] of programs.entries()) {
    const serves = source.includes('process.once("SIGTERM"');
    const skip = serves && process.platform === "win32" && "there is no SIGTERM";
    test(`${page}, program ${at + 1} of ${programs.length}`, { skip }, async () => {
      const isProgram = /from "openkv"/.test(source) || /^\/\/ \S+\.mjs\n/.test(source);
      assert.ok(isProgram, "a block that is no program is marked as text");
      if (serves) return await runServer(file, folder, commands);
      const { variables = {}, instead } = (await SERVERS[page]?.()) ?? {};
      if (instead !== undefined) {
        assert.ok(source.includes(instead[0]), instead[0]);
        writeFileSync(file, source.replace(...instead));
      }
      const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
        cwd: folder,
        encoding: "utf8",
        env: { ...process.env, ...variables },
      });
      assert.equal(status, 0, stdout + stderr);
      // What a line is said to print alone, it prints.
      for (const [, told] of source.matchAll(/^console\.log\(.*\); \/\/ ([\w{}: ]+)$/gm)) {
        if (told !== "a Date") assert.ok(stdout.split("\n").includes(told), `${told}:\n${stdout}`);
      }
    });
  }
}

test("the command of the Dockerfile of the recipes starts their server on its database", {
  skip: process.platform === "win32" && "there is no SIGTERM",
}, async () => {
  const text = readFileSync(join(root, "docs/recipes.md"), "utf8");
  const [, path] = /^ENV OPENKV_URL=\/data\/(\S+)$/m.exec(text);
  const [program, file] = JSON.parse(/^CMD (\[.*\])$/m.exec(text)[1]);
  assert.equal(program, "node");
  const folder = join(project, "docs/recipes");
  const OPENKV_URL = join(folder, path);
  await runServer(join(folder, file), folder, "", { OPENKV_URL });
  assert.ok(existsSync(OPENKV_URL));
});
