// Duty: makes the indexes of a database those that a collection declares.
// Invariant: an index belongs to a collection if it has the prefix of the collection, and a name that begins with that of
// the collection; no other index is changed.

import { createHash } from "node:crypto";
import { checkOptions, shown } from "../arguments/check.js";
import { bytesOf, exactText, keyOf } from "../codec/key-bytes.js";
import { printGiven } from "../codec/key-text.js";
import type { KeyPart } from "../codec/key.js";
import { KvError, misuse } from "../model/errors.js";
import { NativePromise } from "../model/native-promise.js";
import type { KvEntryKey, KvValueIndexInfo, KvValueIndexOptions } from "../model/types.js";

/** What a collection does about its indexes, the first time that it is used. */
const MODES = ["sync", "check", "off"] as const;
type Mode = (typeof MODES)[number];

const DEFINITION = ["on", "unique", "multi", "sparse"] as const;

/** Bytes of a prefix in the names of its indexes; of a longer one, the rest is a hash. */
const PREFIX_BYTES_MAX = 120;
/** Characters of that hash. */
const HASH_CHARS = 24;

/** The methods of a handle about indexes. */
export interface IndexHandle {
  createIndex(options: KvValueIndexOptions): Promise<Created>;
  listIndexes(): Promise<readonly { name: string; prefix: KvEntryKey }[]>;
  dropIndex(name: string): Promise<boolean>;
}

interface Created {
  ready(): Promise<void>;
}

interface Declared {
  readonly options: KvValueIndexOptions & { readonly name: string };
  /** What must be the same in an index that exists. */
  readonly text: string;
}

export class DeclaredIndexes {
  readonly #prefix: KvEntryKey;
  readonly #beginning: string;
  readonly #declared: readonly Declared[];
  readonly #mode: Mode;
  #created: Promise<readonly Created[]> | undefined;

  constructor(prefix: KvEntryKey, indexes: unknown, mode: unknown) {
    this.#prefix = prefix;
    this.#beginning = `${shortened(exactText(keyOf(bytesOf(prefix)) as KeyPart[]))} `;
    if (!MODES.includes(mode as Mode)) {
      const known = MODES.map((name) => `"${name}"`).join(", ");
      throw misuse(`kv.collection: indexMode must be one of ${known}: received ${shown(mode)}`);
    }
    this.#mode = mode as Mode;
    if (typeof indexes !== "object" || indexes === null || Array.isArray(indexes)) {
      throw misuse(
        `kv.collection: indexes must be an object of definitions by name: received ${shown(indexes)}`,
      );
    }
    this.#declared = Object.entries(indexes).map(([name, given]) => {
      const method = `kv.collection: indexes.${name}`;
      const { on = name, unique, multi, sparse } = checkOptions(method, given, DEFINITION);
      const own = { on, unique: unique ?? false, multi: multi ?? false, sparse: sparse ?? false };
      const options = { type: "value", prefix, name: this.#beginning + name, ...own };
      return { options: options as Declared["options"], text: textOf(own) };
    });
  }

  /** Resolves when the indexes are defined as declared, which happens once. They may still be building. */
  created(kv: IndexHandle): Promise<readonly Created[]> {
    this.#created ??= this.#settle(kv).catch((error) => {
      // The next call tries again.
      this.#created = undefined;
      throw error;
    });
    return this.#created;
  }

  /** Resolves when they are complete too. */
  async ready(kv: IndexHandle): Promise<void> {
    const indexes = await this.created(kv);
    await NativePromise.all(indexes.map((index) => index.ready()));
  }

  async #settle(kv: IndexHandle): Promise<readonly Created[]> {
    if (this.#mode === "off") return [];
    const of = bytesOf(this.#prefix);
    const isOwn = ({ name, prefix }: { name: string; prefix: KvEntryKey }) =>
      name.startsWith(this.#beginning) && bytesOf(prefix) === of;
    const found = (await kv.listIndexes()).filter(isOwn);
    const texts = new Map(found.map((info) => [info.name, textOf(info)]));
    const wanted = new Map(this.#declared.map(({ options, text }) => [options.name, text]));
    if (this.#mode === "check") this.#compare(texts, wanted);
    else for (const { name } of found) if (!wanted.has(name)) await kv.dropIndex(name);
    const created: Created[] = [];
    for (const { options, text } of this.#declared) {
      const replace = texts.has(options.name) && texts.get(options.name) !== text;
      created.push(await kv.createIndex({ ...options, replace }));
    }
    return created;
  }

  #compare(found: ReadonlyMap<string, string>, wanted: ReadonlyMap<string, string>): void {
    const differing = [...wanted].filter(([name, text]) => found.get(name) !== text);
    if (differing.length === 0) return;
    const names = differing.map(([name]) => name.slice(this.#beginning.length)).join(", ");
    throw new KvError(
      "UNSUPPORTED",
      `the indexes ${names} of the collection ${printGiven(this.#prefix)} are not as declared: open it once with ` +
        'indexMode: "sync"',
    );
  }
}

function shortened(name: string): string {
  const bytes = Buffer.from(name);
  if (bytes.length <= PREFIX_BYTES_MAX) return name;
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, HASH_CHARS);
  return `${bytes.toString("utf8", 0, PREFIX_BYTES_MAX)}…${hash}`;
}

/** A definition as a text that equal ones have in common. */
function textOf(given: object): string {
  const { on, unique, multi, sparse } = given as Omit<KvValueIndexInfo, "on"> & { on: unknown };
  const paths = (Array.isArray(on) ? on : [on]).map((path: unknown) =>
    typeof path === "string" ? [path, "asc"] : orderOf(path as { path: string; order?: string }),
  );
  return JSON.stringify([paths, unique, multi, sparse]);
}

function orderOf({ path, order = "asc" }: { path: string; order?: string }): string[] {
  return [path, order];
}
