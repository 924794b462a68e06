// Duty: what the list reads: its indexes and their bounds, and how many entries it visits. Another list needs another
// `key`, so that an answer that comes late is not shown under it.

import { useState } from "preact/hooks";
import { type Explanation, explain } from "../../api/entries";
import { whole } from "../../parts/figures";
import { reporting } from "../../shell/toasts";
import type { Key } from "../../values/node";

/** The entries that the list reads at once. */
const PAGE_ENTRIES = 200;

interface ExplainProps {
  readonly prefix: Key;
  /** A filter in JSON; `undefined` for all. */
  readonly where: unknown;
  readonly reverse: boolean;
}

export function Explain({ prefix, where, reverse }: ExplainProps) {
  const [found, setFound] = useState<Explanation>();
  const run = reporting(async () => {
    const filter = where === undefined ? {} : { where };
    setFound(await explain({ prefix, reverse, limit: PAGE_ENTRIES, ...filter }));
  });
  return (
    <div class="row explain">
      <button type="button" onClick={run}>
        Explain
      </button>
      {found !== undefined && (
        <output class="grow" aria-label="Explanation">
          {wayOf(found)}: {whole(found.visited)} visited, {whole(found.filtered)} left out,{" "}
          {whole(found.returned)} returned
          {found.complete ? "" : ", and more that were not read"}
        </output>
      )}
    </div>
  );
}

function wayOf({ method, branches, reason, indexEntries }: Explanation): string {
  if (method !== "index") return reason === null ? method : `${method}, because ${reason}`;
  const read = branches.map(({ index, bounds }) => {
    const of = bounds.map(({ path, ranges }) => `${path}: ${ranges.join(", ")}`);
    return of.length === 0 ? index : `${index} (${of.join("; ")})`;
  });
  return `index ${read.join(" or ")}, ${whole(indexEntries)} of its entries`;
}
