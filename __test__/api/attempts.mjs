// Duty: how often a transaction runs when others write between its reads and its commit.

/** How often a transaction with these reads runs if `meanwhile` comes between its first reads and their commit. */
export async function attemptsOf(kv, read, meanwhile) {
  let attempts = 0;
  await kv.transaction(async (tx) => {
    tx.set(["done"], await read(tx));
    if (++attempts === 1) await meanwhile(kv);
  });
  return attempts;
}
