// better-sqlite3, used directly as a store of objects: one table, prepared statements, values
// through node:v8. It has no versionstamps, expiry or change feed, and no promises.
//
// The pragmas are set by name because its build defaults differ (WAL_SYNCHRONOUS=1 does not sync a
// commit). Where two ways of asking exist, the one that measured faster is used: `all()` for a list
// and ten single reads inside one transaction for getMany. Large values go to a rowid table, small
// ones to a WITHOUT ROWID table: each is faster than the other for its kind.

import Database from "better-sqlite3";
import { deserialize, serialize } from "node:v8";

/** Pages of 4096 bytes; negative is KiB, as SQLite has it. */
const CACHE_KIB = 16_000;

const textOf = (key) => `${key[0]}/${key[1]}`;

export function open(path, { large = false } = {}) {
  const db = new Database(path);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma(`cache_size = -${CACHE_KIB}`);
  const table = large ? "" : " WITHOUT ROWID";
  db.exec(`CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB NOT NULL)${table}`);
  const one = db.prepare("SELECT v FROM kv WHERE k = ?").pluck();
  const put = db.prepare(
    "INSERT INTO kv (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
  );
  const range = db.prepare("SELECT k, v FROM kv WHERE k >= ? AND k < ? ORDER BY k").raw();

  const get = (key) => {
    const bytes = one.get(textOf(key));
    return bytes === undefined ? undefined : deserialize(bytes);
  };
  const set = (key, value) => put.run(textOf(key), serialize(value));
  return {
    /** The value, or undefined. */
    get,
    /** The values in the keys' order, from one snapshot. */
    getMany: db.transaction((keys) => keys.map(get)),
    set,
    /** `[key, value]` pairs in one transaction. */
    setMany: db.transaction((pairs) => {
      for (const [key, value] of pairs) set(key, value);
    }),
    /** Every entry under a prefix of one part, in the order of its keys. */
    list(prefix) {
      return range.all(`${prefix[0]}/`, `${prefix[0]}0`).map(([text, bytes]) => ({
        key: text.split("/"),
        value: deserialize(bytes),
      }));
    },
    close: () => db.close(),
  };
}
