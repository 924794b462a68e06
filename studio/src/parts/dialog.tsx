// Duty: a modal dialog, and the confirmation of something that cannot be undone.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { route } from "../shell/router";
import { Fault } from "./fault";

interface DialogProps {
  readonly title: string;
  readonly isSmall?: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, isSmall, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const open = dialog.current!;
    open.showModal();
    return () => open.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isSmall ? "small" : ""}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div class="content">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface DialogEndProps {
  /** What is done, on the button. */
  readonly action: ComponentChildren;
  readonly isDanger?: boolean;
  readonly disabled?: boolean;
  /** Why it was not done, if it was tried. */
  readonly fault?: string;
  onCancel(): void;
  /** Without it the button submits the form around it. */
  onAction?(): void;
}

/** The end of a dialog: what went wrong, and the buttons. */
export function DialogEnd(props: DialogEndProps) {
  const { action, isDanger = false, disabled = false, fault = "", onCancel, onAction } = props;
  return (
    <>
      <Fault text={fault} />
      <div class="row end">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button
          type={onAction === undefined ? "submit" : "button"}
          class={isDanger ? "danger" : "primary"}
          disabled={disabled}
          onClick={onAction}
        >
          {action}
        </button>
      </div>
    </>
  );
}

interface ConfirmRequest {
  readonly title: string;
  readonly text: string;
  /** What is done, on the button. */
  readonly action: string;
  answer(yes: boolean): void;
}

const pending = signal<ConfirmRequest | undefined>(undefined);

/** Asks the user to confirm something that cannot be undone. */
export function confirm(request: Omit<ConfirmRequest, "answer">): Promise<boolean> {
  pending.value?.answer(false);
  return new Promise((resolve) => {
    pending.value = {
      ...request,
      answer(yes) {
        pending.value = undefined;
        resolve(yes);
      },
    };
  });
}

export function Confirmation() {
  const open = pending.value;
  const { database } = route.value;
  // A confirmation is about the database that is open: what follows the answer goes to that one.
  useEffect(() => () => pending.peek()?.answer(false), [database]);
  if (open === undefined) return null;
  return (
    <Dialog title={open.title} isSmall onClose={() => open.answer(false)}>
      <p>{open.text}</p>
      <DialogEnd
        action={open.action}
        isDanger
        onCancel={() => open.answer(false)}
        onAction={() => open.answer(true)}
      />
    </Dialog>
  );
}
