// Duty: the dead letters of a queue: looked at, enqueued again, deleted.

import { useEffect, useState } from "preact/hooks";
import {
  type DeadLetter,
  deadLetters,
  deleteDead,
  enqueue,
  purge,
  requeue,
  requeueAll,
} from "../../api/queues";
import { useActing, useNewest } from "../../parts/acting";
import { confirm } from "../../parts/dialog";
import { queueName } from "../../parts/depths";
import { Empty } from "../../parts/empty";
import { counted } from "../../parts/figures";
import { Time } from "../../parts/time";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { offerUndo, reporting, say } from "../../shell/toasts";
import { preview, printNode } from "../../values/print";

interface DeadLettersProps {
  readonly queue: string;
  /** How many there are, as far as is known. */
  readonly dead: number;
  onReload(): void;
}

export function DeadLettersOf({ queue, dead, onReload }: DeadLettersProps) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [letters, setLetters] = useState<readonly DeadLetter[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const newest = useNewest();
  const load = (from?: string): void => {
    void newest(
      (signal) => deadLetters(queue, from, signal),
      (page) => {
        setLetters((before) =>
          from === undefined ? page.messages : [...before, ...page.messages],
        );
        setCursor(page.cursor);
      },
    );
  };
  useEffect(() => load(), [dead]);
  const drop = (gone: DeadLetter): void => {
    setLetters((before) => before.filter(({ id }) => id !== gone.id));
  };
  const remove = async (letter: DeadLetter): Promise<void> => {
    await deleteDead(database, queue, letter.id);
    drop(letter);
    const again = reporting(() => enqueue(database, queue, { value: letter.value }));
    // A dead letter cannot be made; its message can be enqueued.
    offerUndo(`Deleted dead letter ${letter.id}; undo enqueues its message again`, database, again);
  };
  const removeAll = async (): Promise<void> => {
    const isSure = await confirm({
      title: "Delete all dead letters?",
      text: `All dead letters of the queue ${queueName(queue)} are deleted. This cannot be undone.`,
      action: "Delete all",
    });
    if (!isSure) return;
    say(`Deleted ${counted(await purge(database, queue), "dead letter", "dead letters")}`);
    onReload();
  };
  const requeueThem = async (): Promise<void> => {
    const isSure = await confirm({
      title: "Requeue all dead letters?",
      text: `All dead letters of the queue ${queueName(queue)} are enqueued again. Consumers get them at once.`,
      action: "Requeue all",
    });
    if (!isSure) return;
    try {
      say(`Enqueued ${counted(await requeueAll(database, queue), "message", "messages")} again`);
    } finally {
      onReload();
    }
  };
  return (
    <section class="panel" aria-label="Dead letters">
      <header>
        <h2 class="grow">Dead letters</h2>
        <button type="button" onClick={onReload}>
          Reload
        </button>
        <button
          type="button"
          disabled={readOnly.value || isActing || letters.length === 0}
          onClick={acting(requeueThem)}
        >
          Requeue all
        </button>
        <button
          type="button"
          class="danger"
          disabled={readOnly.value || isActing || letters.length === 0}
          onClick={acting(removeAll)}
        >
          Delete all
        </button>
      </header>
      {letters.length === 0 && (
        <Empty
          what="There are no dead letters."
          next="A message whose last attempt has failed is kept here: requeue it, or delete it."
        />
      )}
      {letters.map((letter) => (
        <details key={letter.id} class="letter">
          <summary>
            Message {letter.id}{" "}
            <span class="soft">
              {counted(letter.attempts, "attempt", "attempts")}, dead since{" "}
              <Time at={letter.diedAt} />
            </span>{" "}
            <span class="badge danger">{letter.errorName}</span> {letter.error}
            <span class="preview mono">{preview(letter.value)}</span>
          </summary>
          <pre class="shown">{printNode(letter.value)}</pre>
          <div class="row end">
            <button
              type="button"
              disabled={readOnly.value || isActing}
              onClick={acting(async () => {
                await requeue(database, queue, letter.id);
                drop(letter);
                say("Enqueued again");
              })}
            >
              Requeue
            </button>
            <button
              type="button"
              class="danger"
              disabled={readOnly.value || isActing}
              onClick={acting(() => remove(letter))}
            >
              Delete
            </button>
          </div>
        </details>
      ))}
      {cursor !== null && (
        <div class="body">
          <button type="button" onClick={() => load(cursor)}>
            Load more
          </button>
        </div>
      )}
    </section>
  );
}
