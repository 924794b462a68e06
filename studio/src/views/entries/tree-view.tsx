// Duty: draws the rows of the tree in view, and moves in it by keys.

import type { Signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty } from "../../parts/empty";
import { whole } from "../../parts/figures";
import { PartView } from "../../parts/key-view";
import { rowPx, useVirtual } from "../../parts/virtual";
import type { Key } from "../../values/node";
import { type Branch, type Row, Tree } from "./tree";

interface TreeViewProps {
  readonly prefix: Key;
  /** The literal of the key whose entry is open. */
  readonly open: string | undefined;
  readonly marked: Signal<ReadonlyMap<string, Key>>;
  onOpen(key: Key): void;
  onDelete(key: Key): void;
}

export function TreeView({ prefix, open, marked, onOpen, onDelete }: TreeViewProps) {
  const tree = useMemo(() => new Tree(prefix), [prefix]);
  useEffect(() => () => tree.end(), [tree]);
  const scroller = useRef<HTMLDivElement>(null);
  const rows = tree.rows.value;
  const virtual = useVirtual(rows.length, scroller);
  const [at, setAt] = useState(0);
  const shown = virtual.getVirtualItems();
  useEffect(() => {
    for (const { index } of shown) {
      const row = rows[index];
      if (row === undefined) continue;
      if (!("more" in row)) tree.countOf(row);
      else if (row.more.state !== "failed") void tree.load(row.more);
    }
  });
  const mark = ({ key, id, entry }: Branch): void => {
    if (entry === undefined) return;
    const next = new Map(marked.value);
    if (!next.delete(id)) next.set(id, key);
    marked.value = next;
  };
  const choose = (branch: Branch): void => {
    if (branch.entry !== undefined) onOpen(branch.key);
    else tree.toggle(branch);
  };
  const moveTo = (index: number): void => {
    const place = Math.max(0, Math.min(rows.length - 1, index));
    setAt(place);
    virtual.scrollToIndex(place, { align: "auto" });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[at];
    const page = Math.floor((scroller.current?.clientHeight ?? 0) / rowPx.value);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
    };
    const step = steps[event.key];
    if (step !== undefined) moveTo(at + step);
    else if (event.key === "Home") moveTo(0);
    else if (event.key === "End") moveTo(rows.length - 1);
    else if (row === undefined) return;
    else if ("more" in row) {
      if (event.key !== "Enter") return;
      void tree.load(row.more);
    } else if (event.key === "ArrowRight") row.isOpen ? moveTo(at + 1) : tree.toggle(row, true);
    else if (event.key === "ArrowLeft") {
      if (row.isOpen) tree.toggle(row, false);
      else if (row.parent !== tree.root) moveTo(rows.indexOf(row.parent as Row));
    } else if (event.key === "Enter") choose(row);
    else if (event.key === " ") mark(row);
    else if (event.key === "Delete") onDelete(row.key);
    else return;
    event.preventDefault();
  };
  if (rows.length === 0 && tree.root.state === "whole")
    return (
      <Empty
        what="There are no entries here."
        next="New creates one; the arrow upwards imports a file. A prefix above may hide others."
      />
    );
  return (
    <div
      ref={scroller}
      class="rows"
      role="tree"
      tabIndex={0}
      aria-label="Keys"
      aria-multiselectable="true"
      aria-activedescendant={rows[at] === undefined ? undefined : `row-${at}`}
      onKeyDown={onKeyDown}
    >
      <div role="none" style={{ height: `${virtual.getTotalSize()}px`, position: "relative" }}>
        {shown.map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const style = { transform: `translateY(${start}px)` };
          const isAt = index === at ? "at" : "";
          if ("more" in row) {
            return (
              <div
                key="more"
                id={`row-${index}`}
                class={`line ${isAt}`}
                style={style}
                role="treeitem"
                tabIndex={-1}
                onClick={() => {
                  setAt(index);
                  void tree.load(row.more);
                }}
                onKeyDown={onKeyDown}
              >
                <span class="soft">
                  {row.more.state === "failed" ? "Not loaded: press to try again" : "Loading…"}
                </span>
              </div>
            );
          }
          const isMarked = marked.value.has(row.id);
          return (
            <div
              key={row.id}
              id={`row-${index}`}
              class={`line ${isAt} ${open === row.id ? "open" : ""} ${isMarked ? "marked" : ""}`}
              style={{ ...style, paddingInlineStart: `${row.level * 16 - 8}px` }}
              role="treeitem"
              tabIndex={-1}
              aria-level={row.level}
              aria-expanded={row.hasBelow ? row.isOpen : undefined}
              aria-selected={open === row.id}
              onClick={() => {
                setAt(index);
                choose(row);
              }}
              onKeyDown={onKeyDown}
            >
              <Twist
                row={row}
                onToggle={(event) => {
                  event.stopPropagation();
                  setAt(index);
                  tree.toggle(row);
                }}
              />
              <PartView part={row.part} />
              {row.entry?.expireAt !== undefined && <span class="badge warn">expires</span>}
              <span class="grow" />
              {isMarked && <span class="badge">marked</span>}
              {row.hasBelow && (
                <span class="count soft num">{row.count == null ? "…" : whole(row.count)}</span>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface TwistProps {
  readonly row: Branch;
  onToggle(event: Event): void;
}

/** Opens a branch by a click; keys do it on the row. */
function Twist({ row, onToggle }: TwistProps) {
  if (!row.hasBelow) return <span class="twist" aria-hidden="true" />;
  return (
    <span class="twist" aria-hidden="true" onClick={onToggle}>
      {row.isOpen ? "▾" : "▸"}
    </span>
  );
}
