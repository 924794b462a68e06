// Duty: abstract-level's own suite, all of it, in the place that the argument names, and what the manifest promises
// there. It prints TAP.

import suite from "abstract-level/test/index.js";
import process from "node:process";
import { openKv } from "openkv";
import { OpenKvLevel } from "openkv/abstract-level";
import tape from "tape";
import { end, places } from "./kit.mjs";

const [place] = process.argv.slice(2);
const newDatabase = await places[place]();

suite({
  test: tape,
  factory: (options) => {
    const database = newDatabase();
    // Explicit snapshots read the history.
    const open = place === "over a URL" ? database.open : { ...database.open, history: "1h" };
    return new OpenKvLevel({ ...database, open, ...options });
  },
});

tape("the manifest promises what the database can do, however that is named", async (t) => {
  const { path, open } = newDatabase();
  const isLocal = place !== "over a URL";
  const kv = await openKv(path, { ...open, ...(isLocal && { history: "1h" }) });
  const promised = ({ supports }) => [supports.getSync, supports.explicitSnapshots];
  const given = new OpenKvLevel({ kv });
  t.same(promised(given), [isLocal, isLocal], "a handle");
  await given.close();
  const later = new OpenKvLevel({ kv: Promise.resolve(kv) });
  t.same(promised(later), [false, false], "a promise of a handle");
  await later.open();
  t.same(promised(later), [isLocal, isLocal], "a promise of a handle that is open");
  await later.close();
  process.env.OPENKV_URL = path;
  const named = new OpenKvLevel({ open });
  delete process.env.OPENKV_URL;
  t.same(promised(named), [isLocal, false], "the environment");
  await named.close();
  await kv.close();
});
tape.onFinish(end);
