// Duty: short messages, and the offer to undo.

import { signal } from "@preact/signals";
import { isAborted } from "../api/request";
import { route } from "./router";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
  readonly undo?: { readonly database: string; run(): void };
}

const SHOWN_MS = 5000;
/** How long a deletion can be undone. */
export const UNDO_MS = 10_000;

const toasts = signal<readonly Toast[]>([]);
let count = 0;

function show(toast: Omit<Toast, "id">, ms: number): void {
  const id = count++;
  toasts.value = [...toasts.value, { ...toast, id }];
  setTimeout(() => close(id), ms);
}

function close(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function say(text: string): void {
  show({ text, isError: false }, SHOWN_MS);
}

/** Offers to undo something while its database is open: requests go to the open one. */
export function offerUndo(text: string, run: () => void): void {
  show({ text, isError: false, undo: { database: route.value.database, run } }, UNDO_MS);
}

/** Shows an error. A request that was given up is none. */
export function report(error: unknown): void {
  if (isAborted(error)) return;
  show({ text: (error as Error).message, isError: true }, SHOWN_MS * 2);
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
      {toasts.value.map(({ id, text, isError, undo }) => (
        <div key={id} class={`toast fade-in ${isError ? "error" : ""}`}>
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
      ))}
    </div>
  );
}
