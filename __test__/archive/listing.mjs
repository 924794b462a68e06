// Duty: what `openkv archive list` says of an archive that is being made.

import { until } from "../kit/time.mjs";
import { openkv } from "../cli/running.mjs";

/** The newest history of an archive, with its owner; undefined while there is none: an archiver begins with the owner. */
export async function newestTimeline(target) {
  const { code, out } = await openkv("archive", "list", target, "--json");
  if (code !== 0) return undefined;
  const { owner, timelines } = JSON.parse(out);
  const timeline = timelines.at(-1);
  return timeline && { owner, ...timeline };
}

/** Waits until the archive has a commit. */
export async function untilArchived(target, versionstamp) {
  await until(async () => {
    const { last = null, snapshots = [] } = (await newestTimeline(target)) ?? {};
    return [last, snapshots.at(-1)?.versionstamp].some((one) => one != null && one >= versionstamp);
  }, `${versionstamp} is archived in ${target}`);
}
