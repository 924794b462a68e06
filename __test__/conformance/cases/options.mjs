// Duty: the options of openKv itself. Deno has none: it takes a path and nothing else.

const only = "openKv takes no options in Deno";

export default [
  {
    name: "durability full and normal both store",
    async run(t) {
      for (const durability of ["full", "normal", undefined]) {
        const path = t.variant === "memory" ? ":memory:" : t.path();
        const kv = await t.openKv(path, { durability });
        await kv.set(["a"], durability ?? "default");
        t.is(await t.value(kv, ["a"]), durability ?? "default");
      }
    },
  },
  {
    name: "a durability of another name is a TypeError",
    denoDiffers: only,
    async run(t) {
      for (const durability of ["off", "FULL", 1, null]) {
        await t.rejects(() => t.openKv(":memory:", { durability }), TypeError, "durability");
      }
    },
  },
  {
    name: "an unknown option is a TypeError that names it",
    denoDiffers: only,
    async run(t) {
      await t.rejects(() => t.openKv(":memory:", { durabilty: "full" }), TypeError, "durabilty");
    },
  },
  {
    name: "options that are no object are a TypeError",
    denoDiffers: only,
    async run(t) {
      await t.rejects(() => t.openKv(":memory:", "full"), TypeError);
      await t.rejects(() => t.openKv(":memory:", 5), TypeError);
    },
  },
  {
    name: "readonly reads and refuses to write",
    on: "file",
    denoDiffers: only,
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const path = t.path("shared.db");
      const writer = await t.openKv(path);
      await writer.set(["a"], 1);
      writer.close();
      const reader = await t.openKv(path, { readonly: true });
      t.is(await t.value(reader, ["a"]), 1);
      t.same(await t.ends(reader.list({ prefix: [] })), ["a"]);
      await t.rejects(() => reader.set(["a"], 2), Error, /read-?only/i);
      await t.rejects(() => reader.atomic().delete(["a"]).commit(), Error, /read-?only/i);
      await t.rejects(() => reader.enqueue(1), Error, /read-?only/i);
      t.is(await t.value(reader, ["a"]), 1);
    },
  },
  {
    name: "readonly does not create a file",
    on: "file",
    denoDiffers: only,
    async run(t) {
      await t.rejects(() => t.openKv(t.path("none.db"), { readonly: true }), Error);
    },
  },
  {
    name: "limits can be lowered by name",
    denoDiffers: only,
    async run(t) {
      const kv = await t.openKv(":memory:", { limits: { valueBytesMax: 100 } });
      await kv.set(["a"], new Uint8Array(100));
      await t.rejects(() => kv.set(["a"], new Uint8Array(101)), TypeError, "max 100 bytes");
    },
  },
  {
    name: "an unknown limit is a TypeError that names it",
    denoDiffers: only,
    async run(t) {
      const limits = { valueBytesMux: 1 };
      await t.rejects(() => t.openKv(":memory:", { limits }), TypeError, "valueBytesMux");
    },
  },
  {
    name: "a busyTimeout must be a number of milliseconds",
    denoDiffers: only,
    async run(t) {
      await t.openKv(":memory:", { busyTimeout: 100 });
      for (const busyTimeout of ["5", -1, NaN]) {
        await t.rejects(() => t.openKv(":memory:", { busyTimeout }), TypeError, "busyTimeout");
      }
    },
  },
];
