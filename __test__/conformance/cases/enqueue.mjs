// Duty: enqueue: its result, its options and their refusal.

/** Both ways to enqueue: the operation refuses at the call, the handle by rejection. */
async function refused(t, options, words) {
  const kv = await t.open();
  t.throws(() => kv.atomic().enqueue(1, options), TypeError, words);
  await t.rejects(() => kv.enqueue(1, options), TypeError, words);
}

/** Both ways refuse, the operation when it commits, and nothing of it has happened. */
async function refusedByCommit(t, options, words = "") {
  const kv = await t.open();
  const op = kv.atomic().set(["a"], 1).enqueue(1, options).set(["b"], 1);
  await t.rejects(() => op.commit(), TypeError, words);
  t.same(await t.all(kv.list({ prefix: [] })), []);
  await t.rejects(() => kv.enqueue(1, options), TypeError, words);
}

async function accepted(t, options) {
  const kv = await t.open();
  t.is((await kv.enqueue(1, options)).ok, true);
  t.is((await kv.atomic().enqueue(1, options).commit()).ok, true);
}

const month = 30 * 24 * 3600 * 1000;

export default [
  {
    name: "the result names the message",
    denoDiffers: "Deno's result is { ok, versionstamp } and no more",
    async run(t) {
      const kv = await t.open();
      const first = await kv.enqueue(1);
      t.same(Object.keys(first), ["ok", "versionstamp", "id", "deduplicated"]);
      t.match(first.id, /^\d+$/);
      t.is(first.deduplicated, false);
      t.ok((await kv.enqueue(1)).id !== first.id);
    },
  },
  {
    name: "answers ok and a versionstamp",
    async run(t) {
      const kv = await t.open();
      const before = await kv.set(["a"], 1);
      const result = await kv.enqueue("message");
      t.same(Object.keys(result).slice(0, 2), ["ok", "versionstamp"]);
      t.is(result.ok, true);
      t.ok(result.versionstamp > before.versionstamp);
      t.same(await t.all(kv.list({ prefix: ["message"] })), []);
    },
  },
  {
    name: "a delay from 0 to 30 days",
    async run(t) {
      for (const delay of [0, 1.5, month, undefined, null]) await accepted(t, { delay });
      await accepted(t, null);
      await accepted(t, {});
    },
  },
  {
    name: "a delay may be a bigint",
    async run(t) {
      await accepted(t, { delay: 5n });
    },
  },
  {
    name: "a negative delay",
    async run(t) {
      await refused(t, { delay: -1 }, "Delay must be >= 0: received -1");
    },
  },
  {
    name: "a delay of more than 30 days",
    async run(t) {
      const words = "Delay cannot be greater than 30 days: received";
      await refused(t, { delay: month + 1 }, words);
      await refused(t, { delay: Infinity }, words);
    },
  },
  {
    name: "a delay that is NaN",
    async run(t) {
      await refused(t, { delay: NaN }, "Delay cannot be NaN");
    },
  },
  {
    name: "a delay of another type",
    async run(t) {
      for (const delay of ["5", true, {}]) await refusedByCommit(t, { delay });
    },
  },
  {
    name: "a backoffSchedule of up to 5 intervals of up to an hour",
    async run(t) {
      const schedules = [[], [0], [1.5], [1, 2, 3, 4, 3_600_000], undefined];
      for (const backoffSchedule of schedules) await accepted(t, { backoffSchedule });
    },
  },
  {
    name: "a backoffSchedule of 6 intervals",
    async run(t) {
      const words = "Invalid backoffSchedule, max 5 intervals allowed";
      await refused(t, { backoffSchedule: [1, 2, 3, 4, 5, 6] }, words);
    },
  },
  {
    name: "a backoffSchedule with an interval out of range",
    async run(t) {
      for (const wrong of [-1, 3_600_001, NaN, Infinity]) {
        const words = "Invalid backoffSchedule, interval at index 1 is invalid";
        await refused(t, { backoffSchedule: [1, wrong] }, words);
      }
    },
  },
  {
    name: "a backoffSchedule of another type",
    async run(t) {
      await refused(t, { backoffSchedule: null }, "");
      for (const backoffSchedule of ["ab", [null], ["5"]]) {
        await refusedByCommit(t, { backoffSchedule });
      }
    },
  },
  {
    name: "keysIfUndelivered of keys",
    async run(t) {
      for (const keysIfUndelivered of [[], [["a"]], [["a"], ["b", 1n]], undefined, null]) {
        await accepted(t, { keysIfUndelivered });
      }
    },
  },
  {
    name: "keysIfUndelivered that are no keys",
    async run(t) {
      for (const keysIfUndelivered of ["ab", [null], [[{}]], [["a", undefined]], 5]) {
        await refusedByCommit(t, { keysIfUndelivered });
      }
    },
  },
  {
    name: "keysIfUndelivered that could not be written",
    denoDiffers: "Deno checks neither size nor emptiness of these keys",
    async run(t) {
      await refusedByCommit(t, { keysIfUndelivered: [[]] }, "key cannot be empty");
      const long = [new Uint8Array(2049).fill(1)];
      await refusedByCommit(t, { keysIfUndelivered: [long] }, "Key too large for write");
    },
  },
  {
    name: "more than 10 keysIfUndelivered",
    denoDiffers: "Deno takes any number of them; Deno's own server 10",
    async run(t) {
      const keys = Array.from({ length: 11 }, (_, i) => ["dead", i]);
      await accepted(t, { keysIfUndelivered: keys.slice(1), delay: 60_000 });
      await refusedByCommit(t, { keysIfUndelivered: keys }, "(max 10)");
    },
  },
  {
    name: "a misspelt option is a TypeError that names it",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      await refused(t, { dellay: 5 }, "dellay");
    },
  },
];
