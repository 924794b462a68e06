// Duty: a modal dialog, and the question before something that cannot be undone.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

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

interface Question {
  readonly title: string;
  readonly text: string;
  /** What is done, on the button. */
  readonly action: string;
  answer(yes: boolean): void;
}

const question = signal<Question | undefined>(undefined);

/** Asks before something that cannot be undone. */
export function confirm(asked: Omit<Question, "answer">): Promise<boolean> {
  return new Promise((resolve) => {
    question.value = {
      ...asked,
      answer(yes) {
        question.value = undefined;
        resolve(yes);
      },
    };
  });
}

export function Confirmation() {
  const open = question.value;
  if (open === undefined) return null;
  return (
    <Dialog title={open.title} isSmall onClose={() => open.answer(false)}>
      <p>{open.text}</p>
      <div class="row end">
        <button type="button" onClick={() => open.answer(false)}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={() => open.answer(true)}>
          {open.action}
        </button>
      </div>
    </Dialog>
  );
}
