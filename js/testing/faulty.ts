// Duty: a handle whose calls fail now and then, as those of a busy or remote database do, so that programs can
// test their retries. All random choices of a call are made when it is called, from the seed. A call that is
// executed is executed at once, and only its answer is late or lost, so program order stays.

import { Kv, KvConflictError, KvError, KvOutcomeUnknownError } from "openkv";
import type { AtomicOperation, KvTransaction, KvTransactionOptions } from "openkv";

/** Options of {@link faulty}. The rates are probabilities, from 0 to 1. Default of each: 0. */
export interface FaultyOptions {
  /** The random choices: the same seed and the same calls in the same order fail alike. Default: 1. */
  seed?: number | undefined;
  /**
   * How often a commit with checks has a conflict, and an attempt of a transaction. Nothing is written; a
   * transaction tries again, and rejects with `KvConflictError` after its `maxRetries`.
   */
  conflicts?: number | undefined;
  /** How often a call rejects with a `KvError` of code `UNAVAILABLE`. Nothing has happened. */
  unavailable?: number | undefined;
  /** How often a write rejects with `KvOutcomeUnknownError`. Half of these writes have happened. */
  unknownOutcome?: number | undefined;
  /** How late an answer is, in milliseconds: a number, or the least and the most. At most a minute. */
  latency?: number | readonly [least: number, most: number] | undefined;
}

const NAME = "openkv/testing: faulty";
const RATES = ["conflicts", "unavailable", "unknownOutcome"] as const;
const OPTIONS: readonly string[] = [...RATES, "seed", "latency"];
const LATENCY_MS_MAX = 60_000;
const SEED_DEFAULT = 1;
/** That of `kv.transaction`. */
const MAX_RETRIES_DEFAULT = 10;

/** Methods by what their failures can be. All others, as `watch` and `close`, never fail. */
const READS = ["get", "getMany", "count", "explain", "paginate", "ttl", "search"];
const WRITES = ["set", "delete", "deleteMany", "touch", "persist", "enqueue"];
const QUEUE_READS = ["receive", "peek", "stats"];
const QUEUE_WRITES = ["enqueue", "delete"];

/** What becomes of a call. */
interface Fate {
  fault: "none" | "unavailable" | "unknown outcome" | "conflict";
  /** Of an unknown outcome: whether the write happens. */
  happens: boolean;
  latencyMs: number;
  /** A number from 0 to 1 for what is left to choose. */
  choice: number;
}

type Call = (...args: any[]) => any;

/**
 * The same handle, whose calls fail now and then. It shares the database with `kv`; closing it closes `kv`.
 *
 * @example
 * const kv = faulty(await openKv(":memory:"), { seed: 7, conflicts: 0.3, unknownOutcome: 0.1 });
 * await transfer(kv, "ada", "alan", 10); // the code under test
 */
export function faulty(kv: Kv, options: FaultyOptions = {}): Kv {
  if (!(kv instanceof Kv))
    throw new TypeError(`${NAME}: the first argument must be a handle of openKv`);
  const decide = deciderOf(options);
  const read = (call: Call): Call => {
    return (...args) => {
      const fate = decide(["unavailable"]);
      return raced(args, () => carryOut(fate, () => call.apply(kv, args)));
    };
  };
  const write = (call: Call): Call => {
    return (...args) => {
      const fate = decide(["unavailable", "unknown outcome"]);
      return raced(args, () => carryOut(fate, () => call.apply(kv, args)));
    };
  };
  const methods: Record<string, Call> = {
    ...wrapped(kv, READS, read),
    ...wrapped(kv, WRITES, write),
    list: (...args) => faultyList((kv.list as Call)(...args), decide),
    atomic: () => faultyOperation(kv.atomic(), decide),
    transaction: (run, given) => raced([given], () => faultyTransaction(kv, run, given, decide)),
    queue: (...args) => {
      const queue: any = (kv.queue as Call)(...args);
      const bound = (wrap: (call: Call) => Call) => (call: Call) => wrap(call.bind(queue));
      return proxied(queue, {
        ...wrapped(queue, QUEUE_READS, bound(read)),
        ...wrapped(queue, QUEUE_WRITES, bound(write)),
      });
    },
  };
  return proxied(kv, methods);
}

function wrapped(target: any, names: string[], wrap: (call: Call) => Call): Record<string, Call> {
  return Object.fromEntries(names.map((name) => [name, wrap(target[name])]));
}

/** The target, with some of its methods replaced; the others run on the target itself. */
function proxied<T extends object>(target: T, methods: Record<string, Call>): T {
  const proxy: T = new Proxy(target, {
    get(_, name) {
      if (typeof name === "string" && Object.hasOwn(methods, name)) return methods[name];
      const value: any = Reflect.get(target, name, target);
      if (typeof value !== "function" || name === "constructor") return value;
      return (...args: any[]) => {
        const result = value.apply(target, args);
        return result === target ? proxy : result;
      };
    },
  });
  return proxy;
}

/** Ends a call as soon as the `signal` of its options aborts, if they have one. */
function raced<T>(args: any[], run: () => Promise<T>): Promise<T> {
  const signal: AbortSignal | undefined = args.at(-1)?.signal;
  // One of another realm is one too.
  if (typeof signal?.throwIfAborted !== "function") return run();
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    const end = (): void => signal.removeEventListener("abort", abort);
    run().then(resolve, reject).finally(end);
  });
}

/** Does what a fate says of a call that has an answer. */
async function carryOut<T>(fate: Fate, call: () => T | Promise<T>): Promise<T> {
  const isDone = fate.fault === "none" || (fate.fault === "unknown outcome" && fate.happens);
  // Started before any wait, so that calls reach the database in their order.
  const answer = isDone ? settle(call) : undefined;
  if (fate.latencyMs > 0) {
    await new Promise((resolve) => setTimeout(resolve, fate.latencyMs));
  }
  const result = await answer;
  if (result !== undefined && "error" in result) throw result.error;
  if (fate.fault === "unavailable") {
    throw newError(
      KvError,
      "UNAVAILABLE",
      `${NAME} has made the database unavailable for this call`,
    );
  }
  if (fate.fault === "unknown outcome") {
    throw newError(
      KvOutcomeUnknownError,
      `${NAME} has lost the answer of this write: it may have happened or not`,
    );
  }
  return result!.value;
}

/** The result of a call, without a rejection that nobody handles meanwhile. */
async function settle<T>(call: () => T | Promise<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await call() };
  } catch (error) {
    return { error };
  }
}

/** A list has one fate, which comes with its first entry. */
function faultyList<T extends { next: Call }>(list: T, decide: Decider): T {
  let fate: Fate | undefined = decide(["unavailable"]);
  const next: Call = () => {
    const now = fate;
    fate = undefined;
    return now === undefined ? list.next() : carryOut(now, () => list.next());
  };
  return proxied(list, {
    next,
    toArray: async () => {
      const entries = [];
      for (let step = await next(); !step.done; step = await next()) entries.push(step.value);
      return entries;
    },
  });
}

function faultyOperation<T extends AtomicOperation<any>>(operation: T, decide: Decider): T {
  let checks = 0;
  const proxy: T = proxied(operation, {
    check: (...args) => {
      (operation.check as Call)(...args);
      checks += args.length;
      return proxy;
    },
    commit: async (...args) => {
      const fate = decide(["unavailable", "unknown outcome", ...(checks > 0 ? CONFLICT : [])]);
      if (fate.fault !== "conflict") {
        return await raced(args, () => carryOut(fate, () => (operation.commit as Call)(...args)));
      }
      const failed = [Math.floor(fate.choice * checks)];
      const refused = () => ({ ok: false, failed });
      return await raced(args, () => carryOut({ ...fate, fault: "none" }, refused));
    },
  });
  return proxy;
}

const CONFLICT = ["conflict"] as const;

/** Thrown in a transaction whose writes must not happen. */
class Discarded extends Error {}

async function faultyTransaction<T>(
  kv: Kv,
  run: (tx: KvTransaction) => T | Promise<T>,
  options: KvTransactionOptions | undefined,
  decide: Decider,
): Promise<any> {
  const retries = options?.maxRetries ?? MAX_RETRIES_DEFAULT;
  /** Runs the function, and writes nothing. */
  const discard = async (): Promise<void> => {
    const attempt = kv.transaction(async (tx) => {
      await run(tx);
      throw new Discarded();
    }, options);
    await attempt.catch((error) => {
      if (!(error instanceof Discarded)) throw error;
    });
  };
  for (let conflicts = 0; ; conflicts++) {
    const fate = decide(["unavailable", "unknown outcome", "conflict"]);
    if (fate.fault === "unknown outcome" && !fate.happens) await discard();
    if (fate.fault !== "conflict") return await carryOut(fate, () => kv.transaction(run, options));
    await carryOut({ ...fate, fault: "none" }, discard);
    if (conflicts >= retries) {
      const message = `${NAME} has given each of ${conflicts + 1} attempts a conflict`;
      throw newError(KvConflictError, message, { keys: [], ranges: [] });
    }
  }
}

/** The classes are constructed by openkv alone, so their types hide the constructors. */
function newError(Class: unknown, ...args: unknown[]): Error {
  return new (Class as new (...args: unknown[]) => Error)(...args);
}

type Fault = Exclude<Fate["fault"], "none">;
type Decider = (possible: readonly Fault[]) => Fate;

/** Decides the fate of each call. Every call takes as many random numbers, whatever the rates are. */
function deciderOf(options: FaultyOptions): Decider {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`${NAME}: unknown option ${unknown}; there are ${OPTIONS.join(", ")}`);
  }
  const [conflicts, unavailable, unknownOutcome] = RATES.map((name) => rateOf(options, name));
  const [least, most] = latencyOf(options.latency);
  const random = generator(seedOf(options.seed));
  const rates: readonly [Fault, number][] = [
    ["unavailable", unavailable!],
    ["unknown outcome", unknownOutcome!],
    ["conflict", conflicts!],
  ];
  return (possible) => {
    const rolls = rates.map(([fault, rate]) => [fault, random() < rate] as const);
    const happens = random() < 0.5;
    const latencyMs = least + random() * (most - least);
    const choice = random();
    const hit = rolls.find(([fault, isHit]) => isHit && possible.includes(fault));
    return { fault: hit?.[0] ?? "none", happens, latencyMs, choice };
  };
}

function rateOf(options: FaultyOptions, name: (typeof RATES)[number]): number {
  const rate = options[name] ?? 0;
  if (typeof rate === "number" && rate >= 0 && rate <= 1) return rate;
  throw new TypeError(
    `${NAME}: ${name} must be a probability from 0 to 1: received ${String(rate)}`,
  );
}

function seedOf(seed: number = SEED_DEFAULT): number {
  if (Number.isSafeInteger(seed)) return seed;
  throw new TypeError(`${NAME}: seed must be an integer: received ${String(seed)}`);
}

function latencyOf(latency: FaultyOptions["latency"] = 0): [number, number] {
  const [least, most] = typeof latency === "number" ? [latency, latency] : latency;
  if (least >= 0 && least <= most && most <= LATENCY_MS_MAX) return [least, most];
  throw new TypeError(
    `${NAME}: latency must be milliseconds from 0 to ${LATENCY_MS_MAX}, or the least and the most: ` +
      `received ${String(latency)}`,
  );
}

/** Numbers from 0 to 1 (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
