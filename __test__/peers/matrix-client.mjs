// Duty: one client of the value matrix, in whichever runtime runs this: writes every value under
// its own name, or reads what another client has written, and prints each difference as JSON.
//
//   matrix-client.mjs openkv|deno write NAME         (SERVER_URL, SERVER_TOKEN)
//   matrix-client.mjs openkv|deno read WRITER

import process from "node:process";
import { assertSame } from "../codec/graph.mjs";
import { MATRIX } from "../deno-files/matrix.mjs";

const [library, step, writer] = process.argv.slice(2);
const { SERVER_URL, SERVER_TOKEN } = process.env;
const { kv, KvU64 } = await open();

/** What has no place in the matrix: encodings of their own, and sizes. */
const others = [
  ["u64 0", () => new KvU64(0n)],
  ["u64 largest", () => new KvU64(2n ** 64n - 1n)],
  ["bytes alone", () => new Uint8Array([1, 2, 3])],
  ["no bytes alone", () => new Uint8Array(0)],
  ["large latin text", () => "é".repeat(30_000)],
  ["large wide text", () => "語".repeat(15_000)],
  ["as large as may be", () => new Uint8Array(65_536)],
].map(([name, of]) => ({ name, of: () => [of()], optional: false, compared: true }));

let compared = 0;
await (step === "write" ? write() : read());
console.log(JSON.stringify({ done: true, compared }));
await kv.close();
process.exit(0);

async function open() {
  if (library === "deno") {
    const { Deno } = globalThis;
    return { kv: await Deno.openKv(SERVER_URL), KvU64: Deno.KvU64 };
  }
  const { openKv, KvU64 } = await import("../../index.mjs");
  return { kv: await openKv(SERVER_URL, { accessToken: SERVER_TOKEN }), KvU64 };
}

/** Every value twice: in an array, and alone, where some have an encoding of their own. */
function* values() {
  for (const { of, ...value } of MATRIX) {
    yield { ...value, key: "array", of };
    yield { ...value, key: "alone", of: () => of()[0] };
  }
  for (const { of, ...value } of others) yield { ...value, key: "alone", of: () => of()[0] };
}

async function write() {
  for (const { key, name, of } of values()) {
    await kv.set([writer, key, name], of()).catch((error) => differs("write", key, name, error));
  }
}

async function read() {
  for (const { key, name, of, optional, compared: exact } of values()) {
    let entry;
    try {
      entry = await kv.get([writer, key, name]);
      if (entry.versionstamp === null) {
        // The writer has said so, or its runtime lacks the class.
        if (!optional) throw new Error("it is missing");
        continue;
      }
      if (!exact) continue;
      const [got, wanted] = [entry.value, of()];
      if (wanted instanceof KvU64)
        assertSame([got instanceof KvU64, got.value], [true, wanted.value]);
      else assertSame(got, wanted, name);
      compared++;
    } catch (error) {
      differs("read", key, name, error);
    }
  }
}

function differs(step, key, name, error) {
  console.log(JSON.stringify({ step, key, name, why: `${error.message ?? error}`.split("\n")[0] }));
}
