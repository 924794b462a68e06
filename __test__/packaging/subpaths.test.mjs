// Duty: the entries of the package beside its main one: `import "openkv"` loads none of them and needs no
// library of others; each has declarations, and loads nothing but openkv and the optional peers.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const subpaths = Object.entries(manifest.exports).filter(
  ([name]) => name !== "." && name !== "./package.json",
);
const peers = Object.keys(manifest.peerDependencies);

/** The name of the package that a specifier is of. */
const packageOf = (name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)[0];

/** What a compiled file loads: of other packages, and by its own files. */
function loadedBy(file, seen = new Set()) {
  if (seen.has(file)) return [];
  seen.add(file);
  const code = readFileSync(file, "utf8").replace(/^\s*(?:\/?\*|\/\/).*$/gm, "");
  const names = [...code.matchAll(/(?:\brequire\(|\bfrom |\bimport\(|^import )"([^"]+)"/gm)];
  return names.flatMap(([, name]) =>
    name.startsWith(".") ? loadedBy(join(dirname(file), name), seen) : [name],
  );
}

test("there are entries beside the main one", () => {
  assert.ok(subpaths.length > 0);
});

test("importing openkv loads none of them, and no package of others", () => {
  const program = `
    import { createRequire } from "node:module";
    import { openKv } from ${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)};
    await (await openKv(":memory:")).close();
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)));`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  const files = JSON.parse(stdout);
  assert.ok(files.includes(join(root, "dist", "index.js")), stdout);
  for (const file of files) {
    assert.ok(file.startsWith(root) && !file.includes("node_modules"), file);
    for (const [, { require }] of subpaths) {
      assert.ok(!file.startsWith(join(root, dirname(require.default))), file);
    }
  }
});

test("every peer is optional", () => {
  const optional = Object.fromEntries(peers.map((name) => [name, { optional: true }]));
  assert.deepEqual(manifest.peerDependenciesMeta, optional);
});

for (const [name, conditions] of subpaths) {
  test(`openkv${name.slice(1)} is there for import and require, with its types`, () => {
    assert.deepEqual(Object.keys(conditions), ["import", "require"]);
    for (const { types, default: code } of Object.values(conditions)) {
      assert.ok(existsSync(join(root, types)) && existsSync(join(root, code)), code);
      for (const loaded of loadedBy(join(root, code))) {
        const known =
          loaded === "openkv" || loaded.startsWith("node:") || peers.includes(packageOf(loaded));
        assert.ok(known && !builtinModules.includes(loaded), `${code} loads ${loaded}`);
      }
    }
  });
}
