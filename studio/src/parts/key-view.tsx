// Duty: keys and their parts, with types that cannot be mistaken: "42", 42, 42n, bytes.

import type { Key, Node } from "../values/node";
import { inLine } from "../values/print";

const NAMES: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  bigint: "bigint",
  boolean: "boolean",
  Uint8Array: "bytes",
};

export function PartView({ part }: { readonly part: Node }) {
  return (
    <span class={`part t-${part.type}`} title={NAMES[part.type] ?? part.type}>
      {inLine(part)}
    </span>
  );
}

export function KeyView({ value }: { readonly value: Key }) {
  return (
    <span class="key mono">
      <span class="soft">[</span>
      {value.map((part, at) => (
        <>
          {at > 0 && <span class="soft">, </span>}
          <PartView part={part} />
        </>
      ))}
      <span class="soft">]</span>
    </span>
  );
}
