// A backend behind a channel: containers and other machines.

import {
  type BackendShell,
  type Channel,
  type ChannelFailure,
  keepEnd,
  newMark,
  type ShellBackend,
  type ShellIo,
  type ShellRun,
  StartMark,
} from "./backend.ts";
import { startOnTerminal } from "./background-child.ts";
import type { BackgroundChild, EnvironmentFiles } from "./environment.ts";
import { type ShellProcess, settledWithin, startShell } from "./processes.ts";
import { scriptedFiles } from "./scripted-files.ts";
import type { ScriptRunner } from "./scripts.ts";
import { quote } from "./shell-script.ts";

/** What a script of ours may take on top of the time a command is given to end. */
const SCRIPT_MS = 800;
const BEGIN_MS = 1000;

interface RemoteFacts {
  readonly kind: string;
  readonly isolated: boolean;
  readonly home: string;
  readonly tempDir: string;
  readonly stateDir: string;
  /** Path of bash inside; empty: there is only sh. */
  readonly bash: string;
  readonly forced: readonly string[];
}

export interface RemoteOptions {
  readonly channel: Channel;
  /** Closed with the backend. */
  readonly scripts: ScriptRunner;
  readonly facts: RemoteFacts;
  readonly generation: () => number;
  /** Called with every shell that runs. */
  readonly watch?: (ended: Promise<unknown>) => void;
  readonly release: () => Promise<void>;
}

export class RemoteBackend implements ShellBackend {
  readonly kind: string;
  readonly isolated: boolean;
  readonly home: string;
  readonly tempDir: string;
  readonly stateDir: string;
  readonly hasBash: boolean;
  readonly path = "";
  readonly forced: readonly string[];
  readonly files: EnvironmentFiles;
  readonly release: () => Promise<void>;
  readonly #channel: Channel;
  readonly #scripts: ScriptRunner;
  readonly #shell: string;
  readonly #generation: () => number;
  readonly #watch: (ended: Promise<unknown>) => void;
  #started = 0;

  constructor({ channel, scripts, facts, generation, watch, release }: RemoteOptions) {
    this.kind = facts.kind;
    this.isolated = facts.isolated;
    this.home = facts.home;
    this.tempDir = facts.tempDir;
    this.stateDir = facts.stateDir;
    this.hasBash = facts.bash !== "";
    this.forced = facts.forced;
    this.release = async () => {
      await release();
      scripts.close();
    };
    this.#channel = channel;
    this.#scripts = scripts;
    this.#shell = facts.bash || "sh";
    this.#generation = generation;
    this.#watch = watch ?? (() => undefined);
    this.files = scriptedFiles(this.#scripts);
  }

  get generation(): number {
    return this.#generation();
  }

  async start(run: ShellRun, io: ShellIo): Promise<BackendShell> {
    // A place that takes its time to start a shell is not idle.
    const started = Promise.withResolvers<void>();
    this.#watch(started.promise);
    try {
      for (let attempt = 0; ; attempt++) {
        const outcome = await this.#tryStart(run, io);
        if (outcome.shell) return outcome.shell;
        io.signal.throwIfAborted();
        await this.#channel.recover(outcome.failure, attempt, io.signal);
      }
    } finally {
      started.resolve();
    }
  }

  async startOnTerminal(run: ShellRun): Promise<BackgroundChild | null> {
    const mark = newMark();
    const start = new StartMark(mark);
    const script = terminalScript({ run, shell: this.#shell, mark });
    const launch = await this.#channel.launch(script, { shell: this.#shellKind, stdin: true, terminal: true });
    const child = await startOnTerminal({
      ...launch,
      filter: (text) => (start.seen ? text : Buffer.from(start.push(Buffer.from(text))).toString("utf8")),
      exitCode: signalOf,
      end: async (pid, exited, graceMs) => {
        if (start.seen) await this.#end(Number(start.rest), "tree", graceMs, exited);
        signalProgram(pid);
        await settledWithin(exited, SCRIPT_MS);
      },
    });
    if (child) this.#watch(child.exited);
    return child;
  }

  async #tryStart(
    run: ShellRun,
    { stdin, signal, onBytes }: ShellIo,
  ): Promise<{ shell: BackendShell } | { shell?: undefined; failure: ChannelFailure }> {
    const mark = newMark();
    const start = new StartMark(mark);
    const begun = Promise.withResolvers<void>();
    let errors = "";
    const script = supervisorScript({
      run,
      shell: this.#shell,
      hasBash: this.hasBash,
      mark,
      stateDir: this.stateDir,
      id: String(this.#started++),
    });
    const shell = await startShell({
      ...(await this.#channel.launch(script, { shell: this.#shellKind, stdin: stdin !== "none" })),
      stdin,
      pipe: null,
      onBytes: (bytes) => {
        const rest = start.push(bytes);
        if (start.seen) begun.resolve();
        if (rest.length > 0) onBytes(rest);
      },
      onErrors: (text) => {
        errors = keepEnd(errors + text);
      },
    });
    await firstOf([begun.promise, shell.finished], signal);
    if (signal.aborted && !start.seen) {
      // Too late to stop it from starting; it is ended once it runs.
      if (await settledWithin(begun.promise, BEGIN_MS)) await this.#end(Number(start.rest), "group", 0, shell.finished);
      shell.signal("SIGKILL");
      shell.release();
      signal.throwIfAborted();
    }
    if (!start.seen) return { failure: { code: await shell.finished, errors } };
    return { shell: this.#shellOf(shell, Number(start.rest), () => errors.trim()) };
  }

  #shellOf(shell: ShellProcess, pid: number, errors: () => string): BackendShell {
    let code = 0;
    this.#watch(shell.finished);
    const finished = shell.finished.then((ended) => {
      code = ended;
      return signalOf(ended);
    });
    return {
      pid: shell.pid,
      stdin: shell.stdin,
      finished,
      end: async (scope, graceMs) => {
        await this.#end(pid, scope, graceMs, shell.finished);
        shell.signal("SIGKILL");
        shell.release();
      },
      // The command's own errors are in its output: what is here, the program in between had to say.
      note: () => (code !== 0 && errors() !== "" ? errors() : undefined),
    };
  }

  async #end(pid: number, scope: "group" | "tree", graceMs: number, ended: Promise<unknown>): Promise<void> {
    const signalled = this.#scripts.run(endScript(pid, scope, graceMs)).catch(() => undefined); // no way there: nothing more to be done
    await settledWithin(Promise.all([signalled, ended]), graceMs + SCRIPT_MS);
  }

  get #shellKind(): "bash" | "sh" {
    return this.hasBash ? "bash" : "sh";
  }
}

/** The program in between reports death by a signal as shells do. */
function signalOf(code: number): number {
  return code > 128 && code < 128 + 65 ? 128 - code : code;
}

function signalProgram(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // process.kill throws nothing else
  }
}

function firstOf(promises: readonly Promise<unknown>[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
    for (const promise of promises) promise.then(done, done);
  });
}

// Scripts for backends behind a channel. The channel ends when the command does, whatever it leaves running; and what it
// started can be ended from outside, because its process id comes with the start mark.

interface Supervision {
  readonly run: ShellRun;
  readonly shell: string;
  readonly hasBash: boolean;
  readonly mark: string;
  readonly stateDir: string;
  readonly id: string;
}

/**
 * Runs the command in a process group of its own, with a named pipe for its output: some servers give commands a socket, which cannot
 * be opened by path (`> /dev/stderr`). A grandchild that keeps the pipe gets 0.3 seconds after the command's end.
 */
function supervisorScript({ run, shell, hasBash, mark, stateDir, id }: Supervision): string {
  const pipe = quote(`${stateDir}/out-${id}`);
  const command = shellCommand(run, shell, mark);
  // Job control gives the group; other shells than bash want a terminal for it.
  const [before, prefix, afterwards] = hasBash ? ["set -m", "", "set +m"] : ["", "$g ", ""];
  return `mkfifo -m 600 ${pipe} || exit 125
exec 2>/dev/null 3<&0
g=$(command -v setsid)
cat <${pipe} &
c=$!
${before}
${prefix}${command} <&3 >${pipe} 2>&1 3<&- &
p=$!
${afterwards}
wait $p
s=$?
rm -f ${pipe}
(sleep 0.3; kill $c) </dev/null >/dev/null &
k=$!
wait $c
kill $k
exit $s`;
}

/** The command itself, on a terminal that ends with it. */
function terminalScript({ run, shell, mark }: Pick<Supervision, "run" | "shell" | "mark">): string {
  return `exec ${shellCommand(run, shell, mark)}`;
}

function shellCommand({ login, script }: ShellRun, shell: string, mark: string): string {
  const marked = `printf '%s %s\\n' ${mark} $$\n${script}`;
  return [shell, ...(login ? ["-l"] : []), "-c", marked].map(quote).join(" ");
}

/** SIGTERM, some time, SIGKILL: to the group of a process, and to all its descendants if the whole tree is meant. */
function endScript(pid: number, scope: "group" | "tree", graceMs: number): string {
  return `p=${pid} family=
${scope === "tree" ? FAMILY : ""}
tell() { kill -s $1 -- -$p $p; for q in $family; do kill -s $1 $q; done; }
lives() { kill -s 0 -- -$p && return; for q in $family; do kill -s 0 $q && return; done; return 1; }
exec 2>/dev/null
tell TERM
i=0
while [ $i -lt ${Math.ceil(graceMs / 100)} ] && lives; do sleep 0.1; i=$((i+1)); done
tell KILL
true`;
}

// Linux without ps, or ps of whatever system it is.
const FAMILY = `table=$(
  if [ -r /proc/self/stat ]; then
    for s in /proc/[0-9]*/stat; do
      read -r line <$s || continue
      n=\${s#/proc/}
      set -- \${line##*) }
      echo "\${n%/stat} $2"
    done
  else
    ps -A -o pid= -o ppid=
  fi 2>/dev/null
)
level=$p
while [ -n "$level" ]; do
  next=
  set -- $table
  while [ $# -gt 1 ]; do
    case " $level " in *" $2 "*) next="$next $1" ;; esac
    shift 2
  done
  family="$family$next"
  level=\${next# }
done`;
