// Duty: tenants that take no answers do not keep their neighbours waiting.
//
// Two tenants within their quotas asked over HTTP/2 with a window of 0. Each unread answer kept the
// place of its request, so that the two held all requests of the server, and a third tenant's get of
// a small entry waited for 10 s and got 503.

import assert from "node:assert/strict";
import { test } from "node:test";
import { untaken } from "./neighbours.mjs";

test("two tenants that take no answers do not keep a third one waiting", async () => {
  const { beside, attacks } = await untaken(12, 1);
  assert.deepEqual(Object.keys(beside.statuses), ["200"]);
  for (const { asked, closed, statuses } of attacks) {
    assert.ok(asked > 100 && statuses[200] > 0, JSON.stringify(statuses));
    assert.ok(closed > 0, "a connection that takes nothing is closed");
  }
});
