// Duty: bytes as hexadecimal lines, and as an image if they are one.

import { useEffect, useState } from "preact/hooks";
import { whole } from "./figures";

const LINE_BYTES = 16;
/** Bytes that are shown; a value may have many more. */
const SHOWN_BYTES_MAX = 16 * 1024;

/** Beginnings of images that browsers show. SVG is markup, so it is none of them. */
const IMAGES: readonly (readonly [string, readonly number[]])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46]],
];

export function BytesView({ bytes }: { readonly bytes: Uint8Array }) {
  const shown = bytes.subarray(0, SHOWN_BYTES_MAX);
  const lines: string[] = [];
  for (let at = 0; at < shown.length; at += LINE_BYTES) lines.push(lineOf(shown, at));
  return (
    <div class="bytes">
      <ImageOf bytes={bytes} />
      <pre>{lines.join("\n")}</pre>
      {shown.length < bytes.length && <p class="soft">The first {whole(shown.length)} bytes.</p>}
    </div>
  );
}

function lineOf(bytes: Uint8Array, at: number): string {
  const line = Array.from(bytes.subarray(at, at + LINE_BYTES));
  const hex = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const text = line.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : "·"));
  return `${at.toString(16).padStart(6, "0")}  ${hex.padEnd(LINE_BYTES * 3)} ${text.join("")}`;
}

function ImageOf({ bytes }: { readonly bytes: Uint8Array }) {
  const [url, setUrl] = useState<string>();
  const type = IMAGES.find(([, begin]) => begin.every((byte, at) => bytes[at] === byte))?.[0];
  useEffect(() => {
    if (type === undefined) return undefined;
    const made = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  if (url === undefined || type === undefined) return null;
  return <img src={url} alt={`The value as ${type}`} onError={() => setUrl(undefined)} />;
}
