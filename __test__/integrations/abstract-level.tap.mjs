// Duty: abstract-level's own suite, all of it, in the place that the argument names. It prints TAP.

import suite from "abstract-level/test/index.js";
import process from "node:process";
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
tape.onFinish(end);
