// Duty: export to a file and import from one, as NDJSON (docs/format.md §5).

import type { Key } from "../values/node";
import { printKey } from "../values/print";
import { ask, askJson } from "./request";

const LINES = "application/x-ndjson";

interface SaveAs {
  showSaveFilePicker?(options: { suggestedName: string }): Promise<{
    createWritable(): Promise<WritableStream<Uint8Array>>;
  }>;
}

/**
 * Exports a prefix to a file that the user names. Where the browser can write to it as the bytes come, memory
 * stays small; elsewhere the whole export is collected first.
 */
export async function exportTo(database: string, prefix: Key, name: string): Promise<void> {
  const { showSaveFilePicker } = globalThis as SaveAs;
  const query = prefix.length === 0 ? {} : { prefix: printKey(prefix) };
  const request = { database, query, accept: LINES };
  if (showSaveFilePicker !== undefined) {
    // The dialog needs the click that led here, so it comes before the request.
    const handle = await showSaveFilePicker({ suggestedName: name });
    const response = await ask("/export", request);
    await response.body!.pipeTo(await handle.createWritable());
    return;
  }
  const content = await (await ask("/export", request)).blob();
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

export interface Imported {
  readonly imported: number;
  readonly skipped: number;
}

/** Imports a file, in front of whose keys a prefix is put. Fails at the first line that is wrong. */
export function importFrom(
  database: string,
  content: Blob,
  prefix: Key,
  overwrite: boolean,
): Promise<Imported> {
  const query = { overwrite, prefix: prefix.length === 0 ? undefined : printKey(prefix) };
  return askJson("/import", {
    ...{ database, method: "POST", query, file: { content, type: LINES } },
    accept: "application/json",
  });
}
