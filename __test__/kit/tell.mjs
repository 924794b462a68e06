// Duty: lines from a process that may be killed to its parent.

import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";

/**
 * Writes one line to the parent, before returning: it has left this process even if it dies right
 * after.
 */
export function tell(line) {
  const bytes = Buffer.from(line + "\n");
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") process.exit(1); // the parent is gone
    }
  }
}
