// Duty: the place where queues are: a base in a database, with its lane and those who wait. Backends of one process
// share it.

import { Kv, type KvKey } from "openkv";
import { Lane } from "./bullmq-lane.js";
import { Waiting } from "./bullmq-waiting.js";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "bullmq";

export interface Place {
  kv: Kv;
  base: KvKey;
  lane: Lane;
  waiting: Waiting;
}

/** The places of each handle, by their base. */
const places = new WeakMap<Kv, Map<string, Place>>();

function placeOf(kv: Kv, base: KvKey): Place {
  let ofKv = places.get(kv);
  if (ofKv === undefined) {
    ofKv = new Map();
    places.set(kv, ofKv);
  }
  const name = JSON.stringify(base.map(String));
  let place = ofKv.get(name);
  if (place === undefined) {
    const waiting = new Waiting(kv, base);
    const lane = new Lane(kv, base, {
      offered: (queue) => waiting.offer(queue),
      changed({ queue, jobs, events, seq, event }) {
        if (jobs) waiting.tell(queue, "jobs", seq);
        if (events) waiting.tell(queue, "events", event);
      },
    });
    place = { kv, base, lane, waiting };
    ofKv.set(name, place);
  }
  return place;
}

/** What backends are made for: the place, which is opened at the first use, and closed with the last of them. */
export class SharedPlace {
  readonly #database: Database;
  #opening: Promise<Place> | undefined;
  /** The place once it is open. */
  opened: Place | undefined;
  #users = 0;

  constructor(given: Kv | Promise<Kv> | DatabaseOptions) {
    const isHandle =
      given instanceof Kv || typeof (given as { then?: unknown } | null)?.then === "function";
    this.#database = new Database(
      isHandle ? { kv: given as Kv } : (given as DatabaseOptions),
      NAME,
    );
  }

  use(): void {
    this.#users += 1;
  }

  open(): Promise<Place> {
    if (this.#opening === undefined) {
      const opening = this.#database.kv().then((kv) => placeOf(kv, this.#database.base));
      opening.then(
        (place) => {
          if (this.#opening === opening) this.opened = place;
        },
        () => {
          if (this.#opening === opening) this.#opening = undefined;
        },
      );
      this.#opening = opening;
    }
    return this.#opening;
  }

  async release(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#opening = undefined;
    this.opened = undefined;
    await this.#database.close();
  }
}
