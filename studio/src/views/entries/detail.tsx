// Duty: one entry: its facts, its value as text or bytes, and what can be done with it.
// Invariant: a save has a check on the versionstamp that was shown. While the entry is read again nothing is edited, and
// what is typed while it is saved stays.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Conflict, read, write } from "../../api/entries";
import { isAborted } from "../../api/request";
import { useActing, useGone } from "../../parts/acting";
import { BytesView } from "../../parts/bytes-view";
import { Editor } from "../../parts/editor";
import { Fault } from "../../parts/fault";
import { KeyView } from "../../parts/key-view";
import { ValueTree } from "../../parts/value-tree";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { report, say } from "../../shell/toasts";
import { type Entry, type Key, type Node, bytesOf } from "../../values/node";
import { VIEWS } from "../../../../js/cli/literal-grammar";
import { parseNode } from "../../values/parse";
import { printKey, printNode } from "../../values/print";
import { ConflictDialog, type ConflictOf } from "./conflict";
import { CopyAs } from "./copy";
import { Facts } from "./facts";
import { History } from "./history";

interface DetailProps {
  readonly of: Key;
  readonly isDeleting: boolean;
  onClose(): void;
  onDelete(key: Key): void;
  onDuplicate(entry: Entry): void;
}

type Form = "text" | "tree" | "bytes";

export function Detail({ of, isDeleting, onClose, onDelete, onDuplicate }: DetailProps) {
  /** `null` until it is known whether there is one. */
  const [entry, setEntry] = useState<Entry | undefined | null>(null);
  /** What is edited; `undefined` without a change. */
  const [text, setText] = useState<string>();
  /** Counts how often the editor has begun anew. */
  const [beginnings, setBeginnings] = useState(0);
  const [fault, setFault] = useState("");
  const [conflict, setConflict] = useState<ConflictOf & { readonly from: string | undefined }>();
  const [form, setForm] = useState<Form>("text");
  const [loads, setLoads] = useState(0);
  const [isReading, setReading] = useState(true);
  const { isActing, acting } = useActing();
  const isGone = useGone();
  const { database } = route.value;
  const literal = printKey(of);

  /** Shows an entry, and what is typed of it, if something is, in an editor that begins anew. */
  const begin = (found: Entry | undefined): void => {
    setEntry(found);
    setBeginnings((count) => count + 1);
    setForm(isBytes(found?.value) ? "bytes" : "text");
  };
  const readAgain = (): void => {
    setText(undefined);
    setReading(true);
    setLoads(loads + 1);
  };
  useEffect(() => {
    const ending = new AbortController();
    setFault("");
    read(of, { signal: ending.signal }).then(
      (found) => {
        begin(found);
        setReading(false);
      },
      (error) => {
        if (isAborted(error)) return;
        setFault((error as Error).message);
        setReading(false);
      },
    );
    return () => ending.abort();
  }, [literal, loads]);

  /**
   * Writes a value in the place of an entry, whose expiry stays, or of none. `from`: the text that it is of, if it was
   * edited; what was typed since then is kept.
   */
  const store = async (
    mine: Node,
    from: string | undefined,
    present: Entry | undefined,
  ): Promise<void> => {
    const expireAt = present?.expireAt;
    const left = expireAt === undefined ? undefined : Math.max(1, expireAt - Date.now());
    const stamp = present?.versionstamp;
    const expected = stamp == null ? "absent" : { versionstamp: stamp };
    setFault("");
    try {
      const versionstamp = await write(database, of, mine, expected, left);
      say("Saved");
      const saved = { key: of, value: mine, versionstamp, ...(expireAt && { expireAt }) };
      setText((now) => (now === from ? undefined : now));
      if (from === undefined) begin(saved);
      else setEntry(saved);
    } catch (error) {
      const { message } = error as Error;
      if (isGone.current) report(new Error(`${literal} is not saved: ${message}`));
      else if (!(error instanceof Conflict)) setFault(message);
      else setConflict({ shown: entry?.value ?? null, mine, from, present: error.present });
    }
  };
  const save = acting(async () => {
    if (text === undefined || readOnly.value) return;
    let mine: Node;
    try {
      mine = parseNode(text);
    } catch (error) {
      setFault((error as Error).message);
      return;
    }
    await store(mine, text, entry ?? undefined);
  });
  useEffect(() => {
    // The editor of the text has handled the key itself.
    const onKey = (event: KeyboardEvent): void => {
      const isSave = (event.ctrlKey || event.metaKey) && event.key === "s";
      if (!isSave || event.defaultPrevented) return;
      event.preventDefault();
      save();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const bytes = useMemo(() => {
    const value = entry?.value;
    return value != null && isBytes(value) ? bytesOf(value) : undefined;
  }, [entry]);
  const canEdit = !readOnly.value && !isReading;
  const shown = entry == null ? "undefined" : printNode(entry.value!);
  const isChanged = text !== undefined && text !== shown;
  return (
    <section class="detail" aria-label="Entry">
      <header class="row">
        <button type="button" class="back" onClick={onClose} aria-label="Back to the keys">
          ←
        </button>
        <h2 class="grow">
          <KeyView value={of} />
        </h2>
      </header>
      {entry === null && fault === "" && <p class="empty">Loading…</p>}
      {entry === undefined && <p class="notice warn">There is no entry with this key.</p>}
      {entry != null && (
        <>
          <Facts entry={entry} />
          <div class="row">
            <Forms form={form} onChoose={setForm} hasBytes={bytes !== undefined} />
            <span class="grow" />
            <CopyAs entry={entry} />
            <button type="button" disabled={readOnly.value} onClick={() => onDuplicate(entry)}>
              Duplicate
            </button>
            <button
              type="button"
              class="danger"
              disabled={readOnly.value || isDeleting || isActing}
              onClick={() => onDelete(of)}
            >
              Delete
            </button>
          </div>
          {form === "text" && (
            <Editor
              text={text ?? shown}
              of={String(beginnings)}
              label="Value"
              isReadOnly={!canEdit}
              onChange={setText}
              onSave={save}
            />
          )}
          {form === "bytes" && bytes !== undefined && <BytesView bytes={bytes} />}
          {form === "tree" && (
            <ValueTree
              node={parsedOr(text, entry.value!)}
              onChange={canEdit ? (node) => setText(printNode(node)) : undefined}
            />
          )}
        </>
      )}
      <Fault text={fault} />
      {entry === null && fault !== "" && (
        <div class="row">
          <button type="button" onClick={readAgain}>
            Try again
          </button>
        </div>
      )}
      {isChanged && form !== "bytes" && (
        <div class="row end">
          <button type="button" disabled={isActing} onClick={readAgain}>
            Discard
          </button>
          <button type="button" class="primary" disabled={isActing} onClick={save}>
            Save <kbd>Ctrl S</kbd>
          </button>
        </div>
      )}
      {entry !== null && (
        <History
          of={of}
          present={entry?.versionstamp ?? undefined}
          isBusy={isChanged || isReading || isActing}
          onRestore={(value) => acting(() => store(value, undefined, entry))()}
        />
      )}
      {conflict !== undefined && (
        <ConflictDialog
          {...conflict}
          onClose={() => setConflict(undefined)}
          onTheirs={() => {
            setConflict(undefined);
            setText(undefined);
            begin(conflict.present);
          }}
          onMine={() => {
            setConflict(undefined);
            acting(() => store(conflict.mine, conflict.from, conflict.present))();
          }}
        />
      )}
    </section>
  );
}

/** The value of a text that is being edited, or the stored one while the text is no literal. */
function parsedOr(text: string | undefined, stored: Node): Node {
  try {
    return text === undefined ? stored : parseNode(text);
  } catch {
    return stored;
  }
}

const isBytes = (node: Node | null | undefined): boolean =>
  node != null && (VIEWS.includes(node.type) || node.type === "CBOR");

interface FormsProps {
  readonly form: Form;
  readonly hasBytes: boolean;
  onChoose(form: Form): void;
}

const FORM_NAMES: Readonly<Record<Form, string>> = { text: "Text", tree: "Tree", bytes: "Bytes" };

function Forms({ form, hasBytes, onChoose }: FormsProps) {
  const offered: Form[] = hasBytes ? ["text", "bytes"] : ["text", "tree"];
  return (
    <div class="choice" role="group" aria-label="Form of the value">
      {offered.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={form === name}
          onClick={() => onChoose(name)}
        >
          {FORM_NAMES[name]}
        </button>
      ))}
    </div>
  );
}
