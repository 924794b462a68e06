// Duty: the context of a message: lines in front of its encoded value (docs/format.md §2), both directions. They
// are the headers of its trace, the bound of its handlers, and the schedule that has made it.
// Never: a part of the value that a handler gets; a reason to refuse a message.

import { Buffer } from "node:buffer";
import { KEEP_RESULT } from "../model/limits.js";

/** CBOR tag 27 on an array of three items, the first of which is "Message". No value begins so. */
const HEAD = Buffer.concat([Buffer.of(0xd8, 0x1b, 0x83, 0x67), Buffer.from("Message")]);
/** First byte of a CBOR text of up to 23 bytes, and of those with a length of one and of two bytes. */
const SHORT_TEXT = 0x60;
const TEXT_U8 = 0x78;
const TEXT_U16 = 0x79;
/** Longest text with its length in the first byte. */
const SHORT_TEXT_BYTES_MAX = 23;

/** A header as it is kept: a name in lower case, and a value, of visible ASCII and spaces. */
const NAME = /^[!#-9;-@[-~]+$/;
const VALUE = /^[ -~]+$/;

/**
 * The bytes before the value of a message with these headers; null if there are none to keep. Headers
 * that are no text of HTTP are left out, and so are those for which `bytesMax` has no room.
 */
export function contextBytes(
  headers: Readonly<Record<string, unknown>>,
  bytesMax: number,
): Buffer | null {
  let text = "";
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string" || !NAME.test(name)) continue;
    if (!VALUE.test(value) && name !== GROUP) continue;
    const line = `${text === "" ? "" : "\n"}${name}: ${value}`;
    if (Buffer.byteLength(text) + Buffer.byteLength(line) <= bytesMax) text += line;
  }
  const length = Buffer.byteLength(text);
  if (length === 0) return null;
  const head =
    length <= SHORT_TEXT_BYTES_MAX
      ? [SHORT_TEXT | length]
      : length <= 0xff
        ? [TEXT_U8, length]
        : [TEXT_U16, length >> 8, length & 0xff];
  return Buffer.concat([HEAD, Buffer.from(head), Buffer.from(text)]);
}

/** The names of the lines that are openkv's own. */
const TIMEOUT = "openkv-timeout";
const SCHEDULE = "openkv-schedule";
const DUE = "openkv-due";
const DELAY = "openkv-delay";
const GROUP = "openkv-group";
const AGAIN = "openkv-again";

/** The lines that say its group, how long a handler may take, and how long the result of a message is kept. */
export function ownHeaders(
  timeoutMs?: number,
  keepResultMs?: number,
  group?: string,
): Record<string, string> {
  return {
    ...(group !== undefined && { [GROUP]: group }),
    ...(timeoutMs !== undefined && { [TIMEOUT]: String(timeoutMs) }),
    ...(keepResultMs !== undefined && { [KEEP_RESULT]: String(keepResultMs) }),
  };
}

/** What openkv itself says about the message `data[start..end)`. */
export interface OwnContext {
  /** The longest time of a handler. */
  readonly timeoutMs: number | undefined;
  /** How long its result is kept. */
  readonly keepResultMs: number | undefined;
  readonly group: string | null;
  /** The schedule that has made it, and for which due time. */
  readonly schedule: { readonly name: string; readonly dueAt: Date } | null;
}

const NOTHING: OwnContext = {
  timeoutMs: undefined,
  keepResultMs: undefined,
  group: null,
  schedule: null,
};

export function ownContext(data: Buffer, start: number, end: number): OwnContext {
  if (valueStart(data, start, end) === start) return NOTHING;
  const lines = linesIn(data, start, end);
  const { [SCHEDULE]: name, [DUE]: due } = lines;
  const dueMs = Number(due);
  const ms = (name: string) => (Number(lines[name]) > 0 ? Number(lines[name]) : undefined);
  return {
    timeoutMs: ms(TIMEOUT),
    keepResultMs: ms(KEEP_RESULT),
    group: lines[GROUP] ?? null,
    schedule:
      name !== undefined && Number.isFinite(dueMs) ? { name, dueAt: new Date(dueMs) } : null,
  };
}

/** Where the value of the message `data[start..end)` begins. */
export function valueStart(data: Buffer, start: number, end: number): number {
  return end - start > HEAD.length && data[start] === HEAD[0] ? behind(data, start, end) : start;
}

/** The headers of the message `data[start..end)`, without openkv's own lines. */
export function headersIn(data: Buffer, start: number, end: number): Record<string, string> {
  const headers = linesIn(data, start, end);
  for (const name of [TIMEOUT, SCHEDULE, DUE, DELAY, KEEP_RESULT, GROUP, AGAIN])
    delete headers[name];
  return headers;
}

function linesIn(data: Buffer, start: number, end: number): Record<string, string> {
  const valueAt = valueStart(data, start, end);
  const headers: Record<string, string> = {};
  if (valueAt === start) return headers;
  const text = data.toString("utf8", textAt(data, start + HEAD.length), valueAt);
  for (const line of text.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) headers[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return headers;
}

/** Where the text with its head at `at` begins. */
function textAt(data: Buffer, at: number): number {
  return at + (data[at] === TEXT_U8 ? 2 : data[at] === TEXT_U16 ? 3 : 1);
}

/** The length of the text with its head at `at`; 0 if that is no text, or its length not in the shortest form. */
function lengthAt(data: Buffer, at: number): number {
  const first = data[at];
  if (first === TEXT_U8) return data[at + 1] > SHORT_TEXT_BYTES_MAX ? data[at + 1] : 0;
  if (first === TEXT_U16) return data[at + 1] > 0 ? data.readUInt16BE(at + 1) : 0;
  const length = first - SHORT_TEXT;
  return length <= SHORT_TEXT_BYTES_MAX ? length : 0;
}

/** Where the value behind a context begins; `start` if there is no context. */
function behind(data: Buffer, start: number, end: number): number {
  const at = start + HEAD.length;
  if (HEAD.compare(data, start, at) !== 0) return start;
  const text = textAt(data, at);
  if (text > end) return start;
  const length = lengthAt(data, at);
  return length > 0 && text + length <= end ? text + length : start;
}
