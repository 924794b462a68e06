// Duty: the routes of watches, indexes, searches and metrics, as ../routes.mjs describes them.

import {
  EVENTS,
  save,
  error,
  stamp,
  text,
  number,
  written,
  entry,
  absent,
  USERS,
  ADA,
  BO,
  MAIL,
  CONFIG,
} from "./steps.mjs";

const INDEX = [
  [
    "POST",
    "/indexes",
    { prefix: ["posts"], options: { fields: ["title"], tokenize: "porter" } },
    { ok: true },
  ],
  ["PUT", "/keys/posts/1", { title: "C++ and don't", year: 1 }, written],
  ["PUT", "/keys/posts/2", { title: "Running AND other words", year: 2 }, written],
];

export const OTHERS = [
  {
    route: "GET /watch",
    takes: "`keys=a/b,c`; `initial=false`: without the present entries",
    answers:
      "server-sent events: `change`, an array with the entries that differ, `null` for a deleted one, and `ping`. `id` and `Last-Event-ID` continue a stream",
    steps: [
      ["GET", "/watch?keys=users/1,config", undefined, EVENTS],
      ["GET", "/watch", undefined, error(400, "Missing 'keys' query parameter")],
      ["GET", "/watch?keys=,", undefined, error(400, "Missing 'keys' query parameter")],
    ],
  },
  {
    route: "GET /watch/poll",
    takes: "`keys=a/b,c`, `versionstamps=v,v` of the last answer; an empty one is that of no entry",
    answers:
      '`{entries, versionstamps}`: the entries that differ, and the versionstamps of all keys, `""` without an entry',
    steps: [
      ...USERS,
      [
        "GET",
        "/watch/poll?keys=users/1,none",
        undefined,
        { entries: [ADA], versionstamps: [save("ada"), ""] },
      ],
      [
        "GET",
        "/watch/poll?keys=users/1,none&versionstamps=$ada,",
        undefined,
        { entries: [], versionstamps: [stamp, ""] },
      ],
      [
        "GET",
        "/watch/poll?keys=users/1,none&versionstamps=$ada,$ada",
        undefined,
        { entries: [absent(["none"])], versionstamps: [stamp, ""] },
      ],
      [
        "GET",
        "/watch/poll?keys=users/1,users/2&versionstamps=0197-uuid",
        undefined,
        { entries: [ADA, BO], versionstamps: [stamp, stamp] },
      ],
      ["GET", "/watch/poll", undefined, error(400, "Missing 'keys' query parameter")],
    ],
  },
  {
    route: "GET /watch/prefix",
    takes:
      "`prefix=a/b`: the keys below it; or `prefixes=a/b,c`: these keys and all below them; `initial=false`, `limit`",
    answers: "the same events, by commit",
    steps: [
      ["GET", "/watch/prefix?prefix=users", undefined, EVENTS],
      ["GET", "/watch/prefix?prefixes=users/1,config", undefined, EVENTS],
      ["GET", "/watch/prefix", undefined, error(400, "Missing 'prefix' query parameter")],
    ],
  },
  {
    route: "GET /watch/prefix/poll",
    takes: "`prefix` or `prefixes`, `limit`, `versionstamps` of the last answer",
    answers:
      '`{entries, versionstamps: "a/1:V,a/2:V"}`: at first all entries, then those that differ; deleted ones have `null`',
    steps: [
      ...USERS,
      [
        "GET",
        "/watch/prefix/poll?prefix=users",
        undefined,
        { entries: [ADA, BO, MAIL], versionstamps: save("all") },
      ],
      [
        "GET",
        "/watch/prefix/poll?prefix=users&versionstamps=$all",
        undefined,
        { entries: [], versionstamps: text },
      ],
      [
        "GET",
        "/watch/prefix/poll?prefix=users&limit=1&versionstamps=$all",
        undefined,
        { entries: [], versionstamps: text },
      ],
      ["DELETE", "/keys/users/2", { exact: true }, { deletedCount: 1 }],
      [
        "GET",
        "/watch/prefix/poll?prefix=users&versionstamps=$all",
        undefined,
        { entries: [absent(["users", 2])], versionstamps: save("rest") },
      ],
      [
        "GET",
        "/watch/prefix/poll?prefix=users&versionstamps=$rest",
        undefined,
        { entries: [], versionstamps: text },
      ],
      [
        "GET",
        "/watch/prefix/poll?prefixes=config,users/1",
        undefined,
        { entries: [CONFIG, ADA], versionstamps: text },
      ],
      ["GET", "/watch/prefix/poll", undefined, error(400, "Missing 'prefix' query parameter")],
    ],
  },
  {
    route: "GET /indexes",
    takes: "",
    answers: "an array of `{prefix, fields, tokenize}`",
    steps: [
      ["GET", "/indexes", undefined, []],
      ...INDEX,
      [
        "GET",
        "/indexes",
        undefined,
        [{ prefix: ["posts"], fields: ["title"], tokenize: "porter" }],
      ],
    ],
  },
  {
    route: "POST /indexes",
    writes: true,
    takes:
      "`{prefix, options: {fields, tokenize}}`, or both beside `prefix`. `unicode61` by default",
    answers: "`{ok: true}`. Another index of the prefix is replaced",
    steps: [
      ...INDEX,
      ["POST", "/indexes", { prefix: ["posts"], fields: ["body.text"] }, { ok: true }],
      [
        "GET",
        "/indexes",
        undefined,
        [{ prefix: ["posts"], fields: ["body.text"], tokenize: "unicode61" }],
      ],
      [
        "POST",
        "/indexes",
        { prefix: ["a"], options: {} },
        error(400, "fields must be a non-empty array"),
      ],
      [
        "POST",
        "/indexes",
        { prefix: ["a"], fields: "title" },
        error(400, "fields must be a non-empty array"),
      ],
      [
        "POST",
        "/indexes",
        { prefix: ["a"], options: { fields: [] } },
        error(400, "At least one field must be specified"),
      ],
      [
        "POST",
        "/indexes",
        { prefix: ["a"], fields: ["b"], tokenize: "x" },
        error(400, /tokenize must be one of/),
      ],
    ],
  },
  {
    route: "DELETE /indexes",
    writes: true,
    takes: "`prefix`",
    answers: "`{ok: true}`, also if there is none",
    steps: [
      ...INDEX,
      ["DELETE", "/indexes?prefix=posts", undefined, { ok: true }],
      ["DELETE", "/indexes?prefix=posts", undefined, { ok: true }],
      ["GET", "/indexes", undefined, []],
      ["DELETE", "/indexes", undefined, error(400, "Missing 'prefix' query parameter")],
    ],
  },
  {
    route: "GET /search",
    takes: "`prefix` of an index, `query`: words, all of which must be found; `limit`",
    answers: "an array of `{key,value,versionstamp}`, the best first",
    steps: [
      ...INDEX,
      [
        "GET",
        "/search?prefix=posts&query=C%2B%2B+don%27t",
        undefined,
        [entry(["posts", 1], { title: "C++ and don't", year: 1 })],
      ],
      [
        "GET",
        "/search?prefix=posts&query=run+AND",
        undefined,
        [entry(["posts", 2], { title: "Running AND other words", year: 2 })],
      ],
      ["GET", "/search?prefix=posts&query=ada%40x.org", undefined, []],
      [
        "GET",
        "/search?prefix=posts&query=other+OR+don%27t&limit=1",
        undefined,
        (found) => found.length === 1,
      ],
      ["GET", "/search?query=a", undefined, error(400, "prefix is required")],
      ["GET", "/search?prefix=posts", undefined, error(400, "query is required")],
    ],
  },
  {
    route: "POST /search",
    takes: "`{prefix, query, options: {limit, where}}`, or these beside `prefix`",
    answers: "the same array",
    steps: [
      ...INDEX,
      [
        "POST",
        "/search",
        { prefix: ["posts"], query: "don't OR other", options: { where: { year: 2 } } },
        [entry(["posts", 2], { title: "Running AND other words", year: 2 })],
      ],
      [
        "POST",
        "/search",
        { prefix: ["posts"], query: "don't OR other", where: { year: { $lt: 2 } }, limit: 5 },
        [entry(["posts", 1], { title: "C++ and don't", year: 1 })],
      ],
      ["POST", "/search", { query: "a" }, error(400, "prefix is required")],
      ["POST", "/search", { prefix: ["posts"], query: "" }, error(400, "query is required")],
    ],
  },
  {
    route: "GET /metrics",
    takes: "",
    answers:
      "`{operations: {operations: {get: {count, errors, avgLatencyMs}}, totals: {errors, operations}}, queue, storage: {entries, sizeBytes}}`",
    steps: [
      ...USERS,
      ["GET", "/keys/users/1", undefined, ADA],
      [
        "GET",
        "/metrics",
        undefined,
        {
          operations: {
            operations: ({ get, set }) =>
              get.count === 1 && set.count === 4 && set.errors === 0 && number(set.avgLatencyMs),
            totals: { errors: 0, operations: (count) => count >= 5 },
          },
          queue: { pending: 0, processing: 0, dlq: 0, total: 0 },
          storage: { entries: 4, sizeBytes: (bytes) => bytes > 0 },
        },
      ],
    ],
  },
  {
    route: "GET /metrics/prometheus",
    takes: "",
    answers:
      "text: `keyval_operations_total`, `keyval_errors_total`, the histogram `keyval_operation_duration_ms`, `keyval_queue_pending`, `_processing`, `_dlq`, `_total`, `keyval_entries_total`, `keyval_storage_bytes`",
    steps: [
      ...USERS,
      [
        "GET",
        "/metrics/prometheus",
        undefined,
        (page) =>
          [
            'keyval_operations_total{operation="set"} 4',
            'keyval_errors_total{operation="set"} 0',
            'keyval_operation_duration_ms_bucket{operation="set",le="+Inf"} 4',
            'keyval_operation_duration_ms_count{operation="set"} 4',
            "# TYPE keyval_operation_duration_ms histogram",
            "keyval_queue_pending 0",
            "keyval_queue_processing 0",
            "keyval_queue_dlq 0",
            "keyval_queue_total 0",
            "keyval_entries_total 4",
            "keyval_storage_bytes ",
          ].every((line) => page.includes(line)),
      ],
    ],
  },
];
