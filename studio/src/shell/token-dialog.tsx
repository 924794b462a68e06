// Duty: asks for a token when the server wants one.

import { useState } from "preact/hooks";
import { Dialog, DialogEnd } from "../parts/dialog";
import { ADMIN, type Asking, asking } from "./session";

export function TokenDialog() {
  const open = asking.value;
  // The key: what is typed for one scope is not for another one.
  return open === undefined ? null : <OpenTokenDialog key={open.scope} open={open} />;
}

function OpenTokenDialog({ open }: { readonly open: Asking }) {
  const [token, setToken] = useState("");
  const of =
    open.scope === ADMIN
      ? "the admin API of the server"
      : open.scope === ""
        ? "the database"
        : `the database ${open.scope}`;
  const answer = (given: string | undefined): void => {
    setToken("");
    open.answer(given);
  };
  return (
    <Dialog title="Access token" isSmall onClose={() => answer(undefined)}>
      <form
        style={{ padding: 0 }}
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") answer(token.trim());
        }}
      >
        <label class="field">
          A token of {of}
          <input
            type="password"
            autocomplete="off"
            value={token}
            aria-invalid={open.wrong}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <p class="soft">
          The token stays in the memory of this page, and is gone when it is closed.
        </p>
        <DialogEnd
          action="Continue"
          fault={open.wrong ? "The server does not accept this token." : ""}
          onCancel={() => answer(undefined)}
        />
      </form>
    </Dialog>
  );
}
