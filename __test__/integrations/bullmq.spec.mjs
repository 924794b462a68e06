// Duty: queues, workers, schedulers, flows and events of BullMQ on openkv, by BullMQ's documentation, over all that
// a backend of its own answers for. BullMQ's shared suite, which is in its repository, is run by bullmq-suite.mjs.

import { FlowProducer, Queue, QueueEvents, Worker, setDefaultBackendFactory } from "bullmq";
import { openKv } from "openkv";
import { OpenKvQueueBackend, openKvBackend } from "openkv/bullmq";
import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { databases, end, newPath } from "./kit.mjs";

const connection = {};
afterAll(end);

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    let kv;
    let backend;
    let queue;
    let open;
    let base;
    beforeEach(async () => {
      const database = newDatabase();
      base = database.base ?? "bullmq";
      kv = await openKv(database.path, { limits: "wide", ...database.open });
      backend = openKvBackend({ kv, base });
      queue = new Queue("mail", { connection }, backend);
      open = [queue];
    });
    afterEach(async () => {
      await Promise.all(open.map((one) => one.close()));
      await kv.close();
    });

    const newWorker = (handle, options, name = "mail") => {
      const worker = new Worker(name, handle, { connection, ...options }, backend);
      open.unshift(worker);
      return worker;
    };
    const newEvents = async (name = "mail") => {
      const events = new QueueEvents(name, { connection }, backend);
      open.unshift(events);
      await events.waitUntilReady();
      return events;
    };

    it("a worker handles what is added, and the result is there", async () => {
      const events = await newEvents();
      newWorker(async ({ data }) => data.n * 2);
      const job = await queue.add("double", { n: 21 });
      expect(await job.waitUntilFinished(events)).toBe(42);
      expect(await job.getState()).toBe("completed");
      expect((await queue.getJob(job.id)).returnvalue).toBe(42);
      expect(await queue.getJobCounts()).toMatchObject({ completed: 1, waiting: 0, active: 0 });
    });

    it("is served first by priority, then by age, and lifo before all", async () => {
      await queue.add("a", {}, { priority: 2 });
      await queue.add("b", {}, { priority: 1 });
      await queue.addBulk([{ name: "c" }, { name: "d" }, { name: "e", opts: { lifo: true } }]);
      expect(await queue.getCountsPerPriority([0, 1, 2])).toEqual({ 0: 3, 1: 1, 2: 1 });
      const order = [];
      newWorker(async ({ name }) => order.push(name));
      await expect.poll(() => order).toEqual(["e", "c", "d", "b", "a"]);
    });

    it("a job that fails is repeated after its backoff, and keeps its reason and its stack", async () => {
      const events = await newEvents();
      newWorker(async ({ attemptsMade }) => {
        if (attemptsMade < 2) throw new Error(`no ${attemptsMade}`);
        return "at last";
      });
      const job = await queue.add("a", {}, { attempts: 3, backoff: 5 });
      expect(await job.waitUntilFinished(events)).toBe("at last");
      const { attemptsMade, stacktrace, failedReason } = await queue.getJob(job.id);
      expect({ attemptsMade, failedReason }).toEqual({ attemptsMade: 3, failedReason: "no 1" });
      expect(stacktrace.length).toBe(2);
    });

    it("a job that has failed for good can be retried", async () => {
      const worker = newWorker(async ({ data }) => {
        if (!data.good) throw new Error("bad");
      });
      const failed = once(worker, "failed");
      const job = await queue.add("a", { good: false });
      await failed;
      expect(await job.isFailed()).toBe(true);
      await job.updateData({ good: true });
      const completed = once(worker, "completed");
      await job.retry();
      await completed;
      expect(await queue.getJobCounts("failed", "completed")).toEqual({ failed: 0, completed: 1 });
    });

    it("a delayed job is handled when it is due, and at once when it is promoted", async () => {
      const done = [];
      newWorker(async ({ name }) => done.push(name));
      await queue.add("soon", {}, { delay: 30 });
      const late = await queue.add("late", {}, { delay: 3_600_000 });
      await expect.poll(() => done).toEqual(["soon"]);
      expect(await queue.getDelayedCount()).toBe(1);
      await late.promote();
      await expect.poll(() => done).toEqual(["soon", "late"]);
    });

    it("each of a thousand jobs is handled once by four workers", async () => {
      const seen = new Map();
      for (let i = 0; i < 4; i++) {
        newWorker(async ({ id }) => void seen.set(id, (seen.get(id) ?? 0) + 1), {
          concurrency: 10,
        });
      }
      const numbers = Array.from({ length: 1000 }, (_, n) => ({ name: "n", data: { n } }));
      await Promise.all([
        queue.addBulk(numbers.slice(500)),
        ...numbers.slice(0, 500).map(({ name, data }) => queue.add(name, data)),
      ]);
      await expect.poll(() => queue.getCompletedCount()).toBe(1000);
      expect(seen.size).toBe(1000);
      expect([...seen.values()].every((times) => times === 1)).toBe(true);
    });

    it("a flow: the parent comes after its children and has their results", async () => {
      const flows = new FlowProducer({ connection }, backend);
      open.unshift(flows);
      const events = await newEvents();
      newWorker(async (job) => {
        const values = await job.getChildrenValues();
        return Object.values(values).reduce((sum, value) => sum + value, 0);
      });
      newWorker(async ({ data }) => data.n, {}, "parts");
      const tree = await flows.add({
        name: "sum",
        queueName: "mail",
        children: [1, 2, 3].map((n) => ({ name: "part", queueName: "parts", data: { n } })),
      });
      expect(await tree.job.waitUntilFinished(events)).toBe(6);
      const found = await flows.getFlow({ id: tree.job.id, queueName: "mail" });
      expect(found.children.map(({ job }) => job.returnvalue).sort()).toEqual([1, 2, 3]);
    });

    it("a parent fails with a child that says so", async () => {
      const flows = new FlowProducer({ connection }, backend);
      open.unshift(flows);
      const events = await newEvents();
      newWorker(async () => "never");
      newWorker(
        async () => {
          throw new Error("broken");
        },
        {},
        "parts",
      );
      const tree = await flows.add({
        name: "whole",
        queueName: "mail",
        children: [{ name: "part", queueName: "parts", opts: { failParentOnFailure: true } }],
      });
      await expect(tree.job.waitUntilFinished(events)).rejects.toThrow(
        /^child bull:parts:.* failed$/,
      );
    });

    it("a scheduler makes one job at a time, and is changed and removed by its id", async () => {
      const done = [];
      const worker = newWorker(async ({ name }) => done.push(name));
      await queue.upsertJobScheduler("tick", { every: 20, limit: 3 }, { name: "tick" });
      await expect.poll(() => done).toEqual(["tick", "tick", "tick"]);
      await worker.close();
      await queue.upsertJobScheduler("daily", { pattern: "0 3 * * *", tz: "Europe/Rome" });
      expect(
        (await queue.getJobSchedulers()).map(({ key, pattern }) => [key, pattern]),
      ).toContainEqual(["daily", "0 3 * * *"]);
      expect(await queue.removeJobScheduler("daily")).toBe(true);
      expect(await queue.removeJobScheduler("daily")).toBe(false);
      expect(await queue.getDelayedCount()).toBe(0);
    });

    it("what ends by its length is over after the clock was set back", async () => {
      const once = { deduplication: { id: "once", ttl: 60_000 } };
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
      let first;
      try {
        first = await queue.add("a", {}, once);
        expect((await queue.add("a", {}, once)).id).toBe(first.id);
        await queue.rateLimit(60_000);
        expect(await queue.getRateLimitTtl()).toBeGreaterThan(0);
      } finally {
        vi.useRealTimers();
      }
      expect(await queue.getRateLimitTtl()).toBe(-2);
      const second = await queue.add("a", {}, once);
      expect(second.id).not.toBe(first.id);
      expect((await queue.add("a", {}, once)).id).toBe(second.id);
    });

    it("a deduplication id stands for one job until that has ended", async () => {
      const [first, second] = [
        await queue.add("a", { n: 1 }, { deduplication: { id: "one" } }),
        await queue.add("a", { n: 2 }, { deduplication: { id: "one" } }),
      ];
      expect(second.id).toBe(first.id);
      expect(await queue.getWaitingCount()).toBe(1);
      const worker = newWorker(async () => {});
      await once(worker, "completed");
      expect(await queue.getDeduplicationJobId("one")).toBe(null);
    });

    it("a rate limit is one for all workers", async () => {
      const times = [];
      const limiter = { max: 2, duration: 40 };
      for (let i = 0; i < 2; i++) newWorker(async () => times.push(Date.now()), { limiter });
      await queue.addBulk(Array.from({ length: 6 }, () => ({ name: "a" })));
      await expect.poll(() => times.length).toBe(6);
      // Three windows have two waits between them.
      expect(times[5] - times[0]).toBeGreaterThanOrEqual(40);
    });

    it("a paused queue gives no job, and a global concurrency only so many", async () => {
      await queue.setGlobalConcurrency(1);
      await queue.pause();
      let most = 0;
      let now = 0;
      const done = [];
      newWorker(
        async ({ id }) => {
          most = Math.max(most, ++now);
          await new Promise(setImmediate);
          now -= 1;
          done.push(id);
        },
        { concurrency: 5 },
      );
      await queue.addBulk(Array.from({ length: 10 }, () => ({ name: "a" })));
      expect(done).toEqual([]);
      await queue.resume();
      await expect.poll(() => done.length).toBe(10);
      expect(most).toBe(1);
    });

    it("a job whose worker is gone is given to another", async () => {
      const gone = newWorker(() => new Promise(() => {}), {
        lockDuration: 60,
        skipLockRenewal: true,
      });
      const active = once(gone, "active");
      const job = await queue.add("a", {});
      await active;
      await gone.close(true);
      const events = await newEvents();
      const stalled = once(events, "stalled");
      newWorker(async () => "saved", { stalledInterval: 20 });
      expect((await stalled)[0]).toEqual({ jobId: job.id });
      await expect.poll(async () => (await queue.getJob(job.id)).returnvalue).toBe("saved");
    });

    it("finished jobs are kept as many as asked, with progress and logs until then", async () => {
      const worker = newWorker(async (job) => {
        await job.updateProgress({ part: 1 });
        await job.log("one");
        await job.log("two");
      });
      for (let i = 0; i < 4; i++) {
        const completed = once(worker, "completed");
        await queue.add("a", {}, { removeOnComplete: 2 });
        await completed;
      }
      const [newest, ...others] = await queue.getCompleted();
      expect(others.length).toBe(1);
      expect(newest.progress).toEqual({ part: 1 });
      expect(await queue.getJobLogs(newest.id)).toEqual({ logs: ["one", "two"], count: 2 });
      await queue.obliterate({ force: true });
      expect(await queue.getJobCountByTypes("completed")).toBe(0);
    });

    it("an event reader that begins later has the events since", async () => {
      await queue.add("a", {});
      const seen = [];
      const events = new QueueEvents(
        "mail",
        { connection, lastEventId: "0", autorun: false },
        backend,
      );
      open.unshift(events);
      events.on("added", ({ jobId }) => seen.push(jobId));
      void events.run();
      await queue.add("b", {});
      await expect.poll(() => seen).toEqual(["1", "2"]);
      expect(await queue.trimEvents(0)).toBeGreaterThan(0);
    });

    it("what is removed leaves nothing", async () => {
      const flows = new FlowProducer({ connection }, backend);
      open.unshift(flows);
      await flows.add({
        name: "p",
        queueName: "mail",
        children: [{ name: "c", queueName: "mail" }],
      });
      await queue.add("once", {}, { deduplication: { id: "d" } });
      await queue.add("log", {}).then((job) => job.log("row"));
      await queue.upsertJobScheduler("s", { every: 60_000 });
      await queue.obliterate({ force: true });
      expect(await kv.list({ prefix: [base] }, { keysOnly: true }).toArray()).toEqual([]);
    });

    it("more jobs than a commit takes are added, retried, cleaned and drained", async () => {
      const many = Array.from({ length: 1200 }, (_, n) => ({ name: "a", data: { n } }));
      expect((await queue.addBulk(many)).map(({ id }) => Number(id))).toEqual(
        many.map((_, n) => n + 1),
      );
      expect(await queue.clean(0, 250, "wait")).toHaveLength(250);
      await queue.drain();
      expect(await queue.count()).toBe(0);
      await queue.addBulk(many.slice(0, 450).map((job) => ({ ...job, opts: { delay: 60_000 } })));
      await queue.promoteJobs();
      expect(await queue.getJobCounts("delayed", "wait")).toEqual({ delayed: 0, wait: 450 });
    });

    it("workers and readers of events are found by their queue", async () => {
      const worker = newWorker(async () => {}, { name: "first" });
      await worker.waitUntilReady();
      await newEvents();
      expect((await queue.getWorkers()).map(({ rawname }) => rawname)).toEqual([
        "bull:bWFpbA==:w:first",
      ]);
      expect(await queue.getQueueEvents()).toHaveLength(1);
      await worker.close();
      expect(await queue.getWorkersCount()).toBe(0);
    });

    it("a process-wide default needs no argument", async () => {
      setDefaultBackendFactory(backend);
      try {
        const other = new Queue("other");
        open.unshift(other);
        expect(other.getBackend()).toBeInstanceOf(OpenKvQueueBackend);
        await other.add("a", {});
        expect(await other.getWaitingCount()).toBe(1);
      } finally {
        setDefaultBackendFactory();
      }
    });
  });
}

describe("a database that fails", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => vi.useRealTimers());

  /** A worker, and what it has emitted as errors. */
  const newWorker = (database) => {
    const worker = new Worker("mail", async () => {}, { connection }, openKvBackend(database));
    const errors = [];
    worker.on("error", (error) => errors.push(error));
    // expect.poll would advance the timers.
    const failures = async (count) => {
      while (errors.length < count) await turn();
      expect(errors.length).toBe(count);
    };
    return { worker, errors, failures };
  };

  it("a worker whose database cannot be opened tries once a second, until it is closed", async () => {
    const { worker, errors, failures } = newWorker({
      path: newPath(),
      open: { readonly: true },
    });
    // One of the worker, and one of its look for stalled jobs.
    await failures(2);
    for (const count of [3, 4]) {
      await vi.advanceTimersByTimeAsync(999);
      expect(errors.length).toBe(count - 1);
      await vi.advanceTimersByTimeAsync(1);
      await failures(count);
    }
    for (const { name } of errors) expect(name).toBe("KvError");
    await worker.close();
    expect(errors.length).toBe(4);
  });

  it("a worker whose database is closed while it waits tries once a second, until it is closed", async () => {
    const kv = await openKv(":memory:", { limits: "wide" });
    const { worker, errors, failures } = newWorker(kv);
    await once(worker, "drained");
    await kv.close();
    await failures(1);
    await vi.advanceTimersByTimeAsync(999);
    expect(errors.length).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    await failures(2);
    const closed = worker.close();
    await vi.advanceTimersByTimeAsync(100); // BullMQ's own
    await closed;
    expect(errors.length).toBe(2);
  });
});

describe("bad input", () => {
  const backend = openKvBackend({ path: ":memory:" });

  it("a connection that says where a Redis is is refused", () => {
    expect(() => new Queue("a", { connection: { host: "127.0.0.1" } }, backend)).toThrow(
      "openkv/bullmq: connection has host, which says where a Redis is. The database is given to openKvBackend: pass connection: {}",
    );
    expect(() => new Queue("a", { connection: "redis://127.0.0.1" }, backend)).toThrow(
      /connection is a URL/,
    );
  });

  it("a queue of another major version of BullMQ is refused", async () => {
    const queue = new Queue("a", { connection }, backend);
    await expect(queue.getBackend().setQueueMeta({ version: "bullmq:7.0.1" })).rejects.toThrow(
      "openkv/bullmq is for BullMQ 6, and bullmq:7.0.1 is installed: install bullmq@6",
    );
    await queue.close();
  });

  it("a job that is larger than a commit may be is refused alone", async () => {
    const kv = await openKv(":memory:");
    const queue = new Queue("a", { connection }, openKvBackend(kv));
    const adding = [
      queue.add("small", {}),
      queue.add("large", { text: "x".repeat(100_000) }),
      queue.add("small", {}),
    ];
    const ends = await Promise.allSettled(adding);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await queue.getWaitingCount()).toBe(2);
    await queue.close();
    await kv.close();
  });

  it("a database that is given twice is refused", () => {
    expect(() => openKvBackend({ path: "a", kv: {} })).toThrow(
      /give either kv, an open handle, or path/,
    );
  });
});
