// Duty: the quotas of a database.

import { useState } from "preact/hooks";
import { type Database, QUOTAS, type Quotas, setQuotas } from "../../api/admin";
import { useActing } from "../../parts/acting";
import { say } from "../../shell/toasts";

export function QuotasOf({ database }: { readonly database: Database }) {
  const [quotas, setThem] = useState<Quotas>(database.quotas);
  const { isActing, acting } = useActing();
  const set = (name: keyof Quotas, text: string): void => {
    const { [name]: _, ...rest } = quotas;
    setThem(text === "" ? rest : { ...rest, [name]: Number(text) });
  };
  const save = acting(async () => {
    await setQuotas(database.name, quotas);
    say("Quotas saved");
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <h3>Quotas; no bound if empty</h3>
      <div class="quotas">
        {QUOTAS.map(([name, title]) => (
          <label key={name} class="field">
            {title}
            <input
              type="number"
              min="0"
              value={quotas[name] ?? ""}
              onInput={(event) => set(name, event.currentTarget.value)}
            />
          </label>
        ))}
      </div>
      <div class="row end">
        <button type="submit" disabled={isActing}>
          Save the quotas
        </button>
      </div>
    </form>
  );
}
