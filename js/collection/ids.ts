// Duty: makes ids that sort by the time at which they were made.
// Invariant: time and random bytes are arguments.

/** Bytes of randomness in an id; a UUID leaves six of their bits out. */
export const RANDOM_BYTES = 10;
const TIME_BYTES = 6;

/** A UUID of version 7 (RFC 9562, 5.7). */
export function uuidv7(nowMs: number, random: Uint8Array): string {
  const bytes = idBytes(nowMs, random);
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  const hex = bytes.toString("hex");
  return [8, 12, 16, 20, 32].map((end, at) => hex.slice([0, 8, 12, 16, 20][at], end)).join("-");
}

/** The digits of Crockford's base 32. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_CHARS = 26;
const BITS_OF_DIGIT = 5n;

/** A ULID (github.com/ulid/spec). */
export function ulid(nowMs: number, random: Uint8Array): string {
  let rest = BigInt(`0x${idBytes(nowMs, random).toString("hex")}`);
  let text = "";
  for (let at = 0; at < ULID_CHARS; at++) {
    text = DIGITS[Number(rest & 31n)] + text;
    rest >>= BITS_OF_DIGIT;
  }
  return text;
}

/** The time in 48 bits, and the random bytes. */
function idBytes(nowMs: number, random: Uint8Array): Buffer {
  const bytes = Buffer.alloc(TIME_BYTES + RANDOM_BYTES);
  bytes.writeUIntBE(nowMs, 0, TIME_BYTES);
  bytes.set(random, TIME_BYTES);
  return bytes;
}
