// Duty: the building of an index: its progress, and when it is complete.

import { nameText } from "../arguments/names.js";
import { setTimeout } from "../model/clock.js";
import { KvError } from "../model/errors.js";
import { NativePromise } from "../model/native-promise.js";
import { count } from "../read/count.js";
import type { Session } from "../session/session.js";
import type { KvEntryKey, KvIndexProgress } from "../model/types.js";

/** Time between two polls of the progress of building. */
const LOOK_MS = 25;

/** The parts of a description that change. */
interface Described {
  readonly name: string;
  readonly prefix: KvEntryKey;
  readonly state: "building" | "ready" | "failed";
  readonly indexed: number;
}

export class Building<I extends Described> {
  /** As of the last look. */
  info: I;
  /** The object of the caller, whose `state` is that of the last look. */
  readonly #index: { state: I["state"] };
  readonly #session: Session;
  readonly #list: () => Promise<I[]>;
  /** The number of entries under the prefix, once `progress` has counted them. */
  #counting: Promise<void> | null = null;
  #entries: number | null = null;

  constructor(session: Session, index: { state: I["state"] }, info: I, list: () => Promise<I[]>) {
    this.#session = session;
    this.#index = index;
    this.info = info;
    this.#list = list;
  }

  async ready(signal: AbortSignal | undefined): Promise<void> {
    for await (const _ of this.#follow(signal)) if (signal?.aborted) return;
  }

  async *progress(): AsyncGenerator<KvIndexProgress, void, undefined> {
    if (this.#index.state === "building") this.#count();
    for await (const indexed of this.#follow()) {
      const total = this.#entries === null ? null : Math.max(this.#entries, indexed);
      yield { indexed, total, done: false };
    }
    const { indexed } = this.info;
    yield { indexed, total: indexed, done: true };
  }

  /** Yields whenever building has progressed, and ends when it is complete or the signal is aborted. */
  async *#follow(signal?: AbortSignal): AsyncGenerator<number, void, undefined> {
    let reported = -1;
    while (this.#index.state === "building" && !signal?.aborted) {
      await this.#look();
      if (this.#index.state !== "building") return;
      if (this.info.indexed !== reported) {
        reported = this.info.indexed;
        yield reported;
      }
      await new NativePromise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Counts the entries in steps, so that other reads do not wait long. */
  #count(): void {
    this.#counting ??= count(this.#session, { prefix: this.info.prefix }, undefined).then(
      (entries) => {
        this.#entries = entries;
      },
      // The next poll reports the error of the database.
      () => {},
    );
  }

  async #look(): Promise<void> {
    const found = (await this.#list()).find(({ name }) => name === this.info.name);
    if (found === undefined) {
      const text = `the index ${nameText(this.info.name)} was dropped while it was being built`;
      throw new KvError("CONFLICT", text);
    }
    this.info = found;
    this.#index.state = found.state;
  }
}
