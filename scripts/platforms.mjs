// Duty: the one table of platforms that openkv is built and published for.
// The build, the packer, the loader's tests and the release workflow's check all read it.

/** npm scope of the platform packages: `@openkv/linux-x64-gnu` and so on. */
export const PLATFORM_SCOPE = "@openkv";

/**
 * `name` ends the package's name and is the middle of the addon's file name; `rust` is the compiler's
 * target; `os`, `cpu` and `libc` are what npm compares with the machine that installs.
 */
export const platforms = [
  { name: "linux-x64-gnu", rust: "x86_64-unknown-linux-gnu", os: "linux", cpu: "x64", libc: "glibc" },
  { name: "linux-arm64-gnu", rust: "aarch64-unknown-linux-gnu", os: "linux", cpu: "arm64", libc: "glibc" },
  { name: "linux-x64-musl", rust: "x86_64-unknown-linux-musl", os: "linux", cpu: "x64", libc: "musl" },
  { name: "linux-arm64-musl", rust: "aarch64-unknown-linux-musl", os: "linux", cpu: "arm64", libc: "musl" },
  { name: "darwin-x64", rust: "x86_64-apple-darwin", os: "darwin", cpu: "x64" },
  { name: "darwin-arm64", rust: "aarch64-apple-darwin", os: "darwin", cpu: "arm64" },
  { name: "win32-x64-msvc", rust: "x86_64-pc-windows-msvc", os: "win32", cpu: "x64" },
  { name: "win32-arm64-msvc", rust: "aarch64-pc-windows-msvc", os: "win32", cpu: "arm64" },
];

/** The addon's file name for a platform. */
export const addonFile = (platform) => `openkv.${platform.name}.node`;

/** The platform package's name for a platform. */
export const packageName = (platform) => `${PLATFORM_SCOPE}/${platform.name}`;

/** The platform that a Rust target triple names. Throws for one that openkv is not built for. */
export function platformOfTarget(rust) {
  const found = platforms.find((platform) => platform.rust === rust);
  if (found === undefined) {
    const known = platforms.map((platform) => platform.rust).join(", ");
    throw new Error(`openkv is not built for the target ${rust}; it is built for ${known}`);
  }
  return found;
}
