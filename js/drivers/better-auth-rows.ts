// Duty: the rows of Better Auth. A model is a range of rows, found by their ids or by entries of indexes, which
// every commit keeps with its rows. Below the base, for each model:
//
//   [model, "row", id]                       the row
//   [model, "unique", "email", value]        the id of the one row with this value
//   [model, "index", "userId", value, id]    true
//   [model, "indexes"]                       the indexes that writers keep, and which of them are complete
//   [model, "serial"]                        the last number of `generateId: "serial"`
//
// A writer keeps the indexes that [model, "indexes"] names at its commit, not those of its own schema: so
// processes with an older schema keep the indexes of a newer one.

import { types } from "node:util";
import type { CleanedWhere } from "better-auth/adapters";
import type { BetterAuthDBSchema } from "better-auth/db";
import type { Kv, KvFilter, KvKey, KvReader, KvTransaction } from "openkv";
import { keyPart } from "./key-part.js";

/** Rows that one commit changes, and that are read by their ids at a time. */
export const BATCH_ROWS_MAX = 100;
/** The smallest part of a key: only `key` itself is from `key` to `[...key, FIRST_PART]`. */
const FIRST_PART: Uint8Array = new Uint8Array();

export type Row = Record<string, unknown>;
export type Where = readonly CleanedWhere[];
type Filter = KvFilter<any>;
interface Index {
  fields: string[];
  unique: boolean;
}
/** The value of [model, "indexes"]: each index by its name, and whether it has all rows. */
type IndexStates = Record<string, Index & { ready: boolean }>;
export interface Model {
  name: string;
  key: KvKey;
  /** Those that the schema asks for. */
  indexes: Index[];
}
/** How rows are found. What is found is filtered by the whole condition afterwards. */
type Plan =
  | { by: "ids"; ids: unknown[] }
  | { by: "index"; index: Index; values: unknown[][] }
  | { by: "scan" };

// Finding

/** The rows that match, each once, with their keys. */
export async function* rows(
  reader: KvReader,
  model: Model,
  where: Where,
): AsyncGenerator<{ key: KvKey; row: Row }> {
  const plan = planOf(model, where);
  const filter = filterOf(where);
  if (plan.by === "scan") {
    for await (const { key, value } of reader.list<Row>(
      { prefix: rowsKey(model) },
      { where: filter },
    )) {
      yield { key, row: value };
    }
    return;
  }
  let ids: unknown[] = [];
  const seen = new Set<unknown>();
  for await (const id of idsOf(reader, model, plan)) {
    // Of a long id an index has the hash, which is a new object at each read.
    const name = types.isUint8Array(id) ? Buffer.from(id).toString("hex") : id;
    if (seen.has(name)) continue;
    seen.add(name);
    if (ids.push(id) < BATCH_ROWS_MAX) continue;
    yield* await rowsAt(
      reader,
      ids.map((each) => rowKey(model, each)),
      filter,
    );
    ids = [];
  }
  yield* await rowsAt(
    reader,
    ids.map((each) => rowKey(model, each)),
    filter,
  );
}

async function* idsOf(
  reader: KvReader,
  model: Model,
  plan: Exclude<Plan, { by: "scan" }>,
): AsyncGenerator<unknown> {
  if (plan.by === "ids") {
    yield* plan.ids;
    return;
  }
  for (const values of plan.values) {
    const key = indexKey(model, plan.index, values);
    if (plan.index.unique) {
      const { value } = await reader.get(key);
      if (value !== null) yield value;
    } else {
      for await (const entry of reader.list({ prefix: key }, { keysOnly: true })) {
        yield entry.key[entry.key.length - 1];
      }
    }
  }
}

/** The rows at these keys that match, in the order of the keys. */
export async function rowsAt(
  reader: KvReader,
  keys: KvKey[],
  filter: Filter,
): Promise<{ key: KvKey; row: Row }[]> {
  const found = await Promise.all(
    keys.map((key) =>
      reader.list<Row>({ start: key, end: [...key, FIRST_PART] }, { where: filter }).toArray(),
    ),
  );
  return found.flatMap((entries) => entries.map(({ key, value }) => ({ key, row: value })));
}

/** Chooses the ids or the index of a condition. */
export function planOf(model: Model, where: Where): Plan {
  const candidates = (field: string): unknown[] | null => {
    for (const { field: name, operator, value, connector, mode } of where) {
      if (name !== field || connector === "OR") continue;
      const values = operator === "eq" ? [value] : operator === "in" ? (value as unknown[]) : [];
      const exact = mode !== "insensitive" || !values.some((each) => typeof each === "string");
      if (values.length > 0 && exact && values.every(isIndexed)) return values;
    }
    return null;
  };
  const ids = candidates("id");
  if (ids !== null) return { by: "ids", ids };
  for (const unique of [true, false]) {
    for (const index of model.indexes) {
      if (index.unique !== unique) continue;
      const fields = index.fields.map(candidates);
      if (fields.some((values) => values === null || (fields.length > 1 && values.length > 1))) {
        continue;
      }
      const [first, ...more] = fields as unknown[][];
      return { by: "index", index, values: first.map((value) => [value, ...more.flat()]) };
    }
  }
  return { by: "scan" };
}

/** The condition as a filter of openkv: all clauses with AND, and one of those with OR. */
export function filterOf(where: Where): Filter {
  const all = where.filter(({ connector }) => connector !== "OR").map(clauseOf);
  const any = where.filter(({ connector }) => connector === "OR").map(clauseOf);
  return { $and: any.length === 0 ? all : [...all, { $or: any }] };
}

function clauseOf({ field, operator, value, mode }: CleanedWhere): Filter {
  const text = (given: unknown): boolean => typeof given === "string";
  const i =
    mode === "insensitive" &&
    (Array.isArray(value) ? (value as unknown[]).every(text) : text(value))
      ? "i"
      : "";
  const path = field.replace(/[\\.$]/g, "\\$&");
  const is = (name: string, operand: unknown): Filter =>
    ({ [path]: { [name]: operand } }) as Filter;
  const never: Filter = { $or: [] };
  switch (operator) {
    case "eq":
      return value === null ? is("$null", true) : is(`$eq${i}`, value);
    case "ne":
      return value === null ? is("$null", false) : is(`$ne${i}`, value);
    case "in":
      if (i === "") return is("$in", value);
      return { $or: (value as string[]).map((each) => is("$eqi", each)) };
    case "not_in":
      if (i === "") return is("$nin", value);
      return { $and: (value as string[]).map((each) => is("$nei", each)) };
    case "contains":
      return is(`$contains${i}`, value);
    case "starts_with":
      return is(`$startsWith${i}`, value);
    case "ends_with":
      return is(`$endsWith${i}`, value);
    case "lt":
    case "lte":
    case "gt":
    case "gte":
      return value === null ? never : is(`$${operator}`, value);
    default:
      throw new TypeError(`openkv/better-auth: unknown operator of a condition: ${operator}`);
  }
}

export function equal(field: string, value: CleanedWhere["value"]): CleanedWhere {
  return { field, value, operator: "eq", connector: "AND", mode: "sensitive" };
}

/** The order of `sortBy`: absent values first. */
export function compare(a: any, b: any): number {
  if (a === b) return 0;
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
  if (b === null || b === undefined) return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

// Writing

/** Replaces a row, with its entries of indexes: `before` null creates it, `after` null deletes it. */
export async function put(
  tx: KvTransaction,
  model: Model,
  indexes: readonly Index[],
  before: Row | null,
  after: Row | null,
): Promise<void> {
  const key = after === null ? null : rowKey(model, after["id"]);
  if (before === null || (after !== null && after["id"] !== before["id"])) {
    if ((await tx.get(key!)).versionstamp !== null) throw duplicate(model, ["id"]);
    if (before !== null) tx.delete(rowKey(model, before["id"]));
  }
  for (const index of indexes) await putIndex(tx, model, index, before, after);
  if (key !== null) tx.set(key, after);
  else tx.delete(rowKey(model, before!["id"]));
}

async function putIndex(
  tx: KvTransaction,
  model: Model,
  index: Index,
  before: Row | null,
  after: Row | null,
): Promise<void> {
  const from = before === null ? null : entryOf(model, index, before);
  const to = after === null ? null : entryOf(model, index, after);
  if (from !== null && to !== null && sameKey(from, to) && before!["id"] === after!["id"]) return;
  if (from !== null) tx.delete(from);
  if (to === null) return;
  if (index.unique) {
    const { value } = await tx.get(to);
    if (value !== null && value !== after!["id"]) throw duplicate(model, index.fields);
    tx.set(to, after!["id"]);
  } else {
    tx.set(to, true);
  }
}

/** The number of a new row. A number that a caller has chosen is kept, and later ones are above it. */
export async function nextSerial(tx: KvTransaction, model: Model, given: unknown): Promise<number> {
  const key = [...model.key, "serial"];
  const last = (await tx.get<number>(key)).value ?? 0;
  const id = typeof given === "number" ? given : last + 1;
  if (id > last) tx.set(key, id);
  return id;
}

function duplicate({ name }: Model, fields: string[]): Error {
  return new Error(
    `openkv/better-auth: ${name} already has a row with this ${fields.join(" and ")}: it is unique`,
  );
}

// Indexes

/** The indexes that a schema asks for, by the names of its stored fields. */
export function indexesOf({ fields, indexes = [] }: BetterAuthDBSchema[string]): Index[] {
  const stored = (field: string): string => fields[field]?.fieldName ?? field;
  const all: Index[] = [];
  for (const [field, { unique, index, references }] of Object.entries(fields)) {
    if (field === "id") continue;
    if (unique || index || references !== undefined) {
      all.push({ fields: [stored(field)], unique: unique === true });
    }
  }
  for (const index of indexes) {
    all.push({ fields: index.fields.map(stored), unique: index.unique === true });
  }
  return all;
}

function nameOf({ fields, unique }: Index): string {
  return [unique ? "unique" : "index", ...fields].join(" ");
}

async function indexStates(tx: KvTransaction, model: Model): Promise<IndexStates> {
  return (await tx.get<IndexStates>(statesKey(model))).value ?? {};
}

/**
 * The indexes that a write keeps: those of the database, and those of the schema, which are missing in the
 * database if everything in it was deleted meanwhile.
 */
export async function keptIndexes(tx: KvTransaction, model: Model): Promise<Index[]> {
  const declared = model.indexes.map((index) => [nameOf(index), index]);
  return Object.values({ ...Object.fromEntries(declared), ...(await indexStates(tx, model)) });
}

/**
 * Makes sure that the indexes of a model are complete. First a commit requires all writers to keep them, then the
 * older rows are added, batch by batch.
 */
export async function buildIndexes(kv: Kv, model: Model, maxRetries: number): Promise<void> {
  const { value } = await kv.get<IndexStates>(statesKey(model));
  if (model.indexes.every((index) => value?.[nameOf(index)]?.ready)) return;
  const retry = { maxRetries };
  const keep = async (tx: KvTransaction, ready: boolean): Promise<void> => {
    const states = await indexStates(tx, model);
    const added = model.indexes
      .filter((index) => !states[nameOf(index)]?.ready)
      .map((index) => [nameOf(index), { ...index, ready }]);
    tx.set(statesKey(model), { ...states, ...Object.fromEntries(added) });
  };
  const { value: empty } = await kv.transaction(async (tx) => {
    const first = await tx.list({ prefix: rowsKey(model) }, { limit: 1, keysOnly: true }).toArray();
    await keep(tx, first.length === 0);
    return first.length === 0;
  }, retry);
  if (empty) return;
  let cursor: string | null = null;
  do {
    const page: { entries: { key: KvKey }[]; cursor: string | null } = await kv.paginate(
      { prefix: rowsKey(model) },
      { limit: BATCH_ROWS_MAX, cursor },
    );
    await kv.transaction(async (tx) => {
      for (const { row } of await rowsAt(
        tx,
        page.entries.map(({ key }) => key),
        {},
      )) {
        for (const index of model.indexes) await putIndex(tx, model, index, null, row);
      }
    }, retry);
    cursor = page.cursor;
  } while (cursor !== null);
  await kv.transaction((tx) => keep(tx, true), retry);
}

// Keys

export function rowsKey(model: Model): KvKey {
  return [...model.key, "row"];
}

function rowKey(model: Model, id: unknown): KvKey {
  return [...model.key, "row", partOf(id)];
}

function statesKey(model: Model): KvKey {
  return [...model.key, "indexes"];
}

function indexKey(model: Model, index: Index, values: unknown[]): KvKey {
  return [
    ...model.key,
    index.unique ? "unique" : "index",
    index.fields.join(" "),
    ...values.map(partOf),
  ];
}

/** The entry of a row in an index; none if a field is absent, as in SQL. */
function entryOf(model: Model, index: Index, row: Row): KvKey | null {
  const values = index.fields.map((field) => row[field]);
  if (!values.every(isIndexed)) return null;
  const key = indexKey(model, index, values);
  return index.unique ? key : [...key, partOf(row["id"])];
}

function isIndexed(value: unknown): boolean {
  return (
    typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "boolean" ||
    typeof value === "bigint" ||
    types.isDate(value)
  );
}

/** A value as a part of a key. Equal parts may have different values: the row decides. */
function partOf(value: unknown): string | number | boolean | bigint | Uint8Array {
  if (types.isDate(value)) return value.getTime();
  if (typeof value !== "string") return value as number | boolean | bigint;
  return keyPart(value);
}

function sameKey(a: KvKey, b: KvKey): boolean {
  return a.length === b.length && a.every((part, at) => samePart(part, b[at]));
}

function samePart(a: unknown, b: unknown): boolean {
  if (types.isUint8Array(a) && types.isUint8Array(b)) return Buffer.compare(a, b) === 0;
  return Object.is(a, b);
}
