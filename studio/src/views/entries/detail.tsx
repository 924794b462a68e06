// Duty: one entry: its facts, its value as text or bytes, and what can be done with it.
// Invariant: a save has a check on the versionstamp that was shown.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Conflict, read, write } from "../../api/entries";
import { isAborted } from "../../api/request";
import { BytesView } from "../../parts/bytes-view";
import { Editor } from "../../parts/editor";
import { Fault } from "../../parts/fault";
import { KeyView } from "../../parts/key-view";
import { ValueTree } from "../../parts/value-tree";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";
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
  onClose(): void;
  onDelete(key: Key): void;
  onDuplicate(entry: Entry): void;
}

type Form = "text" | "tree" | "bytes";

export function Detail({ of, onClose, onDelete, onDuplicate }: DetailProps) {
  /** `null` until it is known whether there is one. */
  const [entry, setEntry] = useState<Entry | undefined | null>(null);
  const [text, setText] = useState<string>();
  const [fault, setFault] = useState("");
  const [conflict, setConflict] = useState<ConflictOf>();
  const [form, setForm] = useState<Form>("text");
  const [loads, setLoads] = useState(0);
  const { database } = route.value;
  const literal = printKey(of);

  useEffect(() => {
    const ending = new AbortController();
    setText(undefined);
    setFault("");
    read(of, { signal: ending.signal }).then(
      (found) => {
        setEntry(found);
        setForm(isBytes(found?.value) ? "bytes" : "text");
      },
      (error) => {
        if (!isAborted(error)) setFault((error as Error).message);
      },
    );
    return () => ending.abort();
  }, [literal, loads]);

  /** Writes a value in the place of an entry, whose expiry stays, or of none. */
  const store = async (mine: Node, present: Entry | undefined): Promise<void> => {
    const left = present?.expireAt === undefined ? undefined : present.expireAt - Date.now();
    const stamp = present?.versionstamp;
    const expected = stamp == null ? "absent" : { versionstamp: stamp };
    setFault("");
    try {
      await write(database, of, mine, expected, left === undefined ? undefined : Math.max(1, left));
      say("Saved");
      setLoads(loads + 1);
    } catch (error) {
      if (!(error instanceof Conflict)) setFault((error as Error).message);
      else setConflict({ shown: entry?.value ?? null, mine, present: error.present });
    }
  };
  const save = async (): Promise<void> => {
    if (text === undefined || readOnly.value) return;
    let mine: Node;
    try {
      mine = parseNode(text);
    } catch (error) {
      setFault((error as Error).message);
      return;
    }
    await store(mine, entry ?? undefined);
  };
  useEffect(() => {
    // The editor of the text has handled the key itself.
    const onKey = (event: KeyboardEvent): void => {
      const isSave = (event.ctrlKey || event.metaKey) && event.key === "s";
      if (!isSave || event.defaultPrevented) return;
      event.preventDefault();
      void save();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const bytes = useMemo(() => {
    const value = entry?.value;
    return value != null && isBytes(value) ? bytesOf(value) : undefined;
  }, [entry]);
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
              disabled={readOnly.value}
              onClick={() => onDelete(of)}
            >
              Delete
            </button>
          </div>
          {form === "text" && (
            <Editor
              text={text ?? shown}
              of={`${literal} ${entry.versionstamp}`}
              label="Value"
              isReadOnly={readOnly.value}
              onChange={setText}
              onSave={save}
            />
          )}
          {form === "bytes" && bytes !== undefined && <BytesView bytes={bytes} />}
          {form === "tree" && (
            <ValueTree
              node={parsedOr(text, entry.value!)}
              onChange={readOnly.value ? undefined : (node) => setText(printNode(node))}
            />
          )}
        </>
      )}
      <Fault text={fault} />
      {entry === null && fault !== "" && (
        <div class="row">
          <button type="button" onClick={() => setLoads(loads + 1)}>
            Try again
          </button>
        </div>
      )}
      {isChanged && form !== "bytes" && (
        <div class="row end">
          <button type="button" onClick={() => setLoads(loads + 1)}>
            Discard
          </button>
          <button type="button" class="primary" onClick={save}>
            Save <kbd>Ctrl S</kbd>
          </button>
        </div>
      )}
      {entry !== null && (
        <History
          of={of}
          present={entry?.versionstamp ?? undefined}
          isChanged={isChanged}
          onRestore={(value) => void store(value, entry)}
        />
      )}
      {conflict !== undefined && (
        <ConflictDialog
          {...conflict}
          onClose={() => setConflict(undefined)}
          onTheirs={() => {
            setConflict(undefined);
            setLoads(loads + 1);
          }}
          onMine={() => {
            setConflict(undefined);
            void store(conflict.mine, conflict.present);
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
