// Duty: creates an index of either type.

import { useState } from "preact/hooks";
import { type IndexPath, type NewIndex, TOKENIZERS, createIndex } from "../../api/search";
import { useActing } from "../../parts/acting";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";
import { parseKey } from "../../values/parse";

/** A path as it is typed: in descending order with a minus in front. */
const pathOf = (typed: string): IndexPath =>
  typed.startsWith("-") ? { path: typed.slice(1), order: "desc" } : { path: typed, order: "asc" };

export function NewIndexForm({ onCreated }: { onCreated(): void }) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [prefix, setPrefix] = useState("");
  const [fields, setFields] = useState("");
  const [tokenize, setTokenize] = useState<string>(TOKENIZERS[0]);
  const [isOfValues, setOfValues] = useState(false);
  const [unique, setUnique] = useState(false);
  const create = acting(async () => {
    const paths = fields.split(/[\s,]+/).filter((path) => path !== "");
    const of = parseKey(prefix);
    const index: NewIndex = isOfValues
      ? { type: "value", prefix: of, on: paths.map(pathOf), unique }
      : { prefix: of, fields: paths, tokenize };
    await createIndex(database, index);
    say("Created; older entries are added in the background");
    onCreated();
  });
  return (
    <form
      class="row new-index"
      aria-label="New index"
      onSubmit={(event) => {
        event.preventDefault();
        create();
      }}
    >
      <label class="field grow">
        Prefix
        <input
          class="mono"
          placeholder='products, or ["products"]'
          value={prefix}
          onInput={(event) => setPrefix(event.currentTarget.value)}
        />
      </label>
      <label class="field grow">
        Fields
        <input
          class="mono"
          placeholder={isOfValues ? "city, -joined" : "name, details.maker"}
          value={fields}
          onInput={(event) => setFields(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        Type
        <select
          value={isOfValues ? "values" : "text"}
          onChange={(event) => setOfValues(event.currentTarget.value === "values")}
        >
          <option>text</option>
          <option>values</option>
        </select>
      </label>
      {isOfValues ? (
        <label class="check">
          <input
            type="checkbox"
            checked={unique}
            onChange={(event) => setUnique(event.currentTarget.checked)}
          />
          unique
        </label>
      ) : (
        <label class="field">
          Tokenizer
          <select value={tokenize} onChange={(event) => setTokenize(event.currentTarget.value)}>
            {TOKENIZERS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <button type="submit" disabled={readOnly.value || isActing || fields === ""}>
        Create the index
      </button>
    </form>
  );
}
