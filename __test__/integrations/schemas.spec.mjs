// Duty: collections with the schemas of zod, valibot and arktype.

import { type } from "arktype";
import { KvValidationError, openKv } from "openkv";
import * as v from "valibot";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { databases, end } from "./kit.mjs";

afterAll(end);

/** A user whose age is 18 if nothing is said. */
const schemas = {
  zod: z.object({ id: z.string(), email: z.string().min(3), age: z.number().default(18) }),
  valibot: v.object({
    id: v.string(),
    email: v.pipe(v.string(), v.minLength(3)),
    age: v.optional(v.number(), 18),
  }),
  arktype: type({ id: "string", email: "string >= 3", age: "number = 18" }),
};

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    let kv;
    let prefix;
    beforeEach(async () => {
      const { path, open, base = "users" } = newDatabase();
      kv = await openKv(path, open);
      prefix = [base];
    });
    afterEach(() => kv.close());

    for (const [library, schema] of Object.entries(schemas)) {
      it(`${library}: a document is stored as the schema returns it`, async () => {
        const users = kv.collection(prefix, { schema, id: "id" });
        await users.insert({ id: "ada", email: "ada@example.com" });
        const { value } = await kv.get([...prefix, "ada"]);
        expect(value).toEqual({ id: "ada", email: "ada@example.com", age: 18 });
      });

      it(`${library}: what it refuses is not written`, async () => {
        const users = kv.collection(prefix, { schema, id: "id" });
        const refusal = await users.insert({ id: "ada", email: "a" }).catch((error) => error);
        expect(refusal).toBeInstanceOf(KvValidationError);
        expect(refusal.message).toMatch(/^insert: email: ./);
        expect(refusal.issues.length).toBe(1);
        expect(await users.count()).toBe(0);
      });
    }

    it("zod: an asynchronous schema is refused", async () => {
      const late = z.object({ id: z.string() }).refine(async () => true);
      const users = kv.collection(prefix, { schema: late, id: "id" });
      await expect(users.insert({ id: "ada" })).rejects.toThrow(/the schema is asynchronous/);
    });
  });
}
