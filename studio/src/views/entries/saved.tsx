// Duty: queries that the user has saved, for each database. They are in this browser; values never are.

import { useState } from "preact/hooks";
import { apiBase } from "../../shell/session";
import { setParams } from "../../shell/router";

export interface SavedQuery {
  readonly prefix: string;
  readonly where: string;
}

/** The oldest is forgotten beyond. */
const QUERIES_MAX = 50;

const place = (): string => `openkv-queries ${apiBase()}`;

function kept(): SavedQuery[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(place()) ?? "[]");
    return Array.isArray(found) ? (found as SavedQuery[]) : [];
  } catch {
    return [];
  }
}

function keep(queries: readonly SavedQuery[]): void {
  try {
    localStorage.setItem(place(), JSON.stringify(queries.slice(0, QUERIES_MAX)));
  } catch {
    // A browser without storage keeps them until the page is closed.
  }
}

const same = (a: SavedQuery, b: SavedQuery): boolean =>
  a.prefix === b.prefix && a.where === b.where;
const titleOf = ({ prefix, where }: SavedQuery): string => `${prefix || "[]"} ${where}`.trim();

export function Saved({ present }: { readonly present: SavedQuery }) {
  const [queries, setQueries] = useState(kept);
  const isSaved = queries.some((query) => same(query, present));
  const toggle = (): void => {
    const others = queries.filter((query) => !same(query, present));
    const next = isSaved ? others : [present, ...others];
    keep(next);
    setQueries(next);
  };
  return (
    <>
      <select
        class="grow"
        aria-label="Saved queries"
        disabled={queries.length === 0}
        value={isSaved ? titleOf(present) : ""}
        onChange={(event) => {
          const found = queries.find((query) => titleOf(query) === event.currentTarget.value);
          if (found !== undefined) setParams({ ...found });
        }}
      >
        <option value="">Saved queries…</option>
        {queries.map((query) => (
          <option key={titleOf(query)}>{titleOf(query)}</option>
        ))}
      </select>
      <button type="button" aria-pressed={isSaved} onClick={toggle}>
        {isSaved ? "Forget" : "Save"}
      </button>
    </>
  );
}
