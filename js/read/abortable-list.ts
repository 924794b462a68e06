// Duty: a list with a signal: after an abort, every call of next() rejects with the reason, so that
// a partial list is not taken for a complete one.

import { KvListIterator, forKv } from "./list.js";
import type { Session } from "../session/session.js";
import { raced } from "../arguments/signal.js";
import type { KvEntry, KvListOptions, KvListSelector } from "../model/types.js";

export class AbortableList<T, E = KvEntry<T>> extends KvListIterator<T, E> {
  readonly #signal: AbortSignal;

  constructor(
    session: Session,
    selector: KvListSelector,
    options: KvListOptions<any>,
    signal: AbortSignal,
  ) {
    super(session, selector, options, forKv(signal, true));
    this.#signal = signal;
  }

  /** An abort counts first. */
  protected override firstNow(): null {
    return null;
  }

  override next(): Promise<IteratorResult<E, undefined>> {
    return raced(this.#signal, () => super.next());
  }
}
