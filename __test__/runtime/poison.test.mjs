// Duty: a queued message whose bytes cannot be read (a damaged file) is a failed delivery: it goes
// its way to the dead letters, and the messages behind it are handled.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { HANG_MS, guard, until } from "../kit/time.mjs";

const require = createRequire(import.meta.url);
const binding = require("../../dist/native/binding.js");
const { encodeKey } = require("../../build/codec/key.js");
const { Writer } = require("../../build/codec/writer.js");
const { OPENED, SETTLED } = require("../../build/native/contract.js");

const HANDLE_ID = 1;
const WRITE_ID = 2;
const CLOSE_ID = 9;
const OP_ENQUEUE = 7;
const END = 0;
/** A CBOR "break" on its own: no value. */
const UNREADABLE = Uint8Array.of(0xff);

/** Enqueues bytes that no encoder wrote, past all of js/: the frame of js/native/contract.md. */
async function enqueueRaw(path, value, deadKey) {
  const writer = new Writer();
  const doubleNow = Buffer.alloc(8);
  doubleNow.writeDoubleLE(Date.now());
  writer.u8(OP_ENQUEUE);
  writer.bytes(doubleNow);
  writer.u8(1);
  writer.u32(20);
  writer.bytes(Uint8Array.of(1, 0));
  const keyAt = writer.pos;
  writer.u32(0);
  encodeKey(writer, deadKey);
  writer.patchU32(keyAt, writer.pos - keyAt - 4);
  writer.u32(value.length);
  writer.bytes(value);
  writer.u8(END);
  const limits = binding.limits();
  const options = { path, durability: "full", readonly: false, busyTimeoutMs: 5000, limits };
  const events = new EventEmitter();
  const attachment = binding.attach(Buffer.alloc(1), (kind, id) => events.emit(id, kind));
  const event = (id, what) => guard(once(events, id), HANG_MS, what);
  const opened = event(HANDLE_ID, "the handle opens");
  const handle = new binding.Handle(attachment, HANDLE_ID, options);
  assert.deepEqual(await opened, [OPENED]);
  const settled = event(WRITE_ID, "the message is committed");
  handle.write(WRITE_ID, 1, writer.buf, writer.pos);
  assert.deepEqual(await settled, [SETTLED]);
  handle.close(CLOSE_ID);
}

test("a message that cannot be read fails, and harms no other", async () => {
  const folder = newFolder("poison");
  const path = join(folder, "kv.sqlite3");
  const kv = await openKv(path);
  const errors = [];
  const log = console.error;
  console.error = (...args) => errors.push(args.join(" "));
  try {
    await enqueueRaw(path, UNREADABLE, ["dead"]);
    await kv.enqueue("behind it");
    const got = [];
    const listening = kv.listenQueue((message) => {
      got.push(message);
    });
    const isDead = async () => {
      // The dead letter holds the same bytes: to read it is an error of its own.
      const dead = await kv.get(["dead"]).catch((error) => error);
      if (dead instanceof RangeError) return true;
      assert.equal(dead.versionstamp, null);
      return false;
    };
    await until(isDead, "the dead letter comes");
    await kv.enqueue("after it");
    await until(() => got.length >= 2, "the others are handled");
    assert.deepEqual(got, ["behind it", "after it"]);
    // Delivered twice: at once, and after its one backoff of 20 ms.
    assert.equal(errors.filter((text) => text.includes("Exception in queue handler")).length, 2);
    await kv.close();
    await listening;
  } finally {
    console.error = log;
    rmSync(folder, { recursive: true, force: true });
  }
});
