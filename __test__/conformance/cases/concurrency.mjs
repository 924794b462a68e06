// Duty: several handles on one file in one process: nobody is locked out, nothing is lost.

async function handles(t, count) {
  const first = await t.open();
  const all = [first];
  while (all.length < count) all.push(await t.another(first));
  return all;
}

export default [
  {
    name: "check-and-set from several handles: no error, no lost update",
    on: "shared",
    denoDiffers: "contended commits of several connections reject with 'database is locked'",
    async run(t) {
      const all = await handles(t, 6);
      await all[0].set(["n"], 0);
      await Promise.all(
        all.map(async (kv) => {
          for (let added = 0; added < 8; ) {
            const entry = await kv.get(["n"]);
            const op = kv
              .atomic()
              .check(entry)
              .set(["n"], entry.value + 1);
            if ((await op.commit()).ok) added++;
          }
        }),
      );
      t.is(await t.value(all[0], ["n"]), 48);
    },
  },
  {
    name: "5 rounds of concurrent sums from 20 handles are exact",
    on: "shared",
    async run(t) {
      const all = await handles(t, 20);
      for (let round = 1; round <= 5; round++) {
        await Promise.all(all.map((kv) => kv.atomic().sum(["n"], 1n).commit()));
        for (const kv of all) t.is((await t.value(kv, ["n"])).value, BigInt(20 * round));
      }
    },
  },
  {
    name: "versionstamps of all handles are one sequence",
    on: "shared",
    async run(t) {
      const [a, b, c] = await handles(t, 3);
      const stamps = [];
      for (let i = 0; i < 15; i++) {
        for (const kv of [a, b, c]) stamps.push((await kv.set(["k", i], i)).versionstamp);
      }
      t.same(stamps, [...new Set(stamps)].sort());
    },
  },
  {
    name: "one handle's lists run while another writes",
    on: "shared",
    async run(t) {
      const [reader, writer] = await handles(t, 2);
      let writing = true;
      const done = (async () => {
        for (let i = 0; i < 100; i++) {
          await writer.atomic().set(["p", "a"], i).set(["p", "b"], i).commit();
        }
        writing = false;
      })();
      let last = -1;
      while (writing) {
        const values = (await t.all(reader.list({ prefix: ["p"] }))).map((entry) => entry.value);
        t.ok(new Set(values).size <= 1, `torn: ${values}`);
        t.ok((values[0] ?? -1) >= last, "went back in time");
        last = values[0] ?? -1;
        await t.sleep(0);
      }
      await done;
    },
  },
  {
    name: "everything at once on one handle",
    async run(t) {
      const kv = await t.open();
      const got = [];
      const listening = kv.listenQueue((message) => {
        got.push(message);
      });
      const reader = kv.watch([["last"]]).getReader();
      await reader.read();
      const jobs = [];
      for (let i = 0; i < 60; i++) {
        jobs.push(
          kv.set(["s", i], i),
          kv.get(["s", i]),
          kv.getMany([
            ["s", i],
            ["s", i - 1],
          ]),
        );
        jobs.push(kv.atomic().sum(["n"], 1n).enqueue(i).commit(), kv.delete(["d", i]));
        jobs.push(t.all(kv.list({ prefix: ["s"] }, { limit: 5 })));
      }
      await Promise.all(jobs);
      await kv.set(["last"], "end");
      t.is((await reader.read()).value[0].value, "end");
      await t.until(() => got.length === 60, "60 messages");
      t.is((await t.value(kv, ["n"])).value, 60n);
      t.is((await t.all(kv.list({ prefix: ["s"] }))).length, 60);
      kv.close();
      await listening;
    },
  },
];
