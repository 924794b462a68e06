// The frames of writes, as the addon receives them: the golden ones and those of a build.

import { createRequire } from "node:module";
import { runInThisContext } from "node:vm";
import { openKv } from "../../index.mjs";

const require = createRequire(import.meta.url);
const { Handle } = require("../../dist/native/binding.js");

/** The frame of the write that the expression of a vector commits, in hex. */
export async function frameOf(js) {
  const kv = await openKv(":memory:");
  const frames = [];
  const { write, writeImmediately } = Handle.prototype;
  const record = (call) =>
    function recorded(id, count, frame, length, ...rest) {
      frames.push(frame.toString("hex", 0, length));
      return call.call(this, id, count, frame, length, ...rest);
    };
  Object.assign(Handle.prototype, {
    write: record(write),
    writeImmediately: record(writeImmediately),
  });
  try {
    await runInThisContext(`(kv) => (${js})`)(kv);
  } finally {
    Object.assign(Handle.prototype, { write, writeImmediately });
    kv.close();
  }
  return frames.at(-1);
}
