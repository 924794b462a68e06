// Duty: what is known of an entry beside its value.

import { size } from "../../parts/figures";
import { Countdown } from "../../parts/time";
import { type Entry, sizeOf } from "../../values/node";

export function Facts({ entry }: { readonly entry: Entry }) {
  const { value, versionstamp, expireAt } = entry;
  return (
    <dl class="facts">
      <div>
        <dt>Type</dt>
        <dd>{value?.type}</dd>
      </div>
      <div>
        <dt>Size</dt>
        <dd title="As typed JSON; bytes as they are">{size(sizeOf(value))}</dd>
      </div>
      <div>
        <dt>Versionstamp</dt>
        <dd class="mono">{versionstamp}</dd>
      </div>
      <div>
        <dt>Expires</dt>
        <dd>{expireAt === undefined ? "never" : <Countdown until={expireAt} />}</dd>
      </div>
    </dl>
  );
}
