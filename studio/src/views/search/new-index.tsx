// Duty: creates an index.

import { useState } from "preact/hooks";
import { TOKENIZERS, createIndex } from "../../api/search";
import { readOnly } from "../../shell/session";
import { reporting, say } from "../../shell/toasts";
import { parseKey } from "../../values/parse";

export function NewIndexForm({ onCreated }: { onCreated(): void }) {
  const [prefix, setPrefix] = useState("");
  const [fields, setFields] = useState("");
  const [tokenize, setTokenize] = useState<string>(TOKENIZERS[0]);
  const create = reporting(async () => {
    const paths = fields.split(/[\s,]+/).filter((path) => path !== "");
    await createIndex({ prefix: parseKey(prefix), fields: paths, tokenize });
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
          placeholder="name, details.maker"
          value={fields}
          onInput={(event) => setFields(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        Tokenizer
        <select value={tokenize} onChange={(event) => setTokenize(event.currentTarget.value)}>
          {TOKENIZERS.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <button type="submit" disabled={readOnly.value || fields === ""}>
        Create the index
      </button>
    </form>
  );
}
