// Duty: the tokens of a database: create and revoke.

import { useState } from "preact/hooks";
import { type Database, type Rights, type Token, createToken, revoke } from "../../api/admin";
import { useActing } from "../../parts/acting";
import { confirm } from "../../parts/dialog";
import { Time } from "../../parts/time";
import { say } from "../../shell/toasts";
import { NewToken } from "./new-token";

interface TokensProps {
  readonly database: Database;
  onChange(): void;
}

const RIGHTS: readonly Rights[] = ["metrics", "read", "write", "admin"];

export function TokensOf({ database, onChange }: TokensProps) {
  const { name, tokens } = database;
  const [rights, setRights] = useState<Rights>("read");
  const [made, setMade] = useState<string>();
  const { isActing, acting } = useActing();
  const make = acting(async () => {
    setMade((await createToken(name, rights)).token);
    onChange();
  });
  const withdraw = (token: Token): (() => void) =>
    acting(async () => {
      const isSure = await confirm({
        title: `Revoke the token ${token.id}?`,
        text: `Who uses it (rights: ${token.rights}) is refused at once.`,
        action: "Revoke",
      });
      if (!isSure) return;
      await revoke(name, token.id);
      say("Revoked");
      onChange();
    });
  return (
    <div class="stack">
      <h3>Tokens</h3>
      <table>
        <tbody>
          {tokens.map((token) => (
            <tr key={token.id}>
              <td>
                <span class="badge">{token.rights}</span>
              </td>
              <td class="soft">
                made <Time at={token.createdAt} />
              </td>
              <td class="num">
                <button
                  type="button"
                  class="danger"
                  disabled={isActing}
                  aria-label={`Revoke the token ${token.id} of ${name}`}
                  onClick={withdraw(token)}
                >
                  Revoke
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {made !== undefined && <NewToken token={made} onClose={() => setMade(undefined)} />}
      <div class="row end">
        <select
          aria-label={`Rights of a new token of ${name}`}
          value={rights}
          onChange={(event) => setRights(event.currentTarget.value as Rights)}
        >
          {RIGHTS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <button type="button" disabled={isActing} onClick={make}>
          Create a token
        </button>
      </div>
    </div>
  );
}
