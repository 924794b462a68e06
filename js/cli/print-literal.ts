// Duty: prints values as literals: in one line, or over several lines if it is long.
// Invariant: literal.ts reads the text to an equal value, unless bytes are cut, which it refuses. No
// control character of a value is printed. An object that occurs twice is printed twice.

import { inspect } from "node:util";
import { visible } from "../codec/key-text.js";
import { isU64 } from "../codec/u64.js";
import { encodeValue } from "../interchange/encode.js";
import { CUT, DEPTH_MAX, printName, quoted } from "./literal-grammar.js";

/** Characters up to which an array or object is printed in one line. */
const LINE_CHARS_MAX = 72;
/** Bytes of one value that are printed. */
const BYTES_PRINTED_MAX = 512;

/** A part of a value: `open` and `close` without items are text. Colours have no width. */
interface Part {
  readonly open: string;
  readonly items: readonly Part[];
  readonly close: string;
  readonly width: number;
  readonly isObject?: boolean;
}

/** A literal that the syntax does not have: a cycle, a hole, a Blob. */
const UNPRINTABLE = Symbol("unprintable");

/** The literal of a value. One without a literal is its CBOR, behind a comment for people. */
export async function printLiteral(value: unknown, color: boolean): Promise<string> {
  const printer = new Printer(color);
  try {
    return render(printer.part(value), "");
  } catch (error) {
    if (error !== UNPRINTABLE) throw error;
  }
  const whole = { depth: null, maxArrayLength: null, maxStringLength: null };
  const shown = visible(inspect(value, whole), true).replaceAll("*/", "* /");
  const text = await encodeValue(value);
  const typed = JSON.parse(text) as { type: string; value: string };
  // Only nested too deeply.
  if (typed.type !== "CBOR") return `typed(${quoted(text)})`;
  const bytes = new Uint8Array(Buffer.from(typed.value, "base64url"));
  return `/* ${shown} */ cbor(${render(printer.part(bytes), "")})`;
}

/** The literal of a part of a key. Its bytes are not cut. */
export function printKeyPart(part: unknown, color: boolean): string {
  return render(new Printer(color, Number.POSITIVE_INFINITY).part(part), "");
}

function render(part: Part, indent: string): string {
  const { open, items, close, width } = part;
  if (items.length === 0) return open + close;
  if (width + indent.length <= LINE_CHARS_MAX) return inLine(part);
  const inner = `${indent}  `;
  const lines = items.map((item) => `${inner}${render(item, inner)},\n`);
  return `${open}\n${lines.join("")}${indent}${close}`;
}

function inLine({ open, items, close, isObject }: Part): string {
  if (items.length === 0) return open + close;
  const inner = items.map(inLine).join(", ");
  return isObject ? `${open} ${inner} ${close}` : open + inner + close;
}

function group(open: string, items: readonly Part[], close: string, isObject = false): Part {
  let width = open.length + close.length + (isObject ? 2 : 0);
  for (const item of items) width += item.width + 2;
  return { open, items, close, width, isObject };
}

type Kind = "string" | "number" | "bigint" | "boolean" | "null" | "undefined" | "date" | "regexp";

class Printer {
  readonly #color: boolean;
  readonly #bytesMax: number;
  /** The objects around the part that is printed. */
  readonly #around = new Set<object>();

  constructor(color: boolean, bytesMax = BYTES_PRINTED_MAX) {
    this.#color = color;
    this.#bytesMax = bytesMax;
  }

  part(value: unknown): Part {
    switch (typeof value) {
      case "string":
        return this.#text("string", quoted(value));
      case "number":
        return this.#text("number", Object.is(value, -0) ? "-0" : `${value}`);
      case "bigint":
        return this.#text("bigint", `${value}n`);
      case "boolean":
        return this.#text("boolean", `${value}`);
      case "undefined":
        return this.#text("undefined", "undefined");
      case "object":
        return value === null ? this.#text("null", "null") : this.#object(value);
      default:
        throw UNPRINTABLE;
    }
  }

  #text(kind: Kind, text: string): Part {
    return { open: this.#paint(kind, text), items: [], close: "", width: text.length };
  }

  #paint(kind: Kind, text: string): string {
    const style = this.#color ? inspect.styles[kind] : undefined;
    const codes = style === undefined ? undefined : inspect.colors[style];
    return codes ? `\u001b[${codes[0]}m${text}\u001b[${codes[1]}m` : text;
  }

  #object(value: object): Part {
    if (isU64(value)) return this.#text("bigint", `u64(${value.value})`);
    if (this.#around.has(value) || this.#around.size >= DEPTH_MAX) throw UNPRINTABLE;
    this.#around.add(value);
    const part = this.#within(value);
    this.#around.delete(value);
    return part;
  }

  #within(value: object): Part {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return this.#fields("{", value, "}");
    if (Array.isArray(value)) return this.#array(value);
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return this.#bytes(value);
    if (value instanceof Map) {
      const pairs = Array.from(value, (pair) => group("[", pair.map(this.part, this), "]"));
      return group("map([", pairs, "])");
    }
    if (value instanceof Set) return group("set([", Array.from(value, this.part, this), "])");
    if (value instanceof Date) {
      const time = Number.isNaN(value.getTime()) ? "null" : `"${value.toISOString()}"`;
      return this.#text("date", `date(${time})`);
    }
    if (value instanceof RegExp) return this.#text("regexp", `regexp(${quoted(`${value}`)})`);
    if (value instanceof Error && ERRORS.includes(prototype)) return this.#error(value);
    throw UNPRINTABLE;
  }

  #array(value: unknown[]): Part {
    const { length } = Object.keys(value);
    // Holes and additional properties change the number of names.
    for (let i = 0; i < value.length; i++) if (!(i in value)) throw UNPRINTABLE;
    if (length !== value.length) throw UNPRINTABLE;
    return group("[", value.map(this.part, this), "]");
  }

  #fields(open: string, value: object, close: string): Part {
    const fields = Object.entries(value).map(([name, held]): Part => {
      const shown = `${printName(name)}: `;
      const part = this.part(held);
      return { ...part, open: shown + part.open, width: shown.length + part.width };
    });
    return group(open, fields, close, fields.length > 0);
  }

  #error(error: Error): Part {
    const { name } = Object.getPrototypeOf(error) as Error;
    const fields: Record<string, unknown> = {};
    if (Object.hasOwn(error, "message")) fields.message = error.message;
    if (typeof error.stack === "string") fields.stack = error.stack;
    if (Object.hasOwn(error, "cause")) fields.cause = error.cause;
    return this.#fields(`error("${name}", {`, fields, "})");
  }

  #bytes(value: ArrayBufferView | ArrayBuffer): Part {
    const { name } = value.constructor;
    const isView = ArrayBuffer.isView(value);
    if ((value as { resizable?: boolean }).resizable === true) throw UNPRINTABLE;
    const all = isView
      ? Buffer.from(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength)
      : Buffer.from(value);
    const isCut = all.length > this.#bytesMax;
    const hex = all.subarray(0, this.#bytesMax).toString("hex") + (isCut ? CUT : "");
    const text = name === "Uint8Array" ? `u8"${hex}"` : `view("${name}", u8"${hex}")`;
    const note = ` /* the first ${this.#bytesMax} of ${all.length} bytes: --json prints all, get --raw all of one value */`;
    const part = this.#text("string", text);
    return isCut ? { ...part, close: note, width: part.width + note.length } : part;
  }
}

const ERRORS: readonly unknown[] = [
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
].map((type) => type.prototype);
