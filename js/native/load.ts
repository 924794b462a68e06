// Duty: the addon, for the CommonJS modules. scripts/native-loader.mjs replaces this file in dist/esm/.

import type * as Binding from "./binding.js";

export function loadBinding(): typeof Binding {
  return require("./binding.js") as typeof Binding;
}
