// Duty: a value as a tree of its parts with their types, which can be changed one by one. Browsers open
// and close `details` by keys.

import { useState } from "preact/hooks";
import type { Node } from "../values/node";
import { type Part, namedBy, partsOf, withAdded, withPart } from "../values/edit";
import { parseNode } from "../values/parse";
import { inLine } from "../values/print";

/** Parts of one level that are drawn; text shows all of them. */
const PARTS_MAX = 500;
const LEVELS_OPEN = 2;

interface ValueTreeProps {
  readonly node: Node;
  /** Without it nothing can be changed. */
  readonly onChange: ((node: Node) => void) | undefined;
}

export function ValueTree({ node, onChange }: ValueTreeProps) {
  return (
    <div class="value-tree mono">
      <Branch path="Value" name="" node={node} level={0} onChange={onChange} onRemove={undefined} />
    </div>
  );
}

interface BranchProps extends ValueTreeProps {
  readonly name: string;
  /** All names from the outside, for labels. */
  readonly path: string;
  readonly level: number;
  readonly onRemove: (() => void) | undefined;
}

function Branch({ name, path, node, level, onChange, onRemove }: BranchProps) {
  const parts = partsOf(node);
  const label = name === "" ? null : <span class="t-name">{name}: </span>;
  const remove = onRemove !== undefined && (
    <button type="button" class="plain icon" aria-label={`Remove ${path}`} onClick={onRemove}>
      ×
    </button>
  );
  if (parts === undefined) {
    return (
      <div class="leaf">
        {label}
        <Leaf key={inLine(node)} {...{ node, path, onChange }} />
        {remove}
      </div>
    );
  }
  const inner = ({ name: part, node: held }: Part, at: number) => (
    <Branch
      key={`${at} ${part}`}
      name={part}
      path={`${path} ${part}`}
      node={held}
      level={level + 1}
      onChange={onChange && ((changed) => onChange(withPart(node, at, changed)))}
      onRemove={onChange && (() => onChange(withPart(node, at, undefined)))}
    />
  );
  const details = (
    <details open={level < LEVELS_OPEN}>
      <summary>
        {label}
        <span class="soft">
          {node.type} of {parts.length}
        </span>
      </summary>
      {parts.slice(0, PARTS_MAX).map(inner)}
      {parts.length > PARTS_MAX && <div class="leaf soft">{parts.length - PARTS_MAX} more</div>}
      {onChange !== undefined && <Adding {...{ node, path, onChange }} />}
    </details>
  );
  // Not in the summary: that is a button by itself.
  return remove === false ? (
    details
  ) : (
    <div class="branch">
      {details}
      {remove}
    </div>
  );
}

interface LeafProps extends ValueTreeProps {
  readonly path: string;
}

/** A value without parts, as its literal: a change of its type is a change of the literal. */
function Leaf({ node, path, onChange }: LeafProps) {
  const [isWrong, setWrong] = useState(false);
  const literal = inLine(node);
  if (onChange === undefined) return <span class={`t-${node.type}`}>{literal}</span>;
  const take = (text: string): void => {
    if (text === literal) return setWrong(false);
    try {
      const changed = parseNode(text);
      setWrong(false);
      onChange(changed);
    } catch {
      setWrong(true);
    }
  };
  return (
    <input
      class={`mono leaf-field t-${node.type}`}
      aria-label={path}
      aria-invalid={isWrong}
      title={isWrong ? "Not a literal" : node.type}
      defaultValue={literal}
      size={Math.max(4, Math.min(60, literal.length + 1))}
      onChange={(event) => take(event.currentTarget.value)}
    />
  );
}

interface AddingProps {
  readonly node: Node;
  readonly path: string;
  onChange(node: Node): void;
}

/** Adds a part: a name and a value, a key and a value, or a value. */
function Adding({ node, path, onChange }: AddingProps) {
  const [name, setName] = useState("");
  const [isWrong, setWrong] = useState(false);
  const by = namedBy(node);
  const add = (): void => {
    try {
      const key = by === "key" ? parseNode(name) : node;
      onChange(withAdded(node, name, key, { type: "null", value: null }));
      setName("");
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <div class="leaf">
      {by !== "place" && (
        <input
          class="mono leaf-field"
          aria-label={`${by === "key" ? "Key" : "Name"} of a new part of ${path}`}
          aria-invalid={isWrong}
          placeholder={by}
          size={12}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      )}
      <button
        type="button"
        class="plain icon"
        aria-label={`Add to ${path}`}
        disabled={by !== "place" && name === ""}
        onClick={add}
      >
        +
      </button>
    </div>
  );
}
