// Duty: what a database has, for comparison.

/** All entries. */
export async function all(kv, options) {
  const entries = [];
  for await (const entry of kv.list({ prefix: [] }, options)) entries.push(entry);
  return entries;
}
