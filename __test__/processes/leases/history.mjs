// Duty: decides whether what processes did under leases of one key can be right.

/**
 * What is wrong with a history, in words; empty when nothing is.
 *
 * @param {{
 *   writes: { by: number, token: string, versionstamp: string }[],
 *   holds: { by: number, askedNs: bigint, hasNs: bigint, token: string }[],
 * }} history `writes`: those that were committed under a lease, in the order of their commits. `holds`: each lease that
 * a process got, with the times before it asked and after it had it, by a clock that all processes share.
 */
export function wrongOf({ writes, holds }) {
  const wrong = [];
  const holders = new Map();
  for (const { by, token } of holds) {
    if (holders.has(token)) wrong.push(`${by} has the token ${token} of ${holders.get(token)}`);
    holders.set(token, by);
  }
  let last = "";
  for (const { by, token, versionstamp } of writes) {
    const owner = holders.get(token);
    // Of a process that was killed before it could say so.
    if (owner === undefined) holders.set(token, by);
    else if (owner !== by) wrong.push(`${by} wrote under ${token}, the token of ${owner}`);
    if (token < last) wrong.push(`${by} wrote under ${token} after a write under ${last}`);
    if (token >= versionstamp) wrong.push(`the write ${versionstamp} is before its token ${token}`);
    last = last > token ? last : token;
  }
  // What was asked for after another lease was there has a greater token.
  const byEnd = holds.toSorted((a, b) => (a.hasNs < b.hasNs ? -1 : 1));
  const byStart = holds.toSorted((a, b) => (a.askedNs < b.askedNs ? -1 : 1));
  let greatest = "";
  let ended = 0;
  for (const { by, askedNs, token } of byStart) {
    while (ended < byEnd.length && byEnd[ended].hasNs < askedNs) {
      const { token: earlier } = byEnd[ended++];
      if (earlier > greatest) greatest = earlier;
    }
    if (token <= greatest) wrong.push(`${by} got ${token} after ${greatest} was there`);
  }
  return wrong;
}
