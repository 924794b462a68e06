"use strict";

// The entry for `require`. The names are written out so that ES modules can import them.
const openkv = require("./dist/index.js");

module.exports.openKv = openkv.openKv;
module.exports.Kv = openkv.Kv;
module.exports.AtomicOperation = openkv.AtomicOperation;
module.exports.KvListIterator = openkv.KvListIterator;
module.exports.KvU64 = openkv.KvU64;
module.exports.KvUuidV7 = openkv.KvUuidV7;
module.exports.serve = openkv.serve;
module.exports.sizeOf = openkv.sizeOf;
module.exports.KvError = openkv.KvError;
module.exports.KvConflictError = openkv.KvConflictError;
module.exports.KvFeedGapError = openkv.KvFeedGapError;
module.exports.KvOutcomeUnknownError = openkv.KvOutcomeUnknownError;
module.exports.BadResource = openkv.BadResource;
