// Background parts whose system calls fail retry by themselves, report it in stats(), and fail the
// calls of users after a long failure. Each call separately: `node background.mjs`.

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";

import { until } from "../kit/time.mjs";
import { openKv } from "../processes/target.mjs";
import { failEach, failOne } from "./background.mjs";
import { KINDS, skip, startSubject } from "./background/subject-process.mjs";

const ALWAYS = 0x3fffffff;

async function withSubject(t) {
  const subject = await startSubject();
  t.after(() => subject.end());
  return subject;
}

// They mostly wait, each for a process of its own.
describe("background parts", { concurrency: 4 }, () => {
  // A watch, a feed and a listener that began while threads or descriptors were used up once heard
  // nothing from other processes for as long as they lived, and nobody was told.
  // The script takes each call; here are some of those that are many.
  for (const [kind, step] of Object.entries({ thread: 1, notify: 1, map: 1, open: 4, read: 9 })) {
    test(`single calls fail: ${kind}`, { skip }, async () => {
      assert.ok((await failEach(kind, step)) > 0);
    });
  }

  for (const kind of Object.keys(KINDS)) {
    test(`all calls fail for a while: ${kind}`, { skip }, async (t) => {
      await failOne(await withSubject(t), KINDS[kind], 1, ALWAYS);
    });
  }

  test("commits are reported without threads and a file watcher, and stats() names both", {
    skip,
  }, async (t) => {
    const subject = await withSubject(t);
    const path = join(subject.folder, "kv");
    await subject.do("open", { path });
    const kv = await openKv(path);
    t.after(() => kv.close());
    assert.deepEqual(await subject.do("stats"), []);
    const before = Date.now();
    for (const [kind, part] of [
      ["thread", "externalCommits"],
      ["notify", "announcements"],
    ]) {
      subject.arm(KINDS[kind]);
      await subject.do("start", { which: ["watch", "feed", "listen"] });
      await subject.feedOpens();
      await kv.atomic().set(["a"], kind).set(["f", 1], kind).enqueue(kind).commit();
      const heard = (name) =>
        subject.hear((it) => it.heard === name && it.value === kind, `${name}, ${kind}`);
      await Promise.all([heard("watch"), heard("feed"), heard("listen")]);
      const [failing, ...others] = await subject.do("stats");
      assert.equal(failing?.part, part);
      assert.equal(failing.code, "UNAVAILABLE");
      assert.notEqual(failing.message, "");
      assert.ok(failing.since >= before - 1000 && failing.since <= Date.now() + 1000);
      assert.deepEqual(others, []);
      const text = await subject.do("metrics");
      assert.match(text, new RegExp(`^openkv_background_failing\\{part="${part}"\\} 1$`, "m"));
      subject.disarm();
      await until(async () => (await subject.do("stats")).length === 0, "it is tried again");
      await subject.do("close");
      await subject.do("open", { path });
    }
  });

  test("opening a file without a thread is UNAVAILABLE, and succeeds later", {
    skip,
  }, async (t) => {
    const subject = await withSubject(t);
    const path = join(subject.folder, "kv");
    subject.arm(KINDS.thread);
    await assert.rejects(subject.do("open", { path }), {
      code: "UNAVAILABLE",
      message: /openkv-files/,
    });
    subject.disarm();
    await subject.do("open", { path });
    await subject.do("set", { key: ["a"], value: 1 });
  });

  // Both said INTERNAL, without the reason.
  test("a backup or check without a thread is UNAVAILABLE, and succeeds later", {
    skip,
  }, async (t) => {
    const subject = await withSubject(t);
    await subject.do("open", { path: join(subject.folder, "kv") });
    const to = join(subject.folder, "copy");
    for (const does of ["backup", "check"]) {
      subject.arm(KINDS.thread);
      await assert.rejects(subject.do(does, { to }), {
        code: "UNAVAILABLE",
        message: new RegExp(`openkv-${does} .*Resource temporarily unavailable.*try again`, "i"),
      });
      subject.disarm();
      await subject.do(does, { to });
    }
  });

  test("callers get an error after a long failure of reads, and can call again", {
    skip,
  }, async (t) => {
    const subject = await withSubject(t);
    const path = join(subject.folder, "kv");
    await subject.do("open", { path });
    const kv = await openKv(path);
    t.after(() => kv.close());
    await subject.do("start", { which: ["feed"] });
    await subject.feedOpens();
    await subject.do("close");
    await subject.do("open", { path });
    const which = ["watch", "feed", "listen", "receive"];
    subject.arm(KINDS.thread);
    await subject.do("start", { which });
    await subject.hear((it) => it.heard === "watch" && it.value === null, "the state at first");
    subject.arm(KINDS.thread + KINDS.read + KINDS.open);
    // From here on the subject would have to read.
    await kv.set(["a"], 1);
    for (const name of which) {
      const { code, message } = await subject.hear((it) => it.failed === name, `${name} is told`);
      assert.equal(code, "UNAVAILABLE", `${name}: ${message}`);
      assert.match(message, /\S/);
    }
    subject.disarm();
    await subject.do("start", { which });
    await subject.feedOpens();
    await kv.atomic().set(["a"], 2).set(["f", 1], 2).enqueue(2).commit();
    await kv.queue("mail").enqueue(2);
    for (const name of which) {
      await subject.hear((it) => it.heard === name && it.value === 2, `${name} hears again`);
    }
  });
});
