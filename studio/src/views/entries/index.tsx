// Duty: the view of entries: a tree or a list of keys, and the open entry beside it.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import "./entries.css";
import { useCommands } from "../../shell/commands";
import { isTyping } from "../../shell/keys";
import { route, setParams } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { useActing } from "../../parts/acting";
import { report } from "../../shell/toasts";
import type { Entry, Key, Node } from "../../values/node";
import { parseKey } from "../../values/parse";
import { printKey } from "../../values/print";
import { parseWhere } from "../../values/where";
import { exportTo } from "../../api/transfer";
import { deleteMarked, deleteOne, restored } from "./deleting";
import { Detail } from "./detail";
import { ImportDialog } from "./import-dialog";
import { Explain } from "./explain";
import { ListView } from "./list-view";
import { NewEntry } from "./new-entry";
import { Tools } from "./tools";
import { TreeView } from "./tree-view";

interface Making {
  readonly key: Key;
  readonly value: Node | undefined;
}

function parsed<T>(text: string | undefined, parse: (text: string) => T): T | Error | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return parse(text);
  } catch (error) {
    return error as Error;
  }
}

export function Entries() {
  const { database, params } = route.value;
  /** The marked entries, by the literals of their keys. They are forgotten with the view. */
  const marked = useSignal<ReadonlyMap<string, Key>>(new Map());
  const [reloads, setReloads] = useState(0);
  const loads = reloads + restored.value;
  const [making, setMaking] = useState<Making>();
  const [isImporting, setImporting] = useState(false);
  const found = useMemo(() => parsed(params.prefix, parseKey) ?? [], [params.prefix, loads]);
  const where = useMemo(() => parsed(params.where, parseWhere), [params.where]);
  const open = useMemo(() => parsed(params.key, parseKey), [params.key]);
  const prefix = found instanceof Error ? [] : found;
  const fault = [found, where, open].find((one) => one instanceof Error) as Error | undefined;
  const isList = params.form === "list";
  const list = `${loads} ${params.prefix} ${params.where} ${params.order}`;

  const { isActing, acting } = useActing();
  const reload = (): void => setReloads((now) => now + 1);
  const openKey = (key: Key | undefined): void => setParams({ key: key && printKey(key) });
  const remove = async (keys: readonly Key[]): Promise<void> => {
    if (readOnly.value || keys.length === 0) return;
    const [key] = keys;
    const isOne = keys.length === 1;
    const isDone = isOne ? await deleteOne(database, key!) : await deleteMarked(database, keys);
    if (!isDone) return;
    const gone = new Set(keys.map(printKey));
    marked.value = new Map([...marked.value].filter(([id]) => !gone.has(id)));
    // Another entry may be open by now, also one of another database.
    const { database: present, params: shown } = route.value;
    const opened = parsed(shown.key, parseKey);
    const isOpen = Array.isArray(opened) && gone.has(printKey(opened));
    if (present === database && isOpen) openKey(undefined);
    reload();
  };
  const removeSome = (key?: Key): void => {
    const some = [...marked.value.values()];
    acting(() => remove(some.length > 0 || key === undefined ? some : [key]))();
  };
  const make = (): void => {
    if (!readOnly.value) setMaking({ key: prefix, value: undefined });
  };
  const commands = useMemo(
    () => [
      { title: "New entry", keys: "n", run: make },
      { title: "Delete the marked entries", run: () => removeSome() },
      {
        title: prefix.length === 0 ? "Export all entries" : `Export ${printKey(prefix)}`,
        run: () => {
          exportTo(database, prefix, "openkv.ndjson").catch(report);
        },
      },
      {
        title: "Import entries",
        run: () => {
          if (!readOnly.value) setImporting(true);
        },
      },
      { title: "Show the keys as a tree", run: () => setParams({ form: undefined }) },
      { title: "Show the entries as a list", run: () => setParams({ form: "list" }) },
    ],
    [params.prefix],
  );
  useCommands(commands);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isOther = event.ctrlKey || event.metaKey || event.altKey || isTyping(event);
      if (event.key !== "n" || isOther || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      make();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const shared = { prefix, open: params.key, marked, onOpen: openKey };
  const listed = {
    where: where instanceof Error ? undefined : where,
    reverse: params.order === "last",
  };
  return (
    <div class={`entries ${params.key ? "has-open" : ""}`}>
      <div class="keys">
        <Tools
          {...{ params, isList, fault, marked: marked.value.size, isDeleting: isActing }}
          onNew={make}
          onImport={() => setImporting(true)}
          onExport={() => {
            exportTo(database, prefix, "openkv.ndjson").catch(report);
          }}
          onReload={reload}
          onDelete={() => removeSome()}
          onUnmark={() => {
            marked.value = new Map();
          }}
        />
        {isList && <Explain key={`explain ${list}`} prefix={prefix} {...listed} />}
        {isList ? (
          <ListView key={list} {...shared} {...listed} />
        ) : (
          <TreeView key={loads} {...shared} onDelete={(key) => removeSome(key)} />
        )}
      </div>
      <div class="place">
        {open === undefined || open instanceof Error ? (
          <p class="empty">Choose a key to see its entry.</p>
        ) : (
          <Detail
            key={params.key}
            of={open}
            isDeleting={isActing}
            onClose={() => openKey(undefined)}
            onDelete={(key) => acting(() => remove([key]))()}
            onDuplicate={({ key, value }: Entry) => setMaking({ key, value: value ?? undefined })}
          />
        )}
      </div>
      {isImporting && (
        <ImportDialog
          onClose={() => setImporting(false)}
          onDone={() => {
            setImporting(false);
            reload();
          }}
        />
      )}
      {making !== undefined && (
        <NewEntry
          firstKey={making.key}
          firstValue={making.value}
          onClose={() => setMaking(undefined)}
          onCreated={(key) => {
            setMaking(undefined);
            openKey(key);
            reload();
          }}
        />
      )}
    </div>
  );
}
