// Duty: what a filter accepts by the type of the values, and the type that handles and transactions
// have in common. Compiled, never run.

import type {
  Kv,
  KvFilter,
  KvListIterator,
  KvListOptions,
  KvReader,
  KvTransaction,
  KvU64,
} from "openkv";

interface Item {
  sku: string;
  quantity: number;
  tags: string[];
}

interface Order {
  id: bigint;
  at: Date;
  note?: string | null;
  state: "new" | "paid";
  paid: boolean;
  count: KvU64;
  raw: Uint8Array;
  items: Item[];
  customer: { city: string; name: { first: string; last: { a: { b: number } } } };
  totals: Map<string, number>;
  seen: Set<string>;
  "a.b": number;
  $price: number;
  anything: any;
  unknown: unknown;
  record: Record<string, number>;
  matrix: number[][];
  pair: [string, number];
  method(): void;
}

declare function filter<T>(filter: KvFilter<T>): void;

filter<Order>({ id: 5, at: { $gt: new Date() }, note: null, state: "new", paid: true });
filter<Order>({ count: { $gte: 5n }, raw: new Uint8Array(), seen: { $contains: "a" } });
filter<Order>({ "customer.city": { $eqi: "x", $startsWith: "K" }, "customer.name.first": "x" });
filter<Order>({ "items.sku": "a", "items.0.quantity": { $gt: 1 }, "items.0": { $exists: true } });
filter<Order>({ items: { $empty: true }, "items.tags": { $contains: "x" }, "pair.0": "a" });
filter<Order>({ "totals.x": 5, "record.x": { $lt: 4 }, "anything.deep.er": 4, unknown: 5 });
filter<Order>({ "a\\.b": 4, "\\$price": 5, matrix: { $exists: true }, "matrix.0.1": 5 });
filter<Order>({ $or: [{ paid: true }, { paid: { $exists: false } }], $not: { id: 4n } });
filter<Order>({ id: { $or: [{ $gt: 5 }, { $lt: 3n }], $not: { $eq: 1 }, $in: [1, 2n] } });
filter<Order>({ at: { $between: [new Date(), { $now: true, $offset: -5 }] } });
filter<Order>({ "customer.name.last": { $exists: true }, "customer.name.last.a.b": 5 });
// @ts-expect-error there is no such path
filter<Order>({ nam: 5 });
// @ts-expect-error nor below another one
filter<Order>({ "customer.citty": "x" });
// @ts-expect-error nor in a part of the filter
filter<Order>({ $or: [{ nam: 1 }] });
// @ts-expect-error nor is a method stored
filter<Order>({ method: 1 });
// @ts-expect-error a bigint is no string
filter<Order>({ id: "5" });
// @ts-expect-error elements have types too
filter<Order>({ "items.quantity": "x" });
// @ts-expect-error there is no such operator
filter<Order>({ id: { $gtee: 5 } });
// @ts-expect-error nor at the top
filter<Order>({ $gtee: 5 });
// @ts-expect-error a state is one of two
filter<Order>({ state: "lost" });
// @ts-expect-error also among others
filter<Order>({ state: { $in: ["lost"] } });
// @ts-expect-error a boolean begins with nothing
filter<Order>({ paid: { $startsWith: "x" } });
// @ts-expect-error a date is compared with dates
filter<Order>({ at: { $gt: 5 } });
// @ts-expect-error an object equals nothing
filter<Order>({ customer: "x" });
// @ts-expect-error an id is never null
filter<Order>({ id: null });

filter<unknown>({ age: { $gte: 18 }, "a.b": 5, $gt: 5n, "\\$x": 1, x: { $contains: "a" } });
// @ts-expect-error there is no such operator, whatever the values are
filter<unknown>({ $gtee: 5 });
// @ts-expect-error nor behind a path
filter<unknown>({ age: { $gtee: 5 } });
// @ts-expect-error nor in a part of the filter
filter<unknown>({ $or: [{ age: { $gtee: 5 } }] });
filter<any>({ é: 1, $gtee: 4 });
filter<object>({ a: 1 });
filter<number>({ $gt: 5, $in: [1, 2n] });
// @ts-expect-error a number is compared with numbers
filter<number>({ $gt: "5" });
filter<KvU64>({ $gt: 5n });
filter<string[]>({ "0": "a", $contains: "b" });
filter<Record<string, string>>({ a: "x" });
// @ts-expect-error an operator is no key of a record
filter<Record<string, string>>({ $gtee: "x" });
filter<{ kind: "a"; x: number } | { kind: "b"; y: string }>({ kind: "a", x: 5, y: "t" });

interface Tree {
  name: string;
  kids: Tree[];
  up: Tree | null;
  named: Map<string, Tree>;
}
filter<Tree>({ name: "x", "kids.name": "y", "kids.0.name": "z", "up.up.up.up.name": 5 });
// @ts-expect-error there is no such path in a recursive type either
filter<Tree>({ "kids.nam": "y" });
type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
filter<Json>({ a: 5, $eq: "x" });
/** Many properties that lead to each other: the paths are bounded. */
type Wide = { [Name in `p${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9}`]: Narrow };
interface Narrow {
  a: number;
  b: Wide;
  c: Wide;
}
filter<Wide>({ "p0.a": 5 });

export async function calls(kv: Kv, tx: KvTransaction): Promise<void> {
  const users = { prefix: ["users"] };
  kv.list(users, { where: { age: 5 } }) satisfies KvListIterator<unknown>;
  kv.list<Order>(users, { where: { id: 5 }, keysOnly: true });
  const expected: KvListIterator<Order> = kv.list(users, { where: { paid: true } });
  void expected;
  // @ts-expect-error there is no such path
  kv.list<Order>(users, { where: { ide: 5 } });
  // @ts-expect-error there is no such path
  await kv.count<Order>(users, { where: { ide: 5 } });
  // @ts-expect-error there is no such path
  await kv.search<Order>([], "q", { where: { ide: 5 } });
  // @ts-expect-error there is no such path
  tx.list<Order>(users, { where: { ide: 5 } });
  // @ts-expect-error there is no such operator
  await kv.search([], "q", { where: { $gtee: 5 } });
  // @ts-expect-error there is no such operator
  await kv.deleteMany(users, { where: { $gtee: 5 } });
}

export async function generic<T>(
  kv: Kv,
  where: KvFilter<T>,
  options: KvListOptions<T>,
): Promise<number> {
  kv.list<T>({ prefix: [] }, { where });
  kv.list<T>({ prefix: [] }, options);
  return await kv.count<T>({ prefix: [] }, { where });
}

async function readsBoth(reader: KvReader): Promise<number> {
  const orders = { prefix: ["orders"] };
  for await (const { key, value, versionstamp } of reader.list<Order>(orders, {
    where: { id: 5 },
  })) {
    void `${key[0]} ${value.id}`;
    versionstamp satisfies string | null;
  }
  (await reader.get<Order>(["a"])).value?.id satisfies bigint | undefined;
  (await reader.getMany<[Order]>([["a"]]))[0].value?.id satisfies bigint | undefined;
  (await reader.paginate<Order>(orders)).entries[0]?.value.id satisfies bigint | undefined;
  return await reader.count(orders);
}

export async function eitherReads(kv: Kv): Promise<number> {
  return (await readsBoth(kv)) + (await kv.transaction(readsBoth)).value;
}
