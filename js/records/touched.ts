// Duty: the keys and ranges that a write changes and checks, as byte strings
// (js/codec/key-bytes.ts), and whether those of two writes overlap.

import type { KeyVisitor } from "./written-keys.js";

/** The keys from `start` (included) to `end` (excluded), as byte strings (js/codec/key-bytes.ts). */
export interface Span {
  readonly start: string;
  readonly end: string;
}

/** The keys that begin with `prefix`: no part of a key begins with the byte that ends them. */
export function below(prefix: string): Span {
  return { start: prefix, end: `${prefix}\xff` };
}

/** The keys and ranges that a write changes and checks. */
export class Touched implements KeyVisitor {
  readonly keys: string[] = [];
  /** Ranges that contain the keys that the commit completes. */
  readonly spans: Span[] = [];
  /** Ranges that are deleted. */
  readonly emptied: Span[] = [];
  readonly checkedKeys: string[] = [];
  readonly checkedSpans: Span[] = [];

  changes(buf: Buffer, start: number, end: number): void {
    this.keys.push(buf.toString("latin1", start, end));
  }

  completes(buf: Buffer, start: number, end: number): void {
    this.spans.push(below(buf.toString("latin1", start, end)));
  }

  checks(buf: Buffer, start: number, end: number): void {
    this.checkedKeys.push(buf.toString("latin1", start, end));
  }

  checksRange(buf: Buffer, start: number, startEnd: number, end: number, endEnd: number): void {
    const span = {
      start: buf.toString("latin1", start, startEnd),
      end: buf.toString("latin1", end, endEnd),
    };
    this.checkedSpans.push(span);
  }

  /** Whether the order of the two writes can affect the result. */
  meets(other: Touched): boolean {
    const spans = [...this.spans, ...this.emptied, ...this.checkedSpans];
    const keys = [...this.keys, ...this.checkedKeys];
    const otherSpans = [...other.spans, ...other.emptied, ...other.checkedSpans];
    const otherKeys = new Set([...other.keys, ...other.checkedKeys]);
    return (
      keys.some((key) => otherKeys.has(key) || otherSpans.some((span) => covers(span, key))) ||
      spans.some((span) => otherSpans.some((other) => overlap(span, other))) ||
      spans.some((span) => [...otherKeys].some((key) => covers(span, key)))
    );
  }
}

/** Whether the key lies in the span. */
export function covers({ start, end }: Span, key: string): boolean {
  return start <= key && key < end;
}

/** Whether a key can be in both. */
export function overlap(a: Span, b: Span): boolean {
  return a.start < b.end && b.start < a.end;
}
