// Duty: copies an entry as code.

import { useState } from "preact/hooks";
import { copyText } from "../../parts/clipboard";
import { apiBase } from "../../shell/session";
import { type Doing, asCli, asCurl, asJavaScript } from "../../values/code";
import type { Entry } from "../../values/node";
import { printKey, printNode } from "../../values/print";

const FORMS: readonly (readonly [string, (entry: Entry) => string])[] = [
  ["Key", ({ key }) => printKey(key)],
  ["Value", ({ value }) => (value === null ? "" : printNode(value))],
  ...(["get", "set", "delete"] as Doing[]).flatMap((doing) => [
    [`JavaScript: ${doing}`, (entry: Entry) => asJavaScript(doing, entry)] as const,
    [
      `curl: ${doing}`,
      (entry: Entry) => asCurl(doing, entry, location.origin + apiBase()),
    ] as const,
    [`CLI: ${doing}`, (entry: Entry) => asCli(doing, entry)] as const,
  ]),
];

export function CopyAs({ entry }: { readonly entry: Entry }) {
  const [chosen, setChosen] = useState("");
  return (
    <select
      aria-label="Copy as"
      value={chosen}
      onChange={(event) => {
        const form = FORMS.find(([name]) => name === event.currentTarget.value);
        setChosen("");
        event.currentTarget.value = "";
        if (form !== undefined) copyText(form[1](entry), form[0]);
      }}
    >
      <option value="">Copy as…</option>
      {FORMS.map(([name]) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}
