// Duty: takes the next message, as a consumer does: it is hidden from others until it is acknowledged,
// given back, or its lock expires.

import { useState } from "preact/hooks";
import { LOOK_MS, type Message, acknowledge, extend, giveBack, take } from "../../api/queues";
import { useActing } from "../../parts/acting";
import { confirm } from "../../parts/dialog";
import { duration } from "../../parts/figures";
import { nowMs } from "../../parts/time";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";
import { printNode } from "../../values/print";

interface Taken {
  readonly message: Message;
  readonly until: number;
}

export function Look({ queue }: { readonly queue: string }) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [taken, setTaken] = useState<Taken>();
  const next = acting(async () => {
    const message = await take(database, queue);
    if (message === null) say("No message is due.");
    setTaken(message === null ? undefined : { message, until: Date.now() + LOOK_MS });
  });
  const ended = (isHeld: boolean, text: string): void => {
    setTaken(undefined);
    say(isHeld ? text : "The lock had expired: the message belongs to another consumer.");
  };
  return (
    <section class="panel" aria-label="Take a message">
      <header>
        <h2 class="grow">Next message</h2>
        {taken === undefined && (
          <button type="button" disabled={readOnly.value || isActing} onClick={next}>
            Take
          </button>
        )}
      </header>
      <div class="body stack">
        {taken === undefined ? (
          <p class="soft">
            A message that is taken is hidden from consumers for {duration(LOOK_MS)}. Giving it back
            counts as an attempt. To look at messages, see below.
          </p>
        ) : (
          <>
            <div class="row">
              <span>Message {taken.message.id}</span>
              <span class="soft">attempt {taken.message.attempts}</span>
              <span class="grow" />
              <span class="badge warn">
                locked for {duration(Math.min(LOOK_MS, taken.until - nowMs.value))}
              </span>
            </div>
            <pre class="shown">{printNode(taken.message.value)}</pre>
            <div class="row end">
              <button
                type="button"
                disabled={isActing}
                onClick={acting(async () => {
                  const isHeld = await extend(database, taken.message);
                  if (isHeld) setTaken({ ...taken, until: Date.now() + LOOK_MS });
                  else ended(false, "");
                })}
              >
                Extend
              </button>
              <button
                type="button"
                disabled={isActing}
                onClick={acting(async () =>
                  ended(await giveBack(database, taken.message), "Given back"),
                )}
              >
                Give back
              </button>
              <button
                type="button"
                class="danger"
                disabled={isActing}
                onClick={acting(async () => {
                  const isSure = await confirm({
                    title: "Delete the message?",
                    text: "It counts as handled: no consumer gets it.",
                    action: "Delete it",
                  });
                  if (isSure) ended(await acknowledge(database, taken.message), "Deleted");
                })}
              >
                Delete
              </button>
            </div>
          </>
        )}
      </div>
    </section>
  );
}
