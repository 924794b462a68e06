// Duty: the values that Deno and openkv have in common, by name; written and compared the same way
// in every runtime.

import { readFileSync } from "node:fs";
import { assertSame } from "../codec/graph.mjs";

const json = new URL("../../tests/vectors/v8.json", import.meta.url);
const { values } = JSON.parse(readFileSync(json, "utf8"));
const withoutFloat16 = typeof Float16Array === "undefined";

/** What is stored is what the runtime shows of them, and that differs: they are only read. */
const NOT_COMPARED = ["plain", "bytes", "blob"];
/** A view of a part comes back as its own bytes from one side and in its buffer from the other. */
const NOT_SAME = ["view of a part stands alone"];

/** Every golden value that this runtime can make; `of` makes it, in an array. */
export const MATRIX = values
  .filter(({ note }) => !(withoutFloat16 && note === "float16") && note !== "blob")
  .map(({ name, js, note }) => ({
    name,
    of: () => new Function(`return (${js});`)(),
    // Node 20 has none: absent from what it has written.
    optional: note === "float16",
    compared: !NOT_COMPARED.includes(note) && !NOT_SAME.includes(name),
  }));

/** All of them, and values with encodings of their own, into a database of either. */
export async function fill(kv, u64) {
  for (const { name, of } of MATRIX) await kv.set(["value", name], of());
  for (const { name, of } of MATRIX) await kv.set(["alone", name], of()[0]);
  await kv.set(["bytes"], new Uint8Array([1, 2, 3]));
  await kv.set(["large"], "x".repeat(30_000));
  await kv.set(["count"], u64(41n));
  await kv.set(["ends"], "later", { expireIn: 30 * 365 * 86_400_000 });
}

/** What `fill` has written is what is read. */
export async function verify(kv, u64) {
  let compared = 0;
  for (const key of ["value", "alone"]) {
    for (const { name, of, optional, compared: exact } of MATRIX) {
      const entry = await kv.get([key, name]);
      if (!entry.versionstamp && optional) continue;
      if (!entry.versionstamp) throw new Error(`${key} ${name} is missing`);
      if (!exact) continue;
      const expected = key === "value" ? of() : of()[0];
      assertSame(entry.value, expected, `${key} ${name}`);
      compared++;
    }
  }
  assertSame((await kv.get(["bytes"])).value, new Uint8Array([1, 2, 3]));
  assertSame((await kv.get(["large"])).value, "x".repeat(30_000));
  const count = await kv.get(["count"]);
  if (count.value.value !== u64(41n).value) throw new Error(`count is ${count.value}`);
  assertSame((await kv.get(["ends"])).value, "later");
  if (compared < 240) throw new Error(`only ${compared} values were compared`);
}
