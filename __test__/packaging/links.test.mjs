// Duty: every link leads somewhere, for a reader of the repository and for a reader of the package: to a
// file that travels with the page, to a heading that is there, or to the repository by its whole address.
//
// Pages of the package linked to decisions, pictures and sources that only the repository has.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { packedFiles } from "../../scripts/pack.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path) => readFileSync(root + path, "utf8");
/** The repository by its whole address: a page, a folder, a picture. */
const REPOSITORY =
  /^https:\/\/(?:github\.com\/openkv\/openkv\/(?:blob|tree)|raw\.githubusercontent\.com\/openkv\/openkv)\/main\//;
/** A page or an example, by its path from the root. */
const PATH = /(?<![\w./-])(?:docs\/[\w/-]+\.md|examples\/[\w/-]+\.mjs)\b(?:#[\w-]+)?/g;
const ADDRESS =
  /https:\/\/(?:github|raw\.githubusercontent)\.com\/openkv\/openkv\/[^\s"'`)]+\/main\/[^\s"'`)]+/g;
/** A name of a source, as pages write it in letters of code. */
const SOURCE = /^(?:__test__|bench|docs|examples|fuzz|js|scripts|src|studio|tests)\/[\w./-]*$/;
/** Folders of what is built and installed. */
const NO_SOURCES = new Set([".git", "dist", "node_modules", "target"]);
/** Folders that __test__/runtime/run-programs.mjs makes, and deletes while this test runs. */
const PROGRAMS = /^programs-/;

/** The files below a folder that are sources, in paths from the root. */
function filesBelow(folder = "") {
  return readdirSync(root + folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [folder + entry.name];
    return NO_SOURCES.has(entry.name) || PROGRAMS.test(entry.name)
      ? []
      : filesBelow(`${folder}${entry.name}/`);
  });
}

const repository = filesBelow();
const packed = packedFiles();

/** Whether the path is one of the files, or a folder of some. */
function has(files, path) {
  const folder = `${path.replace(/\/$/, "")}/`;
  return files.includes(path) || files.some((file) => file.startsWith(folder));
}

/** A page without its blocks of code. */
const prose = (page) => read(page).replace(/^( *)(```+).*\n(?:.*\n)*?\1\2$/gm, "");

/** The anchors of a page, as GitHub makes them from its headings: equal ones get a number. */
function anchorsOf(page) {
  const seen = new Map();
  return [...prose(page).matchAll(/^#{1,6} +(.*?) *#*$/gm)].map(([, heading]) => {
    const anchor = heading
      .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, "")
      .replaceAll(" ", "-");
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  });
}

/** The targets of the links and pictures of a page: inline, by reference, and as HTML. */
function linksOf(page) {
  const text = prose(page).replace(/`[^`\n]*`/g, "");
  const forms = [
    /\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g,
    /^ *\[[^\]]+\]: +<?([^\s>]+)/gm,
    /\b(?:href|src)="([^"]+)"/g,
  ];
  return forms.flatMap((form) => [...text.matchAll(form)].map(([, link]) => link));
}

/** Why a link of a page leads nowhere for a reader who has `files`; undefined if it does. */
function fault(page, link, files) {
  const own = REPOSITORY.exec(link)?.[0];
  if (own === undefined && /^[a-z]+:/.test(link)) return undefined;
  const [path, anchor] = (own === undefined ? link : link.slice(own.length)).split("#");
  const base = own === undefined ? posix.dirname(page) : ".";
  const target = path === "" ? page : posix.normalize(posix.join(base, decodeURI(path)));
  const there = own === undefined ? files : repository;
  if (!has(there, target)) return `${page}: ${link}: no ${target}`;
  const isLost = anchor !== undefined && !anchorsOf(target).includes(anchor);
  return isLost ? `${page}: ${link}: no such heading` : undefined;
}

const isPage = (path) => path.endsWith(".md");

test("every link of a page of the package leads to a file of the package, or to the repository", () => {
  const pages = packed.filter(isPage);
  const links = pages.flatMap((page) => linksOf(page).map((link) => [page, link]));
  assert.ok(pages.length > 20 && links.length > 250, "the search for links finds too few");
  assert.deepEqual(links.map(([page, link]) => fault(page, link, packed)).filter(Boolean), []);
});

test("every link of the other pages leads to a file of the repository", () => {
  const pages = repository.filter((path) => isPage(path) && !packed.includes(path));
  assert.ok(pages.length > 15, "the search for pages finds too few");
  const faults = pages.flatMap((page) =>
    linksOf(page).map((link) => fault(page, link, repository)),
  );
  assert.deepEqual(faults.filter(Boolean), []);
});

// Declarations, comments, texts of errors, units of systemd.
test("every page that a source names is there, with its heading", () => {
  const texts = [...repository, ...packed.filter((path) => path.startsWith("dist/"))].filter(
    (path) => /\.(?:[cm]?[jt]s|rs|json|ya?ml|service)$/.test(path),
  );
  const faults = [];
  let named = 0;
  for (const path of texts) {
    // A file of the package names what the package has, or the repository by its whole address.
    const files = packed.includes(path) ? packed : repository;
    const text = read(path);
    for (const [link] of [...text.matchAll(PATH), ...text.matchAll(ADDRESS)]) {
      named++;
      faults.push(fault("README.md", link, files)?.replace("README.md", path));
    }
  }
  assert.ok(named > 50, "the search for names finds too few");
  assert.deepEqual([...new Set(faults)].filter(Boolean), []);
});

test("every section that is named by its number is there", () => {
  const sections = [...prose("docs/format.md").matchAll(/^#+ ([\d.]*\d)\b/gm)].map(([, n]) => n);
  const faults = [];
  for (const path of repository.filter((path) => /\.(?:md|ts|rs)$/.test(path))) {
    const own = path === "docs/format.md" ? "" : "format\\.md\\)?,? ";
    const naming = new RegExp(`${own}(?:§ ?|section )(\\d+(?:\\.\\d+)?)`, "g");
    for (const [text, section] of read(path).matchAll(naming))
      if (!sections.includes(section)) faults.push(`${path}: ${text}`);
  }
  assert.deepEqual(faults, []);
});

test("a page names sources that are there", () => {
  const faults = packed.filter(isPage).flatMap((page) =>
    [...prose(page).matchAll(/`([^`\s]+)`/g)]
      .map(([, name]) => name)
      .filter((name) => SOURCE.test(name) && !has(repository, name))
      .map((name) => `${page}: ${name}`),
  );
  assert.deepEqual(faults, []);
});
