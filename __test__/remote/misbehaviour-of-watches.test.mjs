// Duty: watches over servers and networks that misbehave.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sleep } from "../kit/time.mjs";
import { drip, each, failWith, hexOf } from "./misbehaviour.mjs";
import { connect, cut, frame, reply, start } from "./mock.mjs";
import { message } from "./protobuf.mjs";

describe("watches", { concurrency: true }, () => {
  const values = async (reader) => (await reader.read()).value?.map((entry) => entry.value);

  test("an interrupted stream is reopened: no state is repeated, and the last one arrives", async () => {
    const mock = await start();
    const kv = await connect(mock);
    const reader = kv.watch([["a"]]).getReader();
    assert.deepEqual(await values(reader), [null]);
    const next = values(reader);
    mock.cutWatches();
    await kv.set(["a"], "while nobody watched");
    assert.deepEqual(await next, ["while nobody watched"]);
    assert.ok(mock.counts.watch >= 2);
  });

  test("a token that expires during a watch", async () => {
    const mock = await start();
    const kv = await connect(mock);
    const reader = kv.watch([["a"]]).getReader();
    assert.deepEqual(await values(reader), [null]);
    const next = values(reader);
    mock.dataToken = "second";
    mock.cutWatches();
    await sleep(20);
    await kv.set(["a"], 1);
    assert.deepEqual(await next, [1]);
    assert.ok(mock.counts.metadata <= 3);
  });

  test("a token that expires again before the stream opens", async () => {
    const mock = await start();
    const kv = await connect(mock);
    const reader = kv.watch([["a"]]).getReader();
    assert.deepEqual(await values(reader), [null]);
    const next = values(reader);
    // A server whose tokens live as long as itself starts anew, and once more while it is asked.
    mock.dataToken = "second";
    mock.scripts.watch = ({ headers }, response) => {
      if (headers.authorization !== "Bearer second" || mock.dataToken !== "second") return false;
      mock.dataToken = "third";
      return reply(response, 503, "text/plain", "starting");
    };
    mock.cutWatches();
    await kv.set(["a"], 1);
    assert.deepEqual(await next, [1]);
    assert.equal(mock.dataToken, "third");
  });

  test("streams that end without news are reopened with growing pauses", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.watch = (_, response) => {
      response.writeHead(200, { "content-type": "application/octet-stream" });
      response.end(frame(mock.stateBytes([hexOf(["a"])])));
      return true;
    };
    const reader = kv.watch([["a"]]).getReader();
    assert.deepEqual(await values(reader), [null]);
    const next = values(reader);
    await sleep(1500);
    assert.ok(mock.counts.watch < 10, `${mock.counts.watch} streams`);
    delete mock.scripts.watch;
    await kv.set(["a"], 1);
    assert.deepEqual(await next, [1]);
  });

  test("a stream truncated at every byte", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], "value");
    const whole = frame(mock.stateBytes([hexOf(["a"])]));
    await each(whole.length, async (at) => {
      const one = await start();
      one.entries = mock.entries;
      one.scripts.watch = (_, response, __, count) =>
        count === 1 && cut(response, "application/octet-stream", whole, at);
      const reader = (await connect(one)).watch([["a"]]).getReader();
      assert.deepEqual(await values(reader), ["value"], `${at}`);
      await reader.cancel();
    });
  });

  test("a state that arrives byte by byte", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], "value");
    const whole = frame(mock.stateBytes([hexOf(["a"])]));
    const bytes = Buffer.concat([Buffer.alloc(8), whole, Buffer.alloc(4)]);
    mock.scripts.watch = (_, response) => drip(response, "application/octet-stream", bytes, 2);
    const reader = kv.watch([["a"]]).getReader();
    assert.deepEqual(await values(reader), ["value"]);
    await reader.cancel();
  });

  const ends = {
    "a page of HTML": [Buffer.from("<html><body>Welcome</body></html>"), "CORRUPT"],
    "a frame over the limit": [Buffer.from([0xff, 0xff, 0xff, 0x7f]), "CORRUPT"],
    "a frame of something else": [frame(Buffer.from([0xff, 0xff])), "CORRUPT"],
    "other keys": [frame(message([1, 1], [2, message([1, 1])], [2, message([1, 1])])), "CORRUPT"],
    "a first state without the key": [frame(message([1, 1], [2, message()])), "CORRUPT"],
    "reads disabled": [frame(message([1, 2])), "UNAVAILABLE"],
  };
  for (const [name, [bytes, code]] of Object.entries(ends)) {
    test(`${name}: ${code}`, async () => {
      const mock = await start();
      const kv = await connect(mock);
      mock.scripts.watch = (_, response) => {
        response.writeHead(200, { "content-type": "application/octet-stream" });
        response.write(bytes);
        return true;
      };
      await assert.rejects(
        kv
          .watch([["a"]])
          .getReader()
          .read(),
        { code },
      );
    });
  }

  test("version 2 has no watches: UNSUPPORTED", async () => {
    const mock = await start();
    mock.metadata = { version: 2 };
    const kv = await connect(mock);
    await assert.rejects(
      kv
        .watch([["a"]])
        .getReader()
        .read(),
      { code: "UNSUPPORTED" },
    );
  });

  test("rejected with a new token too: DENIED", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.watch = failWith(401);
    await assert.rejects(
      kv
        .watch([["a"]])
        .getReader()
        .read(),
      { code: "DENIED" },
    );
  });

  test("a watch retries after failures, and closing ends the wait", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.watch = failWith(500);
    const read = kv
      .watch([["a"]])
      .getReader()
      .read();
    await sleep(50);
    await kv.close();
    assert.equal((await read).done, true);
  });
});
