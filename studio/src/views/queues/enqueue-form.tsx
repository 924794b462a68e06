// Duty: enqueues a message.

import { useState } from "preact/hooks";
import { enqueue } from "../../api/queues";
import { useActing } from "../../parts/acting";
import { Editor } from "../../parts/editor";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";
import { parseNode } from "../../values/parse";
import { msOf } from "../../values/seconds";

const FIRST = "{}";

export function EnqueueForm({ queue }: { readonly queue: string }) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [text, setText] = useState(FIRST);
  const [seconds, setSeconds] = useState("");
  const [priority, setPriority] = useState("");
  const send = acting(async () => {
    const { id } = await enqueue(database, queue, {
      value: parseNode(text),
      delay: msOf(seconds),
      ...(priority === "" ? {} : { priority: Number(priority) }),
    });
    say(`Enqueued${id === null ? "" : ` as message ${id}`}`);
  });
  return (
    <section class="panel" aria-label="Enqueue">
      <header>
        <h2>Enqueue</h2>
      </header>
      <div class="body stack">
        <Editor text={FIRST} of={queue} label="Message" onChange={setText} onSave={send} />
        <div class="row">
          <label class="field">
            Delay in seconds
            <input
              type="number"
              min="0"
              value={seconds}
              onInput={(event) => setSeconds(event.currentTarget.value)}
            />
          </label>
          <label class="field">
            Priority
            <input
              type="number"
              min="0"
              max="9"
              value={priority}
              disabled={queue === ""}
              onInput={(event) => setPriority(event.currentTarget.value)}
            />
          </label>
        </div>
        <div class="row end">
          <button
            type="button"
            class="primary"
            disabled={readOnly.value || isActing}
            onClick={send}
          >
            Enqueue
          </button>
        </div>
      </div>
    </section>
  );
}
