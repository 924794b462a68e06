// Duty: the versions of an entry, the newest first, if the database keeps a history.
// Invariant: they are requested once the panel is open, not with every entry that is looked at.

import { useEffect, useState } from "preact/hooks";
import { type Version, versions } from "../../api/entries";
import { ApiError } from "../../api/request";
import { useNewest } from "../../parts/acting";
import { Empty } from "../../parts/empty";
import { Fault } from "../../parts/fault";
import { Time } from "../../parts/time";
import { readOnly } from "../../shell/session";
import { type Key, type Node, UNREADABLE } from "../../values/node";
import { preview, printKey, printNode } from "../../values/print";

interface HistoryProps {
  readonly of: Key;
  /** The versionstamp of the entry; `undefined` without one. */
  readonly present: string | undefined;
  /** Whether a text is being edited, which a restored value would replace, or the entry is read or written. */
  readonly isBusy: boolean;
  onRestore(value: Node): void;
}

const DONE: Readonly<Record<Version["type"], string>> = {
  set: "stored",
  expiry: "expiry changed",
  delete: "removed",
};

export function History({ of, present, isBusy, onRestore }: HistoryProps) {
  const [isOpen, setOpen] = useState(false);
  const [found, setFound] = useState<readonly Version[]>();
  const [cursor, setCursor] = useState<string | null>(null);
  const [isKept, setKept] = useState(true);
  const [fault, setFault] = useState("");
  const literal = printKey(of);

  const newest = useNewest();
  const load = (before?: string): void => {
    setFault("");
    void newest(
      (signal) => versions(of, before, signal),
      (page) => {
        setKept(true);
        setFound((known = []) =>
          before === undefined ? page.versions : [...known, ...page.versions],
        );
        setCursor(page.cursor);
      },
      (error) => {
        if (error instanceof ApiError && error.code === "UNSUPPORTED") setKept(false);
        else setFault(error.message);
      },
    );
  };
  useEffect(() => {
    setFound(undefined);
    setCursor(null);
    if (isOpen) load();
  }, [literal, present, isOpen]);
  return (
    <details
      class="panel history"
      aria-label="History"
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>History</summary>
      <Fault text={fault} />
      {!isKept && (
        <Empty
          what="The database keeps no history."
          next={
            'A program switches it on for all when it opens the database: openKv(path, { history: "7d" }). ' +
            "Versions are kept from then on."
          }
        />
      )}
      {isKept && found === undefined && fault === "" && <p class="empty">Loading…</p>}
      {isKept && found?.length === 0 && (
        <Empty
          what="There are no versions of this key."
          next="Each write of the entry adds one, and they are kept as long as the history says."
        />
      )}
      {isKept &&
        found?.map(({ type, value, versionstamp, committedAt, expireAt }) => (
          <details key={versionstamp} class="letter">
            <summary>
              {committedAt === null ? "before the history" : <Time at={committedAt} />}{" "}
              <span class="badge">{DONE[type]}</span>{" "}
              {versionstamp === present && <span class="soft">the present one</span>}
              {value !== null && <span class="preview mono">{preview(value)}</span>}
            </summary>
            <p class="soft">
              Versionstamp <span class="mono">{versionstamp}</span>
              {expireAt !== null && (
                <>
                  , expires <Time at={expireAt} />
                </>
              )}
            </p>
            {value !== null && <pre class="shown">{printNode(value)}</pre>}
            {value !== null && value.type !== UNREADABLE && versionstamp !== present && (
              <div class="row end">
                <button
                  type="button"
                  disabled={readOnly.value || isBusy}
                  onClick={() => onRestore(value)}
                >
                  Restore this value
                </button>
              </div>
            )}
          </details>
        ))}
      {cursor !== null && (
        <div class="row">
          <button type="button" onClick={() => load(cursor)}>
            Older versions
          </button>
        </div>
      )}
    </details>
  );
}
