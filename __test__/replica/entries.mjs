// Duty: what a database has, for comparison.

/** All entries, or those under a prefix. */
export async function all(kv, options, prefix = []) {
  const entries = [];
  for await (const entry of kv.list({ prefix }, options)) entries.push(entry);
  return entries;
}
