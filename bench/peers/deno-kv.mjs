// The npm package @deno/kv on a file, with its defaults: WAL, synchronous=FULL.

import { openKv } from "@deno/kv";

export const open = (path) => openKv(path);
