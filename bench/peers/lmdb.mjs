// lmdb with its own encoding (msgpack), every transaction synced before it answers.

import { open as openLmdb } from "lmdb";

export function open(path) {
  const db = openLmdb({ path, overlappingSync: false });
  return {
    get: (key) => db.get(key),
    getMany: (keys) => keys.map((key) => db.get(key)),
    set: (key, value) => db.putSync(key, value),
    setMany: (pairs) =>
      db.transactionSync(() => {
        for (const [key, value] of pairs) db.putSync(key, value);
      }),
    list: (prefix) => Array.from(db.getRange({ start: prefix, end: [prefix[0], "\uffff"] })),
    close: () => db.close(),
  };
}
