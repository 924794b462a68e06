// Duty: the database adapter of Better Auth: its methods over the rows of better-auth-rows.ts.

import { createAdapterFactory } from "better-auth/adapters";
import type { BetterAuthOptions } from "better-auth";
import type {
  AdapterFactory,
  CleanedWhere,
  CustomAdapter,
  DBAdapter,
  DBTransactionAdapter,
  JoinConfig,
} from "better-auth/adapters";
import type { KvKey, KvReader, KvTransaction } from "openkv";
import {
  BATCH_ROWS_MAX,
  buildIndexes,
  compare,
  equal,
  filterOf,
  keptIndexes,
  indexesOf,
  nextSerial,
  planOf,
  put,
  rows,
  rowsAt,
  rowsKey,
} from "./better-auth-rows.js";
import type { Model, Row, Where } from "./better-auth-rows.js";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "better-auth";
/** How often a write begins again because of concurrent ones before it fails. */
const RETRIES_MAX = 100;

/** Options of {@link openkvAdapter}. */
export interface OpenkvAdapterOptions extends DatabaseOptions {
  /** Logs each call of the adapter. Default: false. */
  debugLogs?: boolean | undefined;
}

/** The adapter of {@link openkvAdapter}. */
export type OpenkvAdapter = AdapterFactory<BetterAuthOptions> & {
  /** Closes the handle if the adapter has opened it. */
  close(): Promise<void>;
};

/** Where a call reads and writes: a transaction of Better Auth, or the database. */
interface Access {
  reader(): Promise<KvReader>;
  write<T>(run: (tx: KvTransaction) => Promise<T>): Promise<T>;
}

/**
 * The `database` of `betterAuth`.
 *
 * Unique fields, as the email of a user, are unique under concurrent writes of all processes.
 * `adapter.transaction` is `kv.transaction`: its callback runs again after a conflict. There are no
 * migrations: an index that a new version of the schema asks for is built at the first use of its model.
 *
 * @example
 * const auth = betterAuth({
 *   database: openkvAdapter({ path: "auth.sqlite3" }),
 *   emailAndPassword: { enabled: true },
 * });
 */
export function openkvAdapter(options: OpenkvAdapterOptions = {}): OpenkvAdapter {
  const { debugLogs = false, ...rest } = options;
  const database = new Database(rest, NAME);
  const prepared = new Map<string, Promise<void>>();

  /** Builds the indexes of a model once in this process. */
  const prepare = async (model: Model): Promise<Model> => {
    const id = JSON.stringify([model.name, model.indexes]);
    let done = prepared.get(id);
    if (done === undefined) {
      done = database.kv().then((kv) => buildIndexes(kv, model, RETRIES_MAX));
      done.catch(() => prepared.delete(id));
      prepared.set(id, done);
    }
    await done;
    return model;
  };
  const commit = async <T>(run: (tx: KvTransaction) => Promise<T>): Promise<T> =>
    (await (await database.kv()).transaction(run, { maxRetries: RETRIES_MAX })).value;

  const factory = (betterAuth: BetterAuthOptions, access: Access, nested: boolean): DBAdapter =>
    createAdapterFactory({
      config: {
        adapterId: "openkv",
        adapterName: "openkv",
        supportsJSON: true,
        supportsArrays: true,
        debugLogs,
        transaction: nested
          ? false
          : (run) =>
              commit((tx) =>
                run(
                  factory(
                    betterAuth,
                    { reader: async () => tx, write: (inner) => inner(tx) },
                    true,
                  ) as DBTransactionAdapter,
                ),
              ),
      },
      adapter: ({ schema, options, getFieldName, getDefaultModelName }) => {
        const modelOf = (name: string): Promise<Model> => {
          const table = schema[getDefaultModelName(name)]!;
          return prepare({ name, key: database.key(name), indexes: indexesOf(table) });
        };
        const fieldOf = (model: string, field: string): string =>
          getFieldName({ model: getDefaultModelName(model), field });
        const serial = options.advanced?.database?.generateId === "serial";
        return methods(access, modelOf, fieldOf, serial);
      },
    })(betterAuth);

  const adapter: AdapterFactory<BetterAuthOptions> = (betterAuth) =>
    factory(betterAuth, { reader: () => database.kv(), write: commit }, false) as ReturnType<
      AdapterFactory<BetterAuthOptions>
    >;
  const close = async (): Promise<void> => {
    prepared.clear();
    await database.close();
  };
  return Object.assign(adapter, { close });
}

/** The methods of Better Auth's adapters. */
function methods(
  access: Access,
  modelOf: (name: string) => Promise<Model>,
  fieldOf: (model: string, field: string) => string,
  serial: boolean,
): CustomAdapter {
  /** Changes up to `limit` rows that match: found by reads, and decided again in the commit of each batch. */
  const change = async (
    name: string,
    where: Where,
    limit: number,
    changed: (row: Row) => Row | null,
  ): Promise<{ count: number; before: Row | null; after: Row | null }> => {
    const model = await modelOf(name);
    const found: KvKey[] = [];
    for await (const { key } of rows(await access.reader(), model, where)) found.push(key);
    const done = { count: 0, before: null as Row | null, after: null as Row | null };
    for (let at = 0; at < found.length && done.count < limit; at += BATCH_ROWS_MAX) {
      const keys = found.slice(at, at + BATCH_ROWS_MAX);
      const batch = await access.write(async (tx) => {
        const indexes = await keptIndexes(tx, model);
        const changes: { before: Row; after: Row | null }[] = [];
        for (const before of await rowsAt(tx, keys, filterOf(where))) {
          if (done.count + changes.length === limit) break;
          const after = changed(before.row);
          await put(tx, model, indexes, before.row, after);
          changes.push({ before: before.row, after });
        }
        return changes;
      });
      done.count += batch.length;
      done.before ??= batch[0]?.before ?? null;
      done.after ??= batch[0]?.after ?? null;
    }
    return done;
  };

  const join = async (reader: KvReader, row: Row, config: JoinConfig): Promise<Row> => {
    const joined = await Promise.all(
      Object.entries(config).map(async ([name, { on, limit, relation }]) => {
        const value = row[on.from];
        const single = relation === "one-to-one";
        const found: Row[] = [];
        if (value !== null && value !== undefined) {
          const where = [equal(on.to, value as CleanedWhere["value"])];
          const most = single ? 1 : (limit ?? BATCH_ROWS_MAX);
          for await (const each of rows(reader, await modelOf(name), where)) {
            if (found.push(each.row) === most) break;
          }
        }
        return [name, single ? (found[0] ?? null) : found] as const;
      }),
    );
    return { ...row, ...Object.fromEntries(joined) };
  };

  const find = async (given: {
    model: string;
    where?: Where | undefined;
    limit?: number | undefined;
    offset?: number | undefined;
    sortBy?: { field: string; direction: "asc" | "desc" } | undefined;
    select?: string[] | undefined;
    join?: JoinConfig | undefined;
  }): Promise<Row[]> => {
    const { model, where = [], limit = Infinity, offset = 0, sortBy, select, join: config } = given;
    const reader = await access.reader();
    let found: Row[] = [];
    if (limit === 0) return found;
    for await (const { row } of rows(reader, await modelOf(model), where)) {
      if (found.push(row) === offset + limit && sortBy === undefined) break;
    }
    if (sortBy !== undefined) {
      const field = fieldOf(model, sortBy.field);
      const sign = sortBy.direction === "desc" ? -1 : 1;
      found.sort((a, b) => sign * compare(a[field], b[field]));
    }
    found = found.slice(offset, offset + limit);
    if (select !== undefined && select.length > 0) {
      const names = select.map((field) => fieldOf(model, field));
      found = found.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])));
    }
    if (config === undefined) return found;
    return await Promise.all(found.map((row) => join(reader, row, config)));
  };

  return {
    async create({ model: name, data }) {
      const model = await modelOf(name);
      return await access.write(async (tx) => {
        const indexes = await keptIndexes(tx, model);
        const row: Row = { ...data };
        if (serial) row["id"] = await nextSerial(tx, model, row["id"]);
        await put(tx, model, indexes, null, row);
        return row as typeof data;
      });
    },
    async findOne<T>(given: Parameters<CustomAdapter["findOne"]>[0]) {
      return ((await find({ ...given, limit: 1 }))[0] ?? null) as T | null;
    },
    async findMany<T>(given: Parameters<CustomAdapter["findMany"]>[0]) {
      return (await find(given)) as T[];
    },
    async count({ model: name, where = [] }) {
      const model = await modelOf(name);
      const reader = await access.reader();
      if (planOf(model, where).by === "scan") {
        return await reader.count({ prefix: rowsKey(model) }, { where: filterOf(where) });
      }
      let count = 0;
      for await (const _ of rows(reader, model, where)) count++;
      return count;
    },
    async update<T>({ model, where, update }: Parameters<CustomAdapter["update"]>[0]) {
      if (where.length === 0) return null;
      const { after } = await change(model, where, 1, (row) => ({ ...row, ...(update as Row) }));
      return after as T | null;
    },
    async updateMany({ model, where, update }) {
      return (await change(model, where, Infinity, (row) => ({ ...row, ...update }))).count;
    },
    async delete({ model, where }) {
      if (where.length > 0) await change(model, where, Infinity, () => null);
    },
    async deleteMany({ model, where }) {
      return (await change(model, where, Infinity, () => null)).count;
    },
    async consumeOne<T>({ model, where }: { model: string; where: CleanedWhere[] }) {
      return (await change(model, where, 1, () => null)).before as T | null;
    },
    async incrementOne<T>({
      model,
      where,
      increment,
      set,
    }: Parameters<NonNullable<CustomAdapter["incrementOne"]>>[0]) {
      const { after } = await change(model, where, 1, (row) => {
        const added = Object.entries(increment).map(([field, by]) => {
          const now = row[field];
          return [field, (typeof now === "number" ? now : 0) + by];
        });
        return { ...row, ...Object.fromEntries(added), ...set };
      });
      return after as T | null;
    },
  };
}
