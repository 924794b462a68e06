// Duty: what a collection is: its prefix, its schema and its ids; and from it, what is stored for a document
// and the document of what is stored.
// Invariant: nothing here reads or writes the database.

import { randomBytes } from "node:crypto";
import { checkOptions, shown } from "../arguments/check.js";
import { bytesOf, exactText } from "../codec/key-bytes.js";
import type { KeyPart } from "../codec/key.js";
import { printGiven } from "../codec/key-text.js";
import { now } from "../model/clock.js";
import { KvError, invalid, misuse } from "../model/errors.js";
import { DeclaredIndexes } from "./declared-indexes.js";
import { RANDOM_BYTES, ulid, uuidv7 } from "./ids.js";
import { type Validate, validatorOf } from "./schema.js";
import type { KvEntryKey, KvEntryKeyPart, KvKey } from "../model/types.js";

const OPTIONS = ["schema", "id", "version", "migrate", "indexes", "indexMode"] as const;

/** The property of a stored document that has its version, if that is above 1. */
export const VERSION = "__version";
const FIRST_VERSION = 1;

/** Makes an id. */
const MAKERS = { uuidv7, ulid } as const;

/** Characters of an id that a message has whole. */
const ID_CHARS_MAX = 100;

const PART_TYPES: ReadonlySet<string> = new Set(["string", "number", "bigint", "boolean"]);

type Fields = Record<PropertyKey, unknown>;

export interface Definition {
  readonly prefix: KvEntryKey;
  readonly validate: Validate;
  /** The id of a new document, without the schema; undefined if the document has it. */
  readonly makeId: (() => string) | undefined;
  /** The id that a document has. */
  readonly idOf: ((value: unknown) => unknown) | undefined;
  readonly version: number;
  readonly migrate: ((old: unknown, from: number) => unknown) | undefined;
  readonly indexes: DeclaredIndexes | undefined;
}

/** A document that is about to be written. */
export interface Prepared {
  readonly id: KvEntryKeyPart;
  readonly key: KvEntryKey;
  readonly value: unknown;
  readonly stored: unknown;
}

export function define(of: KvKey, options: unknown): Definition {
  if (!Array.isArray(of) || of.length === 0 || !of.every(isPart)) {
    throw invalid(
      `kv.collection: the prefix must be a key of at least one part, as ["users"]: received ${printGiven(of)}`,
    );
  }
  // Later changes of the array have no effect.
  const prefix: KvEntryKey = [...of];
  const given = checkOptions("kv.collection", options, OPTIONS);
  const { id, version = FIRST_VERSION, migrate } = given;
  if (!Number.isSafeInteger(version) || (version as number) < FIRST_VERSION) {
    throw misuse(`kv.collection: version must be a positive integer: received ${shown(version)}`);
  }
  if (migrate !== undefined && typeof migrate !== "function") {
    throw misuse(`kv.collection: migrate must be a function: received ${shown(migrate)}`);
  }
  const maker = typeof id === "string" && Object.hasOwn(MAKERS, id) ? MAKERS[id as "ulid"] : null;
  return {
    prefix,
    validate: validatorOf(given.schema),
    makeId: maker === null ? undefined : () => maker(now(), randomBytes(RANDOM_BYTES)),
    idOf: maker === null ? readerOf(id) : undefined,
    version: version as number,
    migrate: migrate as Definition["migrate"],
    indexes:
      given.indexes === undefined
        ? undefined
        : new DeclaredIndexes(prefix, given.indexes, given.indexMode ?? "sync"),
  };
}

function readerOf(id: unknown): (value: unknown) => unknown {
  if (typeof id === "function") return (value) => id(value);
  if (typeof id === "string" && id !== "") {
    return (value) => (isObject(value) ? value[id] : undefined);
  }
  throw misuse(
    'kv.collection: id must be the name of a property, "uuidv7", "ulid", or a function of the document: ' +
      `received ${shown(id)}`,
  );
}

/** The key of a document. */
export function keyOf({ prefix }: Definition, method: string, id: unknown): KvEntryKey {
  if (isPart(id)) return [...prefix, id];
  throw invalid(
    `${method}: an id must be a string, number, bigint, boolean or Uint8Array: received ${shown(id)}`,
  );
}

export function isPart(part: unknown): part is KvEntryKeyPart {
  return PART_TYPES.has(typeof part) || ArrayBuffer.isView(part);
}

/** Checks a document by the schema. `given` is the id that the caller names. */
export function prepare(
  definition: Definition,
  method: string,
  input: unknown,
  given?: unknown,
): Prepared {
  const value = definition.validate(method, input);
  const own = definition.idOf?.(value) ?? undefined;
  if (definition.idOf !== undefined && own === undefined) {
    throw invalid(`${method}: the document has no id: the schema must require it`);
  }
  const id = own ?? given ?? definition.makeId?.();
  const key = keyOf(definition, method, id);
  if (given !== undefined && bytesOf(keyOf(definition, method, given)) !== bytesOf(key)) {
    throw invalid(
      `${method}: the document has the id ${printId(id)}, and not ${printId(given)}: insert it under its own id ` +
        "and delete the other one",
    );
  }
  return { id: id as KvEntryKeyPart, key, value, stored: withVersion(definition, method, value) };
}

/** An id in a message, in which two different ones look different if they are short. */
function printId(id: unknown): string {
  const text = exactText([id as KeyPart]).slice(1, -1);
  return text.length > ID_CHARS_MAX ? shown(id) : text;
}

function withVersion({ version }: Definition, method: string, value: unknown): unknown {
  const own = isObject(value) ? value[VERSION] : undefined;
  if (typeof own === "number" || (own !== undefined && version > FIRST_VERSION)) {
    throw invalid(
      `${method}: the property ${VERSION} is the version of the document: give yours another name`,
    );
  }
  if (version === FIRST_VERSION) return value;
  if (!isObject(value)) {
    throw invalid(
      `${method}: with a version above 1 documents are objects, which can have the property ${VERSION}: ` +
        `received ${shown(value)}`,
    );
  }
  return { ...value, [VERSION]: version };
}

/** The document of a stored value, in the present version. */
export function present(definition: Definition, method: string, stored: unknown): unknown {
  const { version, migrate } = definition;
  const from = versionOf(stored);
  if (from === FIRST_VERSION && version === FIRST_VERSION) return stored;
  if (from > version) {
    const reason = `a document has version ${from} of the schema, and this program has ${version}`;
    throw new KvError("UNSUPPORTED", `${method}: ${reason}: update the program`);
  }
  const { [VERSION]: _, ...own } = stored as Fields;
  const old = isObject(stored) ? own : stored;
  if (from === version) return old;
  return definition.validate(method, migrate === undefined ? old : migrate(old, from));
}

/** The version of a stored document. */
function versionOf(stored: unknown): number {
  const version = isObject(stored) ? stored[VERSION] : undefined;
  return typeof version === "number" ? version : FIRST_VERSION;
}

/** Whether a value is an object of properties, and no Map, Date, array and so on. */
export function isObject(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
