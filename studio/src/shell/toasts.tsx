// Duty: short messages, and the offer to undo.
// Invariant: no message goes while the pointer or the focus is on it.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { isAborted } from "../api/request";
import { route } from "./router";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
  /** How long it is shown. */
  readonly ms: number;
  readonly undo?: { readonly database: string; run(): void };
}

const SHOWN_MS = 5000;
/** How long a deletion can be undone. */
const UNDO_MS = 10_000;

const toasts = signal<readonly Toast[]>([]);
let count = 0;

function show(toast: Omit<Toast, "id">): void {
  toasts.value = [...toasts.value, { ...toast, id: count++ }];
}

function close(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function say(text: string): void {
  show({ text, isError: false, ms: SHOWN_MS });
}

/** Offers to undo something while its database is open. */
export function offerUndo(text: string, database: string, run: () => void): void {
  show({ text, isError: false, ms: UNDO_MS, undo: { database, run } });
}

/** Shows an error. A request that was given up is none. */
export function report(error: unknown): void {
  if (isAborted(error)) return;
  show({ text: (error as Error).message, isError: true, ms: SHOWN_MS * 2 });
}

/** For handlers of events: an error is shown, and handled by that. */
export function reporting(work: () => Promise<unknown>): () => void {
  return () => {
    work().catch(report);
  };
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <Message key={toast.id} {...toast} />
      ))}
    </div>
  );
}

function Message({ id, text, isError, ms, undo }: Toast) {
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => close(id), ms);
    return () => clearTimeout(timer);
  }, [isHeld]);
  const look = ({ currentTarget }: { currentTarget: HTMLElement }) =>
    setHeld(currentTarget.matches(":hover, :focus-within"));
  return (
    <div
      class={`toast fade-in ${isError ? "error" : ""}`}
      onPointerEnter={look}
      onPointerLeave={look}
      onFocusIn={look}
      onFocusOut={look}
    >
      <span class="grow">{text}</span>
      {undo?.database === route.value.database && (
        <button
          type="button"
          onClick={() => {
            close(id);
            undo.run();
          }}
        >
          Undo
        </button>
      )}
      <button type="button" class="plain icon" aria-label="Dismiss" onClick={() => close(id)}>
        ×
      </button>
    </div>
  );
}
