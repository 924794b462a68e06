// Duty: the databases of a server: create, open, drop; of each its quotas and tokens.

import { useEffect, useState } from "preact/hooks";
import { type Database, create, databases, drop } from "../../api/admin";
import { useActing, useNewest } from "../../parts/acting";
import { Dialog, DialogEnd } from "../../parts/dialog";
import { Empty } from "../../parts/empty";
import { size } from "../../parts/figures";
import { hrefOf } from "../../shell/router";
import { keepToken, presentToken } from "../../shell/session";
import { say } from "../../shell/toasts";
import { NewToken } from "./new-token";
import { QuotasOf } from "./quotas";
import { TokensOf } from "./tokens";

export function Databases() {
  const [found, setFound] = useState<readonly Database[]>();
  const [name, setName] = useState("");
  const [made, setMade] = useState<string>();
  const [dropping, setDropping] = useState<string>();
  const newest = useNewest();
  const { isActing, acting } = useActing();
  const load = (): void => void newest(databases, setFound);
  // Without a token the page asks for one.
  useEffect(load, [presentToken.value]);
  const make = acting(async () => {
    const { token } = await create(name);
    if (token !== undefined) keepToken(name, token);
    setMade(token);
    // Another name may be typed by now.
    setName((now) => (now === name ? "" : now));
    load();
  });
  return (
    <div class="view">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          make();
        }}
      >
        <input
          aria-label="Name of a new database"
          placeholder="Name: a-z, 0-9, - and _"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={isActing || name === ""}>
          Create
        </button>
      </form>
      {made !== undefined && <NewToken token={made} onClose={() => setMade(undefined)} />}
      {found?.length === 0 && (
        <Empty
          what="There are no databases."
          next="Type a name above and press Create. The answer has its first token."
        />
      )}
      {found?.map((database) => (
        <section key={database.name} class="panel" aria-label={`Database ${database.name}`}>
          <header>
            <h2 class="grow">
              <a href={hrefOf("overview", {}, database.name)}>{database.name}</a>
            </h2>
            {database.bytes !== undefined && <span class="soft">{size(database.bytes)}</span>}
            <span class="soft">{database.watches} watches</span>
            <button type="button" class="danger" onClick={() => setDropping(database.name)}>
              Drop
            </button>
          </header>
          <div class="body charts">
            <QuotasOf database={database} />
            <TokensOf database={database} onChange={load} />
          </div>
        </section>
      ))}
      {dropping !== undefined && (
        <Dropping
          name={dropping}
          onClose={() => setDropping(undefined)}
          onDropped={() => {
            setDropping(undefined);
            say(`Dropped ${dropping}`);
            load();
          }}
        />
      )}
    </div>
  );
}

interface DroppingProps {
  readonly name: string;
  onClose(): void;
  onDropped(): void;
}

/** A database is dropped after its name is typed. */
function Dropping({ name, onClose, onDropped }: DroppingProps) {
  const [typed, setTyped] = useState("");
  const { isActing, acting } = useActing();
  const run = acting(async () => {
    await drop(name);
    onDropped();
  });
  return (
    <Dialog title={`Drop the database ${name}?`} isSmall onClose={onClose}>
      <p>All its entries, messages and tokens are removed. This cannot be undone.</p>
      <label class="field">
        Type its name
        <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <DialogEnd
        action={`Drop ${name}`}
        isDanger
        disabled={isActing || typed !== name}
        onCancel={onClose}
        onAction={run}
      />
    </Dialog>
  );
}
