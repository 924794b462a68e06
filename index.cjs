// @ts-self-types="./index.d.ts"
"use strict";

// The entry for `require`, and what the entry for `import` gives out: there is one identity of every
// class. The names are written out so that ES modules can import them. The file's ending says that it
// is CommonJS: Deno takes a .js file for an ES module where a file outside of any package imports it.
const openkv = require("./dist/index.js");

module.exports.openKv = openkv.openKv;
module.exports.Kv = openkv.Kv;
module.exports.AtomicOperation = openkv.AtomicOperation;
module.exports.KvListIterator = openkv.KvListIterator;
module.exports.KvU64 = openkv.KvU64;
module.exports.KvUuidV7 = openkv.KvUuidV7;
module.exports.restore = openkv.restore;
module.exports.serve = openkv.serve;
module.exports.sizeOf = openkv.sizeOf;
module.exports.KvError = openkv.KvError;
module.exports.KvConflictError = openkv.KvConflictError;
module.exports.KvDoNotRetry = openkv.KvDoNotRetry;
module.exports.KvFeedGapError = openkv.KvFeedGapError;
module.exports.KvUniqueError = openkv.KvUniqueError;
module.exports.KvOutcomeUnknownError = openkv.KvOutcomeUnknownError;
module.exports.KvValidationError = openkv.KvValidationError;
module.exports.BadResource = openkv.BadResource;
