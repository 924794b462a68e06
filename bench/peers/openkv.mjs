// openkv, from this checkout, with its defaults: WAL, synchronous=FULL.

import { openKv } from "../../index.mjs";

export const open = (path, { lane } = {}) => openKv(path, { lane });
