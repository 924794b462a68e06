// Duty: creates an entry, also as a copy of another.

import { useState } from "preact/hooks";
import { Conflict, write } from "../../api/entries";
import { useActing, useGone } from "../../parts/acting";
import { Dialog, DialogEnd } from "../../parts/dialog";
import { Editor } from "../../parts/editor";
import { route } from "../../shell/router";
import { report } from "../../shell/toasts";
import type { Key, Node } from "../../values/node";
import { parseKey, parseNode } from "../../values/parse";
import { printKey, printNode } from "../../values/print";
import { msOf } from "../../values/seconds";

interface NewEntryProps {
  /** What the form begins with. */
  readonly firstKey: Key;
  readonly firstValue: Node | undefined;
  onCreated(key: Key): void;
  onClose(): void;
}

export function NewEntry({ firstKey, firstValue, onCreated, onClose }: NewEntryProps) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const isGone = useGone();
  const [key, setKey] = useState(printKey(firstKey));
  const first = firstValue === undefined ? "{}" : printNode(firstValue);
  const [text, setText] = useState(first);
  const [seconds, setSeconds] = useState("");
  const [fault, setFault] = useState("");
  const create = acting(async () => {
    try {
      const parts = parseKey(key);
      if (parts.length === 0) throw new Error("The key has no parts.");
      await write(database, parts, parseNode(text), "absent", msOf(seconds));
      if (!isGone.current) onCreated(parts);
    } catch (error) {
      const exists = error instanceof Conflict;
      const message = exists ? "There is an entry with this key." : (error as Error).message;
      if (isGone.current) report(new Error(`${key} is not created: ${message}`));
      else setFault(message);
    }
  });
  return (
    <Dialog title={firstValue === undefined ? "New entry" : "Duplicate"} onClose={onClose}>
      <label class="field">
        Key
        <input class="mono" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
      </label>
      <div class="field">
        <h3>Value</h3>
        <Editor text={first} of="new" label="Value" onChange={setText} onSave={create} />
      </div>
      <label class="field">
        Expires after seconds (never if empty)
        <input
          type="number"
          min="1"
          value={seconds}
          onInput={(event) => setSeconds(event.currentTarget.value)}
        />
      </label>
      <DialogEnd
        action="Create"
        disabled={isActing}
        fault={fault}
        onCancel={onClose}
        onAction={create}
      />
    </Dialog>
  );
}
