// Duty: docs/contract.md names every case on which Deno differs, and no other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DIFFERS, shelves } from "./suite.mjs";

/** Without what the page says about the protocol. */
const [page] = readFileSync(new URL("../../docs/contract.md", import.meta.url), "utf8").split(
  "\n## KV Connect\n",
);
const all = shelves.flatMap(({ shelf, cases }) =>
  cases.map((each) => ({ id: `${shelf}: ${each.name}`, each })),
);

test("the page names exactly the cases that Deno fails", () => {
  const rows = page.split("\n").filter((line) => line.startsWith("| "));
  const lastCells = rows.map((line) => line.split(" | ").at(-1));
  const named = lastCells.flatMap(
    (cell) => /^`(?!(?:server|postgres|bucket): )([a-z0-9 ]+: .+)` \|$/.exec(cell)?.[1] ?? [],
  );
  const noted = all.filter(({ each }) => each.denoDiffers).map(({ id }) => id);
  assert.deepEqual(named.toSorted(), noted.toSorted());
});

// A replica is a client of a server, so what differs of a server differs there too.
for (const variant of ["server", "postgres", "bucket"]) {
  const differs = DIFFERS[variant];
  test(`the page names exactly the cases with ${differs}`, () => {
    const row = new RegExp(`^\\| .* \\| \`${variant}: ([a-z0-9 ]+: .+)\` \\|$`, "gm");
    const named = [...page.matchAll(row)].map(([, id]) => id);
    const noted = all.filter(({ each }) => each[differs]).map(({ id }) => id);
    assert.deepEqual(named.toSorted(), noted.toSorted());
  });
}

test("no two cases have one name", () => {
  const ids = all.map(({ id }) => id);
  assert.deepEqual(
    ids.filter((id, i) => ids.indexOf(id) !== i),
    [],
  );
});

test("what makes a case special has a reason", () => {
  const differing = ["denoDiffers", ...new Set(Object.values(DIFFERS))];
  const fields = ["name", "run", "on", "alone", "denoSlow", ...differing];
  for (const { id, each } of all) {
    for (const name of Object.keys(each)) assert.ok(fields.includes(name), `${id}: ${name}`);
    for (const note of [...differing, "denoSlow"].map((name) => each[name])) {
      assert.ok(note === undefined || note.length > 10, `${id}: a reason is a sentence`);
    }
    assert.ok([undefined, "file", "memory", "shared"].includes(each.on), id);
  }
});
