// Duty: writes the table of docs/keyval.md, every route of /keyval/api, from the list that the tests send.
// `npm run generate` runs it.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ROUTES } from "../__test__/server/keyval/routes.mjs";

export const page = fileURLToPath(new URL("../docs/keyval.md", import.meta.url));
const HEAD = "## Routes\n";
const END = "## ";

function table() {
  const rows = ROUTES.map(
    ({ route, takes, answers }) =>
      `| \`${route.replace("{*path}", "users/1").replace("{id}", "5")}\` | ${takes} | ${answers} |`,
  );
  return [
    HEAD,
    "Written by `scripts/keyval-reference.mjs` from `__test__/server/keyval/routes/`, whose requests the tests send.\n",
    "| route | request | answer |\n|---|---|---|",
    ...rows,
    "",
    "",
  ].join("\n");
}

/** The page with the generated section. */
export function written() {
  const text = readFileSync(page, "utf8");
  const start = text.indexOf(HEAD);
  const behind = text.indexOf(END, start + HEAD.length);
  return text.slice(0, start) + table() + text.slice(behind);
}
