// Duty: the only table of platforms for which openkv is built and published. The build, the packer,
// the loader's tests and the check of the release workflow read it.

/** npm scope of the platform packages: `@openkv/linux-x64-gnu` and so on. */
export const PLATFORM_SCOPE = "@openkv";

/**
 * `name` ends the package name and is the middle of the addon file name; `rust` is the compiler's
 * target; `os`, `cpu` and `libc` are what npm compares with the machine that installs.
 */
export const platforms = [
  gnu("x64", "x86_64"),
  gnu("arm64", "aarch64"),
  musl("x64", "x86_64"),
  musl("arm64", "aarch64"),
  darwin("x64", "x86_64"),
  darwin("arm64", "aarch64"),
  windows("x64", "x86_64"),
  windows("arm64", "aarch64"),
];

function gnu(cpu, machine) {
  const rust = `${machine}-unknown-linux-gnu`;
  return { name: `linux-${cpu}-gnu`, rust, os: "linux", cpu, libc: "glibc" };
}

function musl(cpu, machine) {
  const rust = `${machine}-unknown-linux-musl`;
  return { name: `linux-${cpu}-musl`, rust, os: "linux", cpu, libc: "musl" };
}

function darwin(cpu, machine) {
  return { name: `darwin-${cpu}`, rust: `${machine}-apple-darwin`, os: "darwin", cpu };
}

function windows(cpu, machine) {
  return { name: `win32-${cpu}-msvc`, rust: `${machine}-pc-windows-msvc`, os: "win32", cpu };
}

/** The addon's file name for a platform. */
export const addonFile = (platform) => `openkv.${platform.name}.node`;

/** The platform package's name for a platform. */
export const packageName = (platform) => `${PLATFORM_SCOPE}/${platform.name}`;

/** The platform of a Rust target triple. Throws for a platform for which openkv is not built. */
export function platformOfTarget(rust) {
  const found = platforms.find((platform) => platform.rust === rust);
  if (found === undefined) {
    const known = platforms.map((platform) => platform.rust).join(", ");
    throw new Error(`openkv is not built for the target ${rust}; it is built for ${known}`);
  }
  return found;
}
