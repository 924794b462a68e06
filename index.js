// @ts-self-types="./index.d.ts"
"use strict";

// By the name that index.d.ts goes with.
module.exports = require("./index.cjs");
