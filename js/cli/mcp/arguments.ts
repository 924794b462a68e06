// Duty: the arguments of the tools: their JSON Schemas, and their checks, with errors that a model can act on.

import { decodeTyped } from "../../interchange/decode.js";
import type { KvFilter, KvKey } from "../../model/types.js";

/** Entries of one result, at most and by default. */
export const MCP_ENTRIES_MAX = 100;
export const MCP_ENTRIES_DEFAULT = 20;

/** The arguments of a call. */
export type Arguments = Readonly<Record<string, unknown>>;

const KEY_WORDS =
  'a key: an array of strings, numbers and booleans, such as ["users", 42]; other parts as ' +
  '{"type": "bigint", "value": "5"} and {"type": "Uint8Array", "value": "base64"}, as results have them';

export const SCHEMAS = {
  key: { type: "array", items: {}, description: KEY_WORDS },
  prefix: {
    type: "array",
    items: {},
    description: `only entries whose keys extend this one; [] for all: ${KEY_WORDS}`,
  },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: MCP_ENTRIES_MAX,
    description: `most results (default: ${MCP_ENTRIES_DEFAULT})`,
  },
  cursor: { type: "string", description: "continue after the result that gave this cursor" },
  where: {
    type: "object",
    description:
      'only entries with such a value, such as {"age": {"$gte": 18}, "name": "Ada"}; operators: $eq, $ne, ' +
      "$gt, $gte, $lt, $lte, $in, $exists, $and, $or, $not",
  },
  reverse: { type: "boolean", description: "from the last key to the first" },
  depth: {
    type: "integer",
    minimum: 1,
    description: "only keys with at most so many parts behind the prefix",
  },
  orderBy: {
    type: "object",
    additionalProperties: { enum: ["asc", "desc"] },
    description:
      'the order of values instead of that of keys, such as {"city": "asc", "joined": "desc"}; needs a value ' +
      "index, which the tool stats names",
  },
} as const;

/** An argument that is wrong. */
export class BadArgument extends Error {}

/** A key. Parts that JSON lacks are typed objects. */
export function keyIn(given: Arguments, name: string): KvKey {
  const key = given[name];
  if (!Array.isArray(key)) throw new BadArgument(`${name} must be ${KEY_WORDS}`);
  return key.map(partOf) as unknown as KvKey;
}

function partOf(part: unknown): unknown {
  if (typeof part !== "object" || part === null) return part;
  try {
    return decodeTyped(part);
  } catch (error) {
    throw new BadArgument(`a part of a key cannot be read: ${(error as Error).message}`);
  }
}

export function limitIn({ limit = MCP_ENTRIES_DEFAULT }: Arguments): number {
  if (Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= MCP_ENTRIES_MAX) {
    return Number(limit);
  }
  throw new BadArgument(`limit must be an integer from 1 to ${MCP_ENTRIES_MAX}`);
}

export function whereIn({ where }: Arguments): { where?: KvFilter } {
  return where === undefined ? {} : { where: where as KvFilter };
}

export function textIn(given: Arguments, name: string): string {
  const text = given[name];
  if (typeof text === "string") return text;
  throw new BadArgument(`${name} must be a string`);
}

/** A text that may be absent. */
export function optionalText<Name extends string>(
  given: Arguments,
  name: Name,
): { [N in Name]?: string } {
  return given[name] === undefined
    ? {}
    : ({ [name]: textIn(given, name) } as { [N in Name]: string });
}
