// Duty: the numbers that the pages and the declarations tell are those of the code. numbers.mjs has the
// sentences with the names of constants in the place of numbers; a page has each of them with the value of
// the constant, in any usual spelling. A quantity that no sentence covers fails the test too, so a new one
// gets its sentence, or its place among those that no constant decides.
//
// Pages told numbers of earlier versions: the code had changed them, and nothing looked at the pages.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { shelves } from "../conformance/suite.mjs";
import { GENERATED, GENERATED_SECTIONS, MEASURED, OTHERS, SENTENCES } from "./numbers.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path) => readFileSync(root + path, "utf8");

/** The constants of a source by name; a later one may name those before it. */
function constantsOf(path, known = new Map()) {
  const constants = read(path).matchAll(
    /^ *(?:pub(?:\(\w+\))? |export )?const ([A-Z][A-Z0-9_]*)\b[^=\n]*?= ([^;]+);/gm,
  );
  for (const [, name, expression] of constants) {
    const terms = expression.replaceAll(/\bsuper::| as \w+/g, "");
    if (!/^[\s\w*+(),.:[\]{}-]+$/.test(terms)) continue;
    try {
      known.set(name, runInNewContext(`(${terms})`, Object.fromEntries(known)));
    } catch {
      // It is no number.
    }
  }
  return known;
}

const bounds = new Map();
const limits = readdirSync(`${root}crates/core/src/model/limits`).map(
  (name) => `crates/core/src/model/limits/${name}`,
);
// Twice: a file may name the constants of another one.
for (const path of ["crates/core/src/model/limits.rs", ...limits, ...limits])
  constantsOf(path, bounds);
/** The limits of a handle, as `deno.keyBytesMax` and `wide.keyBytesMax`. */
for (const [, name, deno, wide] of read("crates/core/src/model/limits.rs").matchAll(
  / "(\w+)" = ([^,]+), wide ([^;]+);/g,
)) {
  bounds.set(`deno.${name}`, runInNewContext(deno));
  bounds.set(`wide.${name}`, runInNewContext(wide, { MIB: bounds.get("MIB") }));
}

const lengthOf = (path) => Number(/const ALL: \[Self; (\d+)\]/.exec(read(path))[1]);
bounds.set("DEFECTS", lengthOf("crates/core/src/layer/defect.rs"));
bounds.set("INDEX_DEFECTS", lengthOf("crates/core/src/index/defect.rs"));
bounds.set("DEVIATIONS", lengthOf("tests/simulation/postgres.rs"));
const cases = shelves.reduce((sum, { cases }) => sum + cases.length, 0);
bounds.set("CASES_IN_HUNDREDS", Math.floor(cases / 100) * 100);

/** The value of a name: a bound, or `path NAME` of another source, times a factor if one follows. */
function valueOf(name) {
  const [, path, whole, factor] = /^(?:(\S+\/\S+) )?([\w.]+)(?: \* (\d+))?$/.exec(name);
  const known = path === undefined ? bounds : constantsOf(path);
  const [constant, part] = known.has(whole) ? [whole] : whole.split(".");
  const value = part === undefined ? known.get(constant) : known.get(constant)?.[part];
  assert.equal(typeof value, "number", `no constant ${name}`);
  return value * Number(factor ?? 1);
}

const WORDS = [
  ...["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
  ...["eleven", "twelve"],
];
const MORE_WORDS = {
  15: "fifteen",
  30: "thirty",
  50: "fifty",
  64: "sixty-four",
  100: "a hundred",
  1000: "a thousand",
};
const UNITS = {
  bytes: { bytes: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
  time: {
    µs: 0.001,
    ms: 1,
    "s|seconds?": 1000,
    minutes: 60_000,
    hours: 3_600_000,
    days: 86_400_000,
    years: 36_525 * 864_000,
  },
};
const ARTICLES = { 60000: "a minute|one minute", 3600000: "an hour", 86400000: "a day" };

/** The spellings of a number, as alternatives of a pattern. */
function numberAs(value) {
  if (!Number.isInteger(value * 10)) return [];
  const words = [WORDS[value], MORE_WORDS[value], value === 1_000_000 && "a million"];
  return [`${value}`, value.toLocaleString("en-US"), ...words.filter(Boolean)];
}

/** How often something happens that has this interval. */
function timesAs(ms) {
  const often = (times) =>
    times === 1 ? "once" : times === 2 ? "twice" : `${numberAs(times).at(-1)} times`;
  if (ms === 60_000) return ["once a minute"];
  return Number.isInteger(1000 / ms) ? [`${often(1000 / ms)} a second`] : [];
}

function kindOf(name) {
  if (/_BYTES(_|$)|Bytes/.test(name)) return "bytes";
  return /_(MS|US|S)(_|\b)|Ms(M|\b)/.test(name) ? "time" : "count";
}

/** `{NAME}`, `{path NAME}`, with a part of it, a factor, and a unit if the number stands alone. */
const PLACEHOLDER =
  /\{((?:(?:__test__|crates|js|scripts|src|studio|tests)\/\S+ )?(?:[A-Z][A-Z0-9_]+(?:\.\w+)?|(?:deno|wide)\.\w+)(?: \* \d+)?(?::\w+)?)\}/;

/** The pattern of `{NAME}` or `{NAME:unit}`, which is the number alone. */
function patternOf(placeholder) {
  const [name, unit] = placeholder.split(":");
  const kind = kindOf(name);
  let value = valueOf(name);
  if (/_US(_|\b)/.test(name)) value /= 1000;
  if (/_S(_|\b)/.test(name)) value *= 1000;
  if (unit !== undefined) {
    const size = { ...UNITS.bytes, ...UNITS.time, s: 1000 }[unit];
    return `(?:${numberAs(value / size).join("|")})`;
  }
  const forms = numberAs(value);
  if (kind !== "count") {
    for (const [name, size] of Object.entries(UNITS[kind]))
      for (const number of numberAs(value / size)) forms.push(`${number} (?:${name})`);
    if (value === 100 * 365 * 86_400_000) forms.push("a hundred years");
  }
  if (kind === "time") {
    forms.push(...timesAs(value), ARTICLES[value] ?? []);
    if (value < 1000 && value >= 100)
      forms.push(
        { 500: "half a second", 250: "a quarter of a second", 100: "a tenth of a second" }[value] ??
          [],
      );
    if (value === 1000) forms.push("a second", "one second", "second");
  }
  return `(?:${forms.flat().join("|")})(?![\\d.,]*\\d)`;
}

/** The text of a page or of declarations without blocks of code, each gap one space. */
function textOf(page) {
  return read(page)
    .replaceAll(/^( *)(```+).*\n(?:.*\n)*?\1\2$/gm, "")
    .replaceAll(/^ *(?:\/\*)?\*+ /gm, " ")
    .replace(/^/, " ")
    .replaceAll(/\s+/g, " ");
}

/** A quantity: a number with a unit of size or time, or one behind words of a bound. */
const QUANTITY = new RegExp(
  [
    "(?<![\\w.,#^-])\\d[\\d.,]* ?(?:KiB|MiB|GiB|ms|s|seconds?|minutes?|hours?|days?)\\b",
    "\\b(?:an?|one|two|three|five|seven|ten|thirty|sixty) (?:seconds|minutes?|hours?|days?)\\b",
    // Elsewhere it may be the ordinal: a second attempt.
    "\\b(?:after|every|for|least|most|than|within) (?:a|one) second\\b(?! \\w+)",
    "\\b\\d[\\d,]{2,} bytes\\b",
    "\\b(?:at most|at least|up to|more than|over|longer than) (?:\\d[\\d.,]*|ten|a hundred|a thousand)\\b",
  ].join("|"),
  "g",
);

/** A page without the sections whose numbers are measured or generated, each up to the next heading of its level. */
function withoutSections(page, text) {
  let rest = text;
  for (const heading of [...(MEASURED[page] ?? []), ...(GENERATED_SECTIONS[page] ?? [])]) {
    const level = /^#+/.exec(heading)[0];
    const at = rest.indexOf(` ${heading} `);
    assert.notEqual(at, -1, `${page} has no ${heading}`);
    const next = rest.slice(at + heading.length).search(new RegExp(` #{1,${level.length}} `));
    rest = rest.slice(0, at) + (next === -1 ? "" : rest.slice(at + heading.length + next));
  }
  return rest;
}

const pages = [
  "README.md",
  ...["docs", "docs/internals"].flatMap((folder) =>
    readdirSync(root + folder).map((name) => `${folder}/${name}`),
  ),
  "index.d.ts",
]
  .filter((page) => /\.(?:md|ts)$/.test(page))
  .filter((page) => !(page in GENERATED));

describe("the numbers of", () => {
  for (const page of pages)
    test(page, () => {
      let text = textOf(page);
      const faults = [];
      for (const sentence of SENTENCES[page] ?? []) {
        const parts = sentence.replaceAll(/\s+/g, " ").split(PLACEHOLDER);
        const pattern = parts.map((part, at) =>
          at % 2 === 1 ? patternOf(part) : part.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&"),
        );
        const rest = text.replaceAll(new RegExp(pattern.join(""), "g"), "…");
        if (rest === text) faults.push(`the page does not say: ${sentence}`);
        text = rest;
      }
      text = withoutSections(page, text);
      for (const other of OTHERS[page] ?? []) {
        if (!text.includes(other)) faults.push(`the page does not say: ${other}`);
        text = text.replaceAll(other, "…");
      }
      for (const { 0: quantity, index } of text.matchAll(QUANTITY)) {
        const end = index + quantity.length;
        const around = [text.slice(Math.max(0, index - 50), index), text.slice(end, end + 30)];
        faults.push(`no sentence covers: ${around[0]}[${quantity}]${around[1]}`);
      }
      assert.ok(faults.length === 0, `${page}, see numbers.mjs:\n${faults.join("\n")}`);
    });
});

test("a section with measurements names a command that is there", () => {
  for (const [page, headings] of Object.entries(MEASURED)) {
    const text = read(page);
    for (const heading of headings) {
      const from = text.indexOf(`\n${heading}\n`);
      const level = /^#+/.exec(heading)[0].length;
      const [section] = text.slice(from + heading.length + 1).split(new RegExp(`\n#{1,${level}} `));
      const commands = [
        ...section.matchAll(
          /(?:node|npm run|cargo bench --bench) ((?:bench\/|__test__\/)?[\w:./-]+)/g,
        ),
      ].map(([, name]) => name);
      assert.ok(commands.length > 0, `${page}: ${heading} names no command`);
      const { scripts } = JSON.parse(read("package.json"));
      for (const name of commands)
        assert.ok(
          existsSync(root + name) || name in scripts || existsSync(`${root}benches/${name}.rs`),
          `${page}: ${name}`,
        );
    }
  }
});
