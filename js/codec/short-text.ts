/**
 * Short text out of buffers. `String.fromCharCode` with the codes as arguments takes half the time
 * of a native call for so few bytes, and of a loop that tests them before.
 */

import type { Buffer } from "node:buffer";

/** JavaScriptCore takes longer for many arguments than for a native call. */
const isBun = process.versions.bun !== undefined;

/** The longest text that {@link shortText} should make, in bytes. */
export const SHORT_TEXT_BYTES_MAX = isBun ? 8 : 24;

const text = String.fromCharCode;

/** For {@link shortText}: every byte must be ASCII; each byte is a code unit. */
export const ASCII = 0x80;
export const LATIN1 = 0x100;

/**
 * The text of `length` bytes at `at`, up to 24; null if one of them is not below
 * `bound`, or if the text is longer. The bytes must be there.
 */
// biome-ignore format: one line for each length
export function shortText(buf: Buffer, at: number, length: number, bound: number): string | null {
  if (length === 0) return "";
  const a = buf[at];
  let high = a;
  if (length === 1) return high < bound ? text(a) : null;
  const b = buf[at + 1];
  high |= b;
  if (length === 2) return high < bound ? text(a, b) : null;
  const c = buf[at + 2];
  high |= c;
  if (length === 3) return high < bound ? text(a, b, c) : null;
  const d = buf[at + 3];
  high |= d;
  if (length === 4) return high < bound ? text(a, b, c, d) : null;
  const e = buf[at + 4];
  high |= e;
  if (length === 5) return high < bound ? text(a, b, c, d, e) : null;
  const f = buf[at + 5];
  high |= f;
  if (length === 6) return high < bound ? text(a, b, c, d, e, f) : null;
  const g = buf[at + 6];
  high |= g;
  if (length === 7) return high < bound ? text(a, b, c, d, e, f, g) : null;
  const h = buf[at + 7];
  high |= h;
  if (length === 8) return high < bound ? text(a, b, c, d, e, f, g, h) : null;
  const i = buf[at + 8];
  high |= i;
  if (length === 9) return high < bound ? text(a, b, c, d, e, f, g, h, i) : null;
  const j = buf[at + 9];
  high |= j;
  if (length === 10) return high < bound ? text(a, b, c, d, e, f, g, h, i, j) : null;
  const k = buf[at + 10];
  high |= k;
  if (length === 11) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k) : null;
  const l = buf[at + 11];
  high |= l;
  if (length === 12) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l) : null;
  const m = buf[at + 12];
  high |= m;
  if (length === 13) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m) : null;
  const n = buf[at + 13];
  high |= n;
  if (length === 14) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n) : null;
  const o = buf[at + 14];
  high |= o;
  if (length === 15) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) : null;
  const p = buf[at + 15];
  high |= p;
  if (length === 16) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) : null;
  const q = buf[at + 16];
  high |= q;
  if (length === 17) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q) : null;
  const r = buf[at + 17];
  high |= r;
  if (length === 18) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r) : null;
  const s = buf[at + 18];
  high |= s;
  if (length === 19) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s) : null;
  const t = buf[at + 19];
  high |= t;
  if (length === 20) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t) : null;
  const u = buf[at + 20];
  high |= u;
  if (length === 21) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u) : null;
  const v = buf[at + 21];
  high |= v;
  if (length === 22) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v) : null;
  const w = buf[at + 22];
  high |= w;
  if (length === 23) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w) : null;
  const x = buf[at + 23];
  high |= x;
  if (length === 24) return high < bound ? text(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x) : null;
  return null;
}
