// Runs the program as its user does: through bin/hermes.mjs, in a process of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TempHome } from "./temp-home.ts";

export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Where a run of all tests has built the program; a file that is run by itself starts it from source. */
export const builtProgram = process.env.HERMES_TEST_PROGRAM;
export const launcher = join(builtProgram ?? repository, "bin", "hermes.mjs");
export const sourceLauncher = join(repository, "bin", "hermes.mjs");

/** Where all tests together keep compiled code: a home of each test would be a cold one. */
const compiled = process.env.NODE_COMPILE_CACHE;

/** A home in which the program was started once, made once for a run of all tests. */
const startedHome = process.env.HERMES_TEST_STARTED;
/** What a first start leaves that a second one does not make again: the skills, and what this machine's Python can do. */
const LEFT = ["skills", join("cache", "python-probe.json")];

/** A home with settings has been started before; one without is left to its first start. */
export function seedStarted({ dir }: TempHome): void {
  if (!startedHome || !existsSync(join(dir, "config.yaml")) || existsSync(join(dir, "skills"))) return;
  mkdirSync(join(dir, "cache"), { recursive: true, mode: 0o700 });
  for (const name of LEFT.filter((one) => existsSync(join(startedHome, one))))
    cpSync(join(startedHome, name), join(dir, name), { recursive: true });
}

export interface RunOptions {
  readonly home: TempHome;
  /** Written to stdin, which is then closed; without it stdin is empty. */
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  /** Another program than that of this test run, e.g. `sourceLauncher`. */
  readonly launcher?: string;
}

export interface RunResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function environmentFor(options: RunOptions): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    HOME: options.home.osHome,
    LANG: "C.UTF-8",
    TZ: "UTC",
    HERMES_HOME: options.home.dir,
    HERMES_FROM_SOURCE: (options.launcher ?? launcher) === sourceLauncher ? "1" : "0",
    ...(compiled && { NODE_COMPILE_CACHE: compiled }),
    ...options.env,
  };
}

/** The running program, for tests that interrupt or kill it. */
export function startHermes(
  args: readonly string[],
  options: RunOptions,
): ChildProcess & { readonly result: Promise<RunResult> } {
  seedStarted(options.home);
  const child = spawn(process.execPath, [options.launcher ?? launcher, ...args], {
    cwd: options.cwd ?? options.home.project,
    env: environmentFor(options),
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  child.stdin.on("error", () => {
    // the program may end before it has read its input; that is its right
  });
  child.stdin.end(options.stdin ?? "");
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 120_000);
  const result = new Promise<RunResult>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
  return Object.assign(child, { result });
}

export function runHermes(args: readonly string[], options: RunOptions): Promise<RunResult> {
  return startHermes(args, options).result;
}
