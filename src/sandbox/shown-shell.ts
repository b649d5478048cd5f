// Commands of this machine in a terminal that the user's editor shows. The editor only starts and shows them: what they may see of the
// environment, their state and their directory are the same as in a shell of ours.
import { readFile, rm, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import type { BackendShell, ShellIo, ShellRun } from "./backend.ts";
import { killTree } from "./background-child.ts";
import type { ShowCommand, ShownTerminal } from "./environment.ts";
import { settledWithin } from "./processes.ts";
import { quote } from "./shell-script.ts";

interface ShownWorld {
  readonly shell: string;
  readonly env: Readonly<Record<string, string>>;
  /** Belongs to this environment alone. */
  readonly stateDir: string;
  readonly show: ShowCommand;
}

let runs = 0;

/** Null: it is not shown there after all, and nothing has run. */
export async function startShown(run: ShellRun, io: ShellIo, world: ShownWorld): Promise<BackendShell | null> {
  const { shown } = run;
  if (!shown) return null;
  const { shell, env, stateDir, show } = world;
  const file = join(stateDir, `shown-${++runs}`);
  const pidFile = `${file}.pid`;
  const files = [file, `${file}.sh`, pidFile, shown.endFile];
  await writeFile(`${file}.sh`, shown.script, { mode: 0o600 });
  await writeFile(file, wrapper({ script: `${file}.sh`, pidFile, login: run.login, shell, env }), { mode: 0o600 });
  // Nothing of the editor's own environment: it may hold keys that commands of ours do not see.
  const place = { command: "/usr/bin/env", args: ["-i", shell, "--norc", "--noprofile", file], cwd: shown.cwd };
  const terminal = await show(shown.callId, place).catch(() => null); // then it runs in a shell of ours
  if (terminal === null) {
    await Promise.all(files.map((one) => rm(one, { force: true })));
    return null;
  }
  const finished = ended(terminal, shown.endFile, io).finally(() =>
    Promise.all(files.map((one) => rm(one, { force: true }))),
  );
  return {
    pid: 0,
    stdin: null,
    finished,
    async end(_scope, graceMs) {
      // An editor ends what it started, not what that started.
      const pid = Number(await readFile(pidFile, "utf8").catch(() => ""));
      if (pid > 1) await killTree(pid, finished, graceMs);
      await terminal.kill().catch(() => undefined); // it may have ended by itself meanwhile
      await settledWithin(finished, graceMs);
    },
  };
}

/** The editor's terminal is one: programs would draw on it, ask and page. They see a pipe and no input, as everywhere. */
function wrapper({
  script,
  pidFile,
  login,
  shell,
  env,
}: {
  readonly script: string;
  readonly pidFile: string;
  readonly login: boolean;
} & Pick<ShownWorld, "shell" | "env">): string {
  const exports = Object.entries(env)
    .filter(([name]) => /^[A-Za-z_]\w*$/.test(name))
    .map(([name, value]) => `export ${name}=${quote(value)}`);
  const words = [quote(shell), ...(login ? ["-l"] : []), quote(script)].join(" ");
  return [
    `printf %s $$ >${quote(pidFile)}`,
    ...exports,
    `${words} </dev/null 2>&1 | command cat`,
    "exit $PIPESTATUS",
    "",
  ].join("\n");
}

/** What was printed comes whole, and behind it what the shell says about its end. */
async function ended(terminal: ShownTerminal, endFile: string, io: ShellIo): Promise<number> {
  try {
    const { exitCode, signal } = await terminal.finished;
    const output = await terminal.output();
    io.onBytes(Buffer.from(output.replaceAll("\r\n", "\n")));
    io.onBytes(await readFile(endFile).catch(() => Buffer.alloc(0))); // it was killed before it came to its end
    const number = signal === null ? undefined : constants.signals[signal as NodeJS.Signals]; // a name of the system, or none
    return exitCode ?? -(number ?? constants.signals.SIGKILL);
  } catch {
    return -constants.signals.SIGHUP; // the editor is gone, and the terminal with it
  } finally {
    await terminal.release().catch(() => undefined); // gone with the editor
  }
}
