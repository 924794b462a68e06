// Duty: the entries of a prefix as a list, with a filter; pages are loaded as they are scrolled to.

import type { Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { list } from "../../api/entries";
import { Empty } from "../../parts/empty";
import { KeyView } from "../../parts/key-view";
import { useVirtual } from "../../parts/virtual";
import { report } from "../../shell/toasts";
import type { Entry, Key } from "../../values/node";
import { preview, printKey } from "../../values/print";

const PAGE_ENTRIES = 200;

interface ListViewProps {
  readonly prefix: Key;
  /** A filter in JSON; `undefined` for all. */
  readonly where: unknown;
  readonly reverse: boolean;
  readonly open: string | undefined;
  readonly marked: Signal<ReadonlyMap<string, Key>>;
  onOpen(key: Key): void;
}

interface Loaded {
  readonly entries: readonly Entry[];
  /** Of the next page; `undefined` for the first, `null` behind the last. */
  readonly cursor: string | null | undefined;
  /** The last requested page did not come. */
  readonly isFailed?: boolean;
}

export function ListView({ prefix, where, reverse, open, marked, onOpen }: ListViewProps) {
  const [loaded, setLoaded] = useState<Loaded>({ entries: [], cursor: undefined });
  const loading = useRef(false);
  const scroller = useRef<HTMLDivElement>(null);
  const { entries, cursor, isFailed = false } = loaded;
  const count = entries.length + (cursor === null ? 0 : 1);
  const virtual = useVirtual(count, scroller);
  const shown = virtual.getVirtualItems();
  const load = async (): Promise<void> => {
    if (loading.current || cursor === null) return;
    loading.current = true;
    try {
      const page = await list({
        ...{ prefix, reverse, limit: PAGE_ENTRIES },
        ...(where === undefined ? {} : { where }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      setLoaded({ entries: [...entries, ...page.entries], cursor: page.cursor });
    } catch (error) {
      report(error);
      setLoaded({ entries, cursor, isFailed: true });
    } finally {
      loading.current = false;
    }
  };
  useEffect(() => {
    if (!isFailed && (cursor === undefined || shown.at(-1)?.index === entries.length)) void load();
  });
  const mark = ({ key }: Entry): void => {
    const next = new Map(marked.value);
    const id = printKey(key);
    if (!next.delete(id)) next.set(id, key);
    marked.value = next;
  };
  if (count === 0) {
    const next =
      where === undefined
        ? "New creates one; the arrow upwards imports a file. A prefix above may hide others."
        : "No entry matches the filter: clear it, or change it.";
    return <Empty what="There are no entries here." next={next} />;
  }
  return (
    <div ref={scroller} class="rows" role="list" aria-label="Entries" tabIndex={0}>
      <div role="none" style={{ height: `${virtual.getTotalSize()}px`, position: "relative" }}>
        {shown.map(({ index, start }) => {
          const entry = entries[index];
          const style = { transform: `translateY(${start}px)` };
          if (entry === undefined) {
            return (
              <div key="more" class="line soft" role="listitem" style={style}>
                {isFailed ? (
                  <button type="button" class="plain" onClick={() => void load()}>
                    Not loaded: try again
                  </button>
                ) : (
                  "Loading…"
                )}
              </div>
            );
          }
          const id = printKey(entry.key);
          return (
            <div key={id} class={`line ${open === id ? "open" : ""}`} role="listitem" style={style}>
              <label class="check">
                <input
                  type="checkbox"
                  aria-label={`Mark ${id}`}
                  checked={marked.value.has(id)}
                  onChange={() => mark(entry)}
                />
              </label>
              <button type="button" class="plain entry" onClick={() => onOpen(entry.key)}>
                <KeyView value={entry.key} />
                <span class="soft mono preview">{preview(entry.value!)}</span>
              </button>
            </div>
          );
        })}
      </div>
    </div>
  );
}
