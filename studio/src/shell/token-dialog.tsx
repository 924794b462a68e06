// Duty: asks for a token when the server wants one.

import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { ADMIN, asking } from "./session";

export function TokenDialog() {
  const open = asking.value;
  const [token, setToken] = useState("");
  if (open === undefined) return null;
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
        {open.wrong && <p class="notice error">The server does not accept this token.</p>}
        <p class="soft">
          The token stays in the memory of this page, and is gone when it is closed.
        </p>
        <div class="row end">
          <button type="button" onClick={() => answer(undefined)}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Continue
          </button>
        </div>
      </form>
    </Dialog>
  );
}
