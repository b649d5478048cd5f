// Processes of the host: who descends from whom, when one started, how to end a family.
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Anything that differs between two processes that had the same pid. */
  readonly startTime: string;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // process.kill throws nothing else
  }
}

/** When the process started; null when there is none. Two processes that share a pid over time differ in it. */
export async function startTimeOf(pid: number): Promise<string | null> {
  if (process.platform === "linux") return (await readFacts(pid))?.startTime ?? null;
  const line = await ps(["-o", "lstart=", "-p", String(pid)]);
  return line.trim() || null;
}

/** All living descendants, children before grandchildren. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const parents = await parentTable();
  const found: number[] = [];
  let level = [pid];
  while (level.length > 0) {
    level = level.flatMap((parent) => parents.get(parent) ?? []);
    found.push(...level);
  }
  return found;
}

/** The first of these processes that leads a group; Linux only. */
export async function groupLeader(pids: readonly number[]): Promise<number | undefined> {
  for (const pid of pids) if ((await readFacts(pid))?.group === pid) return pid;
  return undefined;
}

/** Signals a process group and, one by one, members that left it. A process that is already gone is what was wanted. */
export function signalTree(leader: number, others: readonly number[], signal: NodeJS.Signals): void {
  if (process.platform === "win32") {
    execFile("taskkill", ["/pid", String(leader), "/T", "/F"], () => undefined);
    return;
  }
  signalEach([-leader, ...others], signal);
}

export function signalEach(targets: readonly number[], signal: NodeJS.Signals): void {
  for (const target of targets) {
    try {
      process.kill(target, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // process.kill throws nothing else
    }
  }
}

async function parentTable(): Promise<Map<number, number[]>> {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of await allProcesses()) children.set(parent, [...(children.get(parent) ?? []), pid]);
  return children;
}

async function allProcesses(): Promise<Pick<ProcessFacts, "pid" | "parent">[]> {
  if (process.platform === "win32") return [];
  if (process.platform !== "linux") {
    return (await ps(["-A", "-o", "pid=,ppid="])).split("\n").flatMap((line) => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number);
      return pid && parent !== undefined ? [{ pid, parent }] : [];
    });
  }
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const facts = await Promise.all(pids.map(readFacts));
  return facts.filter((fact) => fact !== null);
}

async function readFacts(pid: number): Promise<ProcessFacts | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The second field is the program name in parentheses and may hold blanks and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, parent: Number(fields[1]), group: Number(fields[2]), startTime: fields[19] ?? "" };
  } catch {
    return null; // it ended while we looked
  }
}

function ps(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile("ps", args, (error, stdout) => resolve(error ? "" : stdout));
  });
}
