// What each process does all the time; one function is one turn of a loop of that name.

import { ACCOUNTS, BALANCE, CHAIN, COUNTERS, WATCHES, setTogether } from "./state.mjs";

const OWN_KEYS = 40;
/**
 * Contended commits are tried this often; each try that fails means that another process got ahead.
 */
const TRIES_MAX = 10_000;

export const loads = {
  /** Writes own keys, sometimes large, sometimes none, and reads back at once what was written. */
  async "set and get"({ kv, id, fault }, random, state) {
    const key = ["own", id, random.between(0, OWN_KEYS - 1)];
    if (random.oneIn(4)) {
      await kv.delete(key);
      const { value } = await kv.get(key);
      if (value !== null) fault(`${key} is there after its deletion`);
      return;
    }
    state.n = (state.n ?? 0) + 1;
    const value = {
      n: state.n,
      text: "x".repeat(random.oneIn(6) ? random.between(1000, 20_000) : 20),
    };
    const { versionstamp } = await kv.set(key, value);
    const entry = await kv.get(key);
    if (entry.versionstamp !== versionstamp || entry.value?.n !== value.n) {
      fault(`${key} was not the value just written: ${entry.versionstamp} for ${versionstamp}`);
    }
    if (entry.value?.text.length !== value.text.length) fault(`${key} lost part of its value`);
  },

  /** Adds to everybody's counters; they never fall. */
  async sum({ kv, count, fault }, random, state) {
    const at = random.between(0, COUNTERS.length - 1);
    const amount = random.between(0, 100);
    const { ok } = await kv.atomic().sum(COUNTERS[at], BigInt(amount)).commit();
    if (!ok) fault("a sum without checks was not ok");
    count(`added ${at}`, amount);
    const { value } = await kv.get(COUNTERS[at]);
    if (value.value < (state[at] ?? 0n))
      fault(`counter ${at} fell from ${state[at]} to ${value.value}`);
    state[at] = value.value;
  },

  /** Moves money between two accounts under checks, until it works. */
  async transfer({ kv, count, fault }, random) {
    const from = random.between(0, ACCOUNTS.length - 1);
    const to = (from + random.between(1, ACCOUNTS.length - 1)) % ACCOUNTS.length;
    const amount = random.between(1, 10);
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const [a, b] = await kv.getMany([ACCOUNTS[from], ACCOUNTS[to]]);
      const commit = kv
        .atomic()
        .check(a, b)
        .set(a.key, a.value - amount)
        .set(b.key, b.value + amount);
      if ((await commit.commit()).ok) return;
      count("transfer conflicts");
    }
    fault(`a transfer lost ${TRIES_MAX} times`);
  },

  /** One snapshot of all accounts always has all the money. */
  async audit({ kv, fault }) {
    const entries = await kv.getMany(ACCOUNTS);
    const total = entries.reduce((sum, { value }) => sum + value, 0);
    if (total !== ACCOUNTS.length * BALANCE) fault(`a snapshot had ${total} in all accounts`);
  },

  /** Counts up one shared key by check-and-set. */
  async advance({ kv, count, fault }) {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const entry = await kv.get(CHAIN);
      const { ok } = await kv
        .atomic()
        .check(entry)
        .set(CHAIN, entry.value + 1)
        .commit();
      if (ok) return;
      count("advance conflicts");
    }
    fault(`an advance lost ${TRIES_MAX} times`);
  },

  /** Lists everybody's own keys, either way: sorted, nothing twice. */
  async list({ kv, fault }, random) {
    const reverse = random.oneIn(2);
    let before;
    for await (const { key, value } of kv.list(
      { prefix: ["own"] },
      { reverse, batchSize: random.pick([7, 100, 500]) },
    )) {
      const at = key[1] * OWN_KEYS + key[2];
      if (before !== undefined && (reverse ? at >= before : at <= before)) {
        fault(`a list had ${key} after ${before}`);
      }
      if (typeof value?.n !== "number") fault(`a list had a damaged value at ${key}`);
      before = at;
    }
  },

  /** Writes the keys that everybody watches, those of one watch together. */
  async "watched set"({ kv }, random, state) {
    state.n = (state.n ?? 0) + 1;
    await setTogether(kv, random.pick(WATCHES), { n: state.n });
  },
};
