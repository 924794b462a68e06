// A process that has the database open and sets the schedule at its start, as every process of an application
// may. It says whether that changed anything, and waits to be killed.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path);
listen();
tell(String(await kv.queue("ticks").schedule("tick", args.timing, "tick")));
