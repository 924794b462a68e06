// A process that takes leases, runs functions once and takes from a limiter as it is told: one word a line.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path, args.options);
const KEY = ["lease"];
let lease;

/** Every checked write says who made it, under which token, at a key in the order of the commits. */
async function write() {
  const result = await kv
    .atomic()
    .checkLease(lease)
    .set(["writes", kv.commitVersionstamp()], { by: args.name, token: lease.token })
    .commit();
  return result.ok;
}

const commands = {
  async acquire() {
    lease = await kv.lease(KEY, { ttl: args.ttl });
    const { token, signal } = lease;
    signal.addEventListener("abort", () => tell(`lost ${token}`));
    return `has ${token}`;
  },
  write: async () => `wrote ${await write()}`,
  release: async () => `released ${await lease.release()}`,
  /** Acquires and releases until it is told to end. */
  async compete() {
    let held = 0;
    while (!ending) {
      lease = await kv.lease(KEY, { ttl: args.ttl });
      for (let n = 0; n < 3 && (await write()); n++);
      await lease.release();
      if (++held === 1) tell("competes");
    }
    return `competed ${held}`;
  },
  async take() {
    const limiter = kv.limiter(["limit"], {
      limit: args.limit,
      per: "1h",
      algorithm: args.algorithm,
    });
    const answers = await Promise.all(Array.from({ length: args.takes }, () => limiter.take()));
    return `took ${answers.filter(({ allowed }) => allowed).length}`;
  },
  async once() {
    const result = await kv.once(
      ["once"],
      async () => {
        tell("runs");
        if (args.hangs) await new Promise(() => {});
        return args.name;
      },
      { leaseTtl: args.ttl },
    );
    return `result ${result}`;
  },
};

let ending = false;
const alive = setInterval(() => {}, 1000);
listen(async (word) => {
  if (word === "end") {
    ending = true;
    clearInterval(alive);
    return;
  }
  tell(await commands[word]().catch((error) => `failed ${error.code}: ${error.message}`));
});
tell("ready");
