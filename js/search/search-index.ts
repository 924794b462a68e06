// Duty: full-text indexes: creates them; lists and drops those of both types.

import { checkOptions, shown } from "../arguments/check.js";
import { option } from "../arguments/options.js";
import { call } from "../session/call.js";
import { decodeKey } from "../codec/key.js";
import { exactText } from "../codec/key-bytes.js";
import { Writer } from "../codec/writer.js";
import { KvError, invalid } from "../model/errors.js";
import { CALL_CREATE_INDEX, CALL_DROP_INDEX, CALL_LIST_INDEXES } from "../native/contract.js";
import { Building } from "./building.js";
import { createValueIndex, listValueIndexes } from "./value-index.js";
import { Sized, putPrefix, putText } from "./search.js";
import { NativePromise } from "../model/native-promise.js";
import type { Session } from "../session/session.js";
import { signalled } from "../arguments/signal.js";
import type {
  KvCallOptions,
  KvEntryKey,
  KvIndex,
  KvIndexInfo,
  KvIndexOptions,
  KvIndexProgress,
  KvKey,
  KvValueIndex,
  KvValueIndexInfo,
  KvValueIndexOptions,
} from "../model/types.js";

const OPTIONS = [
  "type",
  "prefix",
  "fields",
  "tokenize",
  "prefixLengths",
  "name",
  "replace",
  "signal",
] as const;

/** By their numbers in frames. */
const TOKENIZERS = ["unicode61", "porter", "ascii", "trigram", "auto"] as const;
/** The number of no tokenizer: that of a new index is "auto". */
const NO_TOKENIZER = 255;

const BY_PREFIX = 0;
const BY_NAME = 1;

export async function createIndex(
  session: Session,
  options: KvIndexOptions | KvValueIndexOptions,
): Promise<KvIndex | KvValueIndex> {
  // The check of all options refuses what is no object.
  const type =
    typeof options === "object" && options !== null ? option(options, "type") : undefined;
  if (type === "value") return createValueIndex(session, options as KvValueIndexOptions);
  if (type !== undefined && type !== "fulltext") {
    throw invalid(`kv.createIndex: type must be "fulltext" or "value": received ${shown(type)}`);
  }
  const frame = new Writer();
  const given = checkOptions("kv.createIndex", options, OPTIONS);
  const tokenizer =
    given.tokenize === undefined
      ? NO_TOKENIZER
      : TOKENIZERS.indexOf(given.tokenize as (typeof TOKENIZERS)[number]);
  if (tokenizer < 0) {
    const known = TOKENIZERS.join(", ");
    throw invalid(
      `kv.createIndex: tokenize must be one of ${known}: received ${shown(given.tokenize)}`,
    );
  }
  if (given.name !== undefined && typeof given.name !== "string") {
    throw invalid(`kv.createIndex: name must be a string: received ${shown(given.name)}`);
  }
  if (given.replace !== undefined && typeof given.replace !== "boolean") {
    throw invalid(`kv.createIndex: replace must be a boolean: received ${shown(given.replace)}`);
  }
  frame.u8(given.replace === true ? 1 : 0);
  const rest = new Writer();
  putPrefix(session, rest, "kv.createIndex", given.prefix);
  const fields = listOf("fields", given.fields, "string") as string[];
  const lengths = listOf("prefixLengths", given.prefixLengths ?? [], "number") as number[];
  putText(frame, given.name ?? exactText(decodeKey(rest.buf, 4, rest.pos)));
  frame.bytes(rest.buf.subarray(0, rest.pos));
  frame.u8(tokenizer);
  // A number that does not fit is out of bounds; Rust reports it.
  frame.u8(Math.min(lengths.length, 255));
  for (const length of lengths.slice(0, 255)) {
    frame.u8(Number.isInteger(length) && length >= 0 && length <= 255 ? length : 0);
  }
  frame.u16(Math.min(fields.length, 65_535));
  for (const field of fields.slice(0, 65_535)) putText(frame, field);
  const [info] = infosOf(await call(session, CALL_CREATE_INDEX, frame));
  return new OpenIndex(session, info);
}

function listOf(name: string, given: unknown, type: "string" | "number"): unknown[] {
  if (!Array.isArray(given)) {
    throw invalid(`kv.createIndex: ${name} must be an array: received ${shown(given)}`);
  }
  given.forEach((item: unknown, at) => {
    if (typeof item === type) return;
    throw invalid(`kv.createIndex: ${name}[${at}] must be a ${type}: received ${shown(item)}`);
  });
  return given;
}

export async function listIndexes(
  session: Session,
  signal?: AbortSignal,
): Promise<(KvIndexInfo | KvValueIndexInfo)[]> {
  const values = listValueIndexes(session, signal).catch((error: unknown) => {
    // An older server has none.
    if (error instanceof KvError && error.code === "UNSUPPORTED") return [];
    throw error;
  });
  const [texts, others] = await NativePromise.all([list(session, true, signal), values]);
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  return [...infosOf(texts), ...others].sort(byName);
}

function list(session: Session, counted: boolean, signal?: AbortSignal): Promise<Buffer> {
  const frame = new Writer(1);
  frame.u8(counted ? 1 : 0);
  return call(session, CALL_LIST_INDEXES, frame, signal);
}

export async function dropIndex(session: Session, prefix: KvKey | string): Promise<boolean> {
  const frame = new Writer();
  if (typeof prefix === "string") {
    frame.u8(BY_NAME);
    putText(frame, prefix);
  } else {
    if (!Array.isArray(prefix)) {
      throw invalid(`kv.dropIndex: expected a prefix or a name: received ${shown(prefix)}`);
    }
    frame.u8(BY_PREFIX);
    putPrefix(session, frame, "kv.dropIndex", prefix);
  }
  return (await call(session, CALL_DROP_INDEX, frame))[0] === 1;
}

function infosOf(answer: Buffer): KvIndexInfo[] {
  const reader = new Sized(answer);
  return Array.from({ length: reader.u32() }, () => {
    const name = reader.text();
    const prefix = decodeKey(answer, ...reader.span());
    const tokenize = reader.text() as KvIndexInfo["tokenize"];
    const prefixLengths = Array.from(answer.subarray(...reader.span()));
    const fields = Array.from({ length: reader.u32() }, () => reader.text());
    const state = answer[reader.at] === 1 ? "building" : "ready";
    const indexed = answer.readDoubleLE(reader.at + 1);
    const documents = answer.readDoubleLE(reader.at + 9);
    reader.at += 17;
    const type = "fulltext";
    return { type, name, prefix, fields, tokenize, prefixLengths, state, indexed, documents };
  });
}

/** The result of `createIndex`. */
class OpenIndex implements KvIndex {
  readonly name: string;
  readonly prefix: KvEntryKey;
  readonly fields: readonly string[];
  readonly tokenize: KvIndexInfo["tokenize"];
  readonly prefixLengths: readonly number[];
  readonly type = "fulltext";
  state: KvIndexInfo["state"];
  readonly #building: Building<KvIndexInfo>;

  constructor(session: Session, info: KvIndexInfo) {
    this.name = info.name;
    this.prefix = info.prefix;
    this.fields = info.fields;
    this.tokenize = info.tokenize;
    this.prefixLengths = info.prefixLengths;
    this.state = info.state;
    const look = async () => infosOf(await list(session, false));
    this.#building = new Building(session, this, info, look);
  }

  get progress(): AsyncIterableIterator<KvIndexProgress> {
    return this.#building.progress();
  }

  ready(options?: KvCallOptions): Promise<void> {
    return signalled("index.ready", options, (signal) => this.#building.ready(signal));
  }
}
