// Duty: answers of servers and networks that misbehave.

import { reply } from "./mock.mjs";

export const AT_ONCE = 25;

/** An answer of this status. */
export const failWith = (status, headers) => (_, response) =>
  reply(response, status, "text/plain", "not now", headers);

/** Runs at most so many at a time. */
export async function each(count, run) {
  let at = 0;
  const work = async () => {
    while (at < count) await run(at++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** A body that comes a byte at a time. */
export function drip(response, type, bytes, everyMs) {
  response.writeHead(response.statusCode, { "content-type": type });
  let at = 0;
  const more = setInterval(() => {
    if (at < bytes.length) return response.write(bytes.subarray(at, ++at));
    clearInterval(more);
    response.end();
  }, everyMs);
  response.on("close", () => clearInterval(more));
  return true;
}

/** The encoded key of strings and small integers. */
export function hexOf(key) {
  return key
    .map((part) => {
      if (typeof part === "string") return `02${Buffer.from(part).toString("hex")}00`;
      const bytes = Buffer.alloc(9);
      bytes[0] = 0x21;
      bytes.writeDoubleBE(part, 1);
      if (part >= 0) bytes[1] |= 0x80;
      return bytes.toString("hex");
    })
    .join("");
}
