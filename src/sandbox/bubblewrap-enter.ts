// Entering a sandbox: how a command gets in, and how it is ended there.
import { UserError } from "../kit/errors.ts";
import {
  type BackendShell,
  type Channel,
  type ChannelFailure,
  type Launch,
  type LaunchOptions,
  newMark,
  StartMark,
} from "./backend.ts";
import { startOnTerminal } from "./background-child.ts";
import { coveredSockets, type View } from "./bubblewrap-view.ts";
import type { BackgroundChild } from "./environment.ts";
import type { Shell } from "./local.ts";
import {
  killInside,
  mayStartAgain,
  type NamespaceHolder,
  StartFailed,
  startedAgain,
  startHolder,
  TRIES,
} from "./namespace-holder.ts";
import { descendantsOf, groupLeader, settledWithin, signalEach, startShell } from "./processes.ts";
import type { ReachableHosts } from "./reachable-hosts.ts";
import type { ShellOptions } from "./shell-environment.ts";

const GIVE_UP_MS = 500;
const LOOKS = 50;
const LOOK_MS = 10;

// Those of the namespaces, and what whoever started us left open: a folder that is open is a way out.
const CLOSE_ALL = `for f in /proc/self/fd/*; do f=\${f##*/}; [ "$f" -gt 2 ] && eval "exec $f<&-"; done; exec "$@"`;
const CLOSE_OURS = 'exec "$@" 6<&- 7<&- 8<&- 9<&-';

export interface SandboxParts {
  readonly bwrap: string;
  /** Leads into the network of the sandbox; not used where that is the machine's. */
  readonly nsenter: string;
  readonly view: Pick<View, "args" | "hides" | "allowsWrite">;
  readonly emptyFile: string;
  readonly env: Readonly<Record<string, string>>;
  readonly handedOn?: ShellOptions["handedOn"];
  readonly ownNetwork: boolean;
  readonly reach: ReachableHosts | null;
  readonly shell: Shell;
  /** It is known to work here, though nothing has run in it yet. What to do when it does not: called once. */
  readonly remembered?: { forget(): Promise<void> } | undefined;
}

export class Sandbox implements Channel {
  readonly #parts: SandboxParts;
  #holder: Promise<NamespaceHolder> | null = null;
  #closed = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  /** Also the proof that it works: one command runs inside. */
  open(): Promise<void> {
    return startedAgain(() => this.#tryOne(), { proven: false });
  }

  async #tryOne(): Promise<void> {
    const launch = await this.wrap(["true"], { ownSession: true });
    let said = "";
    const decoder = new TextDecoder();
    const shell = await startShell({
      ...launch,
      stdin: "none",
      pipe: null,
      onBytes: (bytes) => {
        said += decoder.decode(bytes);
      },
    });
    const code = await shell.finished;
    if (code !== 0) throw new StartFailed(code, said);
  }

  launch(script: string, { shell }: LaunchOptions): Promise<Launch> {
    return this.wrap([shell, "-c", script], { ownSession: true }).catch((error: unknown) => {
      throw cannotStart(error);
    });
  }

  async recover({ code, errors }: ChannelFailure, attempt: number, signal: AbortSignal): Promise<void> {
    const error = new StartFailed(code, errors);
    if (!(await mayStartAgain(error, attempt, { proven: true, signal }))) throw cannotStart(error);
  }

  end(pid: number, ended: Promise<unknown>): Promise<void> {
    return killInside(pid, ended);
  }

  /** `mark`, if wanted, is printed as a line of its own before the command begins. */
  async wrap(
    command: readonly string[],
    { ownSession, mark }: { ownSession: boolean; mark?: string },
  ): Promise<Launch> {
    const { bwrap, nsenter, view, emptyFile, env, handedOn, ownNetwork, shell } = this.#parts;
    const { setup, inner, pid, net } = (await this.#liveHolder()).paths;
    // bwrap can make a network but not join one.
    const network = ownNetwork
      ? [nsenter, "--user=/proc/self/fd/7", "--net=/proc/self/fd/6", "--preserve-credentials"]
      : [];
    const args = [
      ...(ownNetwork ? [] : ["--userns", "7"]),
      ..."--pidns 8 --unshare-ipc --unshare-uts --unshare-cgroup-try".split(" "),
      ...(inner ? ["--userns2", "9"] : []),
      // Not --die-with-parent: on its way into a process namespace bwrap forks and its parent leaves; if that happens late, on a busy
      // machine, the parent's death kills the command. What runs inside ends with the holder.
      ..."--cap-drop ALL".split(" "),
      ...(ownSession ? ["--new-session"] : []),
      ...view.args,
      ...(await coveredSockets(view, emptyFile)),
      "--",
      ...[shell.path, "-c", `${mark ? `echo ${mark}; ` : ""}${shell.isBash ? CLOSE_ALL : CLOSE_OURS}`, "sh"],
      ...command,
    ];
    const wrapper = `exec "$@" 6<${net} 7<${setup} 8<${pid}${inner ? ` 9<${inner}` : ""}`;
    const everything = { ...handedOn?.(), ...env };
    return { program: "/bin/sh", args: ["-c", wrapper, "sh", ...network, bwrap, ...args], env: everything };
  }

  /** Whether a command left something running. */
  async isBusy(): Promise<boolean> {
    const holder = await this.#holder?.catch(() => null);
    return holder?.alive === true && (await holder.isBusy());
  }

  /** What runs inside ends; the next command gets a new sandbox. */
  async endAll(): Promise<void> {
    const holder = await this.#holder?.catch(() => null);
    holder?.endAll();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const holder = await this.#holder?.catch(() => null);
    this.#holder = null;
    await holder?.close();
  }

  /** A command may end all processes of the sandbox, the holder's included; the next one gets a new sandbox. */
  async #liveHolder(): Promise<NamespaceHolder> {
    const current = this.#holder;
    const holder = (await current?.catch(() => null)) ?? null;
    if (this.#closed) throw new Error("the sandbox is closed");
    if (holder?.alive) return holder;
    // Of several that find it gone, one starts the next.
    if (this.#holder === current || this.#holder === null) this.#holder = this.#startHolder(holder);
    return this.#holder;
  }

  async #startHolder(gone: NamespaceHolder | null): Promise<NamespaceHolder> {
    await gone?.close();
    const { bwrap, view, env, ownNetwork, reach, remembered } = this.#parts;
    const start = () => startHolder({ bwrap, view: view.args, env, ownNetwork });
    const proven = gone !== null || remembered !== undefined;
    const holder = await startedAgain(start, { proven }).catch(async (error: unknown) => {
      await remembered?.forget();
      throw error;
    });
    await reach?.attach(holder).catch(async (error: unknown) => {
      await holder.close();
      throw error;
    });
    return holder;
  }
}

/** Resolves when the shell runs on its terminal; null when this machine has none to offer. */
export async function terminalInside(sandbox: Sandbox, command: readonly string[]): Promise<BackgroundChild | null> {
  const mark = newMark();
  const start = new StartMark(mark);
  const begun = Promise.withResolvers<void>();
  let said = "";
  const child = await startOnTerminal({
    // The terminal is one of ours, made for it: the session may keep it.
    ...(await sandbox.wrap(command, { ownSession: false, mark })),
    filter(text) {
      if (start.seen) return text;
      said += text;
      const rest = Buffer.from(start.push(Buffer.from(text))).toString("utf8");
      if (start.seen) begun.resolve();
      return rest;
    },
    exitCode: signalOf,
    end: (pid, exited, graceMs) => endInside(pid, "tree", graceMs, exited),
  });
  if (!child) return null;
  await Promise.race([begun.promise, child.exited]);
  if (!start.seen) throw new StartFailed(await child.exited, said);
  return child;
}

/** `tidy` resolves to what there is to say, once the shell has ended. */
export function sandboxedShell(
  shell: Awaited<ReturnType<typeof startShell>>,
  tidy: () => Promise<readonly string[]>,
): BackendShell {
  let notes: readonly string[] = [];
  return {
    pid: shell.pid,
    stdin: shell.stdin,
    finished: shell.finished.then(async (code) => {
      notes = await tidy();
      return signalOf(code);
    }),
    note: () => notes.join("; ") || undefined,
    async end(scope, graceMs) {
      await endInside(shell.pid, scope, graceMs, shell.finished);
      await settledWithin(shell.finished, GIVE_UP_MS);
      shell.release();
    },
  };
}

/**
 * Ends what runs inside and not bwrap itself, which ends with its child. The shell leads a group of its own, unless it is on a terminal;
 * the process that led it into the sandbox may still be there too.
 */
async function endInside(
  pid: number,
  scope: "group" | "tree",
  graceMs: number,
  ended: Promise<unknown>,
): Promise<void> {
  let family = await descendantsOf(pid);
  // While a process changes its parent, a look at the table may miss it.
  for (let round = 0; family.length === 0 && round < LOOKS; round++) {
    if (await settledWithin(ended, LOOK_MS)) return;
    family = await descendantsOf(pid);
  }
  const leader = await groupLeader(family);
  const group = leader === undefined ? [] : [-leader];
  const members = leader === undefined || scope === "tree" ? family : [];
  signalEach([...group, ...members], "SIGTERM");
  await settledWithin(ended, graceMs);
  signalEach([...group, ...members], "SIGKILL");
  if (!(await settledWithin(ended, GIVE_UP_MS))) await killInside(pid, ended);
}

/** bwrap reports death by a signal as shells do. */
function signalOf(code: number): number {
  return code > 128 && code < 128 + 65 ? 128 - code : code;
}

/** Of a sandbox that has run things before. */
export function cannotStart(error: unknown): unknown {
  if (!(error instanceof StartFailed)) return error;
  return new UserError(
    `Could not enter the sandbox in ${TRIES} tries; nothing was run: ${error.message}. ` +
      "The machine may be short of memory or processes: free some and try again.",
  );
}
