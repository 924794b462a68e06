// Duty: random values in V8's format: this runtime's V8 reads the sent bytes, and values that V8
// has written arrive unchanged. The server is a mock, so that the test can inspect the bytes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Serializer, deserialize } from "node:v8";
import { assertSame } from "../codec/graph.mjs";
import { randomFrom, randomValue } from "../codec/random.mjs";
import { connect, start } from "./mock.mjs";

const VALUES = 1500;
/** In the protocol. */
const ENCODING_V8 = 1;
const ENCODING_BYTES = 3;
/** Values over it are refused before they are sent. */
const VALUE_BYTES_MAX = 65_536;

/** V8's own clone; the value itself where V8 cannot read what it wrote of an error's cause. */
function cloned(value) {
  try {
    return structuredClone(value);
  } catch {
    return value;
  }
}

/** As Deno writes: typed arrays by V8's own tags, which `v8.serialize` does not use. */
function written(value) {
  const serializer = new Serializer();
  serializer.writeHeader();
  serializer.writeValue(value);
  return serializer.releaseBuffer();
}

/** What V8 makes of bytes, or why it cannot. */
function read(bytes) {
  try {
    return { value: deserialize(bytes) };
  } catch (error) {
    return { error };
  }
}

/** Seeds and values that V8 can carry by itself. */
function* values() {
  for (let seed = 1; seed <= VALUES; seed++) {
    const value = randomValue(randomFrom(seed));
    const bytes = written(value);
    if (bytes.length > VALUE_BYTES_MAX || "error" in read(bytes)) continue;
    yield [seed, value, bytes];
  }
}

test("sent values are readable by V8", async () => {
  const mock = await start();
  const kv = await connect(mock);
  let compared = 0;
  for (const [seed, value] of values()) {
    mock.entries.clear();
    await kv.set(["v"], value);
    const [[, entry]] = mock.entries;
    const plain = value instanceof Uint8Array;
    assert.equal(Number(entry.encoding), plain ? ENCODING_BYTES : ENCODING_V8, `seed ${seed}`);
    const sent = plain ? new Uint8Array(entry.data) : deserialize(entry.data);
    assertSame(sent, cloned(value), `seed ${seed}`);
    compared++;
  }
  assert.ok(compared > VALUES * 0.9, `only ${compared} values`);
});

test("values written by V8 arrive unchanged", async () => {
  const mock = await start();
  const kv = await connect(mock);
  await kv.set(["v"], 0);
  const [[, entry]] = mock.entries;
  let compared = 0;
  for (const [seed, value, bytes] of values()) {
    entry.data = bytes;
    assertSame((await kv.get(["v"])).value, cloned(value), `seed ${seed}`);
    compared++;
  }
  assert.ok(compared > VALUES * 0.9, `only ${compared} values`);
});
