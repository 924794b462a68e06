"use strict";
// Duty: loads the addon, for CommonJS. scripts/build-addon.mjs copies it to dist/native/binding.js.
// js/native/find-addon.ts lists the candidates.

const { findAddon, noPackage } = require("./find-addon.js");

module.exports = findAddon({
  folders: [__dirname],
  version: require("../../package.json").version,
  loadFile: (path) => require(path),
  loadPackage,
});

/**
 * Every platform package by its literal name, because tracers (@vercel/nft) and `bun build
 * --compile` follow literal names and include the installed package. Inside `try`, a bundler
 * ignores a package that is not installed. __test__/packaging compares the names with
 * scripts/platforms.mjs.
 */
function loadPackage(name, expect) {
  try {
    switch (name) {
      case "darwin-arm64":
        expect(require("@openkv/darwin-arm64/package.json").version);
        return require("@openkv/darwin-arm64");
      case "darwin-x64":
        expect(require("@openkv/darwin-x64/package.json").version);
        return require("@openkv/darwin-x64");
      case "linux-arm64-gnu":
        expect(require("@openkv/linux-arm64-gnu/package.json").version);
        return require("@openkv/linux-arm64-gnu");
      case "linux-arm64-musl":
        expect(require("@openkv/linux-arm64-musl/package.json").version);
        return require("@openkv/linux-arm64-musl");
      case "linux-x64-gnu":
        expect(require("@openkv/linux-x64-gnu/package.json").version);
        return require("@openkv/linux-x64-gnu");
      case "linux-x64-musl":
        expect(require("@openkv/linux-x64-musl/package.json").version);
        return require("@openkv/linux-x64-musl");
      case "win32-arm64-msvc":
        expect(require("@openkv/win32-arm64-msvc/package.json").version);
        return require("@openkv/win32-arm64-msvc");
      case "win32-x64-msvc":
        expect(require("@openkv/win32-x64-msvc/package.json").version);
        return require("@openkv/win32-x64-msvc");
      default:
        throw noPackage(name);
    }
  } catch (error) {
    // biome-ignore lint/complexity/noUselessCatch: bundlers pass over what is missing inside of a try.
    throw error;
  }
}
