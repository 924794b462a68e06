// Duty: writes the last section of docs/http.md, every route with its parameters and their bounds, from the
// OpenAPI document. `npm run generate` runs it.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const page = fileURLToPath(new URL("../docs/http.md", import.meta.url));
const DOCUMENT = new URL("../crates/server/src/api/openapi.json", import.meta.url);
const HEAD = "## All parameters\n";
const METHODS = ["get", "put", "post", "delete"];

/** The OpenAPI document of a server of one file. */
export function document() {
  return JSON.parse(readFileSync(DOCUMENT, "utf8"));
}

/** The operations of a document: `{ method, path, operation }`, paths without `/api`. */
export function operations({ paths }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({
      method: method.toUpperCase(),
      path: path.replace("/api", ""),
      operation: item[method],
    })),
  );
}

/** The section, with its heading. */
export function reference(openapi) {
  const rows = operations(openapi)
    .filter(({ operation }) => (operation.parameters ?? []).length > 0)
    .map(({ method, path, operation }) => `| \`${method} ${path}\` | ${parameters(operation)} |`);
  return [
    HEAD,
    "Written by `scripts/http-reference.mjs` from `/openapi.json`, which has the bodies and answers too. `?`: may be left out.\n",
    "| route | parameters (default) |\n|---|---|",
    ...rows,
    "",
  ].join("\n");
}

/** The page with the generated section. */
export function written() {
  const text = readFileSync(page, "utf8");
  const start = text.indexOf(HEAD);
  const before = start === -1 ? `${text.trimEnd()}\n\n` : text.slice(0, start);
  return before + reference(document());
}

function parameters({ parameters }) {
  const named = parameters.map(({ name, required, schema }) => {
    const { minimum, maximum, default: usual } = schema;
    const range = maximum === undefined ? "" : ` ${minimum} to ${maximum}`;
    return `\`${name}${required ? "" : "?"}\`${range}${usual === undefined ? "" : ` (${usual})`}`;
  });
  return named.join(", ");
}
