// Another process that has the same file open and does as it is told: one JSON command a line, one
// JSON answer a line; what its watch and its handlers see comes as lines of its own.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

/** Open handles by name; commands are for the first unless they say `on`. */
const handles = { first: await openKv(args.path) };
const say = (message) => tell(JSON.stringify(message));

const commands = {
  open: async (_, { path, as }) => void (handles[as] = await openKv(path)),
  set: (kv, { key, value, options }) => kv.set(key, value, options),
  delete: (kv, { key }) => kv.delete(key),
  get: (kv, { key }) => kv.get(key),
  enqueue: (kv, { queue, message, options }) =>
    (queue === undefined ? kv : kv.queue(queue)).enqueue(message, options),

  /** Reports each event of a watch as `{ event: [...] }`. */
  async watch(kv, { keys }) {
    const reader = kv.watch(keys).getReader();
    (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return say({ event: null });
        say({ event: value });
      }
    })().catch((error) => say({ error: String(error) }));
  },

  /** Handles messages, of a named `queue` or of Deno's, each for `ms`; reports `{ began }` and `{ handled }`. */
  async handle(kv, { queue, options, ms }) {
    const handler = async (message) => {
      say({ began: message });
      await new Promise((resolve) => setTimeout(resolve, ms));
      say({ handled: message });
    };
    const listening =
      queue === undefined ? kv.listenQueue(handler) : kv.queue(queue).listen(handler, options);
    listening.then(
      () => say({ listening: "ended" }),
      (error) => say({ error: String(error) }),
    );
  },

  async close() {
    for (const kv of Object.values(handles)) kv.close();
  },
};

// Standard input keeps nobody alive (child.mjs), and neither does the handle: until told to close,
// we do.
const alive = setInterval(() => {}, 1 << 30);

listen(async (line) => {
  const { does, ...rest } = JSON.parse(line);
  if (does === "close") clearInterval(alive);
  try {
    say({ answer: (await commands[does](handles[rest.on ?? "first"], rest)) ?? null });
  } catch (error) {
    say({ error: `${error.name}: ${error.message}` });
  }
});
say({ ready: true });
