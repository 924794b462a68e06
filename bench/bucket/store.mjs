// The object store of bench/bucket.mjs, in a process of its own. Tells its parent the port.

import process from "node:process";
import { startObjectStore } from "../../__test__/kit/object-store.mjs";

const { port } = await startObjectStore();
process.send(port);
process.once("disconnect", () => process.exit());
