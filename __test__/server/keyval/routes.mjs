// Duty: the routes of /keyval/api, with requests and their answers. The tests send them, scripts/keyval-reference.mjs
// writes the table of docs/keyval.md from them, and
// crates/server/src/keyval/tests.rs compares them with the router.
//
// A step is `[method, path, body, expected]`, sent in their order to an empty database. `expected` is the body of an answer
// with status 200, or `error(status, text)`. Of it, a function is a predicate, `save(name)` accepts anything, and `$name`
// in a later path or body is what was saved.

import { ENTRIES } from "./routes/entries.mjs";
import { OTHERS } from "./routes/others.mjs";
import { QUEUE } from "./routes/queue.mjs";

export { ERROR, EVENTS, RAW, SAVE } from "./routes/steps.mjs";

export const ROUTES = [...ENTRIES, ...QUEUE, ...OTHERS];
