// Duty: finds integers in JSON that JSON.parse would round in silence. crates/core/src/interchange/json.rs has the same rule.

const QUOTE = 34;
const BACKSLASH = 92;
/** Without so many digits in a row, nothing is rounded. */
const LONG = /\d{16}/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The first integer of the text that is not the number that JSON.parse reads; `undefined` without one. */
export function roundedInteger(text: string): string | undefined {
  if (!LONG.test(text)) return undefined;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    NUMBER.lastIndex = at;
    const number = NUMBER.exec(text)?.[0];
    if (number === undefined) continue;
    if (isRounded(number)) return number;
    at += number.length - 1;
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) {
    at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  }
  return at;
}

/** A number as JavaScript prints it is no other one. Others refuse those beyond all numbers. */
function isRounded(text: string): boolean {
  if (!/^-?\d+$/.test(text)) return false;
  const number = Number(text);
  return Number.isFinite(number) && String(number) !== text && BigInt(number) !== BigInt(text);
}

/** What is wrong with such an integer. */
export function roundedMessage(integer: string): string {
  return (
    `the integer ${integer} has digits that a number cannot hold: write it as a text, or in typed JSON as ` +
    '{"type":"bigint","value":"…"}'
  );
}

/** As JSON.parse, without such integers. */
export function parseJson(text: string): unknown {
  const integer = roundedInteger(text);
  if (integer !== undefined) throw new SyntaxError(roundedMessage(integer));
  return JSON.parse(text);
}
