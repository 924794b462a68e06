// Tells when changes by another process arrive: see ../watch-latency.mjs.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path);
const now = () => Number(process.hrtime.bigint()) / 1e6;
const report = ({ n, at }) => tell(JSON.stringify({ n, ms: now() - at }));

for (let watch = 0; watch < 100; watch++) {
  (async () => {
    for await (const [{ value }] of kv.watch([["watched", watch]]))
      if (value !== null) report(value);
  })();
  (async () => {
    for await (const { changes } of kv.watch({ prefix: ["fed", watch] }))
      for (const { value } of changes) report(value);
  })();
}
kv.listenQueue(report); // keeps this process alive

listen(async (line) => {
  const [, ms] = line.split(" ");
  const [cpu, started] = [process.cpuUsage(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, Number(ms)));
  tell(JSON.stringify({ ...process.cpuUsage(cpu), ms: performance.now() - started }));
});
tell(JSON.stringify({ n: -1 }));
