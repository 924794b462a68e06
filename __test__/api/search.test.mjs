// Duty: full-text search: indexes made, built, listed and dropped; queries and their pages; what is
// refused, by name and place.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { freshPath, onBucket, onEachAndServed, open } from "./databases.mjs";

const names = ({ entries }) => entries.map(({ key }) => key.at(-1));
const sorted = (result) => names(result).sort();

async function withBikes(fresh) {
  const kv = await fresh();
  const index = await kv.createIndex({ prefix: ["p"], fields: ["name", "details.maker", "tags"] });
  assert.equal(index.state, "ready");
  await kv.set(["p", "a"], { name: "Red bike", price: 10, details: { maker: "Volvo" } });
  await kv.set(["p", "b"], { name: "Blue bike", price: 20, tags: ["fast", "new"] });
  await kv.set(["p", "c"], new Map([["name", "réd BUS 42"]]));
  await kv.set(["q", "a"], { name: "red elsewhere" });
  return kv;
}

const suite = (fresh) => {
  test("queries find what they say", async () => {
    const kv = await withBikes(fresh);
    for (const [query, expected] of [
      ["red", ["a", "c"]],
      ["bike", ["a", "b"]],
      ["red bike", ["a"]],
      ['"bike red"', []],
      ["bi* NOT red", ["b"]],
      ["(bus OR blue) AND (42 OR fast)", ["b", "c"]],
      ["details.maker:volvo", ["a"]],
      ["name:volvo", []],
      ["{name tags}: new", ["b"]],
      ["NEAR(red bus, 1)", ["c"]],
      ["name: ^bike", []],
      ["42", ["c"]],
    ]) {
      assert.deepEqual(sorted(await kv.search(["p"], query)), expected, query);
    }
    const { entries, complete } = await kv.search(["p"], "volvo");
    assert.equal(complete, true);
    const { score, ...entry } = entries[0];
    assert.ok(score > 0);
    assert.deepEqual(entry, await kv.get(["p", "a"]));
  });

  test("pages, filters and highlights", async () => {
    const kv = await fresh();
    await kv.createIndex({ prefix: ["n"], fields: ["t", "u"] });
    const all = kv.atomic();
    for (let i = 0; i < 50; i++) {
      all.set(["n", i], { t: `word ${"more ".repeat(i % 7)}`, u: "x", even: i % 2 === 0 });
    }
    await all.commit();
    const whole = await kv.search(["n"], "word", { limit: 1000 });
    assert.equal(whole.entries.length, 50);
    assert.deepEqual([whole.hasMore, whole.cursor], [false, null]);
    for (const [i, { score }] of whole.entries.entries()) {
      if (i > 0) assert.ok(score <= whole.entries[i - 1].score);
    }
    const found = [];
    let cursor = null;
    do {
      const page = await kv.search(["n"], "word", { limit: 7, cursor });
      found.push(...names(page));
      cursor = page.cursor;
      assert.equal(page.hasMore, cursor !== null);
    } while (cursor !== null);
    assert.deepEqual(found, names(whole));
    const offset = await kv.search(["n"], "word", { limit: 5, offset: 10 });
    assert.deepEqual(names(offset), names(whole).slice(10, 15));
    // limit and offset count what the filter has left.
    const even = names(whole).filter((n) => n % 2 === 0);
    const where = { even: true };
    assert.deepEqual(
      names(await kv.search(["n"], "word", { where, limit: 12 })),
      even.slice(0, 12),
    );
    const later = await kv.search(["n"], "word", { where, limit: 5, offset: 12 });
    assert.deepEqual(names(later), even.slice(12, 17));

    const marked = await kv.search(["n"], "t:word", { limit: 1, highlight: true });
    assert.deepEqual(Object.keys(marked.entries[0].highlights), ["t"]);
    assert.match(marked.entries[0].highlights.t, /^<b>word<\/b>/);
    const highlight = { before: "[", after: "]", ellipsis: "~", terms: 2 };
    const { entries } = await kv.search(["n"], '"word more"', { highlight });
    assert.ok(entries.every(({ highlights }) => highlights.t.startsWith("[word more]")));
    assert.equal("highlights" in (await kv.search(["n"], "word")).entries[0], false);
  });

  test("every kind of change reaches the index in its commit", async () => {
    const kv = await withBikes(fresh);
    await kv.atomic().delete(["p", "a"]).set(["p", "d"], { name: "red" }).commit();
    assert.deepEqual(sorted(await kv.search(["p"], "red")), ["c", "d"]);
    const lost = kv.atomic().check({ key: ["p", "d"], versionstamp: null });
    assert.equal((await lost.set(["p", "e"], { name: "red" }).commit()).ok, false);
    await assert.rejects(kv.atomic().set(["p", "e"], { name: "red" }).sum(["p", "b"], 1n).commit());
    assert.deepEqual(sorted(await kv.search(["p"], "red")), ["c", "d"]);
    await kv.set(["p", "d"], { name: "red" }, { expireIn: 0 });
    await kv.set(["p", "c"], "no field");
    assert.deepEqual(sorted(await kv.search(["p"], "red")), []);
    await kv.set(["p", ["x"][0], "deep"], { name: "red" });
    assert.deepEqual(names(await kv.search(["p"], "red")), ["deep"]);
    assert.deepEqual(names(await kv.search(["p", "x"], "red")), ["deep"]);
    assert.deepEqual(names(await kv.search(["p", "a"], "red")), []);
  });

  test("an index over entries that were there is built while writes go on", async () => {
    const kv = await fresh({ limits: { mutationsMax: 1000, commitBytesMax: 8_000_000 } });
    const total = 3000;
    for (let at = 0; at < total; at += 1000) {
      const batch = kv.atomic();
      for (let i = at; i < at + 1000; i++) batch.set(["old", i], { t: `entry number ${i}` });
      await batch.commit();
    }
    const index = await kv.createIndex({ prefix: ["old"], fields: ["t"] });
    assert.equal(index.state, "building");
    const [writes] = await Promise.all([
      Promise.all([
        ...Array.from({ length: 20 }, (_, i) => kv.set(["old", i * 100], { t: "changed" })),
        ...Array.from({ length: 20 }, (_, i) => kv.delete(["old", i * 100 + 1])),
        kv.set(["old", "new"], { t: "changed" }),
      ]),
      (async () => {
        let before = -1;
        let last;
        for await (last of index.progress) {
          assert.ok(last.done || last.indexed > before);
          assert.ok(last.total === null || last.total >= last.indexed);
          before = last.indexed;
        }
        assert.equal(last.done, true);
        assert.equal(last.total, last.indexed);
      })(),
    ]);
    assert.equal(writes.length, 41);
    assert.equal(index.state, "ready");
    await index.ready();
    const [info] = await kv.listIndexes();
    assert.equal(info.state, "ready");
    assert.equal(info.documents, total - 20 + 1);
    assert.equal((await kv.search(["old"], "changed", { limit: 100 })).entries.length, 21);
    const all = await kv.search(["old"], "entry", { limit: 1000, offset: 2000 });
    assert.equal(all.entries.length, total - 40 - 2000);
    assert.equal(all.complete, true);
  });

  // A sentence of Japanese, Chinese or Thai was one term: no word of it was found.
  test("words of languages without spaces are found, marked and ranked", async () => {
    const kv = await fresh();
    await kv.createIndex({ prefix: ["p"], fields: ["name"], prefixLengths: [1, 2] });
    const texts = {
      visit: "東京都に行きました。",
      twice: "東京から東京へ",
      kyoto: "京都の東にある町",
      beijing: "我们去了北京大学",
      bangkok: "ฉันไปกรุงเทพ",
      seoul: "서울에 갔다",
      english: "a red bike, déjà vu",
    };
    for (const [key, name] of Object.entries(texts)) await kv.set(["p", key], { name });
    for (const [query, expected] of [
      ["東京", ["twice", "visit"]],
      ["東", ["kyoto", "twice", "visit"]],
      ["東京都*", ["visit"]],
      ['"東京" + "都"', ["visit"]],
      ["東京 NOT 都", ["twice"]],
      ["^京都", ["kyoto"]],
      ["name:東京　行", ["visit"]],
      ["北京 OR 서울", ["beijing", "seoul"]],
      ["กรุงเทพ", ["bangkok"]],
      ["กรง", []],
      ["deja bik*", ["english"]],
    ]) {
      assert.deepEqual(sorted(await kv.search(["p"], query)), expected, query);
    }
    const { entries } = await kv.search(["p"], "東京", { highlight: true });
    assert.deepEqual(
      entries.map(({ highlights }) => highlights.name),
      ["<b>東京</b>から<b>東京</b>へ", "<b>東京</b>都に行きました。"],
    );
    const [thai] = (await kv.search(["p"], "กรุงเทพ", { highlight: true })).entries;
    assert.equal(thai.highlights.name, "ฉันไป<b>กรุงเทพ</b>");
  });

  test("trigrams find parts of words; a shorter term finds nothing", async () => {
    const kv = await fresh();
    const index = await kv.createIndex({ prefix: ["p"], fields: ["name"], tokenize: "trigram" });
    assert.equal(index.tokenize, "trigram");
    await kv.set(["p", "a"], { name: "Motorräder" });
    await kv.set(["p", "b"], { name: "東京都に行きました" });
    for (const [query, expected] of [
      ["orrad", ["a"]],
      ["京都に", ["b"]],
      ["東京", []],
      ["mot or", []],
    ]) {
      assert.deepEqual(sorted(await kv.search(["p"], query)), expected, query);
    }
  });

  test("an index of the earlier default is the same one, and is built again on request", async () => {
    const kv = await fresh();
    const options = { prefix: ["p"], fields: ["name"] };
    await kv.set(["p", "a"], { name: "東京都に行きました" });
    await (await kv.createIndex({ ...options, tokenize: "unicode61" })).ready();
    const same = await kv.createIndex(options);
    assert.equal(same.tokenize, "unicode61");
    assert.equal((await kv.createIndex({ ...options, replace: true })).tokenize, "unicode61");
    assert.deepEqual(names(await kv.search(["p"], "東京")), []);
    await assert.rejects(
      kv.createIndex({ ...options, tokenize: "auto" }),
      /differs in its tokenizer/,
    );
    const built = await kv.createIndex({ ...options, tokenize: "auto", replace: true });
    await built.ready();
    assert.deepEqual(names(await kv.search(["p"], "東京")), ["a"]);
    assert.equal((await kv.createIndex(options)).tokenize, "auto");
  });

  test("indexes are listed, known again, refused and dropped", async () => {
    const kv = await fresh();
    const options = {
      prefix: ["a", 1n, true],
      fields: ["t"],
      tokenize: "porter",
      prefixLengths: [2],
    };
    const index = await kv.createIndex(options);
    assert.equal(index.name, '["a",1n,true]');
    assert.equal((await kv.createIndex(options)).name, index.name);
    await kv.createIndex({ prefix: [], fields: ["x"], name: "all" });
    assert.deepEqual(await kv.listIndexes(), [
      { type: "fulltext", name: index.name, ...options, state: "ready", indexed: 0, documents: 0 },
      {
        type: "fulltext",
        name: "all",
        prefix: [],
        fields: ["x"],
        tokenize: "auto",
        prefixLengths: [],
        state: "ready",
        indexed: 0,
        documents: 0,
      },
    ]);
    await kv.set(["a", 1n, true, 5], { t: "running", x: "runs" });
    assert.equal((await kv.search(["a", 1n, true], "run")).entries.length, 1);
    assert.equal((await kv.search([], "runs")).entries.length, 1);
    await assert.rejects(kv.createIndex({ ...options, fields: ["u"] }), {
      name: "TypeError",
      message: /has an index already, '\["a",1n,true\]', that differs in its fields/,
    });
    await assert.rejects(
      kv.createIndex({ prefix: ["b"], fields: ["t"], name: "all" }),
      /'all' is that/,
    );
    const replaced = await kv.createIndex({ ...options, fields: ["u"], replace: true });
    await replaced.ready();
    assert.deepEqual(replaced.fields, ["u"]);
    assert.equal((await kv.search(["a", 1n, true], "run")).entries.length, 0);
    await assert.rejects(kv.createIndex({ ...options, replace: 1 }), /replace must be a boolean/);
    assert.equal(await kv.dropIndex(["a"]), false);
    assert.equal(await kv.dropIndex(["a", 1n, true]), true);
    assert.equal(await kv.dropIndex("all"), true);
    assert.equal(await kv.dropIndex("all"), false);
    assert.deepEqual(await kv.listIndexes(), []);
    await assert.rejects(
      kv.search([], "runs"),
      /no index covers this prefix; make one first with kv\.createIndex/,
    );
  });

  test("progress tells how many there are, once they are counted", async () => {
    const kv = await fresh();
    for (let at = 0; at < 20_000; at += 1000) {
      const batch = kv.atomic();
      for (let i = at; i < at + 1000; i++) batch.set(["old", i], { t: `entry number ${i}` });
      await batch.commit();
    }
    await kv.set(["other"], { t: "elsewhere" });
    const index = await kv.createIndex({ prefix: ["old"], fields: ["t"] });
    const totals = new Set();
    for await (const { total } of index.progress) totals.add(total);
    totals.delete(null);
    assert.deepEqual([...totals], [20_000]);
    const {
      value: { done, total },
    } = await index.progress.next();
    assert.deepEqual([done, total], [true, 20_000]);
  });

  test("an index dropped while it is built ends its progress", async () => {
    const kv = await fresh();
    const batch = kv.atomic();
    for (let i = 0; i < 1000; i++) batch.set(["d", i], { t: "text" });
    await batch.commit();
    const index = await kv.createIndex({ prefix: ["d"], fields: ["t"] });
    assert.equal(index.state, "building");
    await kv.dropIndex(["d"]);
    await assert.rejects(index.ready(), { name: "KvError", code: "CONFLICT" });
  });

  test("malformed queries are TypeErrors with their place", async () => {
    const kv = await withBikes(fresh);
    for (const [query, place] of [
      ["", /position 0: expected a term, found the end of the query/],
      ["red AND", /position 7: expected a term/],
      ["(red", /position 4: expected AND, OR, NOT or '\)'/],
      ['red "bike', /position 4: the quote that starts here is not closed/],
      [
        "nmae:red",
        /position 0: the index has no field 'nmae'; its fields are name, details\.maker/,
      ],
      ["red; DROP TABLE kv", /position 3: expected a term, found ';'; put it in double quotes/],
      ["😀 'x'", /position 3: expected a term, found '''/],
      ["a.b", /position 1: expected a term without '\.'/],
      ["x ".repeat(200), /too many terms \(max 128\)/],
      ["(".repeat(20), /nested too deeply \(max 8\)/],
      ["x".repeat(5000), /the query is too long \(max 4096 bytes\): 5000 bytes given/],
    ]) {
      const expected = (error) =>
        error instanceof TypeError && place.test(error.message) && !/sql|fts/i.test(error.message);
      await assert.rejects(kv.search(["p"], query), expected, query);
    }
  });

  test("arguments of the wrong type, over a limit, misspelt", async () => {
    const kv = await withBikes(fresh);
    const valid = { prefix: ["x"], fields: ["t"] };
    for (const [options, words] of [
      [undefined, /prefix must be an array/],
      [5, /options must be an object/],
      [{ ...valid, feilds: [] }, /unknown option 'feilds': known are type, prefix, fields/],
      [{ ...valid, prefix: "x" }, /prefix must be an array: received the string "x"/],
      [{ ...valid, prefix: [{}] }, /expected string, number/],
      [{ ...valid, prefix: ["x".repeat(3000)] }, /prefix too large \(max 2048 bytes\)/],
      [{ ...valid, fields: "t" }, /fields must be an array/],
      [{ ...valid, fields: [] }, /fields must name 1 to 32 fields: 0 given/],
      [{ ...valid, fields: Array.from({ length: 33 }, (_, i) => `f${i}`) }, /33 given/],
      [{ ...valid, fields: [1] }, /fields\[0\] must be a string: received 1/],
      [
        { ...valid, fields: ["a..b"] },
        /fields\[0\] must be names separated by dots: received 'a\.\.b'/,
      ],
      [{ ...valid, fields: ["a", "a"] }, /names 'a' twice/],
      [{ ...valid, fields: ["x".repeat(257)] }, /fields\[0\] is too long \(max 256 bytes\)/],
      [
        { ...valid, tokenize: "words" },
        /tokenize must be one of unicode61, porter, ascii, trigram, auto/,
      ],
      [{ ...valid, prefixLengths: 2 }, /prefixLengths must be an array/],
      [{ ...valid, prefixLengths: ["2"] }, /prefixLengths\[0\] must be a number/],
      [{ ...valid, prefixLengths: [0] }, /prefixLengths must be 1 to 32/],
      [{ ...valid, prefixLengths: [1.5] }, /prefixLengths must be 1 to 32/],
      [{ ...valid, prefixLengths: [1, 2, 3, 4, 5] }, /too many prefixLengths \(max 4\): 5 given/],
      [{ ...valid, name: 5 }, /name must be a string/],
      [{ ...valid, name: "" }, /name must have 1 to 256 bytes: 0 given/],
    ]) {
      await assert.rejects(kv.createIndex(options), { name: "TypeError", message: words });
    }
    for (const [given, words] of [
      [["p", 5], /query must be a string: received 5/],
      [["p", undefined], /query must be a string/],
      [["p", "a", 5], /options must be an object/],
      [["p", "a", { limits: 5 }], /unknown option 'limits'/],
      [["p", "a", { limit: 0 }], /limit must be/],
      [["p", "a", { limit: 1001 }], /limit must be 1 to 1000: received 1001/],
      [["p", "a", { limit: "5" }], /limit must be an integer/],
      [["p", "a", { offset: -1 }], /offset must be an integer from 0: received -1/],
      [["p", "a", { offset: 1_000_001 }], /offset is too large \(max 1000000\)/],
      [["p", "a", { cursor: 5 }], /cursor must be that of an earlier result/],
      [["p", "a", { cursor: "abc" }], /cursor must be that/],
      [["p", "a", { cursor: "A".repeat(21) + "A", offset: 1 }], /exclude each other/],
      [["p", "a", { where: 5 }], /where must be an object/],
      [["p", "a", { where: { name: { $like: "x" } } }], /\$like/],
      [["p", "a", { where: { name: new Blob(["x"]) } }], /a Blob is compared with nothing/],
      [["p", "a", { highlight: 1 }], /highlight must be a boolean or an object/],
      [["p", "a", { highlight: { befor: "x" } }], /highlight: unknown option 'befor'/],
      [["p", "a", { highlight: { before: 5 } }], /highlight\.before must be a string/],
      [
        ["p", "a", { highlight: { after: "x".repeat(257) } }],
        /highlight\.after is too long \(max 256/,
      ],
      [["p", "a", { highlight: { terms: 65 } }], /highlight\.terms must be 1 to 64/],
    ]) {
      const [prefix, ...rest] = given;
      await assert.rejects(kv.search([prefix], ...rest), { name: "TypeError", message: words });
    }
    await assert.rejects(kv.search("p", "a"), /prefix must be an array/);
    await assert.rejects(kv.dropIndex(5), /expected a prefix or a name: received 5/);
    assert.equal((await kv.listIndexes()).length, 1);
  });
};

onEachAndServed("search", suite);
onBucket("search", suite);

test("on a closed handle every call is a BadResource", async () => {
  const kv = await openKv(":memory:");
  await kv.close();
  const closed = { name: "BadResource", code: "CLOSED" };
  await assert.rejects(kv.createIndex({ prefix: [], fields: ["a"] }), closed);
  await assert.rejects(kv.listIndexes(), closed);
  await assert.rejects(kv.dropIndex([]), closed);
  await assert.rejects(kv.search([], "a"), closed);
});

test("two handles and a read-only one see one index; it is there after opening again", async () => {
  const path = freshPath();
  const first = await openKv(path);
  const second = await open(path);
  await first.createIndex({ prefix: ["s"], fields: ["t"] });
  await second.set(["s", 1], { t: "shared" });
  assert.deepEqual(names(await first.search(["s"], "shared")), [1]);
  await first.close();
  const reader = await open(path, { readonly: true });
  assert.deepEqual(names(await reader.search(["s"], "shared")), [1]);
  await assert.rejects(reader.createIndex({ prefix: ["r"], fields: ["t"] }), { code: "DENIED" });
});
