// Duty: the options of openKv for a URL, and processes with a remote database, which end like any
// other.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { until } from "../kit/time.mjs";
import { ACCESS_TOKEN, connect, start } from "./mock.mjs";

/** A hang guard for one program. */
const PROGRAM_MS_MAX = 120_000;
const URL_OF_NOBODY = "http://127.0.0.1:1/";

describe("options", () => {
  const accessToken = "a-token";
  const refused = [
    ["durability", { accessToken, durability: "full" }, /durability.*not for the URL/],
    ["readonly", { accessToken, readonly: true }, /readonly.*not for the URL/],
    ["busyTimeout", { accessToken, busyTimeout: 1 }, /busyTimeout.*not for the URL/],
    ["cacheSize", { accessToken, cacheSize: 65536 }, /cacheSize.*not for the URL/],
    ["a misspelt option", { accesToken: "x" }, /accesToken/],
    ["an empty token", { accessToken: "" }, /visible ASCII/],
    ["a token with a space", { accessToken: "se cret" }, /visible ASCII/],
    ["a token with a line end", { accessToken: "secret\n" }, /visible ASCII/],
    ["a token that is no string", { accessToken: 5 }, /number/],
    ["a timeout of 0", { accessToken, timeout: 0 }, /timeout/],
    ["a timeout that is no integer", { accessToken, timeout: 1.5 }, /timeout/],
    ["a timeout that is no number", { accessToken, timeout: "1" }, /timeout/],
    ["a signal that is none", { accessToken, signal: {} }, /AbortSignal/],
  ];
  for (const [name, options, words] of refused) {
    test(`${name} is a TypeError`, async () => {
      await assert.rejects(openKv(URL_OF_NOBODY, options), (error) => {
        assert.ok(error instanceof TypeError, `${error}`);
        assert.match(error.message, words);
        assert.ok(!error.message.includes("cret"), "a token is not repeated");
        return true;
      });
    });
  }

  for (const name of ["accessToken", "timeout", "signal"]) {
    test(`${name} is not for a file`, async () => {
      await assert.rejects(openKv(":memory:", { [name]: 1 }), {
        name: "TypeError",
        message: new RegExp(`${name}.*not for a file`),
      });
    });
  }

  const urls = [
    ["http://user:secret@localhost/", /accessToken/],
    ["https://user@localhost/", /accessToken/],
    ["http://localhost/#part", /fragment/],
    ["http://", /Invalid URL/],
    ["https://[", /Invalid URL/],
  ];
  for (const [url, words] of urls) {
    test(`${url} is a TypeError`, async () => {
      await assert.rejects(openKv(url, { accessToken }), (error) => {
        assert.ok(error instanceof TypeError, `${error}`);
        assert.match(error.message, words);
        assert.ok(!error.message.includes("secret"));
        return true;
      });
    });
  }
});

describe("a signal", () => {
  test("ends a wait for a lease at once, and a transaction with its reason", async () => {
    const mock = await start();
    const kv = await connect(mock, { timeout: 60_000 });
    mock.scripts.snapshot_read = mock.scripts.atomic_write = () => true;
    const reason = new Error("never mind");
    for (const call of [
      (signal) => kv.lease(["a"], { signal }),
      (signal) => kv.once(["b"], () => 1, { signal }),
    ]) {
      const controller = new AbortController();
      const waiting = call(controller.signal);
      controller.abort(reason);
      await assert.rejects(waiting, reason);
    }
    const controller = new AbortController();
    const fails = kv.transaction(
      async () => {
        controller.abort(reason);
        throw new Error("because of it");
      },
      { signal: controller.signal },
    );
    await assert.rejects(fails, reason);
  });

  test("already aborted", async () => {
    const signal = AbortSignal.abort(new Error("never mind"));
    await assert.rejects(openKv(URL_OF_NOBODY, { accessToken: "t", signal }), /never mind/);
  });

  test("cancels an opening", async () => {
    const mock = await start();
    mock.scripts.metadata = () => true;
    const signal = AbortSignal.timeout(50);
    const opening = openKv(mock.url, { accessToken: ACCESS_TOKEN, timeout: 60_000, signal });
    await assert.rejects(opening, { name: "TimeoutError" });
  });

  /** A handle on a server, and what aborts it. */
  async function abortable(metadata) {
    const mock = await start();
    mock.metadata = metadata;
    const controller = new AbortController();
    const { signal } = controller;
    const kv = await openKv(new URL(mock.url), {
      accessToken: ACCESS_TOKEN,
      timeout: 60_000,
      signal,
    });
    return { mock, kv, abort: () => controller.abort(new Error("enough")) };
  }
  const enough = { message: "enough" };
  /** Never answers, and says when it was asked. */
  const silent = (mock, path) =>
    new Promise((asked) => {
      mock.scripts[path] = () => {
        asked();
        return true;
      };
    });

  test("cancels running reads and all later calls; a second abort has no effect", async () => {
    const { mock, kv, abort } = await abortable();
    const asked = silent(mock, "snapshot_read");
    const under = [
      kv.get(["a"]),
      kv.getMany([["a"], ["b"]]),
      kv.count({ prefix: [] }),
      kv.list({ prefix: ["a"] }).next(),
    ];
    const ended = Promise.all(under.map((call) => assert.rejects(call, enough)));
    await asked;
    abort();
    abort();
    await ended;
    for (const call of [
      () => kv.get(["a"]),
      () => kv.set(["a"], 1),
      () => kv.atomic().delete(["a"]).commit(),
      () => kv.count({ prefix: [] }),
    ]) {
      await assert.rejects(call, enough);
    }
    assert.throws(() => kv.watch([["a"]]), enough);
  });

  test("cancels a wait for a message and all later ones", async () => {
    const { mock, kv, abort } = await abortable({ extensions: ["frames-1", "queues-2"] });
    const asked = silent(mock, "receive");
    const queue = kv.queue("work");
    const receiving = assert.rejects(queue.receive({ wait: 60_000 }), enough);
    await asked;
    abort();
    await receiving;
    await assert.rejects(queue.receive(), enough);
    await assert.rejects(
      queue.listen(() => {}),
      enough,
    );
    await assert.rejects(
      kv.listenQueue(() => {}),
      enough,
    );
  });

  test("a sent write has an unknown outcome; a waiting one has not happened", async () => {
    const { mock, kv, abort } = await abortable();
    const asked = silent(mock, "atomic_write");
    // About one key: the second is not sent before the first is answered.
    const [sent, waiting] = [kv.set(["a"], 1), kv.set(["a"], 2)];
    const ended = [
      assert.rejects(sent, { name: "KvOutcomeUnknownError", code: "OUTCOME_UNKNOWN" }),
      assert.rejects(waiting, enough),
    ];
    await asked;
    abort();
    await Promise.all(ended);
    assert.equal(mock.counts.atomic_write, 1);
  });

  test("ends the pause before a retry", async () => {
    const { mock, kv, abort } = await abortable();
    const asked = new Promise((resolve) => {
      mock.scripts.snapshot_read = (_, response) => {
        resolve();
        response.writeHead(503, { "retry-after": "30" }).end();
        return true;
      };
    });
    const read = assert.rejects(kv.get(["a"]), enough);
    await asked;
    await new Promise((resolve) => setTimeout(resolve, 50));
    abort();
    await read;
  });

  test("ends watches with its reason, and earlier writes are completed", async () => {
    const { mock, kv, abort } = await abortable();
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    await kv.set(["a"], 1);
    await reader.read();
    const next = assert.rejects(reader.read(), enough);
    abort();
    await next;
    assert.equal(mock.entries.size, 1);
    await until(() => mock.watching === 0, "the watch ends at the server");
  });

  test("has no effect on a closed handle", async () => {
    const { kv, abort } = await abortable();
    const write = kv.set(["a"], 1);
    await kv.close();
    abort();
    assert.equal((await write).ok, true);
    await assert.rejects(kv.get(["a"]), { code: "CLOSED" });
  });
});

/** Runs a program beside this one; answers its output and exit code. An opening tries to connect
 * once, which on a busy machine may not end in time: the program has asked nothing then, and runs
 * again. */
async function run(program, env) {
  const connected = async () => {
    const ended = await runOnce(program, env);
    return ended.out.includes("no connection in time") ? null : ended;
  };
  return await until(connected, "the program connects");
}

async function runOnce(program, env) {
  const { OPENKV_ACCESS_TOKEN: _, DENO_KV_ACCESS_TOKEN: __, ...inherited } = process.env;
  const args = ["--input-type=module", "--eval", program];
  const options = { env: { ...inherited, ...env }, timeout: PROGRAM_MS_MAX };
  const child = spawn(process.execPath, args, options);
  let out = "";
  child.stdout.on("data", (chunk) => (out += chunk));
  child.stderr.on("data", (chunk) => (out += chunk));
  const code = await new Promise((resolve) => child.on("close", resolve));
  return { out: out.trim(), code };
}

const IMPORT = `import { openKv } from ${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)};`;

describe("in a separate process", { concurrency: 3 }, () => {
  test("the token comes from the environment, openkv's own first, and the URL too", async () => {
    const program = `${IMPORT}
      const kv = await openKv();
      await kv.set(["a"], 1);
      console.log((await kv.get(["a"])).value);
      kv.close();`;
    for (const tokens of [
      { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN, DENO_KV_ACCESS_TOKEN: "wrong" },
      { DENO_KV_ACCESS_TOKEN: ACCESS_TOKEN },
    ]) {
      const mock = await start();
      assert.deepEqual(await run(program, { OPENKV_URL: mock.url, ...tokens }), {
        out: "1",
        code: 0,
      });
    }
  });

  test("the example of the page runs", async () => {
    const page = readFileSync(new URL("../../docs/remote.md", import.meta.url), "utf8");
    const [, program] = /```ts\n(.*?)```/s.exec(page);
    const mock = await start();
    // Its types are checked with those of all pages; Node.js 20 runs none.
    const untyped = program.replace(/\.get<[^>]*>\(/, ".get(");
    const here = untyped.replace('import { openKv } from "openkv";', IMPORT);
    const ended = await run(here, { KV_URL: mock.url, KV_TOKEN: ACCESS_TOKEN });
    assert.deepEqual(ended, { out: "hello", code: 0 });
  });

  // It stayed until the opening's timeout.
  test("a cancelled opening does not keep it alive", async () => {
    const mock = await start();
    mock.scripts.metadata = () => true;
    const program = `${IMPORT}
      const aborts = new AbortController();
      setTimeout(() => aborts.abort(new Error("enough")), 50);
      const options = { timeout: 600_000, signal: aborts.signal };
      await openKv(${JSON.stringify(mock.url)}, options).catch(({ message }) => console.log(message));`;
    const ended = await run(program, { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN });
    assert.deepEqual(ended, { out: "enough", code: 0 });
  });

  test("an open handle and an unread watch do not keep it alive", async () => {
    const mock = await start({ h2: true });
    const program = `${IMPORT}
      const kv = await openKv(${JSON.stringify(mock.url)});
      const reader = kv.watch([["a"]]).getReader();
      console.log((await reader.read()).value[0].value);`;
    assert.deepEqual(await run(program, { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN }), {
      out: "null",
      code: 0,
    });
  });

  test("workers can open and end", async () => {
    const mock = await start();
    const source = `${IMPORT}
      import { threadId } from "node:worker_threads";
      const kv = await openKv(${JSON.stringify(mock.url)});
      await kv.set([threadId], 1);
      await kv.watch([["a"]]).getReader().read();
      if (threadId % 2) kv.close();`;
    const program = `
      import { Worker } from "node:worker_threads";
      for (let i = 0; i < 4; i++) {
        const worker = new Worker(${JSON.stringify(source)}, { eval: true });
        await new Promise((resolve, reject) => worker.on("exit", resolve).on("error", reject));
      }
      console.log("done");`;
    const ended = await run(program, { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN });
    assert.deepEqual(ended, { out: "done", code: 0 });
    assert.equal(mock.entries.size, 4);
  });

  test("a hundred closed handles leave no threads and no connections", async () => {
    const mock = await start();
    const program = `${IMPORT}
      import { readdirSync } from "node:fs";
      const threads = () => readdirSync("/proc/self/task").length;
      const count = process.platform === "linux" ? threads : () => 0;
      const before = count();
      for (let i = 0; i < 100; i++) {
        const kv = await openKv(${JSON.stringify(mock.url)});
        await kv.get(["a"]);
        await kv.close();
      }
      for (let i = 0; i < 3000 && count() > before; i++) await new Promise((r) => setTimeout(r, 20));
      console.log(count() - before);`;
    assert.deepEqual(await run(program, { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN }), {
      out: "0",
      code: 0,
    });
    const left = () => new Promise((resolve) => mock.server.getConnections((_, n) => resolve(n)));
    await until(async () => (await left()) === 0, "the connections end");
  });

  for (const h2 of [false, true]) {
    test(`TLS by the system's roots, HTTP/${h2 ? 2 : 1} as negotiated`, async () => {
      const file = (name) => fileURLToPath(new URL(`./tls/${name}.pem`, import.meta.url));
      const tls = { key: readFileSync(file("key")), cert: readFileSync(file("cert")) };
      const mock = await start({ h2, tls });
      const program = (timeout) => `${IMPORT}
        const kv = await openKv(${JSON.stringify(mock.url)}, { timeout: ${timeout} });
        await kv.set(["a"], 1);
        console.log((await kv.get(["a"])).value);
        kv.close();`;
      const env = { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN };
      const trusted = await run(program(20_000), { ...env, SSL_CERT_FILE: file("cert") });
      assert.deepEqual(trusted, { out: "1", code: 0 });
      assert.equal(mock.requests[0].headers[":method"] !== undefined, h2);
      const untrusted = await run(program(5000), env);
      assert.equal(untrusted.code, 1);
      assert.match(untrusted.out, /UNAVAILABLE/);
      assert.match(untrusted.out, /certificate/i);
    });
  }

  // `openssl req -x509` marks what it makes as an authority, which is no certificate of a server
  // for this client's TLS library, while Node.js takes it.
  test("a self-signed certificate in NODE_EXTRA_CA_CERTS is trusted", async () => {
    const file = (name) => fileURLToPath(new URL(`../server/tls/${name}.pem`, import.meta.url));
    const tls = { key: readFileSync(file("key")), cert: readFileSync(file("cert")) };
    const mock = await start({ h2: false, tls });
    const program = (url, timeout) => `${IMPORT}
      const kv = await openKv(${JSON.stringify(url)}, { timeout: ${timeout} });
      await kv.set(["a"], 1);
      console.log((await kv.get(["a"])).value);
      kv.close();`;
    const env = { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN };
    const extra = { ...env, NODE_EXTRA_CA_CERTS: file("cert") };
    assert.deepEqual(await run(program(mock.url, 20_000), extra), { out: "1", code: 0 });

    const refused = async (url, env, words) => {
      const { out, code } = await run(program(url, 5000), env);
      assert.equal(code, 1);
      assert.match(out, words);
    };
    await refused(mock.url, env, /certificate is not trusted: set NODE_EXTRA_CA_CERTS/);
    const missing = { ...env, NODE_EXTRA_CA_CERTS: file("no such file") };
    await refused(mock.url, missing, /certificate is not trusted: set NODE_EXTRA_CA_CERTS/);
    const other = fileURLToPath(new URL("./tls/cert.pem", import.meta.url));
    await refused(mock.url, { ...env, NODE_EXTRA_CA_CERTS: other }, /not trusted/);
  });
});
