// Commands on this machine, as this user. What keeps them apart from our secrets is the environment they are given.

import { randomBytes } from "node:crypto";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { createNow, kindNow, renameNow } from "../home/looks.ts";
import type { BackendShell, ShellBackend, ShellRun } from "./backend.ts";
import { killTree, startOnTerminal } from "./background-child.ts";
import { childEnvironment, forcedNames, makeInside, privateTempDir, removeStale, removeTree } from "./child-env.ts";
import type { Environment, ShowCommand } from "./environment.ts";
import { OutputPipes } from "./output.ts";
import { type ShellProcess, settledWithin, startShell } from "./processes.ts";
import { ShellEnvironment, type ShellOptions } from "./shell-environment.ts";

const GIVE_UP_MS = 500;

export interface LocalOptions extends ShellOptions {
  /** What commands start from; secrets are taken out here. */
  readonly environment: Readonly<Record<string, string>>;
  /** Becomes HOME of every command if this directory exists. */
  readonly privateHome?: string | undefined;
  /** Why it is no sandbox, where one was wanted. */
  readonly noSandbox?: string | undefined;
  /** Folders of the home that commands may read, where a sandbox hides the rest. */
  readonly readable?: readonly string[] | undefined;
  /** The user's editor shows commands in terminals of its own. */
  readonly show?: ShowCommand | undefined;
}

export async function openLocalEnvironment(options: LocalOptions): Promise<Environment> {
  const { environment, privateHome, handedOn, show } = options;
  const hasOwnHome = privateHome !== undefined && kindNow(privateHome) === "directory";
  const env = childEnvironment(environment, hasOwnHome ? { HOME: privateHome } : {});
  const tempDir = await privateTempDir(environment.TMPDIR ?? "/tmp");
  // Made for the first command: most agents of a server run none.
  const stateDir = join(tempDir, `shell-${randomBytes(6).toString("hex")}`);
  let making: Promise<void> | null = null;
  const prepare = () => {
    making ??= makeInside(tempDir, stateDir).catch((error) => {
      making = null; // the next command tries again
      throw error;
    });
    return making;
  };
  const shell = await findShell(env.PATH ?? "", environment);
  const pipes = new OutputPipes(stateDir, env);
  const current = () => ({ ...handedOn?.(), ...env });
  const backend: ShellBackend = {
    kind: "local",
    isolated: false,
    noSandbox: options.noSandbox,
    home: env.HOME ?? "/",
    tempDir,
    stateDir,
    generation: 0,
    hasBash: shell.isBash,
    path: env.PATH ?? "",
    forced: forcedNames(environment),
    stateFiles: { create: createNow, replace: renameNow },
    showsCommands: show !== undefined && shell.isBash && process.platform !== "win32",
    async start(run, io) {
      await prepare();
      const { stdin, onBytes } = io;
      if (show && run.shown) {
        const { startShown } = await import("./shown-shell.ts");
        const shown = await startShown(run, io, { shell: shell.path, env: current(), stateDir, show });
        if (shown) return shown;
      }
      const launch = { program: shell.path, args: shellArguments(run), env: current() };
      return hostShell(await startShell({ ...launch, stdin, pipe: await pipes.take(), onBytes }));
    },
    async startOnTerminal(run) {
      await prepare();
      return startOnTerminal({ program: shell.path, args: shellArguments(run), env: current() });
    },
    async release() {
      if (!making) return;
      await making.catch(() => undefined); // its command was told
      await removeTree(stateDir);
      await removeStale(tempDir); // at the end, so that no command waits for it
    },
  };
  return new ShellEnvironment(backend, options);
}

export function shellArguments({ login, script }: ShellRun): string[] {
  return [...(login ? ["-l"] : []), "-c", script];
}

function hostShell(shell: ShellProcess): BackendShell {
  return {
    pid: shell.pid,
    stdin: shell.stdin,
    finished: shell.finished,
    async end(scope, graceMs) {
      if (scope === "tree") {
        await killTree(shell.pid, shell.finished, graceMs);
        return;
      }
      shell.signal("SIGTERM");
      await settledWithin(shell.finished, graceMs);
      // Also when the shell itself is gone: members of its group may have ignored the first signal.
      shell.signal("SIGKILL");
      await settledWithin(shell.finished, GIVE_UP_MS);
      shell.release();
    },
  };
}

export interface Shell {
  readonly path: string;
  readonly isBash: boolean;
}

/** What was found for a PATH: a server opens many environments, and looks again only whether the shell is still there. */
const found = new Map<string, Shell>();

export async function findShell(path: string, environment: Readonly<Record<string, string>>): Promise<Shell> {
  const key = [path, environment.SHELL, environment.HERMES_GIT_BASH_PATH].join("\n");
  const known = found.get(key);
  if (known && (await isUsable(known.path))) return known;
  const shell = await lookForShell(path, environment);
  found.set(key, shell);
  return shell;
}

const isUsable = (path: string) =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

async function lookForShell(path: string, environment: Readonly<Record<string, string>>): Promise<Shell> {
  const windows = process.platform === "win32";
  const directories = [...path.split(windows ? ";" : ":").filter(Boolean), "/usr/bin", "/bin"];
  const candidates = [
    ...(windows ? [environment.HERMES_GIT_BASH_PATH ?? "", "C:\\Program Files\\Git\\bin\\bash.exe"] : []),
    ...directories.map((directory) => join(directory, windows ? "bash.exe" : "bash")),
    ...[environment.SHELL ?? "", "/bin/sh"],
  ].filter(Boolean);
  for (const candidate of candidates)
    if (await isUsable(candidate)) return { path: candidate, isBash: /bash(\.exe)?$/.test(candidate) };
  throw new Error("no shell found: install bash, or put it on PATH");
}
