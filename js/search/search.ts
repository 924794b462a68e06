// Duty: search: turns the query and its options into a frame, and the hits into entries.

import { invalid, tooLarge } from "../model/errors.js";
import { checkOptions, shown } from "../arguments/check.js";
import { call } from "../session/call.js";
import { decodeKey, encodeKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { Writer } from "../codec/writer.js";
import { readStamp, readU32 } from "../native/frame.js";
import { CALL_SEARCH, STAMP_BYTES } from "../native/contract.js";
import { boundsOf } from "../read/range.js";
import type { Session } from "../session/session.js";
import type { KvKey, KvSearchEntry, KvSearchOptions, KvSearchResult } from "../model/types.js";
import { encodeWhere } from "../read/where.js";

const OPTIONS = ["limit", "offset", "cursor", "where", "highlight", "signal"] as const;
const HIGHLIGHT_OPTIONS = ["before", "after", "ellipsis", "terms"] as const;

/** The largest number of a frame. Rust checks the bounds (crates/core/src/model/limits.rs). */
const U8_MAX = 0xff;
const U32_MAX = 0xffff_ffff;

const LIMIT_DEFAULT = 20;
const HIGHLIGHT_TERMS_DEFAULT = 32;

/** Flags of a search, and of its answer. */
const AFTER = 1;
const HIGHLIGHT = 2;
const WHERE = 4;
const MORE = 1;
const COMPLETE = 2;

/** Bytes of a score and a number: the start of the next page. */
const CURSOR_BYTES = 16;
/** Bytes of an answer before its hits: their number, flags, and the place of the last one. */
const HEAD_BYTES = 5 + CURSOR_BYTES;

export async function search(
  session: Session,
  prefix: KvKey,
  query: string,
  options: KvSearchOptions | undefined,
  signal?: AbortSignal,
): Promise<KvSearchResult<unknown>> {
  const frame = requestOf(session, prefix, query, options);
  session.requireOpen();
  const bounds = boundsOf({ prefix, start: undefined, end: undefined }, Number.POSITIVE_INFINITY);
  const before = session.order.beforeRange(bounds.start, bounds.end);
  if (before !== null) await before;
  return resultOf(await call(session, session.readCommand(CALL_SEARCH), frame, signal));
}

function requestOf(session: Session, prefix: KvKey, query: unknown, options: unknown): Writer {
  const given = checkOptions("kv.search", options, OPTIONS);
  const limit = wholeNumber("limit", given.limit, 1, U32_MAX) ?? LIMIT_DEFAULT;
  const offset = wholeNumber("offset", given.offset, 0, U32_MAX) ?? 0;
  const cursor = cursorBytes(given.cursor);
  if (cursor !== null && given.offset !== undefined) {
    throw invalid("kv.search: offset and cursor exclude each other: give one of them");
  }
  const marks = checkHighlight(given.highlight);
  const where = encodeWhere("kv.search", given.where);
  if (typeof query !== "string") {
    throw invalid(`kv.search: query must be a string: received ${shown(query)}`);
  }
  const frame = new Writer();
  const flags = [cursor === null ? 0 : AFTER, marks === null ? 0 : HIGHLIGHT];
  frame.u8(flags[0] | flags[1] | (where === null ? 0 : WHERE));
  frame.u32(limit);
  frame.u32(offset);
  if (cursor !== null) frame.bytes(cursor);
  putPrefix(session, frame, "kv.search", prefix);
  putText(frame, query);
  if (marks !== null) {
    frame.u8(marks.terms);
    putText(frame, marks.before);
    putText(frame, marks.after);
    putText(frame, marks.ellipsis);
  }
  if (where !== null) {
    frame.u32(where.length);
    frame.bytes(where);
  }
  return frame;
}

function wholeNumber(name: string, given: unknown, least: number, most: number): number | null {
  if (given === undefined) return null;
  if (typeof given === "number" && Number.isInteger(given) && given >= least && given <= most) {
    return given;
  }
  throw invalid(`kv.search: ${name} must be an integer from ${least}: received ${shown(given)}`);
}

function cursorBytes(cursor: unknown): Buffer | null {
  if (cursor === undefined || cursor === null || cursor === "") return null;
  if (typeof cursor === "string") {
    const bytes = Buffer.from(cursor, "base64url");
    if (bytes.length === CURSOR_BYTES && bytes.toString("base64url") === cursor) return bytes;
  }
  throw invalid(`kv.search: cursor must be that of an earlier result: received ${shown(cursor)}`);
}

interface Marks {
  before: string;
  after: string;
  ellipsis: string;
  terms: number;
}

function checkHighlight(given: unknown): Marks | null {
  if (given === undefined || given === false) return null;
  const options = given === true ? {} : given;
  if (typeof options !== "object" || options === null) {
    throw invalid(`kv.search: highlight must be a boolean or an object: received ${shown(given)}`);
  }
  const marks = checkOptions("kv.search: highlight", options, HIGHLIGHT_OPTIONS);
  const mark = (name: (typeof HIGHLIGHT_OPTIONS)[number], standard: string): string => {
    const text = marks[name];
    if (text === undefined) return standard;
    if (typeof text === "string") return text;
    throw invalid(`kv.search: highlight.${name} must be a string: received ${shown(text)}`);
  };
  return {
    before: mark("before", "<b>"),
    after: mark("after", "</b>"),
    ellipsis: mark("ellipsis", "…"),
    terms: wholeNumber("highlight.terms", marks.terms, 1, U8_MAX) ?? HIGHLIGHT_TERMS_DEFAULT,
  };
}

/** A key prefix with its length. */
export function putPrefix(session: Session, frame: Writer, method: string, prefix: unknown): void {
  if (!Array.isArray(prefix)) {
    throw invalid(`${method}: prefix must be an array: received ${shown(prefix)}`);
  }
  const at = frame.pos;
  frame.u32(0);
  encodeKey(frame, prefix as KvKey);
  const length = frame.pos - at - 4;
  const most = session.limits.keyBytesMax;
  if (length > most) {
    throw tooLarge(`${method}: prefix too large (max ${most} bytes): ${length} bytes given`);
  }
  frame.patchU32(at, length);
}

/** A text with its length, in UTF-8; lone surrogates become U+FFFD. */
export function putText(frame: Writer, text: string): void {
  const bytes = Buffer.from(text, "utf8");
  frame.u32(bytes.length);
  frame.bytes(bytes);
}

function resultOf(answer: Buffer): KvSearchResult<unknown> {
  const count = readU32(answer, 0);
  const flags = answer[4];
  const reader = new Sized(answer, HEAD_BYTES);
  const hits: [KvSearchEntry<unknown>, [number, string][]][] = [];
  for (let i = 0; i < count; i++) hits.push(hitOf(reader));
  const fields = Array.from({ length: reader.u32() }, () => reader.text());
  const entries = hits.map(([entry, snippets]) => {
    if (fields.length === 0) return entry;
    const named = snippets.map(([field, text]) => [fields[field], text] as const);
    return { ...entry, highlights: Object.fromEntries(named) };
  });
  const hasMore = (flags & MORE) !== 0;
  const cursor = hasMore ? answer.toString("base64url", 5, HEAD_BYTES) : null;
  return { entries, cursor, hasMore, complete: (flags & COMPLETE) !== 0 };
}

function hitOf(reader: Sized): [KvSearchEntry<unknown>, [number, string][]] {
  const { buf } = reader;
  const [keyStart, keyEnd] = reader.span();
  const versionstamp = readStamp(buf, keyEnd);
  const encoding = buf[keyEnd + STAMP_BYTES];
  reader.at = keyEnd + STAMP_BYTES + 1;
  const [start, end] = reader.span();
  const score = buf.readDoubleLE(reader.at);
  const snippets = buf.readUInt16LE(reader.at + 8);
  reader.at += 10;
  const marked = Array.from({ length: snippets }, (): [number, string] => {
    const field = buf.readUInt16LE(reader.at);
    reader.at += 2;
    return [field, reader.text()];
  });
  const key = decodeKey(buf, keyStart, keyEnd);
  const value = decodeValue(encoding, buf, start, end);
  return [{ key, value, versionstamp, score }, marked];
}

/** Reads the parts of an answer, each behind its length. */
export class Sized {
  constructor(
    readonly buf: Buffer,
    public at = 0,
  ) {}

  u32(): number {
    this.at += 4;
    return readU32(this.buf, this.at - 4);
  }

  span(): [number, number] {
    const length = this.u32();
    this.at += length;
    return [this.at - length, this.at];
  }

  text(): string {
    const [start, end] = this.span();
    return this.buf.toString("utf8", start, end);
  }
}
