// Full-text search: an index over notes that were there before, kept exact from then on.
//
//   node examples/search.mjs [path]

import process from "node:process";
import { openKv } from "openkv";

const kv = await openKv(process.argv[2] ?? ":memory:");

await kv.set(["notes", 1], { title: "Bread", text: "Mix flour, water and salt." });
await kv.set(["notes", 2], { title: "Soup", text: "Boil water. Add salt and leeks." });

const index = await kv.createIndex({
  prefix: ["notes"],
  fields: ["title", "text"],
  tokenize: "porter",
});
await index.ready();

const show = async (query, options) => {
  const { entries } = await kv.search(["notes"], query, options);
  const titles = entries.map(({ value }) => value.title).sort();
  console.log(`${query}: ${titles.join(", ") || "nothing"}`);
  return entries;
};

await show("water salt");
await show("boiling OR title:bread");

// A search finds new entries at once, and deleted ones no more.
await kv
  .atomic()
  .set(["notes", 3], { title: "Tea", text: "Hot water." })
  .delete(["notes", 1])
  .commit();
await show("water NOT leek");

const [soup] = await show("leek", { highlight: { before: "[", after: "]" } });
console.log(soup.highlights.text);

try {
  await show('water AND "salt');
} catch (error) {
  console.log(error.message);
}
kv.close();
