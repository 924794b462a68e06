// What the parent and the clients of network.mjs agree on.

export const CLIENTS = 3;
/** Callers of transactions in each client. */
export const LANES = 3;
export const ACCOUNTS = 12;
export const BALANCE = 1000;
/** Longer than the link is ever away. */
export const LOCK_MS = 10_000;
