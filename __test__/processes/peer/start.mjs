// The test's side of peer.mjs.

import { HANG_MS, guard } from "../../kit/time.mjs";
import { startChild } from "../children.mjs";

const PEER = new URL("peer.mjs", import.meta.url);

/** Starts a process that has `path` open. Ends with the test `t`. */
export async function startPeer(t, path) {
  const heard = [];
  const waiting = new Set();
  const onLine = (line) => {
    heard.push(JSON.parse(line));
    for (const look of waiting) look();
  };
  const child = startChild(PEER, { path }, { onLine });
  t.after(() => child.kill());
  let over = false;
  child.ended.then(() => {
    over = true;
    for (const look of waiting) look();
  });

  /** The first thing said, not taken before, that `wanted` wants. */
  function hear(wanted, what) {
    const said = new Promise((resolve, reject) => {
      const look = () => {
        const at = heard.findIndex(wanted);
        if (at < 0 && !over) return;
        waiting.delete(look);
        if (at < 0) reject(new Error(`the other process ended: ${child.stderr}`));
        else resolve(heard.splice(at, 1)[0]);
      };
      waiting.add(look);
      look();
    });
    return guard(said, HANG_MS, what);
  }

  const peer = {
    child,
    heard,
    hear,
    /** Makes it do something; its answer. */
    async do(does, rest = {}) {
      child.say(JSON.stringify({ does, ...rest }));
      const said = await hear(
        (it) => "answer" in it || "error" in it,
        `the other process does ${does}`,
      );
      if ("error" in said) throw new Error(said.error);
      return said.answer;
    },
  };
  await hear((it) => it.ready, "the other process is ready");
  return peer;
}
