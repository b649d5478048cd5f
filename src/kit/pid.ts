import { readFile } from "node:fs/promises";
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

interface ProcessFacts {
  /** Clock ticks since boot: tells a process from a later one with its id. Null where the system does not say. */
  readonly startTime: number | null;
  /** Stopped (SIGSTOP, Ctrl+Z): it does nothing until somebody lets it continue. */
  readonly isStopped: boolean;
}

/** Null when no process has the id, or only one that has ended and that nobody has waited for. */
export async function processFacts(pid: number): Promise<ProcessFacts | null> {
  const unknown = { startTime: null, isStopped: false };
  if (!isAlive(pid)) return null;
  if (process.platform !== "linux") return unknown;
  const line = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The name in brackets may hold anything, brackets and blanks too.
  const [state = "", ...rest] = line.slice(line.lastIndexOf(")") + 2).split(" ");
  if (state === "Z" || state === "X") return null;
  if (state === "") return isAlive(pid) ? unknown : null;
  const startTime = Number(rest[18]);
  return { startTime: Number.isInteger(startTime) ? startTime : null, isStopped: state === "T" };
}

/** Whether the process that had this id and start time still lives. An unknown start time, here or there, is no difference. */
export async function isSameProcess(pid: number, startTime: number | null): Promise<boolean> {
  const facts = await processFacts(pid);
  if (facts === null) return false;
  return startTime === null || facts.startTime === null || facts.startTime === startTime;
}
