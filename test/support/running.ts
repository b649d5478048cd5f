import { readFileSync } from "node:fs";
import { isAlive } from "../../src/kit/pid.ts";

/** A zombie that nobody reaps (in a container without init) is dead enough. */
export function isRunning(pid: number): boolean {
  if (!isAlive(pid)) return false;
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return isAlive(pid); // gone in this moment, or a system without /proc
  }
}
