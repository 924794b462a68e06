// Duty: what js/ exports is what index.d.ts declares: the same names, and each usable as declared.

import type * as codes from "../../js/model/error-codes.js";
import type * as built from "../../js/index.js";
import type * as declared from "../../index.js";

/** Compiles only when `Value` can stand where `Declared` is expected. */
type Fits<Value extends Declared, Declared> = Value;

type OpenKv = (...args: Parameters<typeof declared.openKv>) => Promise<built.Kv>;
export type Functions = [Fits<typeof built.openKv, OpenKv>];

export type Instances = [
  Fits<built.Kv, declared.Kv>,
  Fits<built.AtomicOperation, declared.AtomicOperation>,
  Fits<built.KvListIterator<{ a: 1 }>, declared.KvListIterator<{ a: 1 }>>,
  Fits<built.KvU64, declared.KvU64>,
  Fits<built.KvUuidV7, declared.KvUuidV7>,
  Fits<built.KvError, declared.KvError>,
];

/** Users make a KvU64 themselves. */
export type Constructors = [Fits<typeof built.KvU64, new (value: bigint) => declared.KvU64>];

/** The values among the declared names are the exported names, none more and none less. */
type Values<Module> = keyof Module;
export type NoneMissing = Fits<Values<typeof declared>, Values<typeof built>>;
export type NoneExtra = Fits<Values<typeof built>, Values<typeof declared>>;

/** The codes of errors, which follow from the table of kinds in Rust, are the declared ones. */
export type Codes = [
  Fits<codes.KvErrorCode, declared.KvErrorCode>,
  Fits<declared.KvErrorCode, codes.KvErrorCode>,
  Fits<codes.KvInputErrorCode, declared.KvInputErrorCode>,
  Fits<declared.KvInputErrorCode, codes.KvInputErrorCode>,
];
