// Duty: the database adapter of Better Auth under the suites of @better-auth/test-utils, and what those do not
// ask: unique fields under concurrent writes, and indexes that a later schema adds.

import {
  authFlowTestSuite,
  caseInsensitiveTestSuite,
  joinsTestSuite,
  normalTestSuite,
  numberIdTestSuite,
  testAdapter,
  transactionsTestSuite,
  uuidTestSuite,
} from "@better-auth/test-utils/adapter";
import { betterAuth } from "better-auth";
import { openKv } from "openkv";
import { openkvAdapter } from "openkv/better-auth";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { databases, end, newPath } from "./kit.mjs";

// The suites print a line for each thing they do.
vi.spyOn(console, "log").mockImplementation(() => {});

afterAll(end);

for (const [place, database] of await databases()) {
  describe(place, async () => {
    const adapter = openkvAdapter({
      ...database(),
      debugLogs: { isRunningAdapterTests: true },
    });
    const { execute } = await testAdapter({
      adapter: () => adapter,
      runMigrations: () => {},
      tests: [
        normalTestSuite(),
        joinsTestSuite(),
        transactionsTestSuite(),
        authFlowTestSuite(),
        numberIdTestSuite(),
        uuidTestSuite(),
        caseInsensitiveTestSuite(),
      ],
      onFinish: () => adapter.close(),
    });
    execute();

    describe("openkv", () => {
      let options;
      let ours;
      let users;
      beforeEach(() => {
        options = database();
        ours = openkvAdapter(options);
        users = ours({});
      });
      afterEach(() => ours.close());
      const user = (fields) => ({
        name: "Ada",
        emailVerified: false,
        createdAt: new Date(0),
        updatedAt: new Date(0),
        ...fields,
      });
      const create = (fields) => users.create({ model: "user", data: user(fields) });

      it("one of many concurrent rows with a unique value is created", async () => {
        const results = await Promise.allSettled(
          Array.from({ length: 20 }, () => create({ email: "ada@example.com" })),
        );
        const refused = results.filter(({ status }) => status === "rejected");
        expect(refused.length).toBe(19);
        for (const { reason } of refused) expect(reason.message).toMatch(/user .* this email/);
        expect(await users.count({ model: "user" })).toBe(1);
      });

      it("one of many concurrent sign-ups with an email succeeds", async () => {
        const auth = betterAuth({
          secret: "the secret of these tests, which is long enough",
          baseURL: "http://localhost:3000",
          logger: { disabled: true },
          telemetry: { enabled: false },
          database: ours,
          emailAndPassword: {
            enabled: true,
            password: {
              hash: async (text) => text,
              verify: async (given) => given.hash === given.password,
            },
          },
        });
        const body = { email: "ada@example.com", password: "a long password", name: "Ada" };
        const results = await Promise.allSettled(
          Array.from({ length: 8 }, () => auth.api.signUpEmail({ body })),
        );
        expect(results.filter(({ status }) => status === "fulfilled").length).toBe(1);
        const { user: found } = await auth.api.signInEmail({ body });
        expect(found.email).toBe("ada@example.com");
      });

      it("a unique value is free again after its row has changed or is gone", async () => {
        const first = await create({ email: "a@example.com" });
        const second = await create({ email: "b@example.com" });
        const byId = ({ id }) => [{ field: "id", value: id }];
        const rename = (row, email) =>
          users.update({ model: "user", where: byId(row), update: { email } });
        await expect(rename(second, "a@example.com")).rejects.toThrow(/email/);
        await rename(first, "c@example.com");
        expect((await rename(second, "a@example.com")).email).toBe("a@example.com");
        await users.delete({ model: "user", where: byId(first) });
        expect((await rename(second, "c@example.com")).email).toBe("c@example.com");
        const where = [{ field: "email", value: "a@example.com" }];
        expect(await users.findOne({ model: "user", where })).toBe(null);
      });

      it("a row with a long id is found once, also by an index that has it twice", async () => {
        const id = "s".repeat(300); // longer than a part of a key
        const expiresAt = new Date(1e13);
        const data = { userId: "u", token: "t", expiresAt, createdAt: new Date(0) };
        await users.create({
          model: "session",
          data: { ...data, id, updatedAt: new Date(0) },
          forceAllowId: true,
        });
        const where = [{ field: "userId", operator: "in", value: ["u", "u"] }];
        const rows = await users.findMany({ model: "session", where });
        expect(rows.map((row) => row.id)).toEqual([id]);
        expect(await users.count({ model: "session", where })).toBe(1);
      });

      it("one of many concurrent consumers gets a row", async () => {
        const identifier = "x".repeat(3000); // longer than a key
        await users.create({
          model: "verification",
          data: { identifier, value: "code", expiresAt: new Date(1e13) },
        });
        const where = [{ field: "identifier", value: identifier }];
        const results = await Promise.all(
          Array.from({ length: 20 }, () => users.consumeOne({ model: "verification", where })),
        );
        expect(results.filter((row) => row !== null).length).toBe(1);
      });

      it("concurrent transactions have the effect of one after the other", async () => {
        const { id } = await create({ email: "a@example.com", name: "0" });
        const where = [{ field: "id", value: id }];
        const increase = () =>
          users.transaction(async (tx) => {
            const { name } = await tx.findOne({ model: "user", where });
            await tx.update({ model: "user", where, update: { name: String(Number(name) + 1) } });
          });
        await Promise.all(Array.from({ length: 10 }, increase));
        expect((await users.findOne({ model: "user", where })).name).toBe("10");
      });

      it("rows are found by an index that a later schema adds, and by one that is deleted with all", async () => {
        for (let n = 0; n < 250; n++)
          await create({ email: `${n}@example.com`, name: `n${n % 50}` });
        const schema = (field) => ({
          user: { additionalFields: { name: { type: "string", ...field } } },
        });
        const found = (where, given = later) => given.findMany({ model: "user", where });
        const named = [{ field: "name", value: "n7" }];
        const later = openkvAdapter(options)(schema({ index: true }));
        if (options.path !== ":memory:") {
          expect((await found(named)).length).toBe(5);
          // The adapter with the earlier schema keeps the index.
          await create({ email: "new@example.com", name: "n7" });
          expect((await found(named)).length).toBe(6);
        }
        await users.deleteMany({ model: "user", where: [] });
        expect(await users.count({ model: "user" })).toBe(0);
        const kv = await openKv(newPath());
        const all = openkvAdapter({ kv })({});
        const row = { model: "user", data: user({ email: "z@example.com" }) };
        await all.create(row);
        await kv.deleteMany({ prefix: ["better-auth"] });
        await all.create(row);
        const where = [{ field: "email", value: "z@example.com" }];
        expect((await found(where, all)).length).toBe(1);
        await kv.close();
      });

      it("duplicates refuse a unique index by name", async () => {
        const kv = await openKv(newPath());
        const now = openkvAdapter({ kv })({});
        for (const n of [1, 2]) {
          await now.create({ model: "user", data: user({ email: `${n}@example.com` }) });
        }
        const later = openkvAdapter({ kv })({
          user: { additionalFields: { name: { type: "string", unique: true } } },
        });
        await expect(later.findMany({ model: "user" })).rejects.toThrow(/user .* this name/);
        await kv.close();
      });
    });
  });
}
