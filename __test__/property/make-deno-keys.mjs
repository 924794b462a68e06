// Duty: writes deno-keys.json: random keys with the bytes that Deno KV gives them, taken from the
// cursors of its lists. Run once, by hand: deno run -A --unstable-kv make-deno-keys.mjs

import { Buffer } from "node:buffer";
import { writeFileSync } from "node:fs";
import { randomKey } from "./keys.mjs";
import { Random } from "./random.mjs";

const KEYS = 300;

const random = new Random(20_260_821);
const kv = await Deno.openKv(":memory:");
const lines = [];
while (lines.length < KEYS) {
  const key = randomKey(random);
  await kv.set(key, 0);
  const iterator = kv.list({ prefix: [] });
  await iterator.next();
  const hex = Buffer.from(iterator.cursor, "base64url").toString("hex");
  await kv.delete(key);
  if (hex.length <= 160) lines.push(JSON.stringify({ js: source(key), hex }));
}
writeFileSync(new URL("deno-keys.json", import.meta.url), `[\n  ${lines.join(",\n  ")}\n]\n`);

/** The key as a JavaScript expression. */
function source(key) {
  const part = (value) => {
    if (typeof value === "object") return `new Uint8Array([${value}])`;
    if (typeof value === "string") return JSON.stringify(value);
    if (typeof value === "bigint") return `${value}n`;
    return Object.is(value, -0) ? "-0" : String(value);
  };
  return `[${key.map(part).join(",")}]`;
}
