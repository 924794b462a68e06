// Duty: openKv: paths, URLs, the default place, options.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { KvError, openKv } from "../../index.mjs";
import { argumentsFor } from "../kit/program.mjs";
import { folder, freshPath, open } from "./databases.mjs";

const run = promisify(execFile);

describe("paths", () => {
  test("missing folders above the file are created", async () => {
    const path = join(freshPath(), "a", "b", "kv.sqlite3");
    const kv = await open(path);
    await kv.set(["a"], 1);
    assert.ok(existsSync(path));
  });

  test("a file URL, as text and as object, names the same file", async () => {
    const path = freshPath();
    const one = await open(pathToFileURL(path));
    await one.set(["a"], 1);
    const two = await open(pathToFileURL(path).href);
    const three = await open(path);
    assert.equal((await two.get(["a"])).value, 1);
    assert.equal((await three.get(["a"])).value, 1);
  });

  test("a file URL may escape characters", async () => {
    const path = join(folder(), "with space.sqlite3");
    await open(pathToFileURL(path).href);
    assert.ok(existsSync(path));
  });

  const refused = [
    ["", "Filename cannot be empty"],
    [":x", "Filename cannot start with ':' unless prefixed with './'"],
    [
      ":memory",
      "Filename cannot start with ':' unless prefixed with './': a database in memory is \":memory:\"",
    ],
    ["a\0b", "NUL"],
    ["file:relative.sqlite3", "absolute"],
    ["file:///a.sqlite3?mode=ro", "query"],
    ["file:///a.sqlite3#x", "fragment"],
    ["file://%", "names no host"],
    ["file:///a%2Fb.sqlite3", "no encoded slash"],
    [5, "received 5"],
    [{}, "received an object"],
    [[], "received the array []"],
    [true, "received true"],
    [Symbol("x"), "symbol"],
  ];
  for (const [path, words] of refused) {
    test(`${String(path) || "the empty string"} (${typeof path}) is a TypeError`, async () => {
      await assert.rejects(openKv(path), (error) => {
        assert.ok(error instanceof TypeError);
        assert.ok(error.message.includes(words), error.message);
        return true;
      });
    });
  }

  test("a NUL says EINVAL, as the runtime's own functions do", async () => {
    await assert.rejects(openKv("a\0b"), { code: "EINVAL" });
  });

  for (const url of [
    "mysql://user:secret@localhost/db",
    "ftp://user:secret@localhost/db",
    "Redis+TLS://user:secret@localhost/db",
  ]) {
    const scheme = String(url).split(":")[0];
    test(`${scheme} (${typeof url}) is not supported yet, and says so`, async () => {
      await assert.rejects(openKv(url), (error) => {
        assert.ok(error instanceof KvError);
        assert.equal(error.code, "UNSUPPORTED");
        assert.match(error.message, /not supported yet/);
        assert.ok(error.message.includes(`${scheme.toLowerCase()}://`));
        assert.ok(!error.message.includes("secret"), "a password is not repeated");
        return true;
      });
    });
  }

  test("a scheme in capitals is the same, and one within a path is none", async () => {
    const remote = openKv("HTTPS://kv.example.com", { durability: "full" });
    await assert.rejects(remote, /not for the URL of a server/);
    const file = join(folder(), "capitals.db");
    await open(pathToFileURL(file).href.replace("file:", "FILE:"));
    assert.equal(existsSync(file), true);
    const kv = await open(join(folder(), "http:", "x"));
    assert.equal((await kv.set(["a"], 1)).ok, true);
  });

  test("two databases in memory share nothing", async () => {
    const one = await open(":memory:");
    const two = await open(":memory:");
    await one.set(["a"], 1);
    assert.equal((await two.get(["a"])).value, null);
  });
});

describe("failures of the file have a code", () => {
  test("a folder", async () => {
    await assert.rejects(openKv(folder()), (error) => error instanceof KvError);
  });

  test("not a database", async () => {
    const path = freshPath();
    writeFileSync(path, "this is not a database, and long enough to be looked at. ".repeat(20));
    await assert.rejects(openKv(path), { name: "KvError", code: "CORRUPT" });
  });

  test("readonly and absent", async () => {
    const path = freshPath();
    await assert.rejects(openKv(path, { readonly: true }), (error) => error instanceof KvError);
    assert.ok(!existsSync(path));
  });
});

describe("without a path", () => {
  const program = `
    import { openKv } from ${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)};
    const kv = await openKv();
    await kv.set(["here"], 1);
    kv.close();
  `;
  const runIn = async (cwd, env = {}) => {
    const { OPENKV_URL: _, ...inherited } = process.env;
    const options = { cwd, env: { ...inherited, ...env }, timeout: 60_000 };
    await run(process.execPath, argumentsFor(program), options);
  };
  const here = async (path) => (await (await open(path)).get(["here"])).value;

  for (const file of ["package.json", "deno.json", "deno.jsonc"]) {
    test(`it is .openkv/kv.sqlite3 beside the nearest ${file}`, async () => {
      const root = join(freshPath(), "program");
      const below = join(root, "src", "deep");
      mkdirSync(below, { recursive: true });
      writeFileSync(join(root, file), "{}");
      await runIn(below);
      assert.equal(await here(join(root, ".openkv", "kv.sqlite3")), 1);
      assert.equal(readFileSync(join(root, ".openkv", ".gitignore"), "utf8"), "*\n");
      assert.ok(!existsSync(join(below, ".openkv")));
    });
  }

  test("OPENKV_URL names it: a path relative to the working directory, or a URL", async () => {
    const root = freshPath();
    mkdirSync(root);
    await runIn(root, { OPENKV_URL: "named/kv.sqlite3" });
    assert.equal(await here(join(root, "named", "kv.sqlite3")), 1);
    const path = join(realpathSync(root), "by-url.sqlite3");
    await runIn(root, { OPENKV_URL: pathToFileURL(path).href });
    assert.equal(await here(path), 1);
    assert.ok(!existsSync(join(root, ".openkv")));
  });

  test("OPENKV_URL is refused with the words for a path", async () => {
    const root = freshPath();
    mkdirSync(root);
    await assert.rejects(runIn(root, { OPENKV_URL: "ftp://host/x" }), /not supported yet/);
    const remote = runIn(root, { OPENKV_URL: "https://user:word@example.com" });
    await assert.rejects(remote, /holds no user or password/);
  });

  test("an empty OPENKV_URL names nothing", async () => {
    const root = freshPath();
    mkdirSync(root);
    writeFileSync(join(root, "package.json"), "{}");
    await runIn(root, { OPENKV_URL: "" });
    assert.equal(await here(join(root, ".openkv", "kv.sqlite3")), 1);
  });

  test("a .gitignore that is there is left alone", async () => {
    const root = freshPath();
    mkdirSync(join(root, ".openkv"), { recursive: true });
    writeFileSync(join(root, "package.json"), "{}");
    writeFileSync(join(root, ".openkv", ".gitignore"), "kept\n");
    await runIn(root);
    assert.equal(readFileSync(join(root, ".openkv", ".gitignore"), "utf8"), "kept\n");
  });
});

describe("options", () => {
  const refused = [
    [5, "object"],
    ["full", "object"],
    [() => {}, "object"],
    [
      { durable: "full" },
      "'durable': known are durability, readonly, busyTimeout, encoding, metrics, log, history, cacheSize, mmapSize, maxOpen, lane, clock, limits",
    ],
    [{ durability: "FULL" }, "FULL"],
    [{ durability: null }, "null"],
    [{ durability: 1 }, "durability"],
    [{ readonly: 1 }, "readonly"],
    [{ readonly: null }, "readonly"],
    [{ busyTimeout: -1 }, "busyTimeout"],
    [{ busyTimeout: 1.5 }, "busyTimeout"],
    [{ busyTimeout: "5" }, "busyTimeout"],
    [{ busyTimeout: Number.NaN }, "busyTimeout"],
    [{ busyTimeout: 2 ** 31 }, "busyTimeout"],
    [
      { cacheSize: 65535 },
      "cacheSize must be an integer from 65536 to 68719476736 (bytes): received 65535",
    ],
    [{ cacheSize: 2 ** 36 + 1 }, "cacheSize"],
    [{ cacheSize: 1e6 + 0.5 }, "cacheSize"],
    [{ cacheSize: "16MB" }, "cacheSize"],
    [{ cacheSize: null }, "cacheSize"],
    [{ mmapSize: -1 }, "mmapSize must be an integer from 0 to 2147418112 (bytes): received -1"],
    [{ mmapSize: 2 ** 31 }, "mmapSize"],
    [{ mmapSize: true }, "mmapSize"],
    [{ lane: "sync" }, 'lane must be "auto" or "thread": received the string "sync"'],
    [{ lane: null }, "lane"],
    [{ limits: 5 }, "limits"],
    [{ limits: null }, "limits"],
    [{ limits: "denno" }, "'denno': known are deno, wide"],
    [{ limits: { keyBytes: 5 } }, "'keyBytes': known are"],
    [{ limits: { valueDepthMax: 5 } }, "'valueDepthMax'"],
    [{ limits: { keyBytesMax: 0 } }, "limits.keyBytesMax"],
    [{ limits: { keyBytesMax: 2 ** 31 } }, "limits.keyBytesMax"],
    [{ limits: { keyBytesMax: "5" } }, "limits.keyBytesMax"],
    [{ limits: { backoffIntervalsMax: 256 } }, "limits.backoffIntervalsMax"],
    [{ limits: { undeliveredKeysMax: 65536 } }, "limits.undeliveredKeysMax"],
  ];
  for (const [options, words] of refused) {
    test(`${typeof options === "object" ? JSON.stringify(options) : typeof options}`, async () => {
      const path = freshPath();
      await assert.rejects(openKv(path, options), (error) => {
        assert.ok(error instanceof TypeError, String(error));
        assert.ok(error.message.includes(words), error.message);
        return true;
      });
      assert.ok(!existsSync(path), "nothing was created");
    });
  }

  test("encoding is for files", async () => {
    const words = /Option 'encoding' is not for memory/;
    await assert.rejects(openKv(":memory:", { encoding: "v8" }), words);
    await assert.rejects(openKv(freshPath(), { encoding: "json" }), /must be "cbor" or "v8"/);
  });

  test("cacheSize and mmapSize are for files", async () => {
    for (const name of ["cacheSize", "mmapSize"]) {
      const words = new RegExp(`Option '${name}' is not for memory`);
      await assert.rejects(openKv(":memory:", { [name]: 1024 * 1024 }), words);
    }
  });

  for (const options of [
    undefined,
    null,
    {},
    { cacheSize: 65536, mmapSize: 0 },
    { lane: "auto" },
    { lane: "thread" },
    { cacheSize: 2 ** 36, mmapSize: 2_147_418_112 },
    { durability: undefined, readonly: undefined, busyTimeout: undefined, limits: undefined },
    { durability: "normal", busyTimeout: 0, limits: "deno", readonly: false },
    { limits: "wide" },
    { limits: { keyBytesMax: undefined } },
  ]) {
    test(`${JSON.stringify(options)} opens`, async () => {
      const kv = await open(freshPath(), options);
      assert.equal((await kv.set(["a"], 1)).ok, true);
    });
  }

  test("readonly reads, and refuses every write with DENIED", async () => {
    const path = freshPath();
    const writer = await open(path);
    await writer.set(["a"], 1);
    const kv = await open(path, { readonly: true });
    assert.equal((await kv.get(["a"])).value, 1);
    const denied = { name: "KvError", code: "DENIED" };
    await assert.rejects(kv.set(["a"], 2), denied);
    await assert.rejects(kv.delete(["a"]), denied);
    await assert.rejects(kv.enqueue(1), denied);
    await assert.rejects(kv.atomic().sum(["n"], 1n).commit(), denied);
    assert.equal((await writer.get(["a"])).value, 1);
  });

  test("limits hold for their handle alone", async () => {
    const path = freshPath();
    const tight = await open(path, { limits: { valueBytesMax: 10, rangesMax: 2 } });
    const usual = await open(path);
    await assert.rejects(tight.set(["a"], "more than ten bytes"), {
      name: "TypeError",
      message: /^Value too large \(max 10 bytes\)/,
    });
    await assert.rejects(tight.getMany([["a"], ["b"], ["c"]]), /Too many ranges \(max 2\)/);
    assert.equal((await usual.set(["a"], "more than ten bytes")).ok, true);
    assert.equal((await usual.getMany([["a"], ["b"], ["c"]])).length, 3);
  });

  test("limits can be raised", async () => {
    const kv = await open(freshPath(), {
      limits: { valueBytesMax: 4_000_000, commitBytesMax: 10_000_000, rangesMax: 50 },
    });
    const value = new Uint8Array(3_000_000).fill(7);
    await kv.set(["large"], value);
    assert.deepEqual((await kv.get(["large"])).value, value);
    const keys = Array.from({ length: 50 }, () => ["large"]);
    const entries = await kv.getMany(keys.slice(0, 3));
    for (const entry of entries) assert.equal(entry.value.length, value.length);
    assert.equal((await kv.getMany(keys.map((_, i) => [i]))).length, 50);
    let rows = 0;
    for await (const entry of kv.list({ prefix: [] })) rows += entry.value.length;
    assert.equal(rows, value.length);
  });
});

// Two processes that opened one file by two names each had a log: half of the writes was gone.
const links = process.platform === "win32" && "looked at on Unix only";
describe("names of one file", { skip: links }, () => {
  test("several hard links are refused for writing, not for reading", async () => {
    const [path, other] = [freshPath(), freshPath()];
    const kv = await openKv(path);
    await kv.set(["a"], 1);
    await kv.close();
    linkSync(path, other);
    for (const name of [path, other]) {
      await assert.rejects(openKv(name), (error) => {
        assert.ok(error instanceof KvError);
        assert.equal(error.code, "DENIED");
        for (const words of [name, "2 hard links", "remove the other names", "readonly: true"]) {
          assert.ok(error.message.includes(words), error.message);
        }
        return true;
      });
      const reader = await open(name, { readonly: true });
      assert.equal((await reader.get(["a"])).value, 1);
      await reader.close();
    }
    rmSync(path);
    assert.equal((await (await open(other)).get(["a"])).value, 1);
  });

  test("a symbolic link leads to the file, with one log", async () => {
    const [path, link] = [freshPath(), freshPath()];
    const one = await open(path);
    symlinkSync(path, link);
    const two = await open(link);
    await one.set(["a"], 1);
    await two.set(["b"], 2);
    assert.equal((await one.get(["b"])).value, 2);
    assert.equal((await two.get(["a"])).value, 1);
    assert.ok(!existsSync(`${link}-wal`));
  });
});
