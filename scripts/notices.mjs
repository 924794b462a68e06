// Duty: collects the licences of everything compiled into the addon of one platform, as one text
// that is published beside it.
//
//   node scripts/notices.mjs [rust target]     prints the text
//
// The list is cargo's: every crate that the lock file resolves for the target, except build scripts
// and tests. A crate without a licence file is listed with its licence and its repository.

import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const LICENCE_FILE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i;
/** The name of the text in a platform package. */
export const NOTICES_FILE = "THIRD-PARTY-NOTICES.txt";

const METADATA_BYTES_MAX = 256 * 1024 * 1024;

/** Parts of the addon that are not separate crates. */
const BESIDE_CRATES = `SQLite (compiled into libsqlite3-sys) is in the public domain: https://sqlite.org/copyright.html
The standard library of Rust is licensed under MIT or Apache-2.0: https://github.com/rust-lang/rust`;

/** The notices of an addon for `target`. */
export function notices(target) {
  const crates = linkedCrates(target);
  const byText = new Map();
  for (const crate of crates) {
    for (const text of licenceTexts(crate)) {
      byText.set(text, [...(byText.get(text) ?? []), `${crate.name} ${crate.version}`]);
    }
  }
  const list = crates.map(
    ({ name, version, license, repository }) =>
      `- ${name} ${version}: ${license ?? "see its licence below"}${repository ? `, ${repository}` : ""}`,
  );
  const texts = [...byText].map(
    ([text, names]) => `${"-".repeat(80)}\n${names.join(", ")}\n\n${text}`,
  );
  return (
    [
      "openkv's native addon contains the following software.",
      BESIDE_CRATES,
      list.join("\n"),
      ...texts,
    ].join("\n\n") + "\n"
  );
}

/** Every crate that is linked into the addon, by name. */
function linkedCrates(target) {
  const { packages, resolve } = metadata(target);
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const found = new Set();
  const waiting = [resolve.root];
  for (let id; (id = waiting.pop()) !== undefined; ) {
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      if (kinds.some(({ kind }) => kind === null) && !found.has(pkg)) {
        found.add(pkg);
        waiting.push(pkg);
      }
    }
  }
  const compare = (a, b) => (a.name + a.version < b.name + b.version ? -1 : 1);
  return packages.filter(({ id }) => found.has(id)).sort(compare);
}

function metadata(target) {
  const args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
  const { status, stdout, stderr, error } = spawnSync("cargo", args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: METADATA_BYTES_MAX,
  });
  if (status !== 0) throw new Error(`cargo ${args.join(" ")} failed: ${error?.message ?? stderr}`);
  return JSON.parse(stdout);
}

/** For a crate that is available under the MIT licence, only that text. */
function licenceTexts({ license, manifest_path: manifest }) {
  const folder = dirname(manifest);
  const files = readdirSync(folder, { withFileTypes: true });
  const all = files.filter((file) => file.isFile() && LICENCE_FILE.test(file.name));
  const mit = all.filter(({ name }) => /mit/i.test(name));
  const chosen = /\bMIT\b/.test(license ?? "") && mit.length > 0 ? mit : all;
  return chosen.map(({ name }) => readFileSync(join(folder, name), "utf8").trim());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const host = () =>
    /^host: (\S+)$/m.exec(spawnSync("rustc", ["-vV"], { encoding: "utf8" }).stdout)[1];
  process.stdout.write(notices(process.argv[2] ?? host()));
}
