// Duty: queues: delivery, order, failures, dead letters, sharing, what close leaves.

/** Listens and keeps what arrives; `onMessage` is the handler and may fail it. */
function listen(kv, onMessage = () => {}) {
  const got = [];
  const ended = kv.listenQueue((message) => {
    got.push(message);
    return onMessage(message, got);
  });
  return { got, ended };
}

/** For handlers that do not end, so that the cases need not wait for them; Deno takes no options. */
const SHORT_DRAIN = { drain: 50 };

const arrived = (t, got, count) => t.until(() => got.length >= count, `${count} messages`);

export default [
  {
    name: "a message goes to the listener once",
    async run(t) {
      const kv = await t.open();
      const { got, ended } = listen(kv);
      await kv.enqueue({ hello: ["world"] });
      await arrived(t, got, 1);
      await t.sleep(200);
      t.same(got, [{ hello: ["world"] }]);
      kv.close();
      t.is(await ended, undefined);
    },
  },
  {
    name: "messages wait for a listener",
    async run(t) {
      const kv = await t.open();
      for (let i = 0; i < 5; i++) await kv.enqueue(i);
      const { got } = listen(kv);
      await arrived(t, got, 5);
      t.same([...got].sort(), [0, 1, 2, 3, 4]);
    },
  },
  {
    name: "messages wait in the file",
    on: "shared",
    async run(t) {
      let kv = await t.open();
      await kv.enqueue("kept");
      kv = await t.reopen(kv);
      const { got } = listen(kv);
      await arrived(t, got, 1);
      t.same(got, ["kept"]);
    },
  },
  {
    name: "every kind of value is a message",
    async run(t) {
      const kv = await t.open();
      const messages = [
        undefined,
        null,
        0,
        -0,
        5n,
        "text",
        new Uint8Array([1, 2]),
        new Map([["k", new Set([1])]]),
        new Date(5),
        [1, , 3],
      ];
      const { got } = listen(kv);
      for (const [i, message] of messages.entries()) {
        await kv.enqueue(message);
        await arrived(t, got, i + 1);
        t.same(got[i], message);
      }
      await kv.enqueue();
      await arrived(t, got, messages.length + 1);
      t.is(got.at(-1), undefined);
      await kv.enqueue(new t.KvU64(5n));
      await arrived(t, got, messages.length + 2);
      t.same(got.at(-1), { value: 5n });
    },
  },
  {
    name: "the handler gets the message alone",
    async run(t) {
      const kv = await t.open();
      let given;
      kv.listenQueue((...args) => {
        given = args;
      });
      await kv.enqueue(1);
      await t.until(() => given, "a message");
      t.same(given, [1]);
    },
  },
  {
    name: "an atomic operation delivers its messages when it commits",
    async run(t) {
      const kv = await t.open();
      const { got } = listen(kv);
      const op = kv.atomic().set(["a"], 1).enqueue("one").enqueue("two");
      await t.sleep(50);
      t.same(got, []);
      await op.commit();
      await arrived(t, got, 2);
      t.same([...got].sort(), ["one", "two"]);
      t.is(await t.value(kv, ["a"]), 1);
    },
  },
  {
    name: "a failed check delivers nothing",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const { got } = listen(kv);
      const lost = kv
        .atomic()
        .check({ key: ["a"], versionstamp: null })
        .enqueue("never");
      t.is((await lost.commit()).ok, false);
      await kv.enqueue("sentinel");
      await arrived(t, got, 1);
      await t.sleep(100);
      t.same(got, ["sentinel"]);
    },
  },
  {
    name: "what a message's commit wrote is there when it arrives",
    async run(t) {
      const kv = await t.open();
      const seen = [];
      kv.listenQueue(async (i) => {
        seen.push((await kv.get(["n", i])).value);
      });
      for (let i = 0; i < 20; i++) await kv.atomic().set(["n", i], `v${i}`).enqueue(i).commit();
      await t.until(() => seen.length === 20, "20 messages");
      t.same(seen.sort(), Array.from({ length: 20 }, (_, i) => `v${i}`).sort());
    },
  },
  {
    name: "a delayed message does not come early",
    async run(t) {
      const kv = await t.open();
      let at;
      kv.listenQueue(() => {
        at = Date.now();
      });
      const start = Date.now();
      await kv.enqueue("later", { delay: 400 });
      await t.until(() => at, "the message");
      t.ok(at - start >= 399, `came after ${at - start} ms`);
    },
  },
  {
    name: "messages come by the time they are due",
    async run(t) {
      const kv = await t.open();
      // One commit: between two, a slow disk could take longer than the delays differ.
      await kv
        .atomic()
        .enqueue("third", { delay: 900 })
        .enqueue("second", { delay: 450 })
        .enqueue("first")
        .commit();
      const { got } = listen(kv);
      await arrived(t, got, 3);
      t.same(got, ["first", "second", "third"]);
    },
  },
  {
    name: "messages due at one time come in the order they were enqueued",
    denoDiffers: "Deno gives them in the order of random ids",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic();
      for (let i = 0; i < 40; i++) op.enqueue(i);
      await op.commit();
      const { got } = listen(kv);
      await arrived(t, got, 40);
      t.same(
        got,
        Array.from({ length: 40 }, (_, i) => i),
      );
    },
  },
  {
    name: "a handler may enqueue, write and read",
    async run(t) {
      const kv = await t.open();
      const { got } = listen(kv, async (n) => {
        await kv.atomic().sum(["handled"], 1n).commit();
        if (n < 5) await kv.enqueue(n + 1);
      });
      await kv.enqueue(0);
      await arrived(t, got, 6);
      t.same(got, [0, 1, 2, 3, 4, 5]);
      await t.until(async () => (await t.value(kv, ["handled"])).value === 6n, "the counter");
    },
  },
  {
    name: "a handler that throws gets the message again after the backoff",
    async run(t) {
      const kv = await t.open();
      const times = [];
      const { got } = listen(kv, (_message, all) => {
        times.push(Date.now());
        if (all.length < 3) throw new Error("expected by the test");
      });
      await kv.enqueue({ n: 1 }, { backoffSchedule: [100, 200] });
      await arrived(t, got, 3);
      await t.sleep(200);
      t.same(got, [{ n: 1 }, { n: 1 }, { n: 1 }]);
      t.ok(times[1] - times[0] >= 99, `first retry after ${times[1] - times[0]} ms`);
      t.ok(times[2] - times[1] >= 199, `second retry after ${times[2] - times[1]} ms`);
    },
  },
  {
    name: "a handler that rejects fails too, and the default backoff begins with 100 ms",
    async run(t) {
      const kv = await t.open();
      const times = [];
      const { got } = listen(kv, async (_message, all) => {
        times.push(Date.now());
        await t.sleep(1);
        if (all.length < 2) throw new Error("expected by the test");
      });
      await kv.enqueue("m");
      await arrived(t, got, 2);
      t.ok(times[1] - times[0] >= 99, `retried after ${times[1] - times[0]} ms`);
    },
  },
  {
    name: "an undeliverable message ends under its keys",
    async run(t) {
      const kv = await t.open();
      await kv.set(["dead", 1], "older");
      const { got } = listen(kv, () => {
        throw new Error("expected by the test");
      });
      const message = { text: "m", bytes: new Uint8Array([1]) };
      const keysIfUndelivered = [["dead", 1], ["dead", 2n], ["other"]];
      await kv.enqueue(message, { backoffSchedule: [10, 10], keysIfUndelivered });
      await t.until(async () => (await t.stamp(kv, ["other"])) !== null, "the dead letter");
      t.is(got.length, 3);
      const entries = await kv.getMany(keysIfUndelivered);
      for (const entry of entries) t.same(entry.value, message);
      t.is(new Set(entries.map((entry) => entry.versionstamp)).size, 1, "versionstamps");
    },
  },
  {
    name: "an empty backoffSchedule means one attempt",
    async run(t) {
      const kv = await t.open();
      const { got } = listen(kv, () => {
        throw new Error("expected by the test");
      });
      await kv.enqueue("m", { backoffSchedule: [], keysIfUndelivered: [["dead"]] });
      await t.until(async () => (await t.value(kv, ["dead"])) === "m", "the dead letter");
      t.is(got.length, 1);
    },
  },
  {
    name: "a delivered message leaves no dead letter",
    async run(t) {
      const kv = await t.open();
      const { got } = listen(kv);
      await kv.enqueue("m", { keysIfUndelivered: [["dead"]] });
      await arrived(t, got, 1);
      await t.sleep(150);
      t.is(await t.stamp(kv, ["dead"]), null);
    },
  },
  {
    name: "a watch yields a dead letter",
    denoDiffers: "Deno writes dead letters without telling watchers",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["dead"]]).getReader();
      await reader.read();
      listen(kv, () => {
        throw new Error("expected by the test");
      });
      await kv.enqueue("m", { backoffSchedule: [], keysIfUndelivered: [["dead"]] });
      const told = await Promise.race([reader.read(), t.sleep(5000)]);
      t.is(told?.value[0].value, "m");
    },
  },
  {
    name: "a handler that is no function is refused, and takes no message",
    denoDiffers: "Deno takes the messages, and fails each until it is gone",
    async run(t) {
      const kv = await t.open();
      let refusal;
      kv.listenQueue("no function").catch((error) => (refusal = error));
      await kv.enqueue("m", { backoffSchedule: [], keysIfUndelivered: [["dead"]] });
      await t.until(
        async () => refusal ?? (await t.value(kv, ["dead"])),
        "the refusal, or its end",
      );
      t.is(refusal?.name, "TypeError");
      const { got } = listen(kv);
      await arrived(t, got, 1);
      t.same(got, ["m"]);
    },
  },
  {
    name: "a message that fails does not hold up the others",
    async run(t) {
      const kv = await t.open();
      const { got } = listen(kv, (message) => {
        if (message === "bad") throw new Error("expected by the test");
      });
      await kv.enqueue("bad", { backoffSchedule: [60_000] });
      for (let i = 0; i < 5; i++) await kv.enqueue(i);
      await arrived(t, got, 6);
      t.is(got.filter((message) => message === "bad").length, 1);
    },
  },
  {
    name: "handlers run side by side",
    async run(t) {
      const kv = await t.open();
      let [running, most] = [0, 0];
      listen(kv, async () => {
        most = Math.max(most, ++running);
        await t.until(() => most >= 5, "5 handlers at once");
        running--;
      });
      for (let i = 0; i < 5; i++) await kv.enqueue(i);
      await t.until(() => most === 5, "5 handlers at once");
    },
  },
  {
    name: "no more than 100 handlers of one listener run at once",
    denoDiffers: "Deno's bound of 100 is never applied",
    async run(t) {
      const kv = await t.open();
      let [running, most, done] = [0, 0, 0];
      let release;
      const gate = new Promise((resolve) => (release = resolve));
      listen(kv, async () => {
        most = Math.max(most, ++running);
        await gate;
        running--;
        done++;
      });
      const op = kv.atomic();
      for (let i = 0; i < 130; i++) op.enqueue(i);
      await op.commit();
      await t.until(() => running >= 100, "100 handlers");
      await t.sleep(300);
      t.is(most, 100);
      release();
      await t.until(() => done === 130, "130 messages");
      t.ok(most <= 100, `${most} at once`);
    },
  },
  {
    name: "several listeners of one handle share: every message goes to one",
    async run(t) {
      const kv = await t.open();
      const listeners = Array.from({ length: 3 }, () => listen(kv, () => t.sleep(5)));
      const op = kv.atomic();
      for (let i = 0; i < 30; i++) op.enqueue(i);
      await op.commit();
      const all = () => listeners.flatMap(({ got }) => got);
      await t.until(() => all().length >= 30, "30 messages");
      await t.sleep(150);
      t.same(
        all().sort((a, b) => a - b),
        Array.from({ length: 30 }, (_, i) => i),
      );
    },
  },
  {
    name: "listeners of several handles on one file share too",
    on: "shared",
    async run(t) {
      const one = await t.open();
      const two = await t.another(one);
      const three = await t.another(one);
      const [a, b] = [listen(one, () => t.sleep(5)), listen(two, () => t.sleep(5))];
      for (let i = 0; i < 20; i++) await three.enqueue(i);
      const all = () => [...a.got, ...b.got];
      await t.until(() => all().length >= 20, "20 messages");
      await t.sleep(150);
      t.same(
        all().sort((x, y) => x - y),
        Array.from({ length: 20 }, (_, i) => i),
      );
    },
  },
  {
    name: "a handler that runs long keeps its message to itself",
    async run(t) {
      const kv = await t.open();
      let finished = false;
      const { got } = listen(kv, async () => {
        await t.sleep(7000);
        finished = true;
      });
      await kv.enqueue("long");
      await t.until(() => finished, "the handler");
      await t.sleep(300);
      t.same(got, ["long"]);
    },
  },
  {
    name: "a handler that runs longer than a minute keeps its message to itself",
    denoDiffers: "Deno delivers the message again after a minute, while the handler runs",
    denoSlow: "takes more than a minute to show",
    async run(t) {
      const kv = await t.open();
      // openkv's lock is 5 s: 12 s cross it twice, as 75 s cross Deno's minute.
      const { got } = listen(kv, () => t.sleep(t.oracle ? 75_000 : 12_000));
      await kv.enqueue("long");
      await t.sleep(t.oracle ? 72_000 : 11_500);
      t.same(got, ["long"]);
    },
  },
  {
    name: "a message whose handler was running at close is delivered again",
    on: "shared",
    denoSlow: "Deno looks for such messages once a minute",
    async run(t) {
      let kv = await t.open();
      let started = false;
      const never = new Promise(() => {});
      const ended = kv.listenQueue(() => {
        started = true;
        return never;
      }, SHORT_DRAIN);
      await kv.enqueue("again");
      await t.until(() => started, "the handler");
      kv = await t.reopen(kv);
      await ended;
      const { got } = listen(kv);
      const patience = Date.now() + (t.oracle ? 100_000 : 15_000);
      while (got.length === 0 && Date.now() < patience) await t.sleep(50);
      t.same(got, ["again"]);
    },
  },
  {
    name: "a handler that ends after close has still finished its message",
    on: "shared",
    denoDiffers: "Deno forgets the handlers that run at close, and delivers again",
    denoSlow: "Deno looks for such messages once a minute",
    async run(t) {
      const kv = await t.open();
      let finish;
      let started = false;
      const ended = kv.listenQueue(() => {
        started = true;
        return new Promise((resolve) => (finish = resolve));
      });
      await kv.enqueue("once");
      await t.until(() => started, "the handler");
      const other = await t.another(kv);
      kv.close();
      await ended;
      finish();
      const { got } = listen(other);
      await t.sleep(t.oracle ? 80_000 : 8000);
      t.same(got, []);
    },
  },
  {
    name: "the nonce pattern makes a redelivery harmless",
    async run(t) {
      const kv = await t.open();
      const nonce = "n1";
      let effects = 0;
      const { got } = listen(kv, async (message, all) => {
        const entry = await kv.get(["nonces", message.nonce]);
        if (entry.value === null) return;
        const op = kv.atomic().check(entry).delete(entry.key).sum(["balance"], 10n);
        if ((await op.commit()).ok) effects++;
        if (all.length === 1) throw new Error("expected by the test: after the effect");
      });
      await kv
        .atomic()
        .check({ key: ["nonces", nonce], versionstamp: null })
        .set(["nonces", nonce], true)
        .enqueue({ nonce }, { backoffSchedule: [20] })
        .commit();
      await arrived(t, got, 2);
      await t.sleep(50);
      t.is(effects, 1);
      t.is((await t.value(kv, ["balance"])).value, 10n);
    },
  },
  {
    name: "listenQueue resolves when its handle closes",
    async run(t) {
      const kv = await t.open();
      const [a, b] = [kv.listenQueue(() => {}), kv.listenQueue(() => {})];
      await t.sleep(20);
      kv.close();
      t.same(await Promise.all([a, b]), [undefined, undefined]);
    },
  },
  {
    name: "listenQueue does not wait for running handlers",
    async run(t) {
      const kv = await t.open();
      let started = false;
      const ended = kv.listenQueue(() => {
        started = true;
        return new Promise(() => {});
      });
      await kv.enqueue("m");
      await t.until(() => started, "the handler");
      kv.close();
      t.is(await ended, undefined);
    },
  },
  {
    name: "after close listenQueue rejects, after dispose it resolves",
    async run(t) {
      const [closed, disposed] = [await t.open(), await t.open()];
      closed.close();
      await t.rejects(() => closed.listenQueue(() => {}), Error, "Queue already closed");
      disposed[Symbol.dispose]();
      t.is(await disposed.listenQueue(() => {}), undefined);
    },
  },
  {
    name: "300 messages at once are each handled once",
    async run(t) {
      const kv = await t.open();
      const { got } = listen(kv);
      await Promise.all(Array.from({ length: 300 }, (_, i) => kv.enqueue(i)));
      await arrived(t, got, 300);
      await t.sleep(100);
      t.same(
        [...got].sort((a, b) => a - b),
        Array.from({ length: 300 }, (_, i) => i),
      );
    },
  },
  // An urgent message that was not due was listed before all that were.
  {
    name: "named queues: peek lists in the order in which receive takes",
    denoDiffers: "Deno has one queue, and no way to look at it",
    async run(t) {
      const kv = await t.open();
      const queue = kv.queue("mail");
      let seed = 27;
      const below = (bound) => (seed = (seed * 48_271) % 2_147_483_647) % bound;
      const [hour, now] = [3_600_000, Date.now()];
      for (let value = 0; value < 48; value++) {
        // A third is delayed; of both kinds some are due at the same time.
        const ms = below(3) === 0 ? hour * (1 + below(5)) : -1000 * below(8);
        const backoffSchedule = [hour, hour, hour, hour, hour];
        await queue.enqueue(value, {
          priority: below(4) * 3,
          at: new Date(now + ms),
          backoffSchedule,
        });
      }
      let held = 0;
      for (let step = 0; step < 18; step++) {
        const kind = below(4);
        const taken = await queue.receive({ lockDuration: kind === 0 ? 100 : hour });
        if (kind === 1) await taken.nack({ delay: 0 });
        if (kind === 2) await taken.nack();
        if (kind === 3) held++;
      }
      const ended = async () => (await queue.stats()).processing === held;
      await t.until(ended, "the end of the short locks");

      const listed = await peekAll(queue, { limit: 7 });
      t.same(await peekAll(queue, { limit: 1000 }), listed);
      const of = (state) => listed.filter((message) => message.state === state);
      const states = ["pending", "delayed", "processing"];
      const stats = await queue.stats();
      for (const state of states) {
        t.same(await peekAll(queue, { limit: 4, state }), of(state));
        t.is(of(state).length, stats[state]);
        t.ok(stats[state] > 2, `${stats[state]} are ${state}`);
      }
      t.same(states.flatMap(of), listed);
      const byTime = (time) => (a, b) =>
        time(a) - time(b) || b.priority - a.priority || a.id - b.id;
      t.same(of("delayed").toSorted(byTime((message) => message.dueAt)), of("delayed"));
      t.same(of("processing").toSorted(byTime((message) => message.lockedUntil)), of("processing"));
      const taken = [];
      for (let message; (message = await queue.receive({ lockDuration: hour })); ) {
        taken.push([message.id, message.value]);
      }
      t.same(
        of("pending").map(({ id, value }) => [id, value]),
        taken,
      );
    },
  },
];

/** All messages of a queue, page by page. */
async function peekAll(queue, options) {
  const all = [];
  let cursor = null;
  do {
    const page = await queue.peek({ ...options, cursor });
    all.push(...page.messages);
    cursor = page.cursor;
  } while (cursor !== null);
  return all;
}
