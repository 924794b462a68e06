// Duty: value indexes: creates and lists them, and reports the progress of building one.

import { checkOptions, shown } from "../arguments/check.js";
import { type KeyPart, decodeKey } from "../codec/key.js";
import { exactText } from "../codec/key-bytes.js";
import { printKey } from "../codec/key-text.js";
import { Writer } from "../codec/writer.js";
import { KvError, invalid } from "../model/errors.js";
import { CALL_CREATE_VALUE_INDEX, CALL_LIST_VALUE_INDEXES } from "../native/contract.js";
import { checkPath, putPaths } from "../read/order.js";
import { call } from "../session/call.js";
import { notUnique } from "../session/violations.js";
import type { Session } from "../session/session.js";
import type {
  KvCallOptions,
  KvEntryKey,
  KvIndexPath,
  KvIndexProgress,
  KvValueIndex,
  KvValueIndexInfo,
  KvValueIndexOptions,
} from "../model/types.js";
import { signalled } from "../arguments/signal.js";
import { Building } from "./building.js";
import { Sized, putPrefix, putText } from "./search.js";

const OPTIONS = [
  "type",
  "prefix",
  "on",
  "unique",
  "multi",
  "sparse",
  "name",
  "replace",
  "signal",
] as const;

/** Flags of a definition. */
const UNIQUE = 1;
const MULTI = 2;
const SPARSE = 4;
const REPLACE = 8;

const STATES = ["ready", "building", "failed"] as const;
const FAILED = 2;

export async function createValueIndex(
  session: Session,
  options: KvValueIndexOptions,
): Promise<KvValueIndex> {
  const given = checkOptions("kv.createIndex", options, OPTIONS);
  for (const name of ["unique", "multi", "sparse", "replace"] as const) {
    if (given[name] !== undefined && typeof given[name] !== "boolean") {
      throw invalid(`kv.createIndex: ${name} must be a boolean: received ${shown(given[name])}`);
    }
  }
  if (given.name !== undefined && typeof given.name !== "string") {
    throw invalid(`kv.createIndex: name must be a string: received ${shown(given.name)}`);
  }
  const on = Array.isArray(given.on) ? (given.on as unknown[]) : [given.on];
  const paths = on.map((path) => checkPath("kv.createIndex: on", path));
  const frame = new Writer();
  frame.u8(
    (given.unique === true ? UNIQUE : 0) |
      (given.multi === true ? MULTI : 0) |
      (given.sparse === true ? SPARSE : 0) |
      (given.replace === true ? REPLACE : 0),
  );
  const rest = new Writer();
  putPrefix(session, rest, "kv.createIndex", given.prefix);
  putText(frame, given.name ?? nameOf(decodeKey(rest.buf, 4, rest.pos), paths));
  frame.bytes(rest.buf.subarray(0, rest.pos));
  putPaths(frame, paths);
  const [info] = infosOf(await call(session, CALL_CREATE_VALUE_INDEX, frame));
  return new OpenValueIndex(session, info);
}

/** The default name: that of the prefix, and the paths. */
function nameOf(prefix: readonly KeyPart[], paths: readonly KvIndexPath[]): string {
  const spelled = paths.map(({ path, order }) => (order === "desc" ? `-${path}` : path));
  return `${exactText(prefix)} by ${spelled.join(", ")}`;
}

export async function listValueIndexes(
  session: Session,
  signal?: AbortSignal,
): Promise<KvValueIndexInfo[]> {
  return infosOf(await call(session, CALL_LIST_VALUE_INDEXES, new Writer(1), signal));
}

function infosOf(answer: Buffer): KvValueIndexInfo[] {
  const reader = new Sized(answer);
  const byte = () => answer[reader.at++];
  return Array.from({ length: reader.u32() }, () => {
    const flags = byte();
    const name = reader.text();
    const prefix = decodeKey(answer, ...reader.span());
    const on = Array.from({ length: reader.u32() }, () => {
      const order = byte() === 1 ? "desc" : "asc";
      return { path: reader.text(), order } as const;
    });
    const indexed = answer.readDoubleLE(reader.at + 8);
    reader.at += 16;
    const state = byte();
    let failure: KvValueIndexInfo["failure"] = null;
    if (state === FAILED) {
      const key = decodeKey(answer, ...reader.span());
      failure = { key, other: byte() === 1 ? decodeKey(answer, ...reader.span()) : null };
    }
    return {
      type: "value",
      name,
      prefix,
      on,
      unique: (flags & UNIQUE) !== 0,
      multi: (flags & MULTI) !== 0,
      sparse: (flags & SPARSE) !== 0,
      state: STATES[state],
      indexed,
      failure,
    };
  });
}

/** The result of `createIndex` with `type: "value"`. */
class OpenValueIndex implements KvValueIndex {
  readonly type = "value";
  readonly name: string;
  readonly prefix: KvEntryKey;
  readonly on: readonly KvIndexPath[];
  readonly unique: boolean;
  readonly multi: boolean;
  readonly sparse: boolean;
  state: KvValueIndexInfo["state"];
  readonly #session: Session;
  readonly #building: Building<KvValueIndexInfo>;

  constructor(session: Session, info: KvValueIndexInfo) {
    this.name = info.name;
    this.prefix = info.prefix;
    this.on = info.on;
    this.unique = info.unique;
    this.multi = info.multi;
    this.sparse = info.sparse;
    this.#session = session;
    this.state = info.state;
    this.#building = new Building(session, this, info, () => listValueIndexes(session));
  }

  get progress(): AsyncIterableIterator<KvIndexProgress> {
    return this.#reportProgress();
  }

  async *#reportProgress(): AsyncGenerator<KvIndexProgress, void, undefined> {
    for await (const progress of this.#building.progress()) {
      if (progress.done) this.#requireReady();
      yield progress;
    }
  }

  ready(options?: KvCallOptions): Promise<void> {
    return signalled("index.ready", options, async (signal) => {
      await this.#building.ready(signal);
      if (!signal?.aborted) this.#requireReady();
    });
  }

  #requireReady(): void {
    this.#session.requireOpen();
    const { failure, name } = this.#building.info;
    if (failure === null) return;
    const { key, other } = failure;
    if (other !== null) throw notUnique([{ index: name, key, other }]);
    throw new KvError(
      "UNIQUE",
      `the unique index '${name}' could not be built: ${printKey(key)} has a value that cannot be unique ` +
        "(several values, an object, or more than 1024 bytes): change it, drop the index, and create it again",
    );
  }
}
