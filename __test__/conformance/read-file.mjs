// Duty: a process of its own that prints what it can read of the Blob and the File another
// process stored: `read-file.mjs <database> [--oracle]`.

import process from "node:process";
import { loadSubject } from "./subject.mjs";

const { openKv } = await loadSubject(process.argv.includes("--oracle"));
const kv = await openKv(process.argv[2]);
const { value } = await kv.get(["files"]);
const { blob, file } = value;
console.log(
  JSON.stringify([blob.type, await blob.text(), file.type, file.name, await file.text()]),
);
await kv.close();
