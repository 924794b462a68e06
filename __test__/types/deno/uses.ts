// Duty: our handle where libraries ask for Deno's types, in the ways in which they use it. Checked
// by Deno against its own declarations, never run.

import {
  type AtomicOperation,
  type Kv,
  type KvCommitError,
  type KvCommitResult,
  type KvEntry,
  type KvEntryMaybe,
  type KvKey,
  KvU64,
  openKv,
} from "openkv";

interface User {
  name: string;
}

/** What such libraries are: functions and classes that know Deno's names alone. */
declare function useKv(kv: Deno.Kv): Promise<void>;
declare function useAtomic(operation: Deno.AtomicOperation): Deno.AtomicOperation;
declare function useList<T>(list: Deno.KvListIterator<T>): Promise<Deno.KvEntry<T>[]>;
declare function useEntry<T>(entry: Deno.KvEntryMaybe<T>): T | null;
declare function useKey(key: Deno.KvKey): string;
declare function useU64(value: Deno.KvU64): bigint;
declare function useResult(result: Deno.KvCommitResult | Deno.KvCommitError): void;
declare function useCheck(check: Deno.AtomicCheck): void;
declare function kvOf<Opened extends Deno.Kv>(open: () => Promise<Opened>): Opened;

export async function handsOver(): Promise<void> {
  const kv = await openKv(":memory:");
  await useKv(kv);
  kvOf(() => openKv());
  const typed: Deno.Kv = kv;
  const open: (path?: string) => Promise<Deno.Kv> = openKv;
  using scoped: Deno.Kv = await open();
  void [typed, scoped];
}

export async function chains(kv: Kv, denos: Deno.Kv): Promise<void> {
  useAtomic(kv.atomic());
  let operation: Deno.AtomicOperation = kv.atomic();
  operation = operation
    .check({ key: ["a"], versionstamp: null })
    .set(["a"], 1)
    .delete(["b"]);
  operation = operation.sum(["n"], 1n).min(["n"], 1n).max(["n"], 1n).enqueue("m", { delay: 5 });
  operation = operation.mutate({ type: "sum", key: ["n"], value: new KvU64(1n) });
  const result: Deno.KvCommitResult | Deno.KvCommitError = await operation.commit();
  if (result.ok) result.versionstamp satisfies string;
  useResult(
    await kv
      .atomic()
      .check(await kv.get(["a"]))
      .set(["a"], 1)
      .commit(),
  );
  useResult(await kv.set(["a"], 1));
  // A variable without a type is that of Deno's programs: it takes every operation.
  let grown = kv.atomic();
  grown = grown.set(["a"], 1);
  grown = grown.check({ key: ["a"], versionstamp: null });
  const kept: Deno.AtomicOperation[] = [grown, kv.atomic().check(), kv.atomic().set(["a"], 1)];
  const outcome = await grown.commit();
  if (!outcome.ok) throw new Error("refused");
  outcome.versionstamp satisfies string;
  void kept;
  // What one side has read is a check of the other.
  kv.atomic().check(await denos.get(["a"]));
  denos.atomic().check(await kv.get(["a"]), ...(await kv.getMany([["a"], ["b"]])));
  const mutations: Deno.KvMutation[] = [];
  kv.atomic().mutate(...mutations);
}

export async function reads(kv: Kv): Promise<void> {
  const entry: Deno.KvEntryMaybe<User> = await kv.get<User>(["users", "ada"]);
  useEntry<User>(await kv.get<User>(["users", "ada"])) satisfies User | null;
  useKey(entry.key);
  useCheck(entry);
  const [user, count]: [Deno.KvEntryMaybe<User>, Deno.KvEntryMaybe<Deno.KvU64>] = await kv.getMany<
    [User, KvU64]
  >([["users", "ada"], ["count"]]);
  void [user, count];
  const ended: Deno.KvEntryMaybe<User> = await kv.get<User>(["a"], { withExpiry: true });
  void ended;
  const selector: Deno.KvListSelector = { prefix: ["users"] };
  const options: Deno.KvListOptions = { limit: 5, consistency: "eventual" };
  const list: Deno.KvListIterator<User> = kv.list<User>(selector, options);
  const all: Deno.KvEntry<User>[] = await useList(kv.list<User>({ prefix: ["users"] }));
  for await (const { key, value } of list)
    useKey(key) satisfies string | User["name"] | typeof value;
  list.cursor satisfies string;
  void all;
  const stream: ReadableStream<[Deno.KvEntryMaybe<User>]> = kv.watch<[User]>([["a"]]);
  void stream;
}

/** A generic wrapper, as libraries that encrypt or cache have it. */
export class Wrapper implements Pick<Deno.Kv, "get" | "list" | "atomic" | "close"> {
  readonly #kv: Deno.Kv;
  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }
  get<T = unknown>(key: Deno.KvKey, options?: { consistency?: Deno.KvConsistencyLevel }) {
    return this.#kv.get<T>(key, options);
  }
  list<T = unknown>(selector: Deno.KvListSelector, options?: Deno.KvListOptions) {
    return this.#kv.list<T>(selector, options);
  }
  atomic(): Deno.AtomicOperation {
    return this.#kv.atomic();
  }
  close(): void {
    this.#kv.close();
  }
}

/** Ours around ours, given out as Deno's. */
export class Counted implements Deno.Kv {
  readonly #kv: Kv;
  constructor(kv: Kv) {
    this.#kv = kv;
  }
  get<T = unknown>(
    key: Deno.KvKey,
    options?: { consistency?: Deno.KvConsistencyLevel },
  ): Promise<Deno.KvEntryMaybe<T>> {
    return this.#kv.get<T>(key, options);
  }
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: Deno.KvKey }],
    options?: { consistency?: Deno.KvConsistencyLevel },
  ): Promise<{ [K in keyof T]: Deno.KvEntryMaybe<T[K]> }> {
    return this.#kv.getMany<T>(keys, options);
  }
  set(key: Deno.KvKey, value: unknown, options?: { expireIn?: number }) {
    return this.#kv.set(key, value, options);
  }
  delete(key: Deno.KvKey) {
    return this.#kv.delete(key);
  }
  list<T = unknown>(selector: Deno.KvListSelector, options?: Deno.KvListOptions) {
    return this.#kv.list<T>(selector, options);
  }
  enqueue(value: unknown, options?: Parameters<Deno.Kv["enqueue"]>[1]) {
    return this.#kv.enqueue(value, options);
  }
  listenQueue(handler: (value: unknown) => Promise<void> | void) {
    return this.#kv.listenQueue(handler);
  }
  atomic() {
    return this.#kv.atomic();
  }
  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: Deno.KvKey }],
    options?: { raw?: boolean },
  ) {
    return this.#kv.watch<T>(keys, options);
  }
  close(): void {
    this.#kv.close();
  }
  commitVersionstamp() {
    return this.#kv.commitVersionstamp();
  }
  [Symbol.dispose](): void {
    this.#kv[Symbol.dispose]();
  }
}

export async function keysThatWereRead(kv: Kv): Promise<void> {
  const { key } = await kv.get<User>(["users", "ada"]);
  const line: string = `${key[0]} ${key[1]}`;
  for await (const entry of kv.list({ prefix: [] })) void `${entry.key[0]}`;
  for await (const { changes } of kv.watch({ prefix: [] })) void changes.map((c) => `${c.key[0]}`);
  // Read keys go back in, whole and in parts.
  await kv.set(key, line);
  await kv.set([...key, "copy", kv.uuidv7(), kv.commitVersionstamp()], line);
  const keys: KvKey[] = [key];
  await kv.getMany(keys);
  const part: string | number | bigint | boolean | Uint8Array = key[0];
  void part;
}

export function sixtyFourBits(ours: KvU64, denos: Deno.KvU64): void {
  const there: Deno.KvU64 = ours;
  const here: KvU64 = denos;
  useU64(ours) satisfies bigint;
  const only: keyof KvU64 = "value" as keyof Deno.KvU64;
  const exactly: keyof Deno.KvU64 = "value" as keyof KvU64;
  void [there, here, only, exactly];
}

export function results(
  kept: Deno.KvEntry<User>,
  ok: Deno.KvCommitResult,
  error: Deno.KvCommitError,
): [KvCommitResult, KvCommitError] {
  const entry: Deno.KvEntryMaybe<User> = kept satisfies Deno.KvEntryMaybe<User>;
  const mine: KvEntry<User> = { ...kept, key: ["users", "ada"] };
  const back: Deno.KvEntry<User> = mine;
  const maybe: Deno.KvEntryMaybe<User> = mine as KvEntryMaybe<User>;
  const operation = null as unknown as AtomicOperation;
  useAtomic(operation);
  void [entry, back, maybe];
  return [ok, error];
}
