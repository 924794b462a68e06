// Duty: servers and networks that misbehave: every call ends with the documented code, and no write
// happens twice.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KvOutcomeUnknownError, openKv } from "../../index.mjs";
import { sleep } from "../kit/time.mjs";
import { AT_ONCE, drip, each, failWith, hexOf } from "./misbehaviour.mjs";
import { ACCESS_TOKEN, connect, cut, reply, start } from "./mock.mjs";
import { fields, message } from "./protobuf.mjs";

const PROTOBUF = "application/x-protobuf";
const TIMEOUT = 3000;

/** Only what is to run into the timeout has a short one. */
const patience = (code) => (code === "UNAVAILABLE" ? TIMEOUT : 10_000);
/** An answer that never comes. */
const never = () => true;

describe("opening", { concurrency: true }, () => {
  const dataOf = (change) => (mock) => (mock.metadata = change(mock));
  const answer =
    (...with_) =>
    (mock) => {
      mock.scripts.metadata = (_, response) => reply(response, ...with_);
    };
  const cases = [
    ["a token that is not accepted", answer(401, "text/plain", "Invalid."), "DENIED"],
    ["a token without rights", answer(403, "text/plain", "No."), "DENIED"],
    ["no such page", answer(404, "text/html", "<h1>404</h1>"), "CORRUPT"],
    ["a bad request", answer(400, "text/plain", "What?"), "CORRUPT"],
    ["no content", answer(204, "text/plain", undefined), "CORRUPT"],
    ["a page of HTML", answer(200, "text/html", "<h1>Welcome</h1>"), "CORRUPT"],
    ["a page of HTML that is called JSON", answer(200, "application/json", "<h1>"), "CORRUPT"],
    ["JSON that is something else", answer(200, "application/json", "[]"), "CORRUPT"],
    ["too large a body", answer(200, "application/json", `"${"x".repeat(70_000)}"`), "CORRUPT"],
    ["failures that do not end", answer(500, "text/plain", "Oh."), "UNAVAILABLE"],
    ["too many requests", answer(429, "text/plain", "Slower."), "UNAVAILABLE"],
    ["another version", dataOf(() => ({ version: 4 })), "UNSUPPORTED"],
    ["no UUID", dataOf(() => ({ databaseId: "mine" })), "CORRUPT"],
    [
      "another consistency",
      dataOf(() => ({ endpoints: [{ url: "/v2", consistency: "so-so" }] })),
      "CORRUPT",
    ],
    ["a time without a zone", dataOf(() => ({ expiresAt: "2030-01-01T00:00:00" })), "CORRUPT"],
    ["a token with spaces", dataOf(() => ({ token: "a b" })), "CORRUPT"],
    [
      "a slash at the end",
      dataOf(() => ({ endpoints: [{ url: "/v2/", consistency: "strong" }] })),
      "CORRUPT",
    ],
    ["a relative endpoint in version 1", dataOf(() => ({ version: 1 })), "CORRUPT"],
    ["a redirect to nowhere", answer(307, "text/plain", ""), "CORRUPT"],
    [
      "redirects in a circle",
      (mock) => {
        mock.scripts.metadata = (_, response) =>
          reply(response, 308, "text/plain", "", { location: mock.url });
      },
      "CORRUPT",
    ],
    ["an answer that never comes", (mock) => (mock.scripts.metadata = never), "UNAVAILABLE"],
    [
      "a body that never ends",
      (mock) => {
        mock.scripts.metadata = (_, response) => {
          response.writeHead(200, { "content-type": "application/json" });
          const drip = setInterval(() => response.write(" "), 20);
          response.on("close", () => clearInterval(drip));
          return true;
        };
      },
      "UNAVAILABLE",
    ],
  ];
  for (const [name, prepare, code] of cases) {
    test(`${name}: ${code}`, async () => {
      const mock = await start();
      prepare(mock);
      await assert.rejects(connect(mock, { timeout: patience(code) }), (error) => {
        assert.equal(error.code, code, error.message);
        assert.ok(!error.message.includes(ACCESS_TOKEN), "a token is not repeated");
        return true;
      });
    });
  }

  test("no server: UNAVAILABLE", async () => {
    // A port that was free a moment ago may be another test's by now; the first one is nobody's.
    const nobody = openKv("http://127.0.0.1:1/", { accessToken: ACCESS_TOKEN, timeout: TIMEOUT });
    await assert.rejects(nobody, { code: "UNAVAILABLE" });
  });

  test("metadata truncated at every byte: requested again", async () => {
    const mock = await start();
    const body = Buffer.from(mock.metadataText());
    await each(body.length, async (at) => {
      const one = await start();
      one.scripts.metadata = (_, response, __, count) =>
        // The first request is a try of HTTP/2, of which this server knows nothing.
        count === 1 && cut(response, "application/json", body, at);
      await connect(one);
      assert.equal(one.counts.metadata, 2, `${at}`);
    });
  });

  test("a redirect is followed, and the endpoints are relative to its target", async () => {
    const mock = await start();
    mock.metadata = { endpoints: [{ url: "./data", consistency: "strong" }] };
    mock.scripts.metadata = (request, response) =>
      request.url === "/" && reply(response, 307, "text/plain", "", { location: "/moved/here" });
    const kv = await connect(mock);
    await kv.set(["a"], 1);
    assert.equal(mock.requests.at(-1).url, "/moved/data/atomic_write");
  });

  test("a few failures are retried", async () => {
    const mock = await start();
    mock.scripts.metadata = (_, response, __, count) =>
      count < 3 && reply(response, 502, "text/plain", "Oh.");
    await connect(mock);
    assert.equal(mock.counts.metadata, 3);
  });
});

describe("reads", { concurrency: true }, () => {
  test("an answer truncated at every byte is requested again", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], "value");
    const seen = new Set();
    let cutAt = 0;
    let length = 100;
    mock.scripts.snapshot_read = (_, response, body) => {
      const key = fields(fields(body)[1][0])[1][0].toString("hex");
      if (seen.has(key)) return false;
      seen.add(key);
      const whole = mock.readBytes(body);
      length = whole.length;
      return cut(response, PROTOBUF, whole, Math.min(cutAt++, whole.length - 1));
    };
    for (let i = 0; i < length; i += AT_ONCE) {
      const keys = Array.from({ length: AT_ONCE }, (_, j) => ["a", i + j]);
      for (const key of keys) mock.entries.set(hexOf(key), mock.entries.get(hexOf(["a"])));
      await Promise.all(
        keys.map(async (key) => {
          await sleep(0);
          assert.equal((await kv.get(key)).value, "value");
        }),
      );
    }
    assert.equal(mock.counts.snapshot_read, 2 * seen.size);
    assert.ok(cutAt >= length && seen.size >= length, `${cutAt} cuts of ${length} bytes`);
  });

  test("an answer that ends early but has its declared length: CORRUPT", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], "value");
    let at = 0;
    let length = 1;
    mock.scripts.snapshot_read = (_, response, body) => {
      const whole = mock.readBytes(body);
      length = whole.length;
      return reply(response, 200, PROTOBUF, whole.subarray(0, at));
    };
    for (; at < length; at++) await assert.rejects(kv.get(["a"]), { code: "CORRUPT" }, `${at}`);
  });

  const oneOf = {
    "failures that do not end": [failWith(500), "UNAVAILABLE"],
    "no answer": [never, "UNAVAILABLE"],
    "a page of HTML": [(_, r) => reply(r, 200, "text/html", "<h1>"), "CORRUPT"],
    "no such page": [failWith(404), "CORRUPT"],
    "a redirect": [failWith(307, { location: "/elsewhere" }), "CORRUPT"],
    "no content": [failWith(204), "CORRUPT"],
    "not accepted, twice": [failWith(401), "DENIED"],
    "too many requests": [failWith(429), "UNAVAILABLE"],
    "too large a body": [
      (_, r) => {
        r.writeHead(200, { "content-type": PROTOBUF, "content-length": 2 ** 30 });
        r.write("x");
        return true;
      },
      "CORRUPT",
    ],
    "an unknown status": [
      (_, r) => reply(r, 200, PROTOBUF, message([1, message()], [4, 1], [8, 7])),
      "CORRUPT",
    ],
    "reads disabled": [
      (_, r) => reply(r, 200, PROTOBUF, message([1, message()], [8, 2])),
      "UNAVAILABLE",
    ],
    "an old state for a strong read": [
      (_, r) => reply(r, 200, PROTOBUF, message([1, message()], [8, 1])),
      "UNAVAILABLE",
    ],
    "no range": [(_, r) => reply(r, 200, PROTOBUF, message([4, 1], [8, 1])), "CORRUPT"],
  };
  for (const [name, [script, code]] of Object.entries(oneOf)) {
    test(`${name}: ${code}`, async () => {
      const mock = await start();
      const kv = await connect(mock, { timeout: patience(code) });
      mock.scripts.snapshot_read = script;
      await assert.rejects(kv.get(["a"]), { code });
    });
  }

  test("a rejection is a TypeError with the server's text", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.snapshot_read = failWith(400);
    await assert.rejects(
      kv.get(["a"]),
      (error) => error instanceof TypeError && /not now/.test(error.message),
    );
  });

  test("a temporary series of failures is retried", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.snapshot_read = (request, response, _, count) =>
      count < 4 && failWith(503)(request, response);
    assert.equal((await kv.get(["a"])).value, null);
  });

  test("an answer that arrives byte by byte is read; one that never ends is an error", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], "value");
    mock.scripts.snapshot_read = (_, response, body) =>
      drip(response, PROTOBUF, mock.readBytes(body), 2);
    assert.equal((await kv.get(["a"])).value, "value");
    const impatient = await connect(mock, { timeout: TIMEOUT });
    mock.scripts.snapshot_read = (_, response) => drip(response, PROTOBUF, Buffer.alloc(1e6), 5);
    await assert.rejects(impatient.get(["a"]), { code: "UNAVAILABLE" });
    mock.scripts.snapshot_read = (_, response) => {
      response.statusCode = 503;
      return drip(response, "text/plain", Buffer.alloc(1e6, "x"), 5);
    };
    await assert.rejects(impatient.get(["a"]), { code: "UNAVAILABLE" });
  });

  test("a body over the limit without a declared length: CORRUPT", async () => {
    const mock = await start();
    const kv = await connect(mock);
    const piece = Buffer.alloc(4 * 1024 * 1024);
    mock.scripts.snapshot_read = (_, response) => {
      response.writeHead(200, { "content-type": PROTOBUF });
      const more = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.on("drain", more);
      more();
      return true;
    };
    await assert.rejects(kv.get(["a"]), { code: "CORRUPT" });
  });

  test("half of all requests fail in different ways: every read gets the right answer", async () => {
    const mock = await start();
    const kv = await connect(mock, { timeout: 60_000 });
    for (let n = 0; n < 50; n++) await kv.set(["a", n], n);
    const ways = [
      failWith(500),
      failWith(502),
      failWith(503),
      failWith(504),
      failWith(429),
      failWith(408),
    ];
    ways.push((_, response, body) => cut(response, PROTOBUF, mock.readBytes(body), 3));
    ways.push((request) => Boolean(request.socket.destroy()));
    let count = 0;
    mock.scripts.snapshot_read = (request, response, body) =>
      ++count % 2 === 0 && ways[(count / 2) % ways.length](request, response, body);
    for (let round = 0; round < 4; round++) {
      const entries = await Promise.all(Array.from({ length: 50 }, (_, n) => kv.get(["a", n])));
      assert.deepEqual(
        entries.map(({ value }) => value),
        Array.from({ length: 50 }, (_, n) => n),
      );
    }
  });

  test("an answer cannot make a list loop", async () => {
    const mock = await start();
    const kv = await connect(mock);
    for (let i = 0; i < 40; i++) await kv.set(["a", i], i);
    const first = mock.readBytes(rangeOfAll(32));
    mock.scripts.snapshot_read = (_, response) => reply(response, 200, PROTOBUF, first);
    const list = async () => {
      for await (const _ of kv.list({ prefix: ["a"] }));
    };
    await assert.rejects(list(), { code: "CORRUPT" });
  });
});

describe("writes", { concurrency: true }, () => {
  test("an answer truncated at every byte: the outcome is unknown, and the write was sent once", async () => {
    const mock = await start();
    const kv = await connect(mock);
    let at = 0;
    mock.scripts.atomic_write = (_, response, body) => {
      const answer = mock.commit(body);
      return cut(response, PROTOBUF, answer, at++ % answer.length);
    };
    await each(20, async (i) => {
      await assert.rejects(kv.set(["a", i], i), (error) => {
        assert.ok(error instanceof KvOutcomeUnknownError);
        assert.equal(error.code, "OUTCOME_UNKNOWN");
        return true;
      });
    });
    assert.equal(mock.counts.atomic_write, 20);
    assert.equal(mock.entries.size, 20);
  });

  const unknown = {
    "a failure of the server": failWith(500),
    "a failure of a gateway": failWith(504),
    "no answer": never,
    "an answer without end": (_, r) => drip(r, PROTOBUF, Buffer.alloc(1e6), 5),
    "a page of HTML": (_, r) => reply(r, 200, "text/html", "<h1>"),
    "an unknown status": (_, r) => reply(r, 200, PROTOBUF, message([1, 9])),
    nothing: (_, r) => reply(r, 200, PROTOBUF, ""),
    "a stamp that is none": (_, r) =>
      reply(r, 200, PROTOBUF, message([1, 1], [2, Buffer.alloc(3)])),
  };
  for (const [name, script] of Object.entries(unknown)) {
    test(`${name}: OUTCOME_UNKNOWN`, async () => {
      const mock = await start();
      const kv = await connect(mock, { timeout: /^(no|an) answer/.test(name) ? TIMEOUT : 10_000 });
      mock.scripts.atomic_write = script;
      await assert.rejects(kv.set(["a"], 1), {
        code: "OUTCOME_UNKNOWN",
        name: "KvOutcomeUnknownError",
      });
      await assert.rejects(kv.atomic().sum(["a"], 1n).commit(), { code: "OUTCOME_UNKNOWN" });
      assert.equal(mock.counts.atomic_write, 2);
    });
  }

  test("after Retry-After the write is sent again, because the server has not begun it", async () => {
    const mock = await start();
    const kv = await connect(mock);
    for (const status of [503, 429]) {
      let asked = 0;
      mock.scripts.atomic_write = (request, response) =>
        ++asked === 1 && failWith(status, { "retry-after": "0" })(request, response);
      assert.equal((await kv.set(["a"], 1)).ok, true);
    }
  });

  test("a write with a check of its key is sent again, and commits if it had not before", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], 1);
    const entry = await kv.get(["a"]);
    mock.scripts.atomic_write = (_, response, __, count) =>
      count === 2 && cut(response, PROTOBUF, Buffer.alloc(9), 4);
    assert.equal((await kv.atomic().check(entry).set(["a"], 2).commit()).ok, true);
    assert.equal(mock.counts.atomic_write, 3);
  });

  test("if it had committed before, its check fails, and the outcome is unknown", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], 1);
    const entry = await kv.get(["a"]);
    mock.scripts.atomic_write = (_, response, body, count) =>
      count === 2 && cut(response, PROTOBUF, mock.commit(body), 3);
    await assert.rejects(kv.atomic().check(entry).set(["a"], 2).commit(), {
      code: "OUTCOME_UNKNOWN",
    });
    assert.equal((await kv.get(["a"])).value, 2);
  });

  test("writes disabled: metadata is requested once, then DENIED", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.atomic_write = (_, response) => reply(response, 200, PROTOBUF, message([1, 5]));
    await assert.rejects(kv.set(["a"], 1), { code: "DENIED" });
    assert.equal(mock.counts.metadata, 2);
  });

  test("no strong endpoint: UNAVAILABLE, but eventual reads work", async () => {
    const mock = await start();
    mock.metadata = { endpoints: [{ url: "/v2", consistency: "eventual" }] };
    const kv = await connect(mock);
    await assert.rejects(kv.set(["a"], 1), { code: "UNAVAILABLE" });
    assert.equal((await kv.get(["a"], { consistency: "eventual" })).value, null);
  });
});

describe("tokens", { concurrency: true }, () => {
  test("an expired token is renewed once for all waiting calls", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.dataToken = "second";
    await Promise.all(Array.from({ length: 20 }, (_, i) => kv.set([i], i)));
    assert.equal(mock.counts.metadata, 2);
  });

  test("a short lifetime does not cause a busy loop", async () => {
    const mock = await start();
    mock.lifeMs = 1;
    const kv = await connect(mock);
    const until = Date.now() + 700;
    while (Date.now() < until) await kv.get(["a"]);
    assert.ok(mock.counts.metadata <= 3, `${mock.counts.metadata}`);
  });

  for (const skew of [-7_200_000, 7_200_000]) {
    test(`a server whose clock differs by ${skew / 3_600_000} h: its own Date counts`, async () => {
      const mock = await start();
      const now = () => Date.now() + skew;
      mock.scripts.metadata = (_, response) =>
        reply(response, 200, "application/json", mock.metadataText(), {
          date: new Date(now()).toUTCString(),
        });
      mock.metadata = { expiresAt: new Date(now() + 60_000).toISOString() };
      const kv = await connect(mock);
      for (let i = 0; i < 20; i++) await kv.get(["a"]);
      assert.equal(mock.counts.metadata, 1);
    });
  }

  test("another database than before: CORRUPT", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.dataToken = "second";
    mock.metadata = { databaseId: "fedcba98-7654-3210-fedc-ba9876543210" };
    await assert.rejects(kv.get(["a"]), { code: "CORRUPT" });
  });
});

test("openKv names the URL of a server without KV Connect, without its secrets", async () => {
  const mock = await start();
  mock.scripts.metadata = failWith(404);
  const url = `${mock.url}?key=secret`;
  await assert.rejects(openKv(url, { accessToken: "t" }), (error) => {
    assert.ok(error.message.includes(mock.url) && !error.message.includes("secret"), error.message);
    return true;
  });
});

/** The request for the first entries of all. */
function rangeOfAll(limit) {
  return message([1, message([1, Buffer.from([0])], [2, Buffer.from([0xff])], [3, limit])]);
}
