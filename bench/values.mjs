// The values of the codec's benchmark and of the workloads: two sets, each made of functions of a
// number. Different numbers give different values of one form.
//
// `plain` are one friendly form each. `realistic` are values as people store them: several types of
// record in one program, dates, text of other scripts, documents of other services.

/** Numbers in values start here, so that their encoded size does not grow during a run. */
const TIME_BASE = 1_700_000_000_000;

const digits = (i, length = 8) => String(i).padStart(length, "0");
const list = (length, make) => Array.from({ length }, (_, i) => make(i));

/** A fraction from 0 to below 1 that looks random and is the same in every run. */
function fraction(seed) {
  let x = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}
const pick = (items, seed) => items[Math.floor(fraction(seed) * items.length)];

/** Four types of record with five keys each, all beginning with `id`. */
const RECORD_TYPES = [
  (i) => ({
    id: i,
    name: `Alice ${i % 97} ${i % 7}`,
    email: `u${i}@example.com`,
    tags: ["a", pick(["b", "customer", "trial"], i)],
    at: new Date(TIME_BASE + i),
  }),
  (i) => ({
    id: i,
    total: (i % 9999) + 0.25,
    currency: pick(["EUR", "USD", "JPY"], i),
    customer: `u${digits(i)}`,
    paid: i % 3 !== 0,
  }),
  (i) => ({
    id: i,
    url: `/articles/${i % 1000}?page=${i % 10}`,
    status: pick([200, 200, 200, 304, 404], i),
    ms: fraction(i) * 40,
    user: i % 5 === 0 ? null : `u${digits(i)}`,
  }),
  (i) => ({
    id: i,
    title: pick(["Deploy", "Rollback", "Review the change"], i),
    assignee: `user${i % 40}@example.com`,
    due: new Date(TIME_BASE + i * 60_000),
    done: (i & 1) === 0,
  }),
];

/** One of the four types of record; `id` is the number. */
export const record = (i) => RECORD_TYPES[i & 3](i);

const ROWS = 220;
/** An object of rows with dates, about 24 KB encoded. */
export const document = (i) => ({
  id: i,
  kind: "statement",
  rows: list(ROWS, (r) => ({
    id: `row-${digits(r)}`,
    name: `Item ${r} of ${i}`,
    price: r + 0.25,
    stock: r,
    tags: ["a", `t${r % 10}`],
    at: new Date(TIME_BASE + i * 1000 + r),
  })),
});
export const DOCUMENT_ROWS = ROWS;

const WORDS = "the quick brown fox jumps over a lazy dog while we wait for trains in Łódź".split(
  " ",
);
const sentence = (seed, words) => list(words, (w) => pick(WORDS, seed * 31 + w)).join(" ");

const account = (i) => ({
  id: 1e9 + i,
  id_str: String(1e9 + i),
  name: `Zoë ${i % 100}`,
  screen_name: `zoe_${i}`,
  location: pick(["Kraków", "Berlin", "", "São Paulo"], i),
  description: sentence(i, 12),
  url: null,
  entities: { description: { urls: [] } },
  protected: false,
  followers_count: i % 3000,
  friends_count: i % 700,
  created_at: "Thu Mar 03 12:08:01 +0000 2016",
  verified: i % 50 === 0,
  lang: "en",
});

/** A message of a social network, with the message that it repeats. */
function tweet(i, repeated = true) {
  const message = {
    id: 5.05e17 + i * 1024,
    id_str: `505${digits(i, 15)}`,
    created_at: new Date(TIME_BASE + i * 1000).toISOString(),
    text: `${sentence(i, 15)} 🙂 #tag${i % 10}`,
    source: '<a href="https://example.com" rel="nofollow">Example for Android</a>',
    truncated: false,
    in_reply_to_status_id: i % 3 === 0 ? null : 5e17,
    user: account(i),
    geo: null,
    coordinates: null,
    retweet_count: i % 90,
    favorite_count: i % 200,
    entities: {
      hashtags: [{ text: `tag${i % 10}`, indices: [20, 27] }],
      symbols: [],
      urls: [],
      user_mentions: [
        {
          screen_name: `zoe_${i + 1}`,
          name: `Zoë ${(i + 1) % 100}`,
          id: 1e9 + i,
          indices: [3, 11],
        },
      ],
    },
    favorited: false,
    lang: "en",
  };
  if (repeated) message.retweeted_status = tweet(i + 7, false);
  return message;
}

/** A map of areas: polygons are arrays of pairs of doubles. */
const geojson = (i) => ({
  type: "FeatureCollection",
  features: list(4, (f) => ({
    type: "Feature",
    properties: { name: `Area ${i}-${f}`, population: (i * 977 + f) % 100_000, code: `A${f}` },
    geometry: {
      type: "Polygon",
      coordinates: [
        list(100, (p) => [
          -180 + 360 * fraction(i * 400 + f * 100 + p),
          -90 + 180 * fraction(i * 401 + f * 100 + p),
        ]),
      ],
    },
  })),
});

const PACKAGES = ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath"];

/** The description of a package: eight of them, whose keys and dependencies differ. */
function manifest(i) {
  const kind = i % PACKAGES.length;
  const name = PACKAGES[kind];
  const dependencies = {};
  for (let d = 0; d < 4 + kind * 3; d++) {
    dependencies[`${name}-${pick(WORDS.slice(0, 14), kind * 40 + d)}-${d}`] = `^${d}.${i % 10}.0`;
  }
  const scripts = { build: `${name} build`, test: `node --test test/${name}`, lint: "lint ." };
  if (kind % 2 === 0) scripts.prepare = `${name} prepare && node scripts/${name}.mjs`;
  const found = {
    name: `@example/${name}`,
    version: `${i % 20}.${kind}.${i % 7}`,
    description: sentence(i, 9),
    license: "MIT",
    keywords: list(kind + 2, (k) => pick(WORDS, k + kind)),
    repository: { type: "git", url: `git+https://example.com/${name}/${name}.git` },
    main: `dist/${name}.js`,
  };
  if (kind % 3 === 0) found.type = "module";
  if (kind % 3 === 1)
    found.exports = { ".": `./dist/${name}.js`, "./package.json": "./package.json" };
  if (kind > 3) found.engines = { node: ">=20" };
  found.scripts = scripts;
  found.dependencies = dependencies;
  if (kind % 2 === 1) found.devDependencies = { ...dependencies, typescript: "^5.0.0" };
  if (kind === 5) found.author = { name: "Zoë", email: "zoe@example.com" };
  return found;
}

/** A dictionary: its hundred keys are data, and differ from one value to the next. */
function dictionary(i) {
  const found = {};
  for (let k = 0; k < 100; k++) found[`session-${digits((i * 7 + k * 13) % 5000)}`] = k + i;
  return found;
}

const CJK = "日本語の文章を保存して読み出す速さを測るための例文です。";

/**
 * The sets: name and function of a number. `document`: the workloads of documents have it. `cold`:
 * its cost in a new program is told.
 */
export const PLAIN = [
  {
    name: "small object",
    make: (i) => ({
      id: i,
      name: `user ${i}`,
      email: `user${i}@example.com`,
      age: 20 + (i % 60),
      active: i % 2 === 0,
    }),
  },
  {
    name: "300 rows, 24 KB",
    make: (i) => ({
      rows: list(300, (j) => ({
        id: i * 300 + j,
        name: `name ${j}`,
        email: `u${j}@example.com`,
        score: j * 1.5,
        active: j % 3 === 0,
        tags: ["a", `t${j % 10}`],
      })),
    }),
  },
  {
    name: "Map Set bigint Date",
    make: (i) => ({
      map: new Map([
        ["a", i],
        ["b", 2],
      ]),
      set: new Set([1, 2, `s${i}`]),
      big: 2n ** 70n + BigInt(i),
      at: new Date(1.7e12 + i),
    }),
  },
  { name: "10 KB ASCII string", make: (i) => `${i}`.padEnd(10 * 1024, "lorem ipsum ") },
  {
    name: "non-ASCII object",
    make: (i) => ({
      id: i,
      name: `Zoë Müller ${i}`,
      city: "Kraków",
      note: "naïve café über",
    }),
  },
  // Packed whatever the number is; and as many of which some need 32 bits and others more: not packed.
  { name: "10k integers", make: (i) => list(10_000, (j) => j * (1 + (i % 1000))) },
  { name: "10k large integers", make: (i) => list(10_000, (j) => j * (1_000_000 + (i % 1000))) },
  { name: "10k doubles", make: (i) => list(10_000, (j) => fraction(i * 10_000 + j)) },
];

export const REALISTIC = [
  { name: "record", make: (i) => RECORD_TYPES[0](i) },
  { name: "records of 4 types", make: record, cold: true },
  { name: "rows with dates, 24 KB", make: document },
  { name: "tweet", make: (i) => tweet(i), document: true, cold: true },
  { name: "GeoJSON", make: geojson, document: true },
  { name: "package.json, 8 kinds", make: manifest, document: true, cold: true },
  {
    name: "embedding, 1536 doubles",
    make: (i) => list(1536, (j) => fraction(i * 1536 + j) * 2 - 1),
    document: true,
  },
  { name: "dictionary, 100 keys", make: dictionary, document: true, cold: true },
  {
    name: "CJK text, 0.9 KB",
    make: (i) => ({ id: i, text: CJK.repeat(10) + String(i) }),
    document: true,
  },
  {
    name: "latin text, 10 KB",
    make: (i) => `${i} `.padEnd(10 * 1024, "naïve café über Zoë, ein paar Wörter mehr "),
    document: true,
  },
  { name: "bytes, 60 KB", make: (i) => new Uint8Array(60 * 1024).fill(i), document: true },
];
