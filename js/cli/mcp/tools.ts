// Duty: the tools that `openkv mcp` gives to a model: reads of the database and, if allowed, writes.
// Invariant: a result has at most MCP_ENTRIES_MAX entries and MCP_RESULT_BYTES_MAX bytes; what is left out is
// said, with a way to read it.

import type { Kv } from "../../api/kv.js";
import type {
  KvCommitRefusal,
  KvCommitResult,
  KvEntry,
  KvKey,
  KvVersion,
} from "../../model/types.js";
import { notUnique } from "../../session/violations.js";
import { plainValue } from "../plain-json.js";
import {
  type Arguments,
  BadArgument,
  SCHEMAS,
  keyIn,
  limitIn,
  optionalText,
  textIn,
  whereIn,
} from "./arguments.js";

/** Bytes of the text of one result, as UTF-16 code units. */
export const MCP_RESULT_BYTES_MAX = 64 * 1024;

/** What a tool answers: a document, as JSON. */
type Document = Readonly<Record<string, unknown>>;

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly annotations: object;
  run(kv: Kv, given: Arguments): Promise<Document>;
}

/** A tool that only reads, with its required arguments. */
function reading(
  name: string,
  description: string,
  properties: object,
  required: readonly string[],
  run: Tool["run"],
): Tool {
  const inputSchema = { type: "object", properties, required, additionalProperties: false };
  return { name, description, inputSchema, annotations: { readOnlyHint: true }, run };
}

const { key, prefix, limit, cursor, where, orderBy, reverse, depth } = SCHEMAS;

export const READING: readonly Tool[] = [
  reading(
    "get",
    "Get the entry of a key: its value, versionstamp and expiry.",
    { key },
    ["key"],
    async (kv, given) => {
      const entry: any = await kv.get(keyIn(given, "key"), { withExpiry: true });
      return entry.versionstamp === null ? { found: false } : await written(entry);
    },
  ),
  reading(
    "list",
    "List entries in the order of their keys, or of values. The result has a cursor if more entries follow. keysOnly leaves " +
      "the values out; depth leaves out deeper keys, without reading them.",
    {
      prefix,
      limit,
      cursor,
      where,
      orderBy,
      reverse,
      keysOnly: { type: "boolean" },
      depth,
    },
    ["prefix"],
    async (kv, given) => await list(kv, given),
  ),
  reading(
    "count",
    "Count entries, without reading them into the answer.",
    { prefix, where },
    ["prefix"],
    async (kv, given) => ({
      count: await kv.count({ prefix: keyIn(given, "prefix") }, whereIn(given)),
    }),
  ),
  reading(
    "search",
    "Full-text search in the values below the prefix of an index, best first. The tool stats names the indexes.",
    {
      prefix,
      limit,
      cursor,
      where,
      query: {
        type: "string",
        description: 'words, "a phrase", bik*, a OR b, a NOT b, field:word',
      },
    },
    ["prefix", "query"],
    async (kv, given) => {
      const options = { ...whereIn(given), ...optionalText(given, "cursor") };
      const find = (limit: number) =>
        kv.search(keyIn(given, "prefix"), textIn(given, "query"), { ...options, limit });
      const { entries, cursor: next, complete } = await find(limitIn(given));
      const document = await bounded(entries, () => next ?? "");
      const { length } = document.entries as readonly Document[];
      // A search has the cursor of its last result only.
      const rest = length < entries.length ? { cursor: (await find(length)).cursor } : {};
      const note = complete ? {} : { note: "the index is still being built" };
      return { ...document, ...rest, ...note };
    },
  ),
  reading(
    "explain",
    "Explain a list without its entries: the value indexes that it reads and with which bounds, or why none; how many " +
      "entries it visits, leaves out and returns. It reads at most about 100,000 entries.",
    { prefix, limit, where, orderBy, reverse, depth },
    ["prefix"],
    async (kv, given) => ({
      ...(await kv.explain({ prefix: keyIn(given, "prefix") }, listOptions(given))),
    }),
  ),
  reading(
    "history",
    "The versions of an entry, the newest first; only in a database that keeps a history.",
    {
      key,
      limit,
      before: { type: "string", description: "only versions before this versionstamp" },
    },
    ["key"],
    async (kv, given) => {
      const versions: unknown[] = [];
      const options = { limit: limitIn(given), ...optionalText(given, "before") };
      let room = MCP_RESULT_BYTES_MAX;
      for await (const version of kv.history(
        keyIn(given, "key"),
        options,
      ) as AsyncIterable<KvVersion>) {
        const document = await versionOf(version);
        room -= JSON.stringify(document).length;
        if (room < 0) return { versions, note: TOO_MUCH };
        versions.push(document);
      }
      return { versions };
    },
  ),
  reading(
    "stats",
    "Facts of the database: size, number of entries, full-text and value indexes.",
    {},
    [],
    async (kv) => ({
      stats: await plain(await kv.stats({ entries: true })),
      indexes: await plain(await kv.listIndexes().catch(() => [])),
    }),
  ),
];

const versionstamp = {
  type: ["string", "null"],
  description:
    "write only if the entry still has this versionstamp; null: only if there is no entry (default: always)",
};

export const WRITING: readonly Tool[] = [
  {
    name: "set",
    description: "Set the value of a key, as JSON.",
    inputSchema: {
      type: "object",
      properties: {
        key,
        value: { description: "the value, any JSON" },
        expireInMs: {
          type: "integer",
          minimum: 1,
          description: "when it expires (default: never)",
        },
        versionstamp,
      },
      required: ["key", "value"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    async run(kv, given) {
      if (!Object.hasOwn(given, "value")) throw new BadArgument("value is missing");
      const { expireInMs } = given;
      if (expireInMs !== undefined && !(Number.isInteger(expireInMs) && Number(expireInMs) > 0)) {
        throw new BadArgument("expireInMs must be a positive integer");
      }
      const options = expireInMs === undefined ? {} : { expireIn: expireInMs as number };
      const of = keyIn(given, "key");
      return committed(await checked(kv, of, given).set(of, given.value, options).commit());
    },
  },
  {
    name: "delete",
    description: "Delete the entry of a key.",
    inputSchema: {
      type: "object",
      properties: { key, versionstamp },
      required: ["key"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    async run(kv, given) {
      const of = keyIn(given, "key");
      return committed(await checked(kv, of, given).delete(of).commit());
    },
  },
];

/** An atomic operation with the check that a call asks for. */
function checked(kv: Kv, of: KvKey, { versionstamp: expected }: Arguments) {
  const operation = kv.atomic();
  if (expected === undefined) return operation;
  return operation.check({ key: of as any, versionstamp: expected as string | null });
}

function committed(result: KvCommitResult | KvCommitRefusal): Document {
  if (result.ok) return { ok: true, versionstamp: result.versionstamp };
  if (result.violations !== undefined) throw notUnique(result.violations);
  return { ok: false, note: "the entry has another versionstamp: get it again" };
}

async function list(kv: Kv, given: Arguments): Promise<Document> {
  const entries = kv.list({ prefix: keyIn(given, "prefix") }, listOptions(given));
  return await bounded(entries, () => entries.cursor);
}

function listOptions(given: Arguments): object {
  const { reverse: backward = false, keysOnly = false, depth: parts, orderBy: order } = given;
  return {
    limit: limitIn(given),
    reverse: backward === true,
    ...whereIn(given),
    ...optionalText(given, "cursor"),
    ...(order === undefined ? {} : { orderBy: order }),
    ...(keysOnly === true ? { keysOnly: true } : {}),
    ...(parts === undefined ? {} : { depth: parts }),
  };
}

const TOO_MUCH = "the rest is left out: ask for fewer results, or by get";

/** Entries within the bounds of a result, and where the rest begins. */
async function bounded(
  entries: AsyncIterable<any> | Iterable<any>,
  cursorOf: () => string,
): Promise<Document> {
  const taken: Document[] = [];
  let room = MCP_RESULT_BYTES_MAX;
  let next = "";
  for await (const entry of entries) {
    const document = await written(entry);
    room -= JSON.stringify(document).length;
    if (room < 0)
      return { entries: taken, note: TOO_MUCH, ...(next === "" ? {} : { cursor: next }) };
    taken.push(document);
    next = cursorOf();
  }
  const cursor = cursorOf();
  return { entries: taken, ...(cursor === "" ? {} : { cursor }) };
}

/** An entry; a value that has no room is left out. */
async function written(entry: KvEntry<unknown> & { expireAt?: Date | null }): Promise<Document> {
  const facts = {
    key: entry.key.map(typedPart),
    ...(entry.versionstamp === undefined ? {} : { versionstamp: entry.versionstamp }),
    ...(entry.expireAt == null ? {} : { expireAt: entry.expireAt.toISOString() }),
  };
  if (!Object.hasOwn(entry, "value")) return facts;
  const text = await plainValue(entry.value);
  if (text.length > MCP_RESULT_BYTES_MAX / 2) {
    const beginning = text.slice(0, MCP_RESULT_BYTES_MAX / 4);
    return { ...facts, note: `the value has ${text.length} characters; it begins so`, beginning };
  }
  return { ...facts, value: JSON.parse(text) };
}

/** A version of an entry; its key is that of the call. */
async function versionOf(version: KvVersion): Promise<Document> {
  const { key: _, ...facts } = await written(version as KvEntry<unknown>);
  const { type, committedAt } = version;
  return { type, ...facts, ...(committedAt === undefined ? {} : { committedAt }) };
}

/** A part of a key, so that it can be given back. */
function typedPart(part: unknown): unknown {
  if (typeof part === "bigint") return { type: "bigint", value: `${part}` };
  if (part instanceof Uint8Array) {
    return { type: "Uint8Array", value: Buffer.from(part).toString("base64") };
  }
  return part;
}

async function plain(value: unknown): Promise<unknown> {
  return JSON.parse(await plainValue(value));
}
