// Duty: entries of every kind, for tests and screenshots.

import { KvU64 } from "../../index.mjs";

const PNG =
  "89504e470d0a1a0a0000000d4948445200000010000000100802000000909168360000001749444154789c63102b6b" +
  "2609318c6a18d530aa61046b0000c1d3b98130c5e6060000000049454e44ae426082";

/** Fills a database as a shop has it. */
export async function demo(kv) {
  await kv.set(["users", "ada"], {
    name: "Ada Lovelace",
    born: new Date("1815-12-10"),
    roles: new Set(["admin", "author"]),
    visits: 10n ** 20n,
    settings: new Map([["theme", { dark: true }]]),
    notes: ["first programme", "analytical engine", "a long text that makes the value wrap lines"],
  });
  for (let i = 0; i < 40; i++)
    await kv.set(["users", `user-${String(i).padStart(3, "0")}`], {
      name: `User ${i}`,
      age: 20 + i,
    });
  await kv.set(["users", 42], "a number");
  await kv.set(["users", 42n], "a bigint");
  await kv.set(["users", "42"], "a string");
  await kv.set(["users", true], "a boolean");
  await kv.set(["users", new Uint8Array([1, 2, 255])], "bytes");
  await kv.set(["images", "logo"], new Uint8Array(Buffer.from(PNG, "hex")));
  await kv.set(["counters", "visits"], new KvU64(12_345n));
  await kv.set(["sessions", "abc"], { open: true }, { expireIn: 3_600_000 });
  await kv.set(["config"], { on: true, pattern: /^a.*z$/i });
  for (let i = 0; i < 300; i++) await kv.set(["orders", 2024 + (i % 3), i], { total: i * 3 });
  for (let i = 0; i < 4; i++) await kv.enqueue({ to: "ada", subject: `letter ${i}` });
}
