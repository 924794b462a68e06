// Duty: takes the pictures of the documentation again: runs the tests that make them, and copies them to
// ../docs/images, where a picture is `studio-` and the name of its screenshot.

import { spawnSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const PICTURE = /^studio-(.+)\.png$/;

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
const [images, shots, tests] = ["../../docs/images/", "../../target/studio-shots/", "../test/"].map(
  folder,
);

const pictures = readdirSync(images).filter((name) => PICTURE.test(name));
const shotOf = (picture) => PICTURE.exec(picture)[1];
const files = pictures.map((picture) => testOf(shotOf(picture)));
for (const picture of pictures) rmSync(join(shots, `${shotOf(picture)}.png`), { force: true });
const { status } = spawnSync(process.execPath, [join(tests, "run.mjs"), ...new Set(files)], {
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);
for (const picture of pictures) {
  copyFileSync(join(shots, `${shotOf(picture)}.png`), join(images, picture));
  console.log(`docs/images/${picture}`);
}

/** The test file that takes a screenshot. */
function testOf(shot) {
  const takes = (name) =>
    name.endsWith(".test.mjs") && readFileSync(join(tests, name), "utf8").includes(`"${shot}")`);
  const found = readdirSync(tests).find(takes);
  if (found === undefined) throw new Error(`no test takes the screenshot ${shot}`);
  return found;
}
