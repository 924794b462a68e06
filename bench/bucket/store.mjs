// The object store of bench/bucket.mjs, in a process of its own. Tells its parent the port, and how many requests it
// has answered whenever the parent sends a message.

import process from "node:process";
import { startObjectStore } from "../../__test__/kit/object-store.mjs";

let requests = 0;
const { port } = await startObjectStore(() => void requests++);
process.on("message", () => process.send(requests));
process.send(port);
process.once("disconnect", () => process.exit());
