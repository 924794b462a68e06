// Duty: the results in an outcome beside the versionstamp: UUIDs, results of calculations, and
// the outcomes of messages.

import { decodeValue } from "../codec/value/decode.js";
import { readU32 } from "../native/frame.js";
import type { KvEnqueued } from "../model/types.js";

/** Bytes of a placeholder's number, and of it with its UUID. */
const PLACEHOLDER_BYTES = 8;
const RESOLVED_BYTES = PLACEHOLDER_BYTES + 36;

/** Flags of the outcome of a message. */
const DEDUPLICATED = 1;
const HAS_ID = 2;

export interface Results {
  /** The UUIDs that were made, by the numbers of their placeholders. */
  uuids: Map<number, string> | undefined;
  values: unknown[] | undefined;
  messages: KvEnqueued[] | undefined;
  /** Their end in the frame. */
  end: number;
}

/** Reads the UUIDs of a write. */
export function readUuids(data: Buffer, start: number): Results {
  const uuids = new Map<number, string>();
  let at = start + 4;
  for (let left = readU32(data, start); left > 0; left--) {
    const text = data.toString("latin1", at + PLACEHOLDER_BYTES, at + RESOLVED_BYTES);
    uuids.set(Number(data.readBigUInt64LE(at)), text);
    at += RESOLVED_BYTES;
  }
  return {
    uuids: uuids.size > 0 ? uuids : undefined,
    values: undefined,
    messages: undefined,
    end: at,
  };
}

/** Reads all results of a write. */
export function readResults(data: Buffer, start: number): Results {
  const results = readUuids(data, start);
  readValues(data, results);
  readMessages(data, results);
  return results;
}

function readValues(data: Buffer, results: Results): void {
  let at = results.end + 4;
  const values = Array.from({ length: readU32(data, results.end) }, () => {
    const encoding = data[at];
    const valueAt = at + 5;
    at = valueAt + readU32(data, at + 1);
    return decodeValue(encoding, data, valueAt, at);
  });
  if (values.length > 0) results.values = values;
  results.end = at;
}

function readMessages(data: Buffer, results: Results): void {
  let at = results.end + 4;
  const messages = Array.from({ length: readU32(data, results.end) }, () => {
    const flags = data[at++];
    const deduplicated = (flags & DEDUPLICATED) !== 0;
    if ((flags & HAS_ID) === 0) return { id: null, deduplicated };
    at += 8;
    return { id: String(data.readDoubleLE(at - 8)), deduplicated };
  });
  if (messages.length > 0) results.messages = messages;
  results.end = at;
}
