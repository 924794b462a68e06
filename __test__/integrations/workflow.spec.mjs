// Duty: the World of the Workflow SDK under the suite of @workflow/world-testing, whose workflows run in servers,
// and what that does not ask: two Worlds on one database, and the death of a process.

import { createWorld } from "openkv/workflow";
import { createTestSuite } from "@workflow/world-testing";
import { createFetcher } from "@workflow/world-testing/dist/src/util.mjs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from "vitest";
import { databases, end, newPath } from "./kit.mjs";

// The suite uses it; Node.js 20 has it not.
Promise.withResolvers ??= () => {
  const ends = {};
  ends.promise = new Promise((resolve, reject) => Object.assign(ends, { resolve, reject }));
  return ends;
};

/** A hang guard for a workflow. */
const RUN_MS_MAX = 30_000;
const WORLD = "openkv/workflow";

afterAll(end);

for (const [place, database] of await databases()) {
  describe(place, () => {
    describe(WORLD, () => {
      beforeAll(() => {
        const { path, open } = database();
        process.env.OPENKV_URL = path;
        process.env.OPENKV_ACCESS_TOKEN = open?.accessToken ?? "";
      });
      createTestSuite(WORLD);
    });

    describe("openkv", () => {
      let worlds;
      let world;
      let options;
      const open = () => {
        const opened = createWorld(options);
        worlds.push(opened);
        return opened;
      };
      beforeEach(() => {
        worlds = [];
        options = database();
        world = open();
      });
      afterEach(() => Promise.all(worlds.map((each) => each.close())));

      const newRun = async () => {
        const eventData = { deploymentId: "d", workflowName: "w", input: new Uint8Array([1]) };
        const { run } = await world.events.create(null, { eventType: "run_created", eventData });
        return run.runId;
      };
      const step = (runId, eventType, eventData, id = "step_1") =>
        world.events.create(runId, { eventType, correlationId: id, eventData });
      const outcomes = async (promises) => {
        const settled = await Promise.allSettled(promises);
        return settled.map(({ reason }) => reason?.name ?? "done").sort();
      };

      it("options that are none are refused", () => {
        expect(() => createWorld({ concurrency: 0 })).toThrow(/concurrency must be .* received 0/);
        expect(() => createWorld({ baseUrl: "localhost" })).toThrow(/baseUrl must be a URL/);
      });

      it("one of many concurrent creators of a step wins", async () => {
        const runId = await newRun();
        const eventData = { stepName: "s", input: new Uint8Array([1]) };
        const create = (type) => () => step(runId, type, eventData);
        const creators = [create("step_created"), create("step_started")];
        const found = await outcomes(Array.from({ length: 10 }, (_, at) => creators[at % 2]()));
        expect(found).toEqual([...Array(9).fill("EntityConflictError"), "done"]);
        const { data } = await world.steps.list({ runId });
        expect(data.map(({ stepId }) => stepId)).toEqual(["step_1"]);
      });

      it("events of concurrent writers are in the order of their commits", async () => {
        const runId = await newRun();
        const ids = Array.from({ length: 30 }, (_, at) => `step_${at}`);
        let cursor;
        const seen = [];
        const readOn = async () => {
          const page = await world.events.list({ runId, pagination: { cursor, limit: 7 } });
          seen.push(...page.data.map(({ eventId }) => eventId));
          cursor = page.cursor ?? undefined;
          return page.hasMore;
        };
        await Promise.all(
          ids.map(async (id) => {
            await step(runId, "step_created", { stepName: "s", input: null }, id);
            await readOn.last?.catch(() => {});
            readOn.last = readOn();
          }),
        );
        await readOn.last;
        while (await readOn());
        const all = await world.events.list({ runId, pagination: { limit: 1000 } });
        expect(all.data.length).toBe(31);
        expect(new Set(seen)).toEqual(new Set(all.data.map(({ eventId }) => eventId)));
        const times = all.data.map(({ eventId }) => eventId);
        expect(times).toEqual([...times].sort());
      });

      it("a step ends once, and a run ends with its hooks", async () => {
        const runId = await newRun();
        await step(runId, "step_created", { stepName: "s", input: null });
        await step(runId, "step_started");
        const complete = () => step(runId, "step_completed", { result: 1 });
        expect(await outcomes([complete(), complete()])).toEqual(["EntityConflictError", "done"]);
        const hook = (id, eventType, eventData, of = runId) =>
          world.events.create(of, { eventType, correlationId: id, eventData });
        await hook("hook_1", "hook_created", { token: "t" });
        const other = await newRun();
        const conflict = await hook("hook_2", "hook_created", { token: "t" }, other);
        expect(conflict.event.eventType).toBe("hook_conflict");
        expect(conflict.event.eventData.conflictingRunId).toBe(runId);
        expect((await world.hooks.getByToken("t")).hookId).toBe("hook_1");
        await world.events.create(runId, { eventType: "run_completed", eventData: { output: 1 } });
        await expect(world.hooks.getByToken("t")).rejects.toThrow();
        await expect(hook("hook_1", "hook_received", { payload: 1 })).rejects.toThrow();
        expect((await hook("hook_3", "hook_created", { token: "t" }, other)).hook.token).toBe("t");
        const wait = (eventType, eventData) =>
          world.events.create(other, { eventType, correlationId: "wait_1", eventData });
        await wait("wait_created", { resumeAt: new Date() });
        await world.events.create(other, { eventType: "run_cancelled" });
        await expect(wait("wait_completed")).rejects.toThrow(/not found/);
        expect((await world.hooks.list({})).data).toEqual([]);
        const late = () => step(runId, "step_created", { stepName: "s", input: null }, "step_2");
        expect(await outcomes([late()])).toEqual(["EntityConflictError"]);
        const { data } = await world.runs.list({ status: "completed" });
        expect(data.map((run) => run.runId)).toContain(runId);
      });

      it("hooks that were disposed are not created again, and free their tokens", async () => {
        const runId = await newRun();
        const hook = (eventType, eventData) =>
          world.events.create(runId, { eventType, correlationId: "hook_d", eventData });
        await hook("hook_created", { token: "d" });
        expect(await outcomes([hook("hook_disposed"), hook("hook_disposed")])).toEqual([
          "HookNotFoundError",
          "done",
        ]);
        expect(await outcomes([hook("hook_created", { token: "d" })])).toEqual([
          "EntityConflictError",
        ]);
        await expect(world.hooks.get("hook_d")).rejects.toThrow();
      });

      it("a stream has its chunks in the order of the calls, from any of them", async () => {
        const runId = await newRun();
        const reader = options.path === ":memory:" ? world : open();
        const chunks = async (start) => {
          const found = [];
          for await (const chunk of await reader.streams.get(runId, name, start)) {
            found.push(new TextDecoder().decode(chunk));
          }
          return found;
        };
        const name = `${runId}-stream`;
        const live = chunks(0);
        const texts = Array.from({ length: 250 }, (_, at) => `chunk ${at}`);
        const writes = texts.map((text) => world.streams.write(Promise.resolve(runId), name, text));
        await Promise.all(writes);
        expect(await reader.streams.getInfo(runId, name)).toEqual({ tailIndex: 249, done: false });
        await world.streams.close(runId, name);
        expect(await live).toEqual(texts);
        expect(await chunks(-3)).toEqual(texts.slice(-3));
        expect(await chunks(248)).toEqual(texts.slice(248));
        expect(await reader.streams.list(runId)).toEqual([name]);
        const page = await reader.streams.getChunks(runId, name, { limit: 100, cursor: "200" });
        expect([page.data.length, page.data[0].index, page.hasMore, page.done]).toEqual([
          50,
          200,
          false,
          true,
        ]);
      });

      it("a reader that is cancelled, or whose database is closed, ends", async () => {
        const name = "unfinished";
        await world.streams.write("wrun_1", name, "a");
        const cancelled = (await world.streams.get("wrun_1", name)).getReader();
        await cancelled.read();
        await cancelled.cancel();
        const closed = (await world.streams.get("wrun_1", name)).getReader();
        await closed.read();
        await world.close();
        await expect(closed.read()).rejects.toThrow();
      });

      it("a message with an idempotency key is queued once, until it is done", async () => {
        const queue = () =>
          world.queue(
            "__wkf_workflow_w",
            { runId: "wrun_1" },
            { idempotencyKey: "k", delaySeconds: 60 },
          );
        const ids = await Promise.all([queue(), queue(), queue()]);
        expect(new Set(ids.map(({ messageId }) => messageId)).size).toBe(1);
        await expect(world.queue("elsewhere", { runId: "wrun_1" })).rejects.toThrow();
      });
    });

    it("a message is delivered again with its id when its handler fails or asks for it", async () => {
      vi.spyOn(console, "error").mockImplementation(() => {});
      const options = database();
      const bytes = new Uint8Array([0, 255]);
      const answers = [
        new Error("a test"),
        { timeoutSeconds: 0 },
        { timeoutSeconds: 0.1 },
        undefined,
      ];
      const seen = [];
      const done = Promise.withResolvers();
      let handle;
      const server = createServer(async (request, response) => {
        const { url, headers } = request;
        const body = await text(request);
        const answer = await handle(
          new Request(`http://test${url}`, { method: "POST", headers, body }),
        );
        response.writeHead(answer.status).end(await answer.text());
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const baseUrl = `http://127.0.0.1:${server.address().port}/app`;
      const world = createWorld({ ...options, baseUrl });
      handle = world.createQueueHandler("__wkf_workflow_", async (message, meta) => {
        seen.push({ message, ...meta });
        const answer = answers[seen.length - 1];
        if (answer instanceof Error) throw answer;
        if (answer === undefined) done.resolve();
        return answer;
      });
      await world.start();
      const send = () =>
        world.queue("__wkf_workflow_w", { runId: "r", bytes }, { idempotencyKey: "k" });
      const { messageId } = await send();
      await done.promise;
      expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
      for (const { message, queueName, messageId: id } of seen) {
        expect({ message, queueName, id }).toEqual({
          message: { runId: "r", bytes },
          queueName: "__wkf_workflow_w",
          id: messageId,
        });
      }
      // The key is free when the message is done.
      await expect.poll(async () => (await send()).messageId).not.toBe(messageId);
      await world.close();
      server.close();
      console.error.mockRestore();
    });

    if (place === "on a file") {
      it("another process goes on when one is killed", { timeout: 2 * RUN_MS_MAX }, async () => {
        process.env.OPENKV_URL = newPath();
        const first = await start();
        const file = "workflows/inline-execution.ts";
        const { runId } = await createFetcher(first).invoke(file, "sleepWorkflow", []);
        await first.kill();
        const second = await start();
        const run = () => createFetcher(second).getRun(runId);
        await vi.waitFor(async () => expect((await run()).status).toBe("completed"), {
          timeout: RUN_MS_MAX,
          interval: 200,
        });
        await second.kill();
      });
    }
  });
}

describe("start and close", () => {
  /** A handle that has only what listening needs, and the listeners that it has had. */
  const newHandle = () => {
    const listeners = [];
    const listen = (_, { signal }) =>
      new Promise((end, fail) => {
        listeners.push({ signal, fail });
        signal.addEventListener("abort", end);
      });
    return { kv: { queue: () => ({ listen }) }, listeners };
  };

  it("two calls of start at once listen once", async () => {
    const { kv, listeners } = newHandle();
    const world = createWorld({ kv });
    await Promise.all([world.start(), world.start()]);
    await world.start();
    expect(listeners.length).toBe(1);
    await world.close();
    expect(listeners[0].signal.aborted).toBe(true);
  });

  it("start listens again after an error or close", async () => {
    const told = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => told.mockRestore());
    const { kv, listeners } = newHandle();
    const world = createWorld({ kv });
    await world.start();
    listeners[0].fail(new Error("a test"));
    await turn();
    expect(told.mock.calls[0][0]).toMatch(/the queue has stopped/);
    await world.start();
    expect(listeners.length).toBe(2);
    // A start during close is not ended by it.
    const closing = world.close();
    await Promise.all([world.start(), closing]);
    expect(listeners.map(({ signal }) => signal.aborted)).toEqual([false, true, false]);
    await world.close();
  });

  it("a start that close overtakes does not listen, and the next one does", async () => {
    const { kv, listeners } = newHandle();
    const opening = Promise.withResolvers();
    const world = createWorld({ kv: opening.promise });
    const calls = [world.start(), world.close()];
    opening.resolve(kv);
    await Promise.all(calls);
    expect(listeners.length).toBe(0);
    await world.start();
    expect(listeners.length).toBe(1);
    await world.close();
  });

  it("a start whose database cannot be opened rejects, and the next one tries again", async () => {
    const { kv, listeners } = newHandle();
    let failures = 1;
    const world = createWorld({
      kv: {
        // Each await of it is an opening.
        then: (open, fail) => (failures-- > 0 ? fail(new Error("a test")) : open(kv)),
      },
    });
    await expect(world.start()).rejects.toThrow("a test");
    await turn();
    await world.start();
    expect(listeners.length).toBe(1);
    await world.close();
  });
});

/** The server of the suite, in a process that the caller kills. */
async function start() {
  const server = createRequire(import.meta.url).resolve("@workflow/world-testing");
  const child = spawn(process.execPath, [join(dirname(server), "server.mjs")], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...process.env, WORKFLOW_TARGET_WORLD: WORLD, CONTROL_FD: "3", PORT: "0" },
  });
  const exited = once(child, "exit");
  onTestFinished(() => void child.kill("SIGKILL"));
  const { value: line } = await createInterface(child.stdio[3])[Symbol.asyncIterator]().next();
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return { ...JSON.parse(line), kill };
}
