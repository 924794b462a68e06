// Duty: how an AtomicOperation prints: one line per record, read back from the encoded bytes, so
// that it shows what would be written and not what the arguments have become since.

import { inspect } from "node:util";
import { BACKOFF_DEFAULT_MS } from "./check.js";
import { decodeKey } from "./codec/key.js";
import { decodeValue } from "./codec/value/decode.js";
import { ENCODING_CBOR } from "./codec/value/tags.js";
import { readStamp, readU32 } from "./frame.js";
import {
  APPEND_EXPIRES,
  CALCULATE_EXPIRES,
  EXPIRES,
  OP_APPEND,
  OP_CALCULATE,
  OP_CHECK,
  OP_DELETE,
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
  OP_MAX,
  OP_MIN,
  OP_RETIME,
  OP_SET,
  OP_SUM,
  STAMP_BYTES,
  SUFFIXED,
} from "./native.js";
import { COMMIT_VERSIONSTAMP } from "./records.js";
import { NAMED_BACKOFF_DEFAULT_MS } from "./queue-options.js";
import type { Segment } from "./segment.js";

/** Prints one value with the options of the caller. */
type Print = (value: unknown) => string;

const NAMES: Record<number, string> = {
  [OP_SET]: "set",
  [OP_DELETE]: "delete",
  [OP_SUM]: "sum",
  [OP_MIN]: "min",
  [OP_MAX]: "max",
};

/** The method under the names that Node, Bun and Deno ask for. */
export const INSPECT_NAMES = [
  Symbol.for("nodejs.util.inspect.custom"),
  Symbol.for("Deno.customInspect"),
];

/** The printer in the arguments: Node gives (depth, options, inspect), Deno (inspect, options). */
export function printerOf(first: unknown, second: unknown, third: unknown): Print {
  const given = typeof third === "function" ? third : typeof first === "function" ? first : inspect;
  return (value) => String((given as typeof inspect)(value, second as object));
}

export function inspectOperation(segments: readonly Segment[], print: Print): string {
  if (segments.length === 0) return "AtomicOperation (empty)";
  const lines = segments.map((segment) => `  ${describe(segment, print)}`);
  return `AtomicOperation\n${lines.join("\n")}`;
}

function describe(segment: Segment, print: Print): string {
  const reader = new Reader(segment);
  const op = reader.u8();
  if (op === OP_CHECK) {
    const versionstamp = reader.u8() === 1 ? reader.stamp() : null;
    return `check({ key: ${print(reader.key())}, versionstamp: ${print(versionstamp)} })`;
  }
  if (op === OP_ENQUEUE) return describeMessage(reader, segment, print, false);
  if (op === OP_ENQUEUE_NAMED) return describeMessage(reader, segment, print, true);
  if (op === OP_CALCULATE) return describeCalculation(reader, segment, print);
  if (op === OP_APPEND) return describeAppend(reader, segment, print);
  if (op === OP_RETIME) return describeRetime(reader, segment, print);
  const flags = op === OP_SET ? reader.u8() : 0;
  const end = flags & EXPIRES ? describeEnd(reader, segment) : undefined;
  const key = reader.key();
  if (flags & SUFFIXED) key.push(COMMIT_VERSIONSTAMP);
  const shown = [print(key)];
  if (op !== OP_DELETE) shown.push(reader.value(reader.u8(), print));
  if (end !== undefined) shown.push(`{ ${end} }`);
  return `${NAMES[op]}(${shown.join(", ")})`;
}

/** The time of a record's end is what it waits, if the commit fills it in. */
function describeEnd(reader: Reader, { afterMs }: Segment): string {
  const time = reader.f64();
  return afterMs === undefined ? `expireAt: ${time}` : `expireIn: ${afterMs}`;
}

function describeCalculation(reader: Reader, segment: Segment, print: Print): string {
  const method = ["sum", "min", "max"][reader.u8()];
  const flags = reader.u8();
  const end = flags & CALCULATE_EXPIRES ? [describeEnd(reader, segment)] : [];
  const shown = [print(reader.key()), reader.value(reader.u8(), print)];
  const options: string[] = [];
  if (flags & 1) options.push(`min: ${reader.value(reader.u8(), print)}`);
  if (flags & 2) options.push(`max: ${reader.value(reader.u8(), print)}`);
  if (flags & 4) options.push("clamp: true");
  options.push(...end);
  if (options.length > 0) shown.push(`{ ${options.join(", ")} }`);
  return `${method}(${shown.join(", ")})`;
}

function describeAppend(reader: Reader, segment: Segment, print: Print): string {
  const flags = reader.u8();
  const end = flags & APPEND_EXPIRES ? `, { ${describeEnd(reader, segment)} }` : "";
  const method = flags & 1 ? "prepend" : "append";
  return `${method}(${print(reader.key())}, ${reader.value(ENCODING_CBOR, print)}${end})`;
}

function describeRetime(reader: Reader, segment: Segment, print: Print): string {
  if (!(reader.u8() & EXPIRES)) return `persist(${print(reader.key())})`;
  const end = describeEnd(reader, segment);
  return `touch(${print(reader.key())}, { ${end} })`;
}

function describeMessage(
  reader: Reader,
  { afterMs }: Segment,
  print: Print,
  named: boolean,
): string {
  const dueAt = reader.f64();
  const backoff = Array.from({ length: reader.u8() }, () => reader.u32());
  const keys = Array.from({ length: reader.u16() }, () => reader.key());
  const options = named ? describeNamed(reader, print) : [];
  const shown = [reader.value(ENCODING_CBOR, print)];
  if (afterMs) options.push(`delay: ${afterMs}`);
  if (afterMs === undefined) options.push(`at: ${dueAt}`);
  if (keys.length > 0) options.push(`keysIfUndelivered: ${print(keys)}`);
  const otherwise = named ? NAMED_BACKOFF_DEFAULT_MS : BACKOFF_DEFAULT_MS;
  if (String(backoff) !== String(otherwise)) options.push(`backoffSchedule: ${print(backoff)}`);
  if (options.length > 0) shown.push(`{ ${options.join(", ")} }`);
  return `enqueue(${shown.join(", ")})`;
}

function describeNamed(reader: Reader, print: Print): string[] {
  const priority = reader.u8();
  const deadRetention = reader.f64();
  const options = [`queue: ${print(reader.text())}`];
  if (reader.u8() === 1) options.push(`deduplicationKey: ${print(reader.text())}`);
  if (priority > 0) options.push(`priority: ${priority}`);
  if (deadRetention >= 0) options.push(`deadRetention: ${deadRetention}`);
  return options;
}

class Reader {
  readonly #segment: Segment;
  #at: number;

  constructor(segment: Segment) {
    this.#segment = segment;
    this.#at = segment.start;
  }

  skip(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    return at;
  }

  u8(): number {
    return this.#segment.buf[this.skip(1)];
  }

  u16(): number {
    return this.#segment.buf.readUInt16LE(this.skip(2));
  }

  u32(): number {
    return readU32(this.#segment.buf, this.skip(4));
  }

  f64(): number {
    return this.#segment.buf.readDoubleLE(this.skip(8));
  }

  text(): string {
    const length = this.u32();
    const start = this.skip(length);
    return this.#segment.buf.toString("utf8", start, start + length);
  }

  stamp(): string {
    return readStamp(this.#segment.buf, this.skip(STAMP_BYTES));
  }

  key(): unknown[] {
    const length = this.u32();
    const start = this.skip(length);
    return decodeKey(this.#segment.buf, start, start + length);
  }

  value(encoding: number, print: Print): string {
    if (this.#segment.fills !== null) return "[value with a Blob]";
    const length = this.u32();
    const start = this.skip(length);
    return print(decodeValue(encoding, this.#segment.buf, start, start + length));
  }
}
