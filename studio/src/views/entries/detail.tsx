// Duty: one entry: its facts, its value as text or bytes, and what can be done with it.
// Invariant: a save has a check on the versionstamp that was shown.

import { useEffect, useState } from "preact/hooks";
import { type Expected, Conflict, read, write } from "../../api/entries";
import { BytesView } from "../../parts/bytes-view";
import { Editor } from "../../parts/editor";
import { Fault } from "../../parts/fault";
import { size } from "../../parts/figures";
import { KeyView } from "../../parts/key-view";
import { Countdown } from "../../parts/time";
import { ValueTree } from "../../parts/value-tree";
import { readOnly } from "../../shell/session";
import { report, say } from "../../shell/toasts";
import { type Entry, type Key, type Node, VIEWS, bytesOf, sizeOf } from "../../values/node";
import { parseNode } from "../../values/parse";
import { printKey, printNode } from "../../values/print";
import { ConflictDialog, type ConflictOf } from "./conflict";
import { CopyAs } from "./copy";

interface DetailProps {
  readonly of: Key;
  onClose(): void;
  onDelete(key: Key): void;
  onDuplicate(entry: Entry): void;
}

type Form = "text" | "tree" | "bytes";

export function Detail({ of, onClose, onDelete, onDuplicate }: DetailProps) {
  const [entry, setEntry] = useState<Entry | undefined | null>(null);
  const [text, setText] = useState<string>();
  const [fault, setFault] = useState("");
  const [conflict, setConflict] = useState<ConflictOf>();
  const [form, setForm] = useState<Form>("text");
  const [loads, setLoads] = useState(0);
  const literal = printKey(of);

  useEffect(() => {
    const ending = new AbortController();
    setText(undefined);
    setFault("");
    read(of, ending.signal).then((found) => {
      setEntry(found);
      setForm(isBytes(found?.value) ? "bytes" : "text");
    }, report);
    return () => ending.abort();
  }, [literal, loads]);

  const store = async (value: Node, expected: Expected): Promise<void> => {
    const left = entry?.expireAt === undefined ? undefined : entry.expireAt - Date.now();
    await write(of, value, expected, left === undefined ? undefined : Math.max(1, left));
    say("Saved");
    setLoads(loads + 1);
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
    setFault("");
    const stamp = entry?.versionstamp;
    try {
      await store(mine, stamp ? { versionstamp: stamp } : "absent");
    } catch (error) {
      if (!(error instanceof Conflict)) setFault((error as Error).message);
      else setConflict({ shown: entry?.value ?? null, mine, present: error.present });
    }
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
  if (entry === null) return <p class="empty">Loading…</p>;
  const shown = entry === undefined ? "undefined" : printNode(entry.value!);
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
      {entry === undefined ? (
        <p class="notice warn">There is no entry with this key.</p>
      ) : (
        <>
          <Facts entry={entry} />
          <div class="row">
            <Forms form={form} onChoose={setForm} hasBytes={isBytes(entry.value)} />
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
          {form === "bytes" && isBytes(entry.value) && <BytesView bytes={bytesOf(entry.value!)} />}
          {form === "tree" && (
            <ValueTree
              node={parsedOr(text, entry.value!)}
              onChange={readOnly.value ? undefined : (node) => setText(printNode(node))}
            />
          )}
        </>
      )}
      <Fault text={fault} />
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
            const stamp = conflict.present?.versionstamp;
            store(conflict.mine, stamp ? { versionstamp: stamp } : "absent").catch(report);
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

function Facts({ entry }: { readonly entry: Entry }) {
  const { value, versionstamp, expireAt } = entry;
  return (
    <dl class="facts">
      <div>
        <dt>Type</dt>
        <dd>{value?.type}</dd>
      </div>
      <div>
        <dt>Size</dt>
        <dd title="As typed JSON; bytes as they are">{size(sizeOf(value))}</dd>
      </div>
      <div>
        <dt>Versionstamp</dt>
        <dd class="mono">{versionstamp}</dd>
      </div>
      <div>
        <dt>Expires</dt>
        <dd>{expireAt === undefined ? "never" : <Countdown until={expireAt} />}</dd>
      </div>
    </dl>
  );
}

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
