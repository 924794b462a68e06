// Duty: the view of indexes and full-text search: indexes of both types with their progress, and queries.

import { useEffect, useState } from "preact/hooks";
import "./search.css";
import { type Index, type IndexPath, dropIndex, indexes } from "../../api/search";
import { useActing, useNewest } from "../../parts/acting";
import { Empty } from "../../parts/empty";
import { whole } from "../../parts/figures";
import { KeyView } from "../../parts/key-view";
import { confirm } from "../../parts/dialog";
import { route, setParams } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";
import { printKey } from "../../values/print";
import { NewIndexForm } from "./new-index";
import { QueryForm } from "./query";

/** While an index is built, its progress is polled. */
const PROGRESS_MS = 1000;

export function Search() {
  const [found, setFound] = useState<readonly Index[]>();
  const { database, params } = route.value;
  const newest = useNewest();
  const { isActing, acting } = useActing();
  const load = (): void => void newest(indexes, setFound);
  useEffect(load, []);
  useEffect(() => {
    if (!found?.some(({ state }) => state === "building")) return undefined;
    const timer = setTimeout(load, PROGRESS_MS);
    return () => clearTimeout(timer);
  }, [found]);
  const drop = (index: Index): (() => void) =>
    acting(async () => {
      const isSure = await confirm({
        title: `Drop the index ${index.name}?`,
        text: "Entries stay. The index can be created again.",
        action: "Drop",
      });
      if (!isSure) return;
      await dropIndex(database, index.name);
      say("Dropped");
      load();
    });
  const texts = found?.filter((index) => index.type === "fulltext");
  const chosen = texts?.find((index) => printKey(index.prefix) === params.prefix) ?? texts?.[0];
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
                <th scope="col">Fields or paths</th>
                <th scope="col">State</th>
                <th class="num">Documents</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {found?.map((index) => (
                <IndexRow key={index.name} {...{ index, isActing }} onDrop={drop(index)} />
              ))}
            </tbody>
          </table>
        </div>
        {found?.length === 0 && (
          <Empty
            what="There are no indexes."
            next="An index finds words in the values below a prefix, or has the values in their order. Name a prefix and its fields, and create one."
          />
        )}
        <NewIndexForm onCreated={load} />
      </section>
      {chosen !== undefined && (
        <QueryForm
          key={chosen.name}
          prefixes={texts!.map((index) => printKey(index.prefix))}
          index={chosen}
          onChoose={(literal) => setParams({ prefix: literal })}
        />
      )}
    </div>
  );
}

const spelled = ({ path, order }: IndexPath): string => (order === "desc" ? `-${path}` : path);

function kindOf(index: Index): string {
  if (index.type === "fulltext") return index.tokenize;
  const traits = (["unique", "multi", "sparse"] as const).filter((trait) => index[trait]);
  return ["values", ...traits].join(", ");
}

function faultOf(index: Index): string {
  const isTwice = index.type === "value" && index.failure?.other != null;
  return isTwice ? "two entries have one value" : "a value cannot be unique";
}

interface IndexRowProps {
  readonly index: Index;
  readonly isActing: boolean;
  onDrop(): void;
}

function IndexRow({ index, isActing, onDrop }: IndexRowProps) {
  const { name, prefix, state, indexed } = index;
  return (
    <tr>
      <td>
        <KeyView value={prefix} />
      </td>
      <td>
        {index.type === "fulltext" ? index.fields.join(", ") : index.on.map(spelled).join(", ")}{" "}
        <span class="soft">({kindOf(index)})</span>
      </td>
      <td>
        {state === "ready" && <span class="badge">ready</span>}
        {state === "failed" && <span class="badge warn">failed: {faultOf(index)}</span>}
        {state === "building" && <span class="badge warn">building: {whole(indexed)} done</span>}
      </td>
      <td class="num">{index.type === "fulltext" ? whole(index.documents) : ""}</td>
      <td class="num">
        <button
          type="button"
          class="danger"
          aria-label={`Drop the index ${name}`}
          disabled={readOnly.value || isActing}
          onClick={onDrop}
        >
          Drop
        </button>
      </td>
    </tr>
  );
}
