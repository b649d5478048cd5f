// Hermes started by hermes: a process on its own feet, in the same home.
import { spawn } from "node:child_process";
import { type FileHandle, mkdir, open, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { OpenHome } from "./open.ts";
import { installRoot } from "./paths.ts";

const LARGEST_LOG = 1_000_000;

/** V8 lets its heap grow to several times what is in use otherwise: 500 chats at once took 353 MB instead of 194. A process that mostly waits
 * for others can collect more often. What the heap is made with has to be said at the start, the rest soon after it. */
export const RUN_LEAN = ["--optimize-for-size", "--max-semi-space-size=4"];

/** This program with its profile: what is started is what runs now, whatever PATH says. */
export function commandLine({ paths }: Pick<OpenHome, "paths">, args: readonly string[]): readonly string[] {
  const profile = paths.profile === "custom" ? [] : ["-p", paths.profile];
  const flags = args[0] === "gateway" && args[1] === "run" ? RUN_LEAN : [];
  return [process.execPath, ...flags, join(installRoot(), "bin", "hermes.mjs"), ...profile, ...args];
}

interface StartOptions {
  readonly cwd: string;
  /** What it prints. */
  readonly log: string;
  readonly variables?: Readonly<Record<string, string>>;
}

/** Resolves to its process id. */
export async function startProgram(
  home: OpenHome,
  args: readonly string[],
  { cwd, log, variables }: StartOptions,
): Promise<number> {
  const file = await openLog(log);
  try {
    const [program = "", ...words] = commandLine(home, args);
    // It is this program: keys that children are not given are for it as well.
    const keys = home.withheld().filter((name) => home.override(name) !== undefined);
    const child = spawn(program, words, {
      ...{ cwd, detached: true, env: { ...home.environment(keys), ...variables } },
      stdio: ["ignore", file.fd, file.fd],
    });
    const pid = await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("spawn", () => resolve(child.pid ?? 0));
    });
    child.unref();
    return pid;
  } finally {
    await file.close();
  }
}

async function openLog(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LARGEST_LOG) await rename(path, `${path}.1`);
  return open(path, "a", 0o600);
}
