// The other side of children.mjs: what every child process of a test does.

import { writeSync } from "node:fs";

/** The arguments that startChild was given. */
export const args = JSON.parse(process.argv[2] ?? "{}");

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

/**
 * Calls `onLine` for each line that the parent says. The parent closing our standard input, by its
 * end or its will, ends this process, unless `onEnd` does something else. Does not keep the process
 * alive by itself.
 */
export function listen(onLine = () => {}, onEnd = () => process.exit(0)) {
  let partial = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (text) => {
    const lines = (partial + text).split("\n");
    partial = lines.pop();
    lines.forEach(onLine);
  });
  process.stdin.on("end", onEnd);
  process.stdin.unref?.();
}
