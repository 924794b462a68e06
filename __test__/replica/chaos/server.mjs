// Duty: the primary of a test, in a process that is killed at any moment.

import { serve } from "../../../index.mjs";
import { args, listen, tell } from "../../processes/child.mjs";

const server = await serve(args);
listen();
// The server is kept for as long as the process lives.
globalThis.server = server;
tell("ready");
