// Duty: the routes of entries and atomic operations, as ../routes.mjs describes them.

import {
  raw,
  save,
  error,
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

export const ENTRIES = [
  {
    route: "GET /keys",
    takes: "`prefix`, `start`, `end`, all three together if wanted; `limit`, `reverse=true`",
    answers: "an array of `{key,value,versionstamp}`",
    steps: [
      ["GET", "/keys", undefined, []],
      ...USERS,
      ["GET", "/keys", undefined, [CONFIG, ADA, BO, MAIL]],
      ["GET", "/keys?prefix=users&limit=2&unknown=1", undefined, [ADA, BO]],
      ["GET", "/keys?prefix=users&reverse=true&limit=1x", undefined, [MAIL]],
      ["GET", "/keys?prefix=users&start=users/2&end=users/2%2Fmail", undefined, [BO]],
      ["GET", "/keys?prefix=users&start=zebra", undefined, []],
      ["GET", "/keys?prefix=users%252F1", undefined, []],
      ["GET", "/keys?limit=5000", undefined, [CONFIG, ADA, BO, MAIL]],
      ["GET", "/keys?limit=0", undefined, error(400, /limit must be a positive number/)],
    ],
  },
  {
    route: "POST /keys/list",
    takes: "`{prefix, start, end, limit, reverse, where}`; `prefix` may be `[]`",
    answers: "the same array",
    steps: [
      ...USERS,
      ["POST", "/keys/list", { prefix: [], where: { age: { $gte: 18 } } }, [ADA]],
      ["POST", "/keys/list", { prefix: ["users"], start: ["users", 2], end: null }, [BO, MAIL]],
      [
        "POST",
        "/keys/list",
        { prefix: ["users"], where: { age: { $ne: 36 } }, reverse: true },
        [BO],
      ],
      [
        "POST",
        "/keys/list",
        { prefix: ["users"], where: { tag: { $empty: true }, age: 17 } },
        [BO],
      ],
      ["POST", "/keys/list", { prefix: "users" }, error(400, /Key must be an array/)],
      [
        "POST",
        "/keys/list",
        { where: { age: { $like: 1 } } },
        error(400, /where\.age\.\$like: unknown operator/),
      ],
      ["POST", "/keys/list", raw("nonsense"), error(400, /cannot be read/)],
    ],
  },
  {
    route: "POST /keys/batch",
    takes: "`{keys}`, 1 to 1000",
    answers: "an array in the order of the keys; `null` as value and versionstamp without an entry",
    steps: [
      ...USERS,
      [
        "POST",
        "/keys/batch",
        { keys: [["users", 2], ["none"], ["users", 1]] },
        [BO, absent(["none"]), ADA],
      ],
      ["POST", "/keys/batch", { keys: [] }, error(400, /Keys array cannot be empty/)],
      ["POST", "/keys/batch", {}, error(400, /Keys must be an array/)],
      [
        "POST",
        "/keys/batch",
        { keys: [["a"], []] },
        error(400, /Invalid key at index 1: Key cannot be empty/),
      ],
    ],
  },
  {
    route: "GET /keys/count",
    takes: "`prefix`",
    answers: "`{count}`",
    steps: [
      ...USERS,
      ["GET", "/keys/count", undefined, { count: 4 }],
      ["GET", "/keys/count?prefix=users", undefined, { count: 3 }],
      ["GET", "/keys/count?prefix=users/2", undefined, { count: 1 }],
    ],
  },
  {
    route: "GET /keys/paginate",
    takes: "`prefix`, `limit`, `reverse=true`, `cursor` of the page before",
    answers: "`{entries, cursor, hasMore}`; `cursor` is `null` at the end",
    steps: [
      ...USERS,
      [
        "GET",
        "/keys/paginate?prefix=users&limit=2",
        undefined,
        { entries: [ADA, BO], cursor: save("cursor"), hasMore: true },
      ],
      [
        "GET",
        "/keys/paginate?prefix=users&limit=2&cursor=$cursor",
        undefined,
        { entries: [MAIL], cursor: null, hasMore: false },
      ],
      [
        "GET",
        "/keys/paginate?reverse=true&limit=1",
        undefined,
        { entries: [MAIL], cursor: save("back"), hasMore: true },
      ],
      [
        "GET",
        "/keys/paginate?reverse=true&limit=1&cursor=$back",
        undefined,
        { entries: [BO], cursor: text, hasMore: true },
      ],
      ["GET", "/keys/paginate?cursor=~", undefined, error(400, /invalid cursor/)],
    ],
  },
  {
    route: "GET /keys/{*path}",
    takes: "",
    answers:
      "`{key,value,versionstamp}`; 404 `Key not found` without an entry, and if its value is `null`",
    steps: [
      ...USERS,
      ["GET", "/keys/users/1", undefined, ADA],
      ["GET", "/keys//users/2//mail/", undefined, MAIL],
      ["GET", "/keys/users%2F1", undefined, error(404, "Key not found")],
      ["PUT", "/keys/nothing", null, written],
      ["GET", "/keys/nothing", undefined, error(404, "Key not found")],
      ["GET", "/keys/", undefined, error(400, "Key path cannot be empty")],
      [
        "GET",
        "/keys/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21",
        undefined,
        error(400, /too deep \(max 20 parts\)/),
      ],
    ],
  },
  {
    route: "PUT /keys/{*path}",
    writes: true,
    takes: "the value as JSON; `expiresIn` in ms, of which the leading digits count",
    answers: "`{ok, versionstamp}`",
    steps: [
      ["PUT", "/keys/a%20b/-7?expiresIn=60000ms", [1, "x"], written],
      ["GET", "/keys/a%20b/-7", undefined, entry(["a b", -7], [1, "x"])],
      ["PUT", "/keys/a?expiresIn=0", 1, error(400, /expiresIn must be a positive number/)],
      ["PUT", "/keys/a?expiresIn=soon", 1, error(400, /expiresIn must be a positive number/)],
      [
        "PUT",
        "/keys/a",
        raw('{"id":9007199254740993}'),
        error(400, /has digits that a number cannot hold/),
      ],
      ["PUT", "/keys/a", raw("{"), error(400, /not JSON/)],
    ],
  },
  {
    route: "DELETE /keys/{*path}",
    writes: true,
    takes: "`{exact, where}` in the body, if wanted. By default the key and all below it",
    answers: "`{deletedCount}`",
    steps: [
      ...USERS,
      ["DELETE", "/keys/users/2", { exact: true }, { deletedCount: 1 }],
      ["DELETE", "/keys/users", { where: { age: { $gt: 18 } } }, { deletedCount: 1 }],
      ["DELETE", "/keys/users", undefined, { deletedCount: 1 }],
      ["DELETE", "/keys/users", undefined, { deletedCount: 0 }],
      ["GET", "/keys", undefined, [CONFIG]],
      ["DELETE", "/keys/config", raw("nonsense"), error(400, /cannot be read/)],
      ["DELETE", "/keys/config", { where: { on: { $no: 1 } } }, error(400, /unknown operator/)],
      ["GET", "/keys", undefined, [CONFIG]],
    ],
  },
  {
    route: "POST /keys/delete-batch",
    writes: true,
    takes: "`{keys, exact, where}`",
    answers: "`{deletedCount}`",
    steps: [
      ...USERS,
      [
        "POST",
        "/keys/delete-batch",
        { keys: [["users", 2], ["config"]], exact: true },
        { deletedCount: 2 },
      ],
      [
        "POST",
        "/keys/delete-batch",
        { keys: [["users"]], where: { name: "Ada" } },
        { deletedCount: 1 },
      ],
      ["POST", "/keys/delete-batch", { keys: [["users"]] }, { deletedCount: 1 }],
      ["POST", "/keys/delete-batch", { keys: [] }, error(400, /Keys array cannot be empty/)],
    ],
  },
  {
    route: "POST /atomic",
    writes: true,
    takes:
      '`{checks: [{key, versionstamp}], mutations: [{type, key, value, expiresIn}]}`. `set`, `delete`, `append`, `prepend`; `sum`, `min` and `max` of a number, of digits as text, or of `{"__type":"bigint","value":"5"}`',
    answers:
      "`{ok: true, versionstamp}`, or `{ok: false}` if a check does not hold, also for a versionstamp that is none of openkv's",
    steps: [
      [
        "POST",
        "/atomic",
        {
          mutations: [
            { type: "set", key: ["n"], value: 5 },
            { type: "sum", key: ["n"], value: "2" },
          ],
        },
        written,
      ],
      [
        "POST",
        "/atomic",
        {
          mutations: [
            { type: "max", key: ["n"], value: { __type: "bigint", value: "9" } },
            { type: "min", key: ["low"], value: 3.9 },
          ],
        },
        written,
      ],
      ["POST", "/keys/batch", { keys: [["n"], ["low"]] }, [entry(["n"], 9), entry(["low"], 3)]],
      [
        "POST",
        "/atomic",
        {
          checks: [{ key: ["n"], versionstamp: null }],
          mutations: [{ type: "delete", key: ["n"] }],
        },
        { ok: false },
      ],
      [
        "POST",
        "/atomic",
        {
          checks: [{ key: ["n"], versionstamp: "0197-uuid" }],
          mutations: [{ type: "delete", key: ["n"] }],
        },
        { ok: false },
      ],
      ["GET", "/keys/n", undefined, { key: ["n"], value: 9, versionstamp: save("n") }],
      [
        "POST",
        "/atomic",
        {
          checks: [{ key: ["n"], versionstamp: "$n" }],
          mutations: [{ type: "set", key: ["n"], value: 9007199254740991 }],
        },
        written,
      ],
      // Beyond the integers of a number a sum stays exact.
      ["POST", "/atomic", { mutations: [{ type: "sum", key: ["n"], value: 2 }] }, written],
      ["GET", "/keys/n", undefined, entry(["n"], "9007199254740993")],
      ["POST", "/atomic", { mutations: [{ type: "sum", key: ["n"], value: -3 }] }, written],
      ["GET", "/keys/n", undefined, entry(["n"], 9007199254740990)],
      [
        "POST",
        "/atomic",
        {
          mutations: [
            { type: "append", key: ["list"], value: [2] },
            { type: "prepend", key: ["list"], value: [1] },
          ],
        },
        written,
      ],
      ["GET", "/keys/list", undefined, entry(["list"], [1, 2])],
      // A value of another type counts as missing.
      ["PUT", "/keys/text", "text", written],
      [
        "POST",
        "/atomic",
        {
          mutations: [
            { type: "append", key: ["text"], value: [3] },
            { type: "append", key: ["text"], value: [4] },
          ],
        },
        written,
      ],
      ["GET", "/keys/text", undefined, entry(["text"], [3, 4])],
      ["POST", "/atomic", { mutations: [{ type: "sum", key: ["text"], value: 5 }] }, written],
      ["GET", "/keys/text", undefined, entry(["text"], 5)],
      [
        "POST",
        "/atomic",
        {
          mutations: [
            {
              type: "set",
              key: ["at"],
              value: { at: { $now: true, offset: 1000 } },
              expiresIn: 60000,
            },
          ],
        },
        written,
      ],
      ["GET", "/keys/at", undefined, entry(["at"], { at: number })],
      [
        "POST",
        "/atomic",
        { mutations: [{ type: "set", key: ["log", { __type: "uuidv7" }], value: 1 }] },
        { ok: true, versionstamp: save("log") },
      ],
      ["GET", "/keys/log/$log", undefined, (found) => found.key[1] === found.versionstamp],
      ["POST", "/atomic", { mutations: [{ type: "rename", key: ["at"] }] }, written],
      [
        "POST",
        "/atomic",
        { mutations: [{ type: "append", key: ["a"], value: "x" }] },
        error(400, "append value must be an array"),
      ],
      [
        "POST",
        "/atomic",
        { mutations: [{ type: "prepend", key: ["a"] }] },
        error(400, "prepend value must be an array"),
      ],
      [
        "POST",
        "/atomic",
        { mutations: [{ type: "sum", key: ["a"], value: "1.5" }] },
        error(400, /sum value is not a valid integer/),
      ],
      [
        "POST",
        "/atomic",
        { mutations: [{ type: "sum", key: ["a"], value: "9".repeat(10000) }] },
        error(400, /sum value is not a valid integer/),
      ],
      [
        "POST",
        "/atomic",
        { mutations: [{ type: "set", value: 1 }] },
        error(400, /mutations\[0\]\.key is missing/),
      ],
    ],
  },
];
