// Duty: signals to a process together with all of its children.

import { spawnSync } from "node:child_process";
import process from "node:process";

/** Kills a process and its children, which cannot notice it first. */
export function killTree(pid) {
  if (process.platform === "win32") {
    spawnSync("taskkill", ["/T", "/F", "/PID", `${pid}`]);
    return;
  }
  // A stopped parent starts no other child.
  signalTree(pid, "SIGSTOP");
  signalTree(pid, "SIGKILL");
}

/** Sends a signal to a process, then to its children. Not on Windows, which has no signals. */
export function signalTree(pid, signal) {
  const children = childrenOf(pid);
  for (const each of [pid, ...children, ...childrenOf(pid)]) send(each, signal);
}

function childrenOf(parent) {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=", "-o", "ppid="], { encoding: "utf8" });
  const pairs = stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.filter(([, ppid]) => ppid === parent).map(([pid]) => pid);
}

function send(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
