// Duty: a process that writes to a database in an object store for as long as it can, and tells its parent each
// outcome: "ack ID", "open ID" if it is unknown, "led" when it leads.

import process from "node:process";
import { openKv } from "../../index.mjs";

const [url, cache, name] = process.argv.slice(2);
const kv = await opened();
async function opened() {
  for (;;) {
    try {
      return await openKv(url, cache === "" ? {} : { cache });
    } catch (error) {
      // The store may fail, and the cache may be that of a process that is stopped.
      if (error.code !== "UNAVAILABLE") throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

let led = false;
for (let n = 0; ; n++) {
  const id = `${name}-${n}`;
  try {
    await kv.atomic().set(["write", id], n).sum(["count"], 1n).commit();
    if (!led) console.log("led");
    led = true;
    console.log(`ack ${id}`);
  } catch (error) {
    led = false;
    if (error.code === "OUTCOME_UNKNOWN") console.log(`open ${id}`);
    else if (error.code !== "UNAVAILABLE") console.log(`bad ${error.stack}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
