// Duty: a list with a signal: once it is aborted, every call of next() rejects with the reason, so
// that nobody takes the entries that came before for all there are.

import { KvListIterator } from "./list.js";
import type { Session } from "./session.js";
import { raced } from "./signal.js";
import type { KvEntry, KvListOptions, KvListSelector } from "./types.js";

export class AbortableList<T, E = KvEntry<T>> extends KvListIterator<T, E> {
  readonly #signal: AbortSignal;

  constructor(
    session: Session,
    selector: KvListSelector,
    options: KvListOptions<any>,
    signal: AbortSignal,
  ) {
    super(session, selector, options);
    this.#signal = signal;
  }

  override next(): Promise<IteratorResult<E, undefined>> {
    return raced(this.#signal, () => super.next());
  }
}
