"use strict";
// Duty: find and load the addon. Copied to dist/native/binding.js by scripts/build-addon.mjs.
//
// An addon beside this file (a clone's own build) is taken first, then the platform package that
// npm installed as an optional dependency. Nothing is ever downloaded or compiled here.

const { existsSync } = require("node:fs");
const { join } = require("node:path");

/** Must equal PLATFORM_SCOPE in scripts/platforms.mjs; __test__/packaging compares them. */
const PLATFORM_SCOPE = "@openkv";

module.exports = load();

function load() {
  const failures = [];
  for (const name of candidates()) {
    const local = join(__dirname, `openkv.${name}.node`);
    if (existsSync(local)) {
      try {
        return require(local);
      } catch (error) {
        failures.push(`${local}: ${error.message}`);
      }
    }
    const packaged = `${PLATFORM_SCOPE}/${name}`;
    try {
      refuseOtherVersion(packaged);
      return require(packaged);
    } catch (error) {
      // Not installed is the ordinary case for all candidates but one.
      const absent = error.code === "MODULE_NOT_FOUND" && error.message.includes(packaged);
      failures.push(absent ? `${packaged}: not installed` : `${packaged}: ${error.message}`);
    }
  }
  throw notLoaded(failures);
}

/** Platform names to try, the likeliest first. */
function candidates() {
  const { platform, arch } = process;
  if (platform === "linux") {
    const [first, second] = usesMusl() ? ["musl", "gnu"] : ["gnu", "musl"];
    // Both are tried: telling the C library from inside a process is a guess, loading is proof.
    return [`linux-${arch}-${first}`, `linux-${arch}-${second}`];
  }
  return [platform === "win32" ? `win32-${arch}-msvc` : `${platform}-${arch}`];
}

function usesMusl() {
  const loader = { x64: "x86_64", arm64: "aarch64" }[process.arch];
  try {
    return existsSync(`/lib/ld-musl-${loader}.so.1`) && !existsSync("/etc/ld.so.cache");
  } catch {
    return false;
  }
}

/** The addon and the JavaScript that drives it are one release; halves of two do not fit. */
function refuseOtherVersion(packaged) {
  const found = require(`${packaged}/package.json`).version;
  const wanted = require("../../package.json").version;
  if (found !== wanted) {
    throw new Error(`is version ${found}, but openkv is version ${wanted}`);
  }
}

function notLoaded(failures) {
  const machine = `${process.platform} ${process.arch}`;
  const error = new Error(
    [
      `openkv could not load its native addon on ${machine}. Tried:`,
      ...failures.map((failure) => `  - ${failure}`),
      "In a project that uses openkv: delete node_modules and the lock file, then install again",
      "without --omit=optional (npm) or --no-optional, so that the platform package is installed.",
      "In a clone of openkv: run `npm run build`.",
    ].join("\n"),
  );
  error.code = "ERR_OPENKV_ADDON";
  return error;
}
