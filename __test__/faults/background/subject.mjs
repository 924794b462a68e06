// A process that waits for changes of a file by a watch, a change feed and a listener, while its
// system calls fail (faults.c). Reads one JSON command per line; prints changes and failures as
// lines.

import { args, listen, tell } from "../../processes/child.mjs";
import { openKv } from "../../processes/target.mjs";

const say = (message) => tell(JSON.stringify(message));
let kv;

/** Each goes on until its stream ends or fails, which it says. */
const streams = {
  async watch() {
    const reader = kv.watch([["a"]]).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      say({ heard: "watch", value: value[0].value });
    }
  },
  async feed() {
    const reader = kv.watch({ prefix: ["f"] }).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const change of value.changes) say({ heard: "feed", value: change.value });
    }
  },
  async receive() {
    say({ heard: "receive", value: (await kv.queue("mail").receive({ wait: 60_000 }))?.value });
  },
  listen: () => kv.listenQueue((value) => say({ heard: "listen", value })),
};

const commands = {
  async open({ path }) {
    kv = await openKv(path);
  },
  start({ which }) {
    for (const name of which) {
      streams[name]().catch((error) => {
        say({ failed: name, code: error.code ?? null, message: error.message });
      });
    }
  },
  set: ({ key, value }) => kv.set(key, value),
  stats: async () =>
    (await kv.stats()).failing.map(({ part, since, error }) => ({
      part,
      since: since.getTime(),
      code: error.code,
      message: error.message,
    })),
  backup: ({ to }) => kv.backup(to),
  check: () => kv.check(),
  metrics: () => kv.metrics({ format: "prometheus" }),
  close: () => kv?.close(),
};

const alive = setInterval(() => {}, 1 << 30);
listen(async (line) => {
  const { does, ...rest } = JSON.parse(line);
  if (does === "end") return clearInterval(alive);
  try {
    say({ answer: (await commands[does](rest)) ?? null });
  } catch (error) {
    say({ refused: error.code ?? error.name, message: error.message });
  }
});
say({ ready: args.ready ?? true });
