// Duty: prints an AtomicOperation: one line per record, decoded from the encoded bytes, so that it
// shows the pending write and not later changes of the arguments.

import { inspect } from "node:util";
import { decodeKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import {
  APPEND_EXPIRES,
  APPEND_FRONT,
  CALCULATE_CLAMP,
  CALCULATE_EXPIRES,
  EXPIRES,
  OP_ACKNOWLEDGE,
  OP_APPEND,
  OP_CALCULATE,
  OP_CHECK,
  OP_CHECK_FOUND,
  OP_CHECK_ORDER,
  OP_CHECK_RANGE,
  OP_DEDUPLICATE,
  OP_SCHEDULE,
  OP_UNSCHEDULE,
  OP_DELETE,
  OP_END,
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
  OP_LIMIT,
  OP_MAX,
  OP_MIN,
  OP_PATCHES,
  OP_SET_EXPIRY,
  OP_SET,
  OP_SUM,
  OP_RETURN,
  OP_WRITE_ID,
  SUFFIXED,
} from "../native/contract.js";
import { DEDUPLICATIONS } from "../queue/queue-options.js";
import { readStamp, readU32 } from "../native/frame.js";
import { RecordLayout } from "../records/layout.js";
import { COMMIT_VERSIONSTAMP } from "../records/records.js";
import type { Segment } from "../write/segment.js";
import { BACKOFF_DEFAULT_MS, NAMED_BACKOFF_DEFAULT_MS } from "../model/limits.js";

/** Prints one value with the options of the caller. */
type Print = (value: unknown) => string;

/** The names of the method for Node, Bun and Deno. */
export const INSPECT_NAMES = [
  Symbol.for("nodejs.util.inspect.custom"),
  Symbol.for("Deno.customInspect"),
];

/** The printer in the arguments: Node passes (depth, options, inspect), Deno (inspect, options). */
export function printerOf(first: unknown, second: unknown, third: unknown): Print {
  const given = typeof third === "function" ? third : typeof first === "function" ? first : inspect;
  return (value) => String((given as typeof inspect)(value, second as object));
}

export function inspectOperation(segments: readonly Segment[], print: Print): string {
  if (segments.length === 0) return "AtomicOperation (empty)";
  const lines = segments.map((segment) => `  ${new Description(segment, print).text()}`);
  return `AtomicOperation\n${lines.join("\n")}`;
}

/** Prints one record. */
class Description {
  readonly #segment: Segment;
  readonly #buf: Buffer;
  readonly #record = new RecordLayout();
  readonly #print: Print;
  /** The end of the record, where one that belongs to it may follow. */
  readonly #next: number;

  constructor(segment: Segment, print: Print) {
    this.#segment = segment;
    this.#buf = segment.buf;
    this.#print = print;
    this.#next = this.#record.read(segment.buf, segment.start);
  }

  text(): string {
    const { op, flags, valueAt } = this.#record;
    switch (op) {
      case OP_CHECK:
        return `check({ key: ${this.#key()}, versionstamp: ${this.#stamp()} })`;
      case OP_SET:
        return this.#call("set", [this.#key(), this.#value(valueAt)], this.#end(flags & EXPIRES));
      case OP_DELETE:
        return this.#call("delete", [this.#key()]);
      case OP_SUM:
        return this.#call("sum", [this.#key(), this.#value(valueAt)]);
      case OP_MIN:
        return this.#call("min", [this.#key(), this.#value(valueAt)]);
      case OP_MAX:
        return this.#call("max", [this.#key(), this.#value(valueAt)]);
      case OP_CALCULATE:
        return this.#calculation();
      case OP_APPEND: {
        const method = flags & APPEND_FRONT ? "prepend" : "append";
        const shown = [this.#key(), this.#cbor(valueAt)];
        return this.#call(method, shown, this.#end(flags & APPEND_EXPIRES));
      }
      case OP_SET_EXPIRY:
        if (!(flags & EXPIRES)) return this.#call("persist", [this.#key()]);
        return this.#call("touch", [this.#key()], this.#end(EXPIRES));
      case OP_ENQUEUE:
        return this.#message([], BACKOFF_DEFAULT_MS);
      case OP_ENQUEUE_NAMED:
        return this.#message(this.#namedOptions(), NAMED_BACKOFF_DEFAULT_MS);
      case OP_ACKNOWLEDGE:
        return `ack(message ${this.#buf.readDoubleLE(this.#record.messageAt)})`;
      // Behind the record of the message.
      case OP_SCHEDULE:
        return "schedule(that message)";
      case OP_UNSCHEDULE:
        return "unschedule()";
      case OP_CHECK_FOUND:
      case OP_CHECK_ORDER:
      case OP_CHECK_RANGE:
      case OP_DEDUPLICATE:
      case OP_END:
      case OP_LIMIT:
      case OP_PATCHES:
      case OP_RETURN:
      case OP_WRITE_ID:
        return `record ${op}`;
      default:
        return op satisfies never;
    }
  }

  #call(method: string, shown: string[], options: string[] = []): string {
    if (options.length > 0) shown.push(`{ ${options.join(", ")} }`);
    return `${method}(${shown.join(", ")})`;
  }

  /** The option for the record's time. */
  #end(flag: number): string[] {
    if (flag === 0) return [];
    return [`${this.#record.relative ? "expireIn" : "expireAt"}: ${this.#time()}`];
  }

  #calculation(): string {
    const { calculationAt, flags, valueAt, minAt, maxAt } = this.#record;
    const options: string[] = [];
    if (minAt >= 0) options.push(`min: ${this.#value(minAt)}`);
    if (maxAt >= 0) options.push(`max: ${this.#value(maxAt)}`);
    if (flags & CALCULATE_CLAMP) options.push("clamp: true");
    options.push(...this.#end(flags & CALCULATE_EXPIRES));
    const method = ["sum", "min", "max"][this.#buf[calculationAt]];
    return this.#call(method, [this.#key(), this.#value(valueAt)], options);
  }

  #message(options: string[], backoffDefault: readonly number[]): string {
    const { relative, valueAt, backoffAt } = this.#record;
    const time = this.#time();
    if (relative && time > 0) options.push(`delay: ${time}`);
    if (!relative) options.push(`at: ${time}`);
    const keys = this.#undeliveredKeys();
    if (keys.length > 0) options.push(`keysIfUndelivered: ${this.#print(keys)}`);
    const backoff = Array.from({ length: this.#buf[backoffAt] }, (_, i) =>
      readU32(this.#buf, backoffAt + 1 + 4 * i),
    );
    if (String(backoff) !== String(backoffDefault)) {
      options.push(`backoffSchedule: ${this.#print(backoff)}`);
    }
    return this.#call("enqueue", [this.#cbor(valueAt)], options);
  }

  #undeliveredKeys(): unknown[][] {
    let at = this.#record.undeliveredAt + 2;
    return Array.from({ length: this.#buf.readUInt16LE(at - 2) }, () => {
      const start = at + 4;
      at = start + readU32(this.#buf, at);
      return decodeKey(this.#buf, start, at);
    });
  }

  #namedOptions(): string[] {
    const { priorityAt, deadRetentionAt, queueAt, deduplicationAt } = this.#record;
    const priority = this.#buf[priorityAt];
    const deadRetention = this.#buf.readDoubleLE(deadRetentionAt);
    const options = [`queue: ${this.#text(queueAt)}`];
    if (deduplicationAt >= 0) options.push(`deduplicationKey: ${this.#text(deduplicationAt)}`);
    const [mode, number] = this.#buf.subarray(this.#next, this.#segment.end);
    if (mode === OP_DEDUPLICATE) {
      options.push(`deduplication: ${this.#print(DEDUPLICATIONS[number])}`);
    }
    if (priority > 0) options.push(`priority: ${priority}`);
    if (deadRetention >= 0) options.push(`deadRetention: ${deadRetention}`);
    return options;
  }

  #time(): number {
    return this.#buf.readDoubleLE(this.#record.timeAt);
  }

  #stamp(): string {
    const { stampAt } = this.#record;
    return this.#print(stampAt < 0 ? null : readStamp(this.#buf, stampAt));
  }

  #text(at: number): string {
    return this.#print(this.#buf.toString("utf8", at + 4, at + 4 + readU32(this.#buf, at)));
  }

  #key(): string {
    const { op, flags, keyStart, keyEnd } = this.#record;
    const key: unknown[] = decodeKey(this.#buf, keyStart, keyEnd);
    if (op === OP_SET && flags & SUFFIXED) key.push(COMMIT_VERSIONSTAMP);
    return this.#print(key);
  }

  /** A value with its encoding. */
  #value(at: number): string {
    return this.#decoded(this.#buf[at], at + 1);
  }

  /** A value that always is CBOR. */
  #cbor(at: number): string {
    return this.#decoded(ENCODING_CBOR, at);
  }

  #decoded(encoding: number, at: number): string {
    if (this.#segment.fills !== null) return "[value with a Blob]";
    const start = at + 4;
    return this.#print(decodeValue(encoding, this.#buf, start, start + readU32(this.#buf, at)));
  }
}
