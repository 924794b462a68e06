// Duty: the view of full-text search: indexes with their progress, and queries.

import { useEffect, useState } from "preact/hooks";
import "./search.css";
import { type Index, dropIndex, indexes } from "../../api/search";
import { Empty } from "../../parts/empty";
import { whole } from "../../parts/figures";
import { KeyView } from "../../parts/key-view";
import { confirm } from "../../parts/dialog";
import { route, setParams } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { report, reporting, say } from "../../shell/toasts";
import { printKey } from "../../values/print";
import { NewIndexForm } from "./new-index";
import { QueryForm } from "./query";

/** While an index is built, its progress is asked for. */
const PROGRESS_MS = 1000;

export function Search() {
  const [found, setFound] = useState<readonly Index[]>();
  const { prefix } = route.value.params;
  const load = (): void => {
    indexes().then(setFound, report);
  };
  useEffect(load, []);
  useEffect(() => {
    if (!found?.some(({ state }) => state === "building")) return undefined;
    const timer = setTimeout(load, PROGRESS_MS);
    return () => clearTimeout(timer);
  }, [found]);
  const drop = (index: Index): (() => void) =>
    reporting(async () => {
      const isSure = await confirm({
        title: `Drop the index ${index.name}?`,
        text: "Entries stay. The index can be created again.",
        action: "Drop",
      });
      if (!isSure) return;
      await dropIndex(index.name);
      say("Dropped");
      load();
    });
  const chosen = found?.find((index) => printKey(index.prefix) === prefix) ?? found?.[0];
  return (
    <div class="view">
      <section class="panel" aria-label="All indexes">
        <header>
          <h2>Indexes</h2>
        </header>
        <div class="scroll" role="region" aria-label="Indexes" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Prefix</th>
                <th scope="col">Fields</th>
                <th scope="col">State</th>
                <th class="num">Documents</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {found?.map((index) => (
                <IndexRow key={index.name} index={index} onDrop={drop(index)} />
              ))}
            </tbody>
          </table>
        </div>
        {found?.length === 0 && (
          <Empty
            what="There are no indexes."
            next="An index finds words in the values below a prefix. Name a prefix and its fields, and create one."
          />
        )}
        <NewIndexForm onCreated={load} />
      </section>
      {chosen !== undefined && (
        <QueryForm
          key={chosen.name}
          prefixes={found!.map((index) => printKey(index.prefix))}
          index={chosen}
          onChoose={(literal) => setParams({ prefix: literal })}
        />
      )}
    </div>
  );
}

function IndexRow({ index, onDrop }: { readonly index: Index; onDrop(): void }) {
  const { name, prefix, fields, tokenize, state, indexed, documents } = index;
  return (
    <tr>
      <td>
        <KeyView value={prefix} />
      </td>
      <td>
        {fields.join(", ")} <span class="soft">({tokenize})</span>
      </td>
      <td>
        {state === "ready" ? (
          <span class="badge">ready</span>
        ) : (
          <span class="badge warn">building: {whole(indexed)} done</span>
        )}
      </td>
      <td class="num">{whole(documents)}</td>
      <td class="num">
        <button
          type="button"
          class="danger"
          aria-label={`Drop the index ${name}`}
          disabled={readOnly.value}
          onClick={onDrop}
        >
          Drop
        </button>
      </td>
    </tr>
  );
}
