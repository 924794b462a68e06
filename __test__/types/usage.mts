// Duty: the declarations as users meet them. Compiled, never run: a line that should not compile
// says so with @ts-expect-error, and fails the check when it compiles after all.

import {
  type AtomicCheck,
  AtomicOperation,
  BadResource,
  Kv,
  type KvAtomicResult,
  type KvCalculated,
  type KvCommitRefusal,
  type KvEnqueueResult,
  type KvCommitResult,
  type KvEntry,
  type KvEntryMaybe,
  KvError,
  type KvDeadMessage,
  type KvErrorCode,
  type KvInputErrorCode,
  type KvKey,
  type KvLease,
  type KvLimit,
  type KvLimits,
  type KvListenOptions,
  KvListIterator,
  type KvListSelector,
  type KvMessage,
  type KvMutation,
  type KvPeekOptions,
  type KvQueue,
  type KvQueueEnqueueOptions,
  type KvQueueStats,
  type KvReceiveOptions,
  KvU64,
  type OpenKvOptions,
  openKv,
  type ServeOptions,
  serve,
  sizeOf,
} from "openkv";

/** Compiles only when both types are the same. */
type Asks<A> = <T>() => T extends A ? 1 : 2;
type Same<A, B> = Asks<A> extends Asks<B> ? true : false;
function same<A, B>(_: Same<A, B>): void {}

interface User {
  name: string;
  age?: number;
}

export async function opening(): Promise<void> {
  await openKv();
  await openKv(undefined);
  await openKv(null);
  await openKv("kv.sqlite3");
  await openKv(new URL("file:///kv.sqlite3"));
  await openKv(":memory:", {});
  const options: OpenKvOptions = {
    durability: "normal",
    readonly: true,
    busyTimeout: 100,
    cacheSize: 2 ** 28,
    mmapSize: 2 ** 30,
    limits: { keyBytesMax: 100 },
  };
  await openKv("kv.sqlite3", options);
  await openKv("kv.sqlite3", { limits: "deno" });
  await openKv("kv.sqlite3", { encoding: "v8" });
  // @ts-expect-error a path is no number
  await openKv(5);
  // @ts-expect-error there is no such durability
  await openKv("kv.sqlite3", { durability: "fast" });
  // @ts-expect-error there is no such option
  await openKv("kv.sqlite3", { durabilty: "full" });
  // @ts-expect-error there is no such limit
  await openKv("kv.sqlite3", { limits: { keyBytes: 5 } });
  // @ts-expect-error only openKv makes a Kv
  new Kv();
}

export async function reading(kv: Kv): Promise<void> {
  const unknown = await kv.get(["a"]);
  same<typeof unknown, KvEntryMaybe<unknown>>(true);
  const user = await kv.get<User>(["users", 1, 2n, true, new Uint8Array()], {
    consistency: "eventual",
  });
  same<typeof user, KvEntryMaybe<User>>(true);
  same<typeof user.versionstamp, string | null>(true);
  if (user.versionstamp !== null) same<typeof user.value, User>(true);
  else same<typeof user.value, null>(true);
  // @ts-expect-error the entry may be absent
  user.value.name;
  // @ts-expect-error a key is an array
  await kv.get("a");
  // @ts-expect-error null is no part of a key
  await kv.get(["a", null]);
  // @ts-expect-error there is no such level
  await kv.get(["a"], { consistency: "weak" });
  // @ts-expect-error there is no such option
  await kv.get(["a"], { consistancy: "strong" });

  const many = await kv.getMany<[User, number]>([["a"], ["b"]]);
  same<typeof many, [KvEntryMaybe<User>, KvEntryMaybe<number>]>(true);
  // @ts-expect-error two types, one key
  await kv.getMany<[User, number]>([["a"]]);
  const keys: KvKey[] = [["a"]];
  const untyped = await kv.getMany(keys);
  same<(typeof untyped)[0], KvEntryMaybe<unknown>>(true);
}

export async function writing(kv: Kv): Promise<void> {
  const result = await kv.set(["a"], { any: "value" }, { expireIn: 5 });
  same<typeof result, KvCommitResult>(true);
  same<typeof result.ok, true>(true);
  await kv.set(["log", kv.commitVersionstamp()], undefined);
  same<Awaited<ReturnType<Kv["delete"]>>, void>(true);
  same<Awaited<ReturnType<Kv["enqueue"]>>, KvEnqueueResult>(true);
  await kv.enqueue({}, { delay: 5, keysIfUndelivered: [["a"]], backoffSchedule: [1, 2] });
  // @ts-expect-error a value is missing
  await kv.set(["a"]);
  // @ts-expect-error there is no such option
  await kv.set(["a"], 1, { expiresIn: 5 });
  await kv.set(["a"], 1, { expireIn: "1h30m" });
  // @ts-expect-error a duration is a number or a text
  await kv.set(["a"], 1, { expireIn: true });
  // @ts-expect-error there is no such option
  await kv.enqueue(1, { dealy: 5 });
}

export async function leases(kv: Kv) {
  const lease = await kv.lease(["a"], { ttl: "30s" });
  same<typeof lease, KvLease>(true);
  const maybe = await kv.lease(["a"], { wait: "5s" });
  same<typeof maybe, KvLease | null>(true);
  // @ts-expect-error it may be null
  maybe.token;
  await kv.atomic().checkLease(lease).set(["b"], 1).commit();
  await kv.transaction(async (tx) => await tx.checkLease(lease));
  // @ts-expect-error a lease is needed
  kv.atomic().checkLease({ key: ["a"] });
  const limit = await kv.limiter(["a"], { limit: 5, per: "1m", algorithm: "sliding" }).take(2);
  same<typeof limit, KvLimit>(true);
  // @ts-expect-error per is missing
  kv.limiter(["a"], { limit: 5 });
  // @ts-expect-error there is no such algorithm
  kv.limiter(["a"], { limit: 5, per: 1, algorithm: "leaky" });
  const length = await kv.once(["a"], async (held) => held.token.length, { ttl: "1h" });
  same<typeof length, number>(true);
}

export async function atomically(kv: Kv, entry: KvEntryMaybe<User>): Promise<void> {
  const check: AtomicCheck = { key: ["a"], versionstamp: null };
  const mutations: KvMutation[] = [
    { type: "set", key: ["a"], value: 1, expireIn: 5 },
    { type: "delete", key: ["a"] },
    { type: "sum", key: ["a"], value: new KvU64(1n) },
    { type: "sum", key: ["a"], value: 1n },
    { type: "min", key: ["a"], value: new KvU64(1n) },
    { type: "max", key: ["a"], value: new KvU64(1n) },
  ];
  const operation: AtomicOperation = kv
    .atomic()
    .check(entry, check)
    .mutate(...mutations)
    .sum(["n"], 1n)
    .min(["n"], 1n)
    .max(["n"], 1n)
    .set(["a"], 1, { expireIn: 5 })
    .delete(["b"])
    .enqueue("message", { delay: 1 });
  const result = await operation.commit();
  same<typeof result, KvAtomicResult | KvCommitRefusal>(true);
  const telling = await operation.commit({ values: true });
  if (telling.ok) same<typeof telling.values, KvCalculated[]>(true);
  else same<typeof telling.failed, number[]>(true);
  if (result.ok) same<typeof result.versionstamp, string>(true);
  // @ts-expect-error a lost commit has no versionstamp
  else result.versionstamp;
  // @ts-expect-error sums are of numbers
  kv.atomic().sum(["n"], "1");
  // @ts-expect-error a bound is of the type of what is added
  kv.atomic().sum(["n"], 1, { min: 0n });
  kv.atomic().sum(["n"], -1n, { min: 0n, clamp: true }).sum(["x"], 1.5, { max: 9 });
  kv.atomic().min(["n"], 1).max(["n"], new KvU64(1n)).append(["l"], [1, "a"]).prepend(["l"], []);
  kv.atomic().mutate({ type: "min", key: ["a"], value: 5, expireIn: 1000 });
  kv.atomic().mutate({ type: "append", key: ["a"], value: [5, "x"] });
  // @ts-expect-error the items of an append are an array
  kv.atomic().mutate({ type: "append", key: ["a"], value: 5 });
  // @ts-expect-error min and max take a KvU64 or a number
  kv.atomic().mutate({ type: "min", key: ["a"], value: "5" });
  // @ts-expect-error there is no such type
  kv.atomic().mutate({ type: "add", key: ["a"], value: 5 });
  // @ts-expect-error a check has a versionstamp
  kv.atomic().check({ key: ["a"] });
  // @ts-expect-error only a Kv makes operations
  new AtomicOperation();
  const n: bigint = new KvU64(5n).value;
  // @ts-expect-error a KvU64 is made of a bigint
  new KvU64(5);
  void n;
}

export async function listing(kv: Kv): Promise<void> {
  const selectors: KvListSelector[] = [
    { prefix: [] },
    { prefix: ["a"], start: ["a", "b"] },
    { prefix: ["a"], end: ["a", "b"] },
    { start: ["a"], end: ["b"] },
  ];
  for (const selector of selectors) kv.list(selector);
  const all = { limit: 5, reverse: true, batchSize: 10, cursor: "" };
  const list = kv.list<User>({ prefix: ["users"] }, all);
  same<typeof list, KvListIterator<User>>(true);
  same<typeof list.cursor, string>(true);
  for await (const entry of list) same<typeof entry, KvEntry<User>>(true);
  const { done, value } = await list.next();
  if (!done) same<typeof value, KvEntry<User>>(true);
  else same<typeof value, undefined>(true);
  // @ts-expect-error a start needs an end or a prefix
  kv.list({ start: ["a"] });
  // @ts-expect-error there is no such option
  kv.list({ prefix: [] }, { batchsize: 5 });
  // @ts-expect-error only a Kv makes lists
  new KvListIterator();
}

export async function following(kv: Kv): Promise<void> {
  const feed = kv.watch<User>({ prefix: ["users"] }, { since: "0".repeat(20) });
  for await (const { changes, versionstamp } of feed) {
    const told: string = versionstamp;
    for (const change of changes) {
      if (change.type === "set") change.value satisfies User;
      else change.value satisfies null;
      change.key satisfies KvKey;
      told satisfies typeof change.versionstamp;
    }
  }
  // @ts-expect-error raw belongs to keys
  kv.watch({ prefix: [] }, { raw: true });
  const stream = kv.watch<[User, number]>([["a"], ["b"]], { raw: true });
  same<typeof stream, ReadableStream<[KvEntryMaybe<User>, KvEntryMaybe<number>]>>(true);
  for await (const [user, number] of stream) {
    same<typeof user, KvEntryMaybe<User>>(true);
    same<typeof number, KvEntryMaybe<number>>(true);
  }
  await kv.listenQueue((message) => void message.anything);
  await kv.listenQueue(async (message: User) => void message.name);
  // @ts-expect-error a handler is missing
  await kv.listenQueue();
}

export async function searching(kv: Kv): Promise<void> {
  const index = await kv.createIndex({
    prefix: ["users"],
    fields: ["name"],
    tokenize: "porter",
    prefixLengths: [2, 3],
    name: "people",
  });
  for await (const { indexed, done } of index.progress) {
    same<typeof indexed, number>(true);
    same<typeof done, boolean>(true);
  }
  await index.ready();
  const [info] = await kv.listIndexes();
  if (info.type === "fulltext") {
    same<typeof info.documents, number>(true);
    same<typeof info.state, "building" | "ready">(true);
  } else {
    same<typeof info.unique, boolean>(true);
    same<typeof info.state, "building" | "ready" | "failed">(true);
  }
  const byAge = await kv.createIndex({
    type: "value",
    prefix: ["users"],
    on: ["name", { path: "age", order: "desc" }],
    sparse: true,
  });
  same<typeof byAge.unique, boolean>(true);
  for await (const { value } of kv.list<User>(
    { prefix: ["users"] },
    { orderBy: { age: "desc" } },
  )) {
    same<typeof value, User>(true);
  }
  await kv.paginate<User>({ prefix: ["users"] }, { orderBy: "age", sort: true });
  const explained = await kv.explain<User>(
    { prefix: ["users"] },
    { where: { age: { $gt: 3 } }, orderBy: { age: "desc" } },
  );
  same<typeof explained.method, "index" | "scan" | "sort">(true);
  same<typeof explained.reason, string | null>(true);
  same<(typeof explained.branches)[number]["bounds"][number]["ranges"], string[]>(true);
  // @ts-expect-error users have no such field
  await kv.explain<User>({ prefix: ["users"] }, { where: { ages: 3 } });
  const one = await kv.get(["users", 1]);
  const refused = await kv.atomic().check(one).set(["users", 1], {}).commit();
  if (!refused.ok) void refused.violations?.[0].other;
  // @ts-expect-error there is no such order
  kv.list({ prefix: ["users"] }, { orderBy: { age: "up" } });
  // @ts-expect-error a value index has paths
  await kv.createIndex({ type: "value", prefix: ["users"], fields: ["name"] });
  const found = await kv.search<User>(["users"], "ada", {
    limit: 5,
    offset: 5,
    where: { age: { $gt: 3 } },
    highlight: { before: "*", after: "*", terms: 9 },
  });
  const { value, score, highlights } = found.entries[0];
  same<typeof value, User>(true);
  same<typeof score, number>(true);
  void highlights?.name;
  await kv.search(["users"], "ada", { cursor: found.cursor, highlight: true });
  same<boolean, Awaited<ReturnType<Kv["dropIndex"]>>>(true);
  await kv.dropIndex("people");
  await kv.dropIndex(["users"]);
  // @ts-expect-error there is no such tokenizer
  await kv.createIndex({ prefix: [], fields: ["a"], tokenize: "words" });
  // @ts-expect-error fields are missing
  await kv.createIndex({ prefix: [] });
  // @ts-expect-error there is no such option
  await kv.search([], "a", { limits: 5 });
}

export async function queueing(kv: Kv): Promise<void> {
  const mail = kv.queue<User>("mail", { deadRetention: 5 });
  same<typeof mail, KvQueue<User>>(true);
  await kv.queue().enqueue("anything");
  const options: KvQueueEnqueueOptions = { at: new Date(), priority: 9, deduplicationKey: "k" };
  await mail.enqueue({ name: "ada" }, options);
  await kv
    .atomic()
    .enqueue({}, { queue: "mail", ...options })
    .commit();
  const stop = new AbortController();
  await mail.listen((user, { attempts }) => void [user.name, attempts.toFixed()], {
    concurrency: 2,
    lockDuration: 1000,
    signal: stop.signal,
  });
  const message = await mail.receive({ wait: 5, lockDuration: 1000 });
  same<typeof message, KvMessage<User> | null>(true);
  const held: boolean | undefined = await message?.nack({ delay: 5, error: new Error("no") });
  const { total }: KvQueueStats = await mail.stats();
  const { messages, cursor } = await mail.dead.list({ limit: 5, cursor: null });
  same<typeof cursor, string | null>(true);
  const dead: KvDeadMessage<User> | undefined = messages[0];
  void [held, total, dead, await mail.dead.purge({ olderThan: 5 })];
  // @ts-expect-error a user has a name
  await mail.enqueue({ nom: "ada" });
  // @ts-expect-error there is no such option
  await mail.receive({ waits: 5 });
}

export async function ending(kv: Kv): Promise<void> {
  {
    using scoped = kv;
    await using later = kv;
    void scoped;
    void later;
  }
  same<ReturnType<Kv["close"]>, Promise<void>>(true);
}

const ofInput: readonly unknown[] = ["INVALID", "TOO_LARGE", "RANGE"] satisfies KvInputErrorCode[];
export function isOfInput(error: Error & { code?: unknown }): boolean {
  return ofInput.includes(error.code);
}

export function failing(error: unknown): KvErrorCode | undefined {
  if (error instanceof BadResource) {
    const message: string = error.message;
    void message;
  }
  if (!(error instanceof KvError)) return undefined;
  // @ts-expect-error there is no such code
  if (error.code === "BUSY") return undefined;
  return error.code;
}

/** Every bound is a number. */
same<KvLimits[keyof KvLimits], number>(true);

export async function ends(kv: Kv): Promise<void> {
  same<{ expireAt: Date } | null, Awaited<ReturnType<typeof kv.ttl>>>(true);
  const touched: KvCommitResult | KvCommitRefusal = await kv.touch(["a"], { expireIn: 5 });
  if (touched.ok) touched.versionstamp.toUpperCase();
  await kv.persist(["a"]);
  kv.atomic().touch(["a"], { expireIn: 5 }).persist(["b"]);
  const id = kv.uuidv7();
  const made = await kv.set(["a", id, 1], { id });
  same<typeof made, KvCommitResult>(true);
  id.uuidIn(made).toUpperCase();
  const bytes: number = sizeOf({ a: 1 }) + sizeOf.key(["a"]);
  await openKv(":memory:", { limits: "wide" });
  const signal = AbortSignal.timeout(5);
  await openKv(new URL("https://kv.example.com"), { accessToken: "t", timeout: 5, signal });
  // @ts-expect-error a token is text
  await openKv("https://kv.example.com", { accessToken: 5 });
  await openKv(":memory:", { limits: { valueBytesMax: bytes } });
  // @ts-expect-error a time is needed
  await kv.touch(["a"]);
  // @ts-expect-error there is no such option
  await kv.touch(["a"], { expiresIn: 5 });
}

export async function readingBeyondDeno(kv: Kv): Promise<void> {
  const users = { prefix: ["users"] };
  same<number, Awaited<ReturnType<Kv["count"]>>>(true);
  await kv.count(users, {
    where: { age: { $gte: 18, $lt: 65n }, $or: [{ a: 1 }, { "b.c": null }] },
  });
  await kv.count(users, {
    where: { at: { $lt: { $now: true, $offset: -5 } }, $not: { $empty: true } },
  });
  // @ts-expect-error there is no such option
  await kv.count(users, { whre: {} });
  for await (const entry of kv.list(users, { keysOnly: true, depth: 1 })) {
    entry.versionstamp satisfies string;
    // @ts-expect-error no value was read
    void entry.value;
  }
  for await (const entry of kv.list<User>(users, { withExpiry: true })) {
    entry.expireAt satisfies Date | null;
    entry.value.name satisfies string;
  }
  (await kv.get<User>(["a"], { withExpiry: true })).expireAt satisfies Date | null;
  (await kv.getMany<[User]>([["a"]], { withExpiry: true }))[0].expireAt satisfies Date | null;
  const page = await kv.paginate<User>({ ...users, limit: 10, cursor: null });
  (await kv.paginate<User>(users, { limit: 10, cursor: null, reverse: true }))
    .hasMore satisfies boolean;
  page.entries[0].value.name satisfies string;
  page.cursor satisfies string | null;
  const deleted = await kv.deleteMany([["a"], ["b"]], {
    where: { $eq: 1 },
    limit: 5,
    atomic: true,
  });
  deleted.versionstamp satisfies string | null;
  (await kv.deleteMany({ start: ["a"], end: ["b"] })).count satisfies number;
  (await kv.deleteMany(["a", 1n], { descendants: true })).count satisfies number;
  // @ts-expect-error a key needs descendants
  await kv.deleteMany(["a", 1n]);
}

export async function serving(): Promise<void> {
  const options: ServeOptions = { path: "a.sqlite3", accessToken: "123456789012" };
  const server = await serve({ ...options, quotas: { watches: 5 }, tls: { cert: "a", key: "b" } });
  same<string, typeof server.url>(true);
  same<number, typeof server.port>(true);
  await server.close();
  const engine = "postgres://openkv@localhost/app";
  await serve({
    engine,
    advertise: "https://a.example",
    adminToken: "123456789012",
    forward: true,
  });
  // @ts-expect-error a path is text
  await serve({ path: 1 });
  // @ts-expect-error there is no such log
  await serve({ path: "a", log: "loud" });
}

export async function inTransactions(kv: Kv, signal: AbortSignal): Promise<void> {
  const result = await kv.transaction(
    async (tx) => {
      const entry = await tx.get<User>(["user"]);
      same<typeof entry.value, User | null>(true);
      const [a, b] = await tx.getMany<[string, number]>([["a"], ["b"]]);
      same<typeof a.value, string | null>(true);
      same<typeof b.versionstamp, string | null>(true);
      for await (const { value } of tx.list<User>({ prefix: ["users"] }, { limit: 5 })) {
        same<typeof value, User>(true);
      }
      tx.set(["a"], 1, { expireIn: 5 }).delete(["b"]).sum(["n"], -1n, { min: 0n }).enqueue("m");
      tx.append(["l"], [1]).prepend(["l"], [0]).touch(["a"], { expireIn: 5 }).persist(["a"]);
      // @ts-expect-error commits are not the function's
      tx.commit();
      tx.enqueue("m", { queue: "mail", priority: 3 });
      const list = tx.list<User>(
        { prefix: ["users"] },
        { where: { age: 1 }, cursor: "", depth: 1 },
      );
      for await (const { value, versionstamp } of list) {
        value satisfies User;
        versionstamp satisfies string | null;
      }
      list.cursor satisfies string;
      for await (const entry of tx.list({ prefix: [] }, { keysOnly: true, withExpiry: true })) {
        entry.expireAt satisfies Date | null;
        // @ts-expect-error keys alone have no value
        void entry.value;
      }
      const page = await tx.paginate<User>({ prefix: ["users"], where: { age: 1 } });
      page.cursor satisfies string | null;
      page.entries[0]?.value satisfies User | undefined;
      return await tx.count({ prefix: ["users"] }, { where: { age: 1 } });
    },
    { maxRetries: 3, signal },
  );
  same<typeof result.value, number>(true);
  same<typeof result.versionstamp, string>(true);
  // @ts-expect-error an option that does not exist
  await kv.transaction(() => 1, { retries: 3 });
}

export async function maintenance(kv: Kv): Promise<void> {
  const stats = await kv.stats({ entries: true });
  same<typeof stats.entries, number | undefined>(true);
  const { beforeBytes, afterBytes } = await kv.vacuum();
  same<typeof beforeBytes | typeof afterBytes, number>(true);
  // @ts-expect-error an option that does not exist
  await kv.stats({ count: true });
  const metrics = await kv.metrics();
  same<typeof metrics.operations.get.count, number>(true);
  same<typeof metrics.cache.hitRate, number | null>(true);
  const text = await kv.metrics({ format: "prometheus" });
  same<typeof text, string>(true);
  // @ts-expect-error a format that does not exist
  await kv.metrics({ format: "json" });
}

export async function optionTypes(kv: Kv, flag: boolean): Promise<void> {
  for await (const entry of kv.list<User>({ prefix: [] }, { keysOnly: flag })) {
    entry.key satisfies KvKey;
    // @ts-expect-error the entries of a list of keys have no value
    entry.value;
    if ("value" in entry) entry.value satisfies User;
  }
  for await (const { value } of kv.list<User>({ prefix: [] }, { limit: undefined })) {
    same<typeof value, User>(true);
  }
  await kv.count({ prefix: [] }, { signal: undefined });
  await kv.set(["a"], 1, { expireIn: undefined });
  // @ts-expect-error without its limit it would delete more
  await kv.deleteMany({ prefix: [] }, { limit: undefined });
  kv.atomic().enqueue(1, { queue: "mail", priority: 1, delay: 5 });
  // @ts-expect-error an option of named queues without a queue
  kv.atomic().enqueue(1, { priority: 1 });
  // @ts-expect-error an option that does not exist
  kv.atomic().enqueue(1, { queue: "mail", prio: 1 });
  const listen: KvListenOptions<User> = { concurrency: 2, signal: undefined };
  const receive: KvReceiveOptions = { wait: undefined };
  const peek: KvPeekOptions = { state: "pending", cursor: undefined };
  const queue = kv.queue<User>("mail");
  await queue.listen(() => {}, listen);
  await queue.receive(receive);
  await queue.peek(peek);
}

/** Only a check can refuse a commit, so only an operation with one has a refusal in its type. */
export async function refusals(kv: Kv, entries: KvEntry<User>[], flag: boolean): Promise<void> {
  const set = await kv.atomic().set(["a"], 1).sum(["n"], 1n).delete(["b"]).commit();
  same<typeof set, KvAtomicResult>(true);
  const { versionstamp } = await kv.atomic().enqueue(1).touch(["a"], { expireIn: 5 }).commit();
  versionstamp satisfies string;
  const { values } = await kv.atomic().sum(["n"], 1).commit({ values: true });
  same<typeof values, KvCalculated[]>(true);
  const checked = await kv.atomic().set(["a"], 1).check(entries[0]!).set(["b"], 2).commit();
  same<typeof checked, KvAtomicResult | KvCommitRefusal>(true);
  // @ts-expect-error it may be refused
  checked.versionstamp;
  if (checked.ok) checked.versionstamp satisfies string;
  else checked.failed satisfies number[];
  const told = await kv.atomic().check(entries[0]!).sum(["n"], 1).commit({ values: true });
  // @ts-expect-error it may be refused
  told.values;
  // As in programs for Deno: the operation is assigned to its variable again.
  let grown = kv.atomic();
  if (flag) grown = grown.set(["a"], 1);
  let guarded: AtomicOperation = kv.atomic();
  for (const entry of entries) guarded = guarded.check(entry);
  guarded.check(...entries);
  const result = await guarded.set(["a"], 1).commit();
  same<typeof result, KvAtomicResult | KvCommitRefusal>(true);
  grown = grown.check(...entries);
  await grown.commit();
  const give = (): AtomicOperation => kv.atomic().set(["a"], 1);
  same<Awaited<ReturnType<ReturnType<typeof give>["commit"]>>, KvAtomicResult | KvCommitRefusal>(
    true,
  );
}
