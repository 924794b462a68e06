// Duty: a query on an index, and its hits with the matches marked.

import { useState } from "preact/hooks";
import {
  type Hit,
  type Hits,
  type TextIndex,
  MARKS,
  type Mode,
  type Query,
  search,
} from "../../api/search";
import { useNewest } from "../../parts/acting";
import { Empty } from "../../parts/empty";
import { KeyView } from "../../parts/key-view";
import { hrefOf } from "../../shell/router";
import { reporting } from "../../shell/toasts";
import { printKey, printNode } from "../../values/print";
import { parseWhere } from "../../values/where";

interface QueryProps {
  readonly index: TextIndex;
  readonly prefixes: readonly string[];
  onChoose(prefix: string): void;
}

interface Found {
  readonly request: Query;
  readonly hits: Hits;
}

export function QueryForm({ index, prefixes, onChoose }: QueryProps) {
  const [query, setQuery] = useState("");
  const [mode, setMode] = useState<Mode>("words");
  const [where, setWhere] = useState("");
  const [found, setFound] = useState<Found>();
  const load = useNewest();
  const run = reporting(async () => {
    const filter = where === "" ? {} : { where: parseWhere(where) };
    const request = { prefix: index.prefix, query, mode, ...filter };
    const take = (hits: Hits): void => setFound({ request, hits });
    await load((signal) => search(request, signal), take);
  });
  // Of the query that found the hits: the fields may have other words by now.
  const more = ({ request, hits }: Found, cursor: string): void => {
    const take = (page: Hits): void =>
      setFound({ request, hits: { ...page, entries: [...hits.entries, ...page.entries] } });
    void load((signal) => search({ ...request, cursor }, signal), take);
  };
  const hits = found?.hits;
  return (
    <section class="panel" aria-label="Query">
      <header>
        <form
          class="row grow"
          onSubmit={(event) => {
            event.preventDefault();
            run();
          }}
        >
          <select
            aria-label="Index"
            value={printKey(index.prefix)}
            onChange={(event) => onChoose(event.currentTarget.value)}
          >
            {prefixes.map((prefix) => (
              <option key={prefix}>{prefix}</option>
            ))}
          </select>
          <select
            aria-label="Mode"
            value={mode}
            onChange={(event) => setMode(event.currentTarget.value as Mode)}
          >
            <option value="words">Words</option>
            <option value="query">Query</option>
          </select>
          <input
            class="grow"
            data-find
            aria-label="Words"
            placeholder={mode === "words" ? "Words: any text" : "Query: name:bik* NOT blue"}
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
          <input
            class="mono grow"
            aria-label="Filter"
            placeholder="Filter: { price: { $lt: 10 } }"
            value={where}
            onInput={(event) => setWhere(event.currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={query === ""}>
            Search
          </button>
        </form>
      </header>
      {hits?.complete === false && (
        <p class="notice warn">The index is being built: older entries may be missing.</p>
      )}
      {hits?.entries.length === 0 && (
        <Empty
          what="Nothing is found."
          next="Try fewer words, a beginning such as bik* in a query, or no filter."
        />
      )}
      <ol class="hits" aria-label="Hits">
        {hits?.entries.map((hit) => (
          <HitView key={printKey(hit.key)} hit={hit} />
        ))}
      </ol>
      {found?.hits.cursor != null && (
        <div class="body">
          <button type="button" onClick={() => more(found, found.hits.cursor!)}>
            Load more
          </button>
        </div>
      )}
    </section>
  );
}

function HitView({ hit }: { readonly hit: Hit }) {
  const highlights = Object.entries(hit.highlights ?? {});
  return (
    <li>
      <div class="row">
        <a class="grow" href={hrefOf("entries", { key: printKey(hit.key) })}>
          <KeyView value={hit.key} />
        </a>
        <span class="soft num">score {hit.score.toPrecision(3)}</span>
      </div>
      {highlights.map(([field, text]) => (
        <p key={field}>
          <span class="soft">{field}:</span> <Snippet text={text} />
        </p>
      ))}
      {highlights.length === 0 && hit.value !== null && <pre>{printNode(hit.value)}</pre>}
    </li>
  );
}

/** A snippet whose matches are elements. Its text is never markup. */
function Snippet({ text }: { readonly text: string }) {
  const [first = "", ...rest] = text.split(MARKS.before);
  return (
    <>
      {first}
      {rest.map((part, at) => {
        const [match = "", after = ""] = part.split(MARKS.after);
        return (
          <span key={at}>
            <mark>{match}</mark>
            {after}
          </span>
        );
      })}
    </>
  );
}
