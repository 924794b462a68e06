// Duty: openKv's path rules, what a file database keeps, and what it refuses.

import { existsSync, linkSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

/** Runs `body` with the working directory and environment changed; only for cases marked alone. */
async function inside(folder, environment, body) {
  const before = process.cwd();
  const saved = {};
  for (const [name, value] of Object.entries(environment)) {
    saved[name] = process.env[name];
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  process.chdir(folder);
  try {
    return await body();
  } finally {
    process.chdir(before);
    for (const [name, value] of Object.entries(saved)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

export default [
  {
    name: "resolves to a Kv",
    async run(t) {
      t.ok((await t.open()) instanceof t.Kv);
    },
  },
  {
    name: "answers a promise even when the path is wrong",
    async run(t) {
      const promise = t.rawOpenKv("");
      t.ok(promise instanceof Promise);
      await t.rejects(promise, TypeError, "Filename cannot be empty");
    },
  },
  {
    name: "takes one argument without options",
    run(t) {
      t.is(t.rawOpenKv.length, 1);
    },
  },
  {
    name: ":memory: is private to its handle",
    on: "memory",
    async run(t) {
      const [a, b] = [await t.openKv(":memory:"), await t.openKv(":memory:")];
      await a.set(["a"], 1);
      t.is(await t.value(b, ["a"]), null);
    },
  },
  {
    name: "a path must not start with a colon",
    on: "file",
    async run(t) {
      await t.rejects(() => t.openKv(":foo"), TypeError, "Filename cannot start with ':'");
    },
  },
  {
    name: "./ lets a file name start with a colon",
    on: "file",
    alone: true,
    async run(t) {
      if (process.platform === "win32") t.skip("Windows has no such file names");
      await inside(t.folder(), {}, async () => {
        const kv = await t.openKv("./:foo");
        await kv.set(["a"], 1);
        t.ok(existsSync(join(t.folder(), ":foo")));
      });
    },
  },
  {
    name: "a relative path starts at the working directory of the call",
    on: "file",
    alone: true,
    async run(t) {
      const kv = await inside(t.folder(), {}, () => t.openKv("here.db"));
      await kv.set(["a"], 1);
      t.ok(existsSync(join(t.folder(), "here.db")));
    },
  },
  {
    name: "a file: URL string names its path",
    on: "file",
    async run(t) {
      const kv = await t.openKv(pathToFileURL(t.path("by url.db")).href);
      await kv.set(["a"], 1);
      t.ok(existsSync(t.path("by url.db")));
    },
  },
  {
    name: "a URL object names its path",
    on: "file",
    denoDiffers: "Deno takes anything but a string for an empty name",
    async run(t) {
      const kv = await t.openKv(pathToFileURL(t.path("object.db")));
      await kv.set(["a"], 1);
      t.ok(existsSync(t.path("object.db")));
    },
  },
  {
    name: "a path that is no string is a TypeError",
    on: "file",
    async run(t) {
      for (const path of [5, {}, true, Symbol("p")]) {
        await t.rejects(() => t.openKv(path), TypeError);
      }
    },
  },
  {
    name: "a NUL in the path is a TypeError",
    on: "file",
    async run(t) {
      await t.rejects(() => t.openKv(`${t.path()}\0x`), TypeError);
    },
  },
  {
    name: "missing parent folders are created",
    on: "file",
    denoDiffers: "Deno's declarations promise the parents, its code does not create them",
    async run(t) {
      const kv = await t.openKv(join(t.folder(), "a", "b", "kv.db"));
      await kv.set(["a"], 1);
      t.ok(existsSync(join(t.folder(), "a", "b", "kv.db")));
    },
  },
  {
    name: "a folder cannot be opened",
    on: "file",
    async run(t) {
      mkdirSync(t.path("folder"));
      await t.rejects(() => t.openKv(t.path("folder")), Error, "unable to open database file");
    },
  },
  {
    name: "a file that is no database is refused and left alone",
    on: "file",
    async run(t) {
      const text = "This is a letter, not a database. ".repeat(200);
      writeFileSync(t.path("letter.txt"), text);
      await t.rejects(() => t.openKv(t.path("letter.txt")), Error, "file is not a database");
      t.is(readFileSync(t.path("letter.txt"), "utf8"), text);
    },
  },
  {
    name: "a failure of the file is an error with a code",
    on: "file",
    denoDiffers: "Deno throws plain errors with SQLite's words",
    async run(t) {
      writeFileSync(t.path("letter.txt"), "no database ".repeat(500));
      const corrupt = await t.rejects(() => t.openKv(t.path("letter.txt")), "KvError");
      t.is(corrupt.code, "CORRUPT");
      mkdirSync(t.path("folder"));
      const folder = await t.rejects(() => t.openKv(t.path("folder")), "KvError");
      t.match(folder.code, /^(DENIED|UNAVAILABLE|CORRUPT)$/);
    },
  },
  {
    name: "a failure of the server is an error with a code, in Deno's words",
    on: "file",
    denoDiffers: "Deno throws a TypeError without a code",
    async run(t) {
      const url = "http://127.0.0.1:1/";
      const error = await t.rejects(() => t.openKv(url), "KvError");
      t.is(error.code, "UNAVAILABLE");
      t.match(
        error.message,
        /^Could not open Deno KV database: failed to connect to 'http:\/\/127\.0\.0\.1:1\/': ./,
      );
    },
  },
  {
    name: "an empty file becomes a database",
    on: "file",
    async run(t) {
      writeFileSync(t.path("empty.db"), "");
      const kv = await t.openKv(t.path("empty.db"));
      await kv.set(["a"], 1);
      t.is(await t.value(kv, ["a"]), 1);
    },
  },
  {
    name: "a file keeps values, keys and versionstamps over close and open",
    on: "file",
    async run(t) {
      let kv = await t.open();
      await kv.set(["a", 1, 2n, true, new Uint8Array([1, 0])], { deep: [1n, new Date(5)] });
      const [before] = await t.all(kv.list({ prefix: [] }));
      kv = await t.reopen(kv);
      const [after] = await t.all(kv.list({ prefix: [] }));
      t.same(after, before);
    },
  },
  {
    name: "versionstamps go on rising after close and open",
    on: "file",
    async run(t) {
      let kv = await t.open();
      const first = await kv.set(["a"], 1);
      kv = await t.reopen(kv);
      const second = await kv.set(["a"], 1);
      t.ok(second.versionstamp > first.versionstamp);
    },
  },
  {
    name: "two handles on one file see each other's writes at once",
    on: "file",
    async run(t) {
      const one = await t.open();
      const two = await t.another(one);
      for (let i = 0; i < 20; i++) {
        await one.set(["a"], i);
        t.is(await t.value(two, ["a"]), i);
        await two.set(["b"], i);
        t.is(await t.value(one, ["b"]), i);
      }
    },
  },
  {
    name: "one handle may close while another works on",
    on: "file",
    async run(t) {
      const one = await t.open();
      const two = await t.another(one);
      await one.set(["a"], 1);
      one.close();
      t.is(await t.value(two, ["a"]), 1);
      await two.set(["a"], 2);
      t.is(await t.value(two, ["a"]), 2);
    },
  },
  {
    name: "many handles open one new file at once",
    on: "file",
    async run(t) {
      const path = t.path();
      const handles = await Promise.all(Array.from({ length: 8 }, () => t.openKv(path)));
      await Promise.all(handles.map((kv, i) => kv.set(["k", i], i)));
      for (const kv of handles) t.is((await t.all(kv.list({ prefix: ["k"] }))).length, 8);
    },
  },
  {
    name: "without a path OPENKV_URL names the database",
    on: "file",
    alone: true,
    denoDiffers: "Deno's name for this is DENO_KV_DEFAULT_PATH",
    async run(t) {
      const path = t.path("named.db");
      const kv = await inside(t.folder(), { OPENKV_URL: path }, () => t.openKv());
      await kv.set(["a"], 1);
      t.ok(existsSync(path), "no file at OPENKV_URL");
    },
  },
  {
    name: "without a path the database is .openkv beside the nearest package.json",
    on: "file",
    alone: true,
    denoDiffers: "Deno keeps its default database in its cache folder",
    async run(t) {
      const project = t.path("project");
      mkdirSync(join(project, "src", "deep"), { recursive: true });
      writeFileSync(join(project, "package.json"), "{}");
      const place = join(project, "src", "deep");
      const kv = await inside(place, { OPENKV_URL: undefined }, () => t.openKv());
      await kv.set(["a"], 1);
      t.ok(existsSync(join(project, ".openkv", "kv.sqlite3")), "no database in the project");
      t.match(readFileSync(join(project, ".openkv", ".gitignore"), "utf8"), /^\*$/m);
      const again = await inside(project, { OPENKV_URL: undefined }, () => t.openKv(null));
      t.is(await t.value(again, ["a"]), 1);
    },
  },
  {
    name: "an http URL without a token and without a server is an error",
    on: "file",
    async run(t) {
      // Deno asks for a token before it asks the server, openkv lets the server say whether it needs one.
      await t.rejects(() => t.openKv("http://localhost:1"), Error, /access|failed to connect/i);
    },
  },
  {
    name: "a postgres URL is a database on PostgreSQL, and another URL is refused by name",
    on: "file",
    denoDiffers: "to Deno it is a file path",
    async run(t) {
      await t.rejects(() => t.openKv("postgres://localhost"), TypeError, "names no database");
      await t.rejects(() => t.openKv("mysql://localhost/x"), Error, "not supported yet");
    },
  },
  {
    name: "a file with several hard links is refused for writing",
    on: "file",
    denoDiffers: "opens it, and writes by one name lose those by another",
    async run(t) {
      if (process.platform === "win32") t.skip("looked at on Unix only");
      const [path, other] = ["one.sqlite3", "other.sqlite3"].map((name) => join(t.folder(), name));
      const kv = await t.openKv(path);
      await kv.set(["a"], 1);
      kv.close();
      linkSync(path, other);
      await t.rejects(() => t.openKv(other), Error, "hard links");
    },
  },
];
