// The other side of children.mjs: what every child process of a test does.

export { tell } from "../kit/tell.mjs";

/** The arguments that startChild was given. */
export const args = JSON.parse(process.argv[2] ?? "{}");

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
