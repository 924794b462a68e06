#!/usr/bin/env node
// Makes each call of the addon fail, one at a time, while a file is opened and a watch, a change
// feed and a listener start and wait. Asserts that all three detect the next commit of another
// process without a restart of the process. A call that got an error is repeated once.
//
//   node background.mjs [--kinds open,map,thread,read,notify] [--step 1]
//
// A step of 3 takes every third call.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { sleep, until } from "../kit/time.mjs";
import { openKv } from "../processes/target.mjs";
import { KINDS, startSubject } from "./background/subject-process.mjs";

const STREAMS = ["watch", "feed", "listen"];
/** How long calls fail after the start. */
const FAILING_MS = 120;
/** No part makes so many calls. */
const CALLS_MAX = 500;

/** Kinds of which a process makes some calls once only: each try needs a new one. */
const ONCE = ["thread", "notify"];

/** Fails every so many calls of a kind, one at a time; answers how many there were. */
export async function failEach(kind, step = 1) {
  let subject = await startSubject();
  try {
    for (let call = 1; call <= CALLS_MAX; call += step) {
      const calls = await failOne(subject, KINDS[kind], call, 1);
      if (calls < call) return calls;
      if (!ONCE.includes(kind)) continue;
      await subject.end();
      subject = await startSubject();
    }
    throw new Error(`more than ${CALLS_MAX} calls of the kind ${kind}`);
  } finally {
    await subject.end();
  }
}

/**
 * Has calls fail from the `first` on, so many of them; asserts that all is well afterwards. Answers
 * how many calls there were.
 */
export async function failOne(subject, kinds, first, times) {
  const path = join(subject.folder, `${kinds}-${first}-${times}.kv`);
  const kv = await openKv(path);
  try {
    await kv.set(["a"], "before");
    subject.arm(kinds, first, times);
    const refused = await subject.do("open", { path }).then(
      () => false,
      () => true,
    );
    if (!refused) {
      await subject.do("start", { which: STREAMS });
      // Each kind has a first call, however late a busy machine makes it.
      if (first === 1) await until(() => subject.calls() > 0, "a call is made");
      await sleep(FAILING_MS / 2);
      // What another process commits has to be read anew, and what this one commits is shown at once.
      await kv.set(["other"], first);
      await subject.do("set", { key: ["a"], value: "own" }).catch(() => {});
      await sleep(FAILING_MS / 2);
    }
    const calls = subject.disarm();
    if (refused) await subject.do("open", { path });
    const ended = subject.said
      .splice(0)
      .filter((it) => "failed" in it)
      .map((it) => it.failed);
    await start(subject, refused ? STREAMS : ended);
    const commit = () => kv.atomic().set(["a"], first).set(["f", 1], first).enqueue(first).commit();
    await commit();
    for (const name of STREAMS) {
      const what = `${name}, after call ${first} of kind ${kinds} had failed`;
      const heard = (it) => it.heard === name && it.value === first;
      const told = await subject.hear((it) => heard(it) || it.failed === name, what);
      if (heard(told)) continue;
      // The call that failed before is told only now.
      await start(subject, [name]);
      await commit();
      await subject.hear(heard, what);
    }
    await until(async () => (await subject.do("stats")).length === 0, "all parts work again");
    return calls;
  } finally {
    subject.disarm();
    kv.close();
    await subject.do("close");
    subject.said.splice(0);
  }
}

async function start(subject, which) {
  await subject.do("start", { which });
  await subject.feedOpens();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      kinds: { type: "string", default: Object.keys(KINDS).join() },
      step: { type: "string", default: "1" },
    },
  });
  for (const kind of values.kinds.split(",")) {
    console.log(`${kind}: ${await failEach(kind, Number(values.step))} calls`);
  }
}
