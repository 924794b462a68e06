// Duty: looking after the file: checkpoint.

import { CALL_CHECKPOINT } from "./native.js";
import { call } from "./call.js";
import type { Session } from "./session.js";

export async function checkpoint(
  session: Session,
): Promise<{ logPages: number; movedPages: number }> {
  const answer = await call(session, CALL_CHECKPOINT);
  return { logPages: answer.readUInt32LE(0), movedPages: answer.readUInt32LE(4) };
}
