import { codeOf } from "./errors.ts";

/** Whether a process of this machine has the id; one of another user (EPERM) counts. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}
