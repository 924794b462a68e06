// Duty: the addon, for CommonJS. In dist/esm/ scripts/native-loader.mjs takes the place of this file.

import type * as Binding from "./binding.js";

export function loadBinding(): typeof Binding {
  return require("./binding.js") as typeof Binding;
}
