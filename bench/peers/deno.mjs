// Deno's own store, with its defaults: WAL, synchronous=FULL, a page cache of 2 MB.

export const open = (path) => Deno.openKv(path);
