// Duty: what is shown of the entries: prefix, tree or list, filter, order.

import { useEffect, useState } from "preact/hooks";
import { Fault } from "../../parts/fault";
import { setParams } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { Saved } from "./saved";

interface ToolsProps {
  readonly params: Readonly<Record<string, string>>;
  readonly isList: boolean;
  readonly fault: Error | undefined;
  readonly marked: number;
  readonly isDeleting: boolean;
  onNew(): void;
  onImport(): void;
  onExport(): void;
  onReload(): void;
  onDelete(): void;
  onUnmark(): void;
}

export function Tools({ params, isList, fault, marked, isDeleting, ...on }: ToolsProps) {
  const [prefix, setPrefix] = useState(params.prefix ?? "");
  const [where, setWhere] = useState(params.where ?? "");
  // Links and saved queries change them too.
  useEffect(() => setPrefix(params.prefix ?? ""), [params.prefix]);
  useEffect(() => setWhere(params.where ?? ""), [params.where]);
  const apply = (event: Event): void => {
    event.preventDefault();
    setParams({ prefix, ...(isList ? { where } : {}) });
  };
  return (
    <form class="tools" onSubmit={apply}>
      <div class="row">
        <input
          class="mono grow"
          data-find
          aria-label="Prefix"
          aria-invalid={fault !== undefined}
          placeholder='Prefix: users, or ["users", 42]'
          value={prefix}
          onInput={(event) => setPrefix(event.currentTarget.value)}
          onBlur={apply}
        />
        <div class="choice" role="group" aria-label="Form">
          <button
            type="button"
            aria-pressed={!isList}
            onClick={() => setParams({ form: undefined, where: undefined, order: undefined })}
          >
            Tree
          </button>
          <button type="button" aria-pressed={isList} onClick={() => setParams({ form: "list" })}>
            List
          </button>
        </div>
        <button
          type="button"
          class="icon"
          aria-label="Export"
          title="Export what is below the prefix"
          onClick={on.onExport}
        >
          ⇩
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Import"
          title="Import"
          disabled={readOnly.value}
          onClick={on.onImport}
        >
          ⇧
        </button>
        <button type="button" class="icon" aria-label="Reload" title="Reload" onClick={on.onReload}>
          ↻
        </button>
        <button type="button" class="primary" disabled={readOnly.value} onClick={on.onNew}>
          New
        </button>
      </div>
      {isList && (
        <div class="row">
          <input
            class="mono grow"
            aria-label="Filter"
            placeholder="Filter: { age: { $gte: 18 } }"
            value={where}
            onInput={(event) => setWhere(event.currentTarget.value)}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={params.order === "last"}
              onChange={(event) =>
                setParams({ order: event.currentTarget.checked ? "last" : undefined })
              }
            />
            last first
          </label>
          <button type="submit">Apply</button>
        </div>
      )}
      {isList && (
        <div class="row">
          <Saved present={{ prefix: params.prefix ?? "", where: params.where ?? "" }} />
        </div>
      )}
      <Fault text={fault?.message ?? ""} />
      {marked > 0 && (
        <div class="row notice">
          <span class="grow">{marked} marked</span>
          <button type="button" onClick={on.onUnmark}>
            Unmark
          </button>
          <button
            type="button"
            class="danger"
            disabled={readOnly.value || isDeleting}
            onClick={on.onDelete}
          >
            Delete
          </button>
        </div>
      )}
    </form>
  );
}
