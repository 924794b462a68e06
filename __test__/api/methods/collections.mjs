// Duty: how collections refuse what they cannot do, on a handle and in a transaction.

import {
  BIG,
  LONG,
  NO_ARGUMENTS,
  NO_HANDLE,
  NO_SIZE,
  KEY_READ,
  KEY_WRITE,
  VALUE,
} from "./expected.mjs";

const schema = (value) => value;
const users = (kv) => kv.collection(["users"], { schema, id: "id" });
const documents = (kv) => users(kv).list();
const typed = (kv) => kv.schema({ users: users(kv) });
/** Calls on the collection in a transaction, which commits nothing. */
const inTransaction = (call) => (collection, kv) =>
  (kv ?? collection).transaction((tx) => call(users(kv ?? collection).in(tx)));

const TOO_LONG = LONG[0];
const ID = /an id must be a string, number, bigint, boolean or Uint8Array: received undefined/;
const VERSION = /expectedVersion must be the versionstamp of a document: received 1/;
const EXPIRY = /expireIn must be a non-negative integer/;
const NO_ID = /the document has no id: the schema must require it/;

const reads = {
  get: {
    closed: (own) => own.get(1),
    wrong: [[(own) => own.get(), ID]],
    over: [[(own) => own.get(TOO_LONG), KEY_READ]],
    misspelt: "it takes no options",
  },
  getMany: {
    closed: (own) => own.getMany([1]),
    wrong: [
      [(own) => own.getMany(1), /an array of ids: received 1/],
      [(own) => own.getMany([undefined]), ID],
    ],
    over: [[(own) => own.getMany([TOO_LONG]), KEY_READ]],
    misspelt: "it takes no options",
  },
  find: {
    closed: (own) => own.find({ a: 1 }),
    wrong: [[(own) => own.find(5), /where must be an object/]],
    over: NO_SIZE,
    misspelt: [[(own) => own.find({ a: { $qe: 1 } }), /\$qe/]],
  },
  findMany: {
    closed: (own) => own.findMany({ a: 1 }),
    wrong: [
      [(own) => own.findMany(5), /where must be an object/],
      [(own) => own.findMany({ a: 1 }, { limit: 0 }), /limit must be a positive integer/],
    ],
    over: NO_SIZE,
    misspelt: [[(own) => own.findMany({ a: 1 }, { limt: 1 }), /unknown option 'limt'/]],
  },
  count: {
    closed: (own) => own.count(),
    wrong: [[(own) => own.count(5), /where must be an object/]],
    over: NO_SIZE,
    misspelt: [[(own) => own.count({ a: { $qe: 1 } }), /\$qe/]],
  },
};

const writes = {
  insert: {
    closed: (own) => own.insert({ id: 1 }),
    wrong: [
      [(own) => own.insert({}), NO_ID],
      [(own) => own.insert({ id: 1 }, { id: 2 }), /has the id 1, and not 2/],
      [(own) => own.insert({ id: 1 }, { expireIn: -1 }), EXPIRY],
    ],
    over: [[(own) => own.insert({ id: 1, text: BIG }), VALUE]],
    misspelt: [[(own) => own.insert({ id: 1 }, { expireId: 1 }), /unknown option 'expireId'/]],
  },
  upsert: {
    closed: (own) => own.upsert({ id: 1 }),
    wrong: [
      [(own) => own.upsert({}), NO_ID],
      [(own) => own.upsert({ id: 1 }, { expectedVersion: 1 }), VERSION],
    ],
    over: [[(own) => own.upsert({ id: 1, text: BIG }), VALUE]],
    misspelt: [[(own) => own.upsert({ id: 1 }, { expected: 1 }), /unknown option 'expected'/]],
  },
  replace: {
    closed: (own) => own.replace(1, { id: 1 }),
    wrong: [
      [(own) => own.replace(1, { id: 2 }), /has the id 2, and not 1/],
      [(own) => own.replace(1, { id: 1 }, { expectedVersion: 1 }), VERSION],
    ],
    over: [[(own) => own.replace(TOO_LONG, { id: TOO_LONG }), KEY_READ]],
    misspelt: [[(own) => own.replace(1, { id: 1 }, { id: 1 }), /unknown option 'id'/]],
  },
  update: {
    closed: (own) => own.update(1, {}),
    wrong: [
      [(own) => own.update(undefined, {}), ID],
      [(own) => own.update(1, {}, { expectedVersion: 1 }), VERSION],
    ],
    over: [[(own) => own.update(TOO_LONG, {}), KEY_READ]],
    misspelt: [[(own) => own.update(1, {}, { id: 1 }), /unknown option 'id'/]],
  },
  delete: {
    closed: (own) => own.delete(1),
    wrong: [
      [(own) => own.delete(), ID],
      [(own) => own.delete(1, { expectedVersion: 1 }), VERSION],
    ],
    over: [[(own) => own.delete(TOO_LONG), KEY_READ]],
    misspelt: [[(own) => own.delete(1, { expireIn: 1 }), /unknown option 'expireIn'/]],
  },
};

const narrowing = {
  where: "what it chooses is read later",
  list: NO_ARGUMENTS,
};

/** The rows of the methods of an interface. */
function rowsOf(type, methods, change) {
  return Object.fromEntries(
    Object.entries(methods).map(([name, row]) => [`${type}.${name}`, change(row)]),
  );
}

const ofHandle = (row) => ({ of: users, ...row });
/** A transaction refuses at its reads and writes what a handle refuses. */
const ofTransaction = ({ closed, wrong, over, misspelt }) => ({
  closed: inTransaction(closed),
  wrong: Array.isArray(wrong) ? wrong.map(([call, words]) => [inTransaction(call), words]) : wrong,
  over: Array.isArray(over) ? over.map(([call, words]) => [inTransaction(call), words]) : over,
  misspelt: Array.isArray(misspelt)
    ? misspelt.map(([call, words]) => [inTransaction(call), words])
    : misspelt,
});
const why = (reason) => ({ closed: reason, wrong: reason, over: reason, misspelt: reason });

export default {
  "Kv.collection": {
    closed: "it reads nothing by itself",
    wrong: [
      [(kv) => kv.collection("users"), /the prefix must be a key of at least one part/],
      [(kv) => kv.collection([], { schema, id: "id" }), /of at least one part/],
      [(kv) => kv.collection([{}], { schema, id: "id" }), /of at least one part/],
      [(kv) => kv.collection(["users"]), /schema must be a schema of zod/],
      [(kv) => kv.collection(["users"], { schema: {}, id: "id" }), /schema must be a schema/],
      [(kv) => kv.collection(["users"], { schema }), /id must be the name of a property/],
      [(kv) => kv.collection(["users"], { schema, id: "" }), /id must be the name of a property/],
      [
        (kv) => kv.collection(["u"], { schema, id: "id", version: 0 }),
        /version must be a positive/,
      ],
      [
        (kv) => kv.collection(["u"], { schema, id: "id", migrate: 1 }),
        /migrate must be a function/,
      ],
      [
        (kv) => kv.collection(["u"], { schema, id: "id", indexes: [] }),
        /indexes must be an object/,
      ],
      [
        (kv) => kv.collection(["u"], { schema, id: "id", indexes: {}, indexMode: "auto" }),
        /indexMode must be one of "sync", "check", "off": received the string "auto"/,
      ],
    ],
    over: NO_SIZE,
    misspelt: [
      [(kv) => kv.collection(["u"], { schema, id: "id", sceham: 1 }), /unknown option 'sceham'/],
      [
        (kv) => kv.collection(["u"], { schema, id: "id", indexes: { a: { uniq: true } } }),
        /indexes\.a: unknown option 'uniq'/,
      ],
    ],
  },
  ...rowsOf("KvCollectionReads", reads, ofHandle),
  ...rowsOf("KvCollectionReads", narrowing, why),
  ...rowsOf("KvCollection", writes, ofHandle),
  "KvCollection.insertMany": {
    of: users,
    closed: (own) => own.insertMany([{ id: 1 }]),
    wrong: [
      [(own) => own.insertMany({ id: 1 }), /an array of documents: received an object/],
      [(own) => own.insertMany([{ id: 1 }, {}]), NO_ID],
    ],
    over: [[(own) => own.insertMany([{ id: 1 }, { id: TOO_LONG }]), KEY_WRITE]],
    misspelt: [[(own) => own.insertMany([{ id: 1 }], { id: 1 }), /unknown option 'id'/]],
  },
  "KvCollection.key": {
    of: users,
    closed: NO_HANDLE,
    wrong: [[(own) => own.key(), ID]],
    over: "the key is not read",
    misspelt: "it takes no options",
  },
  "KvCollection.watch": {
    of: users,
    closed: (own) => own.watch(1),
    wrong: [[(own) => own.watch(), ID]],
    over: "as Kv.watch",
    misspelt: "as Kv.watch",
  },
  "KvCollection.changes": {
    of: users,
    closed: (own) => own.changes(),
    wrong: [[(own) => own.changes({ since: 5 }), /since/]],
    over: NO_SIZE,
    misspelt: [[(own) => own.changes({ snice: "0" }), /'snice'/]],
  },
  "KvCollection.ready": {
    ...why(NO_ARGUMENTS),
    of: (kv) => kv.collection(["users"], { schema, id: "id", indexes: {} }),
    closed: (own) => own.ready(),
  },
  "KvCollection.in": why("the transaction refuses its calls"),
  "KvCollection.migrateAll": {
    of: (kv) => kv.collection(["users"], { schema, id: "id", version: 2 }),
    closed: (own) => own.migrateAll(),
    wrong: [[(own) => own.migrateAll({ onProgress: 1 }), /onProgress must be a function/]],
    over: NO_SIZE,
    misspelt: [[(own) => own.migrateAll({ onProgess: 1 }), /unknown option 'onProgess'/]],
  },
  ...rowsOf("KvTransactionCollection", writes, ofTransaction),
  "Kv.schema": {
    closed: "it reads nothing by itself",
    wrong: [
      [(kv) => kv.schema(), /expected an object of collections: received undefined/],
      [(kv) => kv.schema({ users: ["users"] }), /users must be a collection of kv\.collection\(\)/],
    ],
    over: NO_SIZE,
    misspelt: NO_ARGUMENTS,
  },
  "KvTypedKeys.get": {
    of: typed,
    closed: (db) => db.get(["users", 1]),
    wrong: [
      [
        (db) => db.get(["user", 1]),
        /no collection has the key \["user",1\]: known are \["users","…"\]/,
      ],
      [(db) => db.get("users"), /no collection has the key/],
    ],
    over: [[(db) => db.get(["users", TOO_LONG]), KEY_READ]],
    misspelt: "it takes no options",
  },
  "KvTypedKeys.set": {
    of: typed,
    closed: (db) => db.set(["users", 1], { id: 1 }),
    wrong: [
      [(db) => db.set(["users", 1, 2], { id: 1 }), /no collection has the key/],
      [(db) => db.set(["users", 1], { id: 2 }), /has the id 2, and not 1/],
    ],
    over: [[(db) => db.set(["users", 1], { id: 1, text: BIG }), VALUE]],
    misspelt: [[(db) => db.set(["users", 1], { id: 1 }, { ttl: 1 }), /write expireIn/]],
  },
  "KvTypedKeys.delete": {
    of: typed,
    closed: (db) => db.delete(["users", 1]),
    wrong: [[(db) => db.delete([]), /no collection has the key/]],
    over: [[(db) => db.delete(["users", TOO_LONG]), KEY_WRITE]],
    misspelt: "it takes no options",
  },
  "KvDocuments.limit": {
    of: documents,
    closed: NO_HANDLE,
    wrong: [[(all) => all.limit(0), /limit must be a positive integer: received 0/]],
    over: NO_SIZE,
    misspelt: "it takes no options",
  },
  "KvDocuments.reverse": why(NO_ARGUMENTS),
  "KvDocuments.orderBy": {
    of: documents,
    closed: NO_HANDLE,
    wrong: [[(all) => all.orderBy("a", "up").toArray(), /"asc" or "desc"/]],
    over: NO_SIZE,
    misspelt: "it takes no options",
  },
  "KvDocuments.first": { ...why(NO_ARGUMENTS), of: documents, closed: (all) => all.first() },
  "KvDocuments.toArray": { ...why(NO_ARGUMENTS), of: documents, closed: (all) => all.toArray() },
  "KvDocuments.count": { ...why(NO_ARGUMENTS), of: documents, closed: (all) => all.count() },
  "KvDocuments.page": {
    of: documents,
    closed: (all) => all.page(),
    wrong: [[(all) => all.page({ cursor: "%" }), /[Cc]ursor/]],
    over: NO_SIZE,
    misspelt: [[(all) => all.page({ cursr: "" }), /unknown option 'cursr'/]],
  },
};
