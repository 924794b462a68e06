// Duty: a process with a replica, on a small disk or under another clock. It tells its status and what it
// reads when asked.

import { openKv } from "../../index.mjs";
import { args, listen, tell } from "../processes/child.mjs";

const { url, replica, accessToken } = args;
listen(async (line) => {
  const [question, versionstamp] = line.split(" ");
  try {
    tell(JSON.stringify(await ANSWERS[question](versionstamp)));
  } catch (error) {
    tell(JSON.stringify({ failed: error.stack }));
  }
});
const kv = await openKv(url, { accessToken, replica, consistency: "eventual" });
await kv.replica.ready();
tell("ready");
// Neither the handle nor the standard input keeps a process alive.
setInterval(() => {}, 1000);

const ANSWERS = {
  async status() {
    const { error, ...status } = await kv.replica.status();
    return { ...status, error: error && { code: error.code, message: error.message } };
  },
  small: () => kv.count({ prefix: ["small"] }),
  big: () => kv.count({ prefix: ["big"] }),
  reached: (versionstamp) => kv.replica.reached(versionstamp).then(() => "reached"),
};
