// Duty: chooses the addon to load: a file beside the code, or the platform package that npm
// installed as an optional dependency. Both loaders use it: scripts/native-loader.js and .mjs.
// Never: a download or a compilation.

import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** The differences between the two loaders. */
export interface Door {
  /** The folders to look in for a file of the addon. */
  readonly folders: readonly string[];
  /** The version of the JavaScript. */
  readonly version: string;
  loadFile(path: string): unknown;
  /** The addon of the platform package that has this name; `expect` gets its version before it is loaded. */
  loadPackage(name: string, expect: (version: string) => void): unknown;
}

/** Must equal PLATFORM_SCOPE in scripts/platforms.mjs; __test__/packaging compares them. */
const PLATFORM_SCOPE = "@openkv";

const ADDON_ERROR = "ERR_OPENKV_ADDON";
/** A failure other than a package that is not installed. */
const NO_PACKAGE = "ERR_OPENKV_PLATFORM";

/**
 * The addon must be of the same release as the JavaScript. Throws an error with the code
 * ERR_OPENKV_ADDON that names every attempt.
 */
export function findAddon(door: Door): unknown {
  const failures: string[] = [];
  let published = false;
  for (const name of candidates()) {
    for (const folder of door.folders) {
      const file = join(folder, `openkv.${name}.node`);
      if (!existsSync(file)) continue;
      try {
        return ofVersion(door.loadFile(file), door.version);
      } catch (error) {
        failures.push(`${file}: ${(error as Error).message}`);
      }
    }
    const packaged = `${PLATFORM_SCOPE}/${name}`;
    try {
      return door.loadPackage(name, (version) => {
        if (version !== door.version) throw otherVersion(version, door.version);
      });
    } catch (error) {
      // All candidates but one are normally not installed.
      const { code, message } = error as NodeJS.ErrnoException;
      published ||= code !== NO_PACKAGE;
      const absent = code === "MODULE_NOT_FOUND" && message.includes(packaged);
      failures.push(absent ? `${packaged}: not installed` : `${packaged}: ${message}`);
    }
  }
  throw published ? notLoaded(failures) : unsupported(failures);
}

/** The error for a platform that has no package. */
export function noPackage(name: string): Error {
  return Object.assign(new Error(`openkv is not built for ${name}`), { code: NO_PACKAGE });
}

/** Platform names to try, the likeliest first. */
function candidates(): string[] {
  const { platform, arch } = process;
  if (platform === "linux") {
    const [first, second] = usesMusl() ? ["musl", "gnu"] : ["gnu", "musl"];
    // Both are tried: a process cannot tell reliably which C library it uses.
    return [`linux-${arch}-${first}`, `linux-${arch}-${second}`];
  }
  return [platform === "win32" ? `win32-${arch}-msvc` : `${platform}-${arch}`];
}

function unsupported(failures: readonly string[]): Error {
  const error = new Error(
    [
      `openkv has no native addon for ${process.platform} ${process.arch}. It is published for Linux`,
      "(glibc and musl), macOS and Windows, on x64 and arm64. Tried:",
      ...failures.map((failure) => `  - ${failure}`),
      "On another platform build a clone of openkv (https://github.com/openkv/openkv), or run it on",
      "one of these as a server and open its URL with another client of KV Connect.",
    ].join("\n"),
  );
  return Object.assign(error, { code: ADDON_ERROR });
}

const MUSL_MACHINES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

function usesMusl(): boolean {
  const loader = `/lib/ld-musl-${MUSL_MACHINES[process.arch]}.so.1`;
  try {
    return existsSync(loader) && !existsSync("/etc/ld.so.cache");
  } catch {
    // Deno without permission to read there.
    return false;
  }
}

/** A file has no manifest; the addon reports its version. */
function ofVersion(addon: unknown, wanted: string): unknown {
  const found = (addon as { version?(): string }).version?.() ?? "unknown";
  if (found !== wanted) throw otherVersion(found, wanted);
  return addon;
}

function otherVersion(found: string, wanted: string): Error {
  return new Error(`is version ${found}, but openkv is version ${wanted}`);
}

function notLoaded(failures: readonly string[]): Error {
  const [name] = candidates();
  const error = new Error(
    [
      `openkv could not load its native addon on ${process.platform} ${process.arch}. Tried:`,
      ...failures.map((failure) => `  - ${failure}`),
      "In a project that uses openkv: delete node_modules and the lock file, then install again",
      "without --omit=optional (npm) or --no-optional, so that the platform package is installed.",
      `In a bundle: copy node_modules/${PLATFORM_SCOPE}/${name}/openkv.${name}.node beside the bundle, or`,
      'keep openkv out of it (external: ["openkv"]; Next.js: serverExternalPackages: ["openkv"]) and',
      "install it where the bundle runs. See https://github.com/openkv/openkv/blob/main/docs/bundlers.md",
      "In a clone of openkv: run `npm run build`.",
    ].join("\n"),
  );
  return Object.assign(error, { code: ADDON_ERROR });
}
