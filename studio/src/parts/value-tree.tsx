// Duty: a value as a tree of its parts with their types. Browsers open and close `details` by keys.

import type { Node } from "../values/node";
import { fields, inLine, items, pairs } from "../values/print";

/** Parts of one level that are drawn; text shows all of them. */
const PARTS_MAX = 500;
const LEVELS_OPEN = 2;

type Part = readonly [string, Node];

function partsOf(node: Node): Part[] | undefined {
  switch (node.type) {
    case "object":
      return fields(node);
    case "Array":
    case "Set":
      return items(node).map((item, at) => [String(at), item]);
    case "Map":
      return pairs(node).map(([key, value]) => [inLine(key), value]);
    default:
      return undefined;
  }
}

export function ValueTree({ node }: { readonly node: Node }) {
  return (
    <div class="value-tree mono">
      <Branch name="" node={node} level={0} />
    </div>
  );
}

interface BranchProps {
  readonly name: string;
  readonly node: Node;
  readonly level: number;
}

function Branch({ name, node, level }: BranchProps) {
  const parts = partsOf(node);
  const label = name === "" ? null : <span class="t-name">{name}: </span>;
  if (parts === undefined) {
    return (
      <div class="leaf">
        {label}
        <span class={`t-${node.type}`}>{inLine(node)}</span>
      </div>
    );
  }
  return (
    <details open={level < LEVELS_OPEN}>
      <summary>
        {label}
        <span class="soft">
          {node.type} of {parts.length}
        </span>
      </summary>
      {parts.slice(0, PARTS_MAX).map(([inner, held]) => (
        <Branch key={inner} name={inner} node={held} level={level + 1} />
      ))}
      {parts.length > PARTS_MAX && <div class="leaf soft">{parts.length - PARTS_MAX} more</div>}
    </details>
  );
}
