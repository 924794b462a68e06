// A process that takes leases, runs functions once and takes from a limiter as it is told: one word a line.
// `planted`: how it does it wrong: its writes check no lease ("unchecked"), or its token is the time ("clock").

import { setTimeout as sleep } from "node:timers/promises";
import { args, listen, tell } from "../child.mjs";
import { Random } from "../crash/random.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path, args.options);
const KEY = ["lease"];
let lease;

/** Every checked write says who made it, under which token, at a key in the order of the commits. */
async function write() {
  const write = kv
    .atomic()
    .set(["writes", kv.commitVersionstamp()], { by: args.name, token: lease.token });
  if (args.planted !== "unchecked") write.checkLease(lease.held ?? lease);
  return (await write.commit()).ok;
}

/** A lease whose token does not come from the database. */
const ofClock = (held) => ({
  held,
  // Before every versionstamp.
  token: `-${Date.now().toString(16)}`,
  release: () => held.release(),
});

/** A time that all processes of the machine share, and that no setting of its clock changes. */
const nowNs = () => process.hrtime.bigint();

const commands = {
  async acquire() {
    lease = await kv.lease(KEY, { ttl: args.ttl });
    const { token, signal } = lease;
    signal.addEventListener("abort", () => tell(`lost ${token}`));
    return `has ${token}`;
  },
  write: async () => `wrote ${await write()}`,
  /** Stops between its writes: one that is under way would keep the file from all other processes. */
  async writeAndStop() {
    tell(`wrote ${await write()}`);
    process.kill(process.pid, "SIGSTOP");
    return "continues";
  },
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
  /** The same for a while each, and says what it has, with the times. */
  async hold() {
    const random = new Random(args.seed);
    let held = 0;
    for (; !ending; held++) {
      tell(`asks ${nowNs()}`);
      lease = await kv.lease(KEY, { ttl: args.ttl });
      if (args.planted === "clock") lease = ofClock(lease);
      tell(`got ${nowNs()} ${lease.token}`);
      for (let left = random.between(1, 30); left > 0 && (await write()); left--) {
        await sleep(random.between(0, 20));
      }
      await lease.release();
    }
    return `held ${held}`;
  },
  async take() {
    const limiter = kv.limiter(["limit"], {
      limit: args.limit,
      per: "7d",
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
