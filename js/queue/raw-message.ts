// Duty: a message as it crosses from the addon, as handlers get it, and the reason of a failure as
// it crosses back.

import { decodeValue } from "../codec/value/decode.js";
import { ownContext, valueStart } from "../codec/message-context.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import type { Writer } from "../codec/writer.js";
import { putText, readU32 } from "../native/frame.js";
import { isError } from "../model/brands.js";

/** Bytes of a message before its value: id, time, attempts, attempts left, the value's length. */
const MESSAGE_HEAD_BYTES = 28;

/** A message as it crosses; its value is `data[start..end)`. */
export interface RawMessage {
  readonly id: number;
  readonly enqueuedMs: number;
  readonly attempts: number;
  readonly attemptsLeft: number;
  readonly data: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Reads the message at `at`. */
export function readMessage(data: Buffer, at: number): RawMessage {
  const start = at + MESSAGE_HEAD_BYTES;
  return {
    id: data.readDoubleLE(at),
    enqueuedMs: data.readDoubleLE(at + 8),
    attempts: readU32(data, at + 16),
    attemptsLeft: readU32(data, at + 20),
    data,
    start,
    end: start + readU32(data, at + 24),
  };
}

/** The value of a message. */
export function messageValue({ data, start, end }: RawMessage): unknown {
  return decodeValue(ENCODING_CBOR, data, valueStart(data, start, end), end);
}

/** The name and the text of an error. Rust shortens a long text. */
export function putReason(writer: Writer, error: unknown): void {
  const { name, message } = reasonOf(error);
  putText(writer, name);
  putText(writer, message);
}

function reasonOf(error: unknown): { name: string; message: string } {
  try {
    if (isError(error)) return { name: String(error.name), message: String(error.message) };
    return { name: typeof error, message: String(error) };
  } catch {
    return { name: "Error", message: "an error that cannot be read" };
  }
}

/** A message as handlers get it. */
export interface MessageInfo {
  readonly id: string;
  readonly value: any;
  readonly attempts: number;
  readonly attemptsLeft: number;
  readonly enqueuedAt: Date;
  readonly group: string | null;
  readonly schedule: { readonly name: string; readonly dueAt: Date } | null;
}

export function infoOf(raw: RawMessage): MessageInfo {
  const { group, schedule } = ownContext(raw.data, raw.start, raw.end);
  return {
    id: String(raw.id),
    value: messageValue(raw),
    attempts: raw.attempts,
    attemptsLeft: raw.attemptsLeft,
    enqueuedAt: new Date(raw.enqueuedMs),
    group,
    schedule,
  };
}
