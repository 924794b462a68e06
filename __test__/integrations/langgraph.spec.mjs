// Duty: the checkpointer of LangGraph under LangGraph's own suite and in a graph; the store, for which
// LangGraph has no suite on npm, by the documentation of its interface.

import { HumanMessage } from "@langchain/core/messages";
import { Annotation, InMemoryStore, MemorySaver, StateGraph } from "@langchain/langgraph";
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { openKv } from "openkv";
import { OpenKvMemoryStore, OpenKvSaver } from "openkv/langgraph";
import * as vitest from "vitest";
import { databases, end, newPath } from "./kit.mjs";

const { afterAll, afterEach, beforeEach, describe, expect, it } = vitest;
// The suite takes them from there.
Object.assign(globalThis, vitest);
afterAll(end);

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    const initializer = {
      checkpointerName: "its own suite",
      createCheckpointer: () => new OpenKvSaver(newDatabase()),
      destroyCheckpointer: (saver) => saver.close(),
    };
    specTest(initializer);
    deltaChannelHistoryTests(initializer);
  });
}

const State = Annotation.Root({
  messages: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
  steps: Annotation(),
});

/** A graph that answers each message, with a checkpoint after each of two nodes. */
function graphWith(checkpointer, store) {
  return new StateGraph(State)
    .addNode("count", ({ messages }) => ({ steps: messages.length }))
    .addNode("answer", ({ steps }) => ({ messages: [new HumanMessage(`answer ${steps}`)] }))
    .addEdge("__start__", "count")
    .addEdge("count", "answer")
    .compile({ checkpointer, store });
}

const textOf = ({ messages }) => messages.map(({ content }) => content);
const thread = (thread_id, more) => ({ configurable: { thread_id, ...more } });
const say = (text) => ({ messages: [new HumanMessage(text)] });

async function historyOf(graph, config) {
  const states = [];
  for await (const state of graph.getStateHistory(config)) states.push(state);
  return states;
}

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    let saver;
    beforeEach(() => (saver = new OpenKvSaver(newDatabase())));
    afterEach(() => saver.close());

    it("a graph goes on where its thread was, as with LangGraph's own checkpointer", async () => {
      const [graph, reference] = [saver, new MemorySaver()].map((one) => graphWith(one));
      for (const text of ["one", "two"]) {
        const state = await graph.invoke(say(text), thread("a"));
        expect(textOf(state)).toEqual(textOf(await reference.invoke(say(text), thread("a"))));
      }
      expect(textOf((await graph.getState(thread("a"))).values)).toEqual([
        "one",
        "answer 1",
        "two",
        "answer 3",
      ]);
      const shown = async (one) =>
        (await historyOf(one, thread("a"))).map(({ values, next, metadata }) => ({
          texts: textOf({ messages: values.messages ?? [] }),
          steps: values.steps,
          next,
          step: metadata.step,
        }));
      expect(await shown(graph)).toEqual(await shown(reference));
      expect((await graph.getState(thread("b"))).values).toEqual({});
    });

    it("branches of a thread whose channels have equal versions keep their own values", async () => {
      const graph = graphWith(saver);
      await graph.invoke(say("one"), thread("a"));
      const { config } = await graph.getState(thread("a"));
      const left = await graph.updateState(config, say("left"), "answer");
      const right = await graph.updateState(config, say("right"), "answer");
      expect(textOf((await graph.getState(left)).values)).toEqual(["one", "answer 1", "left"]);
      expect(textOf((await graph.getState(right)).values)).toEqual(["one", "answer 1", "right"]);
      const copy = await graph.updateState(left, null, "__copy__");
      expect(textOf((await graph.getState(copy)).values)).toEqual(["one", "answer 1", "left"]);
    });

    it("a value that no step changes is stored once, and deleted with its thread", async () => {
      const { path, open, base = "langgraph" } = newDatabase();
      const kv = await openKv(path, open);
      const graph = graphWith(new OpenKvSaver({ kv, base }));
      await graph.invoke(say("one"), thread("a"));
      await graph.invoke(say("two"), thread("b"));
      expect((await historyOf(graph, thread("a"))).length).toBe(4);
      const values = await kv.count({ prefix: [base, "threads", "a", "", false, "steps"] });
      expect(values).toBe(1);
      await new OpenKvSaver({ kv, base }).deleteThread("a");
      expect(await historyOf(graph, thread("a"))).toEqual([]);
      expect(await kv.count({ prefix: [base, "threads", "a"] })).toBe(0);
      expect((await historyOf(graph, thread("b"))).length).toBe(4);
      await kv.close();
    });

    it("a task that runs again keeps its first writes, and replaces its error", async () => {
      const config = await saver.put(thread("w"), checkpointOf("1"), {}, {});
      await saver.putWrites(
        config,
        [
          ["a", 1],
          ["__error__", "first"],
        ],
        "task",
      );
      await saver.putWrites(
        config,
        [
          ["a", 2],
          ["__error__", "second"],
        ],
        "task",
      );
      const { pendingWrites } = await saver.getTuple(config);
      expect(pendingWrites).toEqual([
        ["task", "__error__", "second"],
        ["task", "a", 1],
      ]);
    });

    it("writes are in the order of their paths and tasks, by code points", async () => {
      const config = await saver.put(thread("o"), checkpointOf("1"), {}, {});
      for (const [task, path] of [
        ["b", "p1"],
        ["\u{10000}", "p0"],
        ["\uffee", "p0"],
        ["a", ""],
      ])
        await saver.putWrites(
          config,
          [
            ["c", task],
            ["d", task],
          ],
          task,
          path,
        );
      const { pendingWrites } = await saver.getTuple(config);
      const tasks = ["a", "\uffee", "\u{10000}", "b"];
      expect(pendingWrites).toEqual(
        tasks.flatMap((task) => [
          [task, "c", task],
          [task, "d", task],
        ]),
      );
    });

    it("checkpoints of all namespaces are listed, the newest first", async () => {
      for (const [at, checkpoint_ns] of ["", "child", ""].entries())
        await saver.put(thread("l", { checkpoint_ns }), checkpointOf(`${at}`), { at }, {});
      const idsOf = async (config, options) => {
        const ids = [];
        for await (const { checkpoint } of saver.list(config, options)) ids.push(checkpoint.id);
        return ids;
      };
      expect(await idsOf(thread("l"))).toEqual(["2", "1", "0"]);
      expect(await idsOf(thread("l"), { limit: 1 })).toEqual(["2"]);
      expect(await idsOf(thread("l"), { filter: { at: 1 } })).toEqual(["1"]);
      expect(await idsOf(thread("l", { checkpoint_ns: "" }))).toEqual(["2", "0"]);
      expect(await idsOf(thread("l"), { before: thread("l", { checkpoint_id: "1" }) })).toEqual([
        "0",
      ]);
    });

    it("a config without a thread is refused with what to do", async () => {
      await expect(saver.put({}, checkpointOf("1"), {}, {})).rejects.toThrow(/needs a "thread_id"/);
      await expect(saver.putWrites(thread("a"), [], "t")).rejects.toThrow(
        /needs a "checkpoint_id"/,
      );
      expect(await saver.getTuple({})).toBe(undefined);
    });

    it("a thread whose id is no string is refused", async () => {
      const config = thread(1, { checkpoint_id: "1" });
      const message = /"thread_id" must be a string: received 1, a number; give String\(id\)/;
      for (const call of [
        () => saver.put(config, checkpointOf("1"), {}, {}),
        () => saver.putWrites(config, [], "t"),
        () => saver.getTuple(config),
        () => saver.list(config).next(),
        () => saver.deleteThread(1),
      ]) {
        await expect(call()).rejects.toThrow(message);
      }
    });
  });

  describe(place, () => {
    let store;
    beforeEach(
      () => (store = new OpenKvMemoryStore({ ...newDatabase(), fields: ["text", "notes[*]"] })),
    );
    afterEach(() => store.stop());
    const keysOf = (items) => items.map(({ key }) => key);

    it("an index that could not be made is made by the next call", async () => {
      const kv = await openKv(":memory:");
      let failures = 1;
      const createIndex = (options) =>
        failures-- > 0 ? Promise.reject(new Error("away")) : kv.createIndex(options);
      const failing = new Proxy(kv, {
        get(_, name) {
          if (name === "createIndex") return createIndex;
          const value = kv[name];
          return typeof value === "function" ? value.bind(kv) : value;
        },
      });
      const own = new OpenKvMemoryStore({ kv: failing, fields: ["text"] });
      await expect(own.put(["m"], "k", { text: "tea" })).rejects.toThrow("away");
      await own.put(["m"], "k", { text: "tea" });
      expect((await own.get(["m"], "k")).value).toEqual({ text: "tea" });
      kv.close();
    });

    it("items are put, got, replaced and deleted", async () => {
      expect(await store.get(["users"], "ada")).toBe(null);
      await store.put(["users"], "ada", { born: 1815 });
      const first = await store.get(["users"], "ada");
      expect(first).toMatchObject({ key: "ada", namespace: ["users"], value: { born: 1815 } });
      expect(first.createdAt).toBeInstanceOf(Date);
      await store.put(["users"], "ada", { born: 1816 });
      const second = await store.get(["users"], "ada");
      expect(second.value).toEqual({ born: 1816 });
      expect(second.createdAt).toEqual(first.createdAt);
      expect(second.updatedAt >= first.updatedAt).toBe(true);
      await store.delete(["users"], "ada");
      expect(await store.get(["users"], "ada")).toBe(null);
      await expect(store.put([], "a", {})).rejects.toThrow(/Namespace cannot be empty/);
    });

    it("search is within a prefix of namespaces, with filters, limit and offset", async () => {
      for (let n = 0; n < 12; n++)
        await store.put(["docs", n % 2 ? "odd" : "even"], `${n}`, { n, type: "doc" });
      await store.put(["docs2"], "x", { n: 1 });
      expect((await store.search(["docs"])).length).toBe(10);
      expect((await store.search(["docs"], { limit: 100 })).length).toBe(12);
      expect(keysOf(await store.search(["docs", "odd"], { limit: 2, offset: 1 }))).toEqual([
        "11",
        "3",
      ]);
      expect(
        keysOf(await store.search(["docs"], { filter: { n: { $gte: 3, $lt: 6 } } })).sort(),
      ).toEqual(["3", "4", "5"]);
      expect(keysOf(await store.search([], { filter: { n: 1 } })).sort()).toEqual(["1", "x"]);
      expect(keysOf(await store.search(["docs"], { filter: { n: { $in: [2], $ne: 3 } } }))).toEqual(
        ["2"],
      );
      expect(await store.search(["docs"], { filter: { type: "other" } })).toEqual([]);
    });

    it("filters hold as those of LangGraph's own store", async () => {
      const reference = new InMemoryStore();
      const filters = [
        { v: {} },
        { v: { $gt: 4, $lt: 6 } },
        { v: { valueOf: 1 } },
        { v: { constructor: 1 } },
        { v: { $unknown: 5 } },
        { missing: { $ne: 1 } },
        { missing: undefined },
        { object: { p: 1 } },
        { list: [1] },
        { list: [] },
        { nothing: null },
      ];
      const found = [];
      for (const one of [store, reference]) {
        const value = { v: 5, object: { p: 1 }, list: [1], nothing: null };
        await one.put(["f"], "k", value);
        const counts = filters.map(async (filter) => (await one.search(["f"], { filter })).length);
        found.push(await Promise.all(counts));
      }
      expect(found[0]).toEqual(found[1]);
    });

    it("search with a query finds words of the fields, the best first", async () => {
      await store.put(["memories", "ada"], "tea", { text: "prefers green tea in the morning" });
      await store.put(["memories", "ada"], "trip", {
        notes: ["a trip to Kyoto", "tea there"],
        other: "coffee",
      });
      await store.put(["memories", "alan"], "run", { text: "runs in the morning" });
      await store.put(["memories", "alan"], "secret", { text: "green tea" }, false);
      await store.put(["memories", "alan"], "title", { title: "Enigma" }, ["title"]);
      const found = await store.search(["memories"], { query: "green tea?" });
      expect(keysOf(found)).toEqual(["tea", "trip"]);
      expect(found[0].score).toBeGreaterThan(found[1].score);
      expect(found[0].namespace).toEqual(["memories", "ada"]);
      expect(keysOf(await store.search(["memories", "alan"], { query: "morning" }))).toEqual([
        "run",
      ]);
      expect(keysOf(await store.search(["memories"], { query: "enigma" }))).toEqual(["title"]);
      expect(await store.search(["memories"], { query: "coffee" })).toEqual([]);
      expect(await store.search(["memories"], { query: "?!" })).toEqual([]);
      expect((await store.search(["memories"], { query: "" })).length).toBe(5);
    });

    it("namespaces are listed by beginning, end and depth", async () => {
      for (const namespace of [
        ["a", "b", "c"],
        ["a", "b", "d"],
        ["a", "x"],
        ["e", "c"],
      ])
        await store.put(namespace, "k", {});
      expect(await store.listNamespaces({ prefix: ["a"] })).toEqual([
        ["a", "b", "c"],
        ["a", "b", "d"],
        ["a", "x"],
      ]);
      expect(await store.listNamespaces({ suffix: ["c"] })).toEqual([
        ["a", "b", "c"],
        ["e", "c"],
      ]);
      expect(await store.listNamespaces({ maxDepth: 2 })).toEqual([
        ["a", "b"],
        ["a", "x"],
        ["e", "c"],
      ]);
      expect(await store.listNamespaces({ prefix: ["a", "*", "d"] })).toEqual([["a", "b", "d"]]);
      expect(await store.listNamespaces({ limit: 1, offset: 1 })).toEqual([["a", "b", "d"]]);
    });

    it("a batch reads the state before its writes, and writes all or nothing", async () => {
      await store.put(["n"], "old", { v: 1 });
      const [got, found, put, namespaces] = await store.batch([
        { namespace: ["n"], key: "old" },
        { namespacePrefix: ["n"] },
        { namespace: ["n"], key: "old", value: null },
        { matchConditions: undefined, limit: 10, offset: 0 },
        { namespace: ["n"], key: "new", value: { v: 2 } },
      ]);
      expect([got.value, keysOf(found), put, namespaces]).toEqual([
        { v: 1 },
        ["old"],
        undefined,
        [["n"]],
      ]);
      expect(keysOf(await store.search(["n"]))).toEqual(["new"]);
      await expect(
        store.batch([
          { namespace: ["n"], key: "good", value: {} },
          { namespace: ["n"], key: "bad", value: { f: () => {} } },
        ]),
      ).rejects.toThrow();
      expect(await store.get(["n"], "good")).toBe(null);
    });
  });
}

describe("on a file", () => {
  it("threads and memories survive a restart", async () => {
    const path = newPath();
    for (const [at, texts] of [
      ["one", "answer 1"],
      ["one", "answer 1", "two", "answer 3"],
    ].entries()) {
      const saver = new OpenKvSaver({ path });
      const store = new OpenKvMemoryStore({ path, fields: ["text"] });
      const state = await graphWith(saver, store).invoke(say(["one", "two"][at]), thread("a"));
      expect(textOf(state)).toEqual(texts);
      await store.put(["m"], `${at}`, { text: "kept" });
      expect((await store.search(["m"], { query: "kept" })).length).toBe(at + 1);
      await saver.close();
      await store.stop();
    }
  });
});

function checkpointOf(id) {
  return {
    v: 4,
    id,
    ts: new Date(0).toISOString(),
    channel_values: {},
    channel_versions: {},
    versions_seen: {},
  };
}
