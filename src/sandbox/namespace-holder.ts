// The namespaces that all commands of one sandbox share. One sleeping process holds them, so that a later command can see and end what
// an earlier one left running; when it goes, or we go, everything in them goes.
import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { Server } from "node:net";
import type { Readable } from "node:stream";
import { systemClock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { type Launch, newMark, type ShellIo, StartMark } from "./backend.ts";
import type { OutputPipe } from "./output.ts";
import {
  descendantsOf,
  type ShellProcess,
  settledWithin,
  signalEach,
  signalNumber,
  standStill,
  startShell,
} from "./processes.ts";

const READY_MS = 5000;

export interface NamespaceHolder {
  /** Files that stand for the namespaces: of the user to set up as, of processes, of the network, of the user to run as if that is another one. */
  readonly paths: {
    readonly setup: string;
    readonly pid: string;
    readonly net: string;
    readonly inner?: string | undefined;
  };
  readonly alive: boolean;
  /** Whether anything else runs in them that nobody waits for. */
  isBusy(): Promise<boolean>;
  /** Everything in them goes. `close` is still to be called. */
  endAll(): void;
  close(): Promise<void>;
}

interface HolderStart {
  readonly bwrap: string;
  /** The same mounts as commands get: they can look through the holder's /proc entry. */
  readonly view: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A network of its own, with nothing on it but this machine as seen from inside. */
  readonly ownNetwork: boolean;
}

export async function startHolder({ bwrap, view, env, ownNetwork }: HolderStart): Promise<NamespaceHolder> {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const namespaces = "--unshare-user --uid 0 --gid 0 --unshare-pid --unshare-ipc --unshare-uts --die-with-parent";
  // Pseudo-terminals can only be set up as root of a user namespace; users then run in a second one inside it, as themselves. Mapping
  // the first one's root takes one capability, which the holder has and no command gets.
  const twoUsers = uid !== 0;
  const rights = ["--cap-drop", "ALL", ...(twoUsers ? ["--cap-add", "CAP_SETFCAP"] : [])];
  const sleeper = twoUsers ? ["unshare", "--user", `--map-user=${uid}`, `--map-group=${gid}`, "--"] : [];
  const network = ownNetwork ? ["--unshare-net"] : [];
  const args = [...namespaces.split(" "), ...network, ...rights, "--info-fd", "3", ...view, "--", ...sleeper];
  const child = spawn(bwrap, [...args, "sh", "-c", "echo ready; exec sleep infinity"], {
    cwd: "/",
    env,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    detached: true, // an interrupt at our terminal is not meant for it
  });
  const exited = new Promise<void>((resolve) => {
    child.on("exit", () => resolve());
    child.on("error", () => resolve());
  });
  try {
    const init = await readiness(child);
    const [inner] = await descendantsOf(init);
    if (inner === undefined) throw new StartFailed(-9, ""); // it was there a moment ago
    const own = ["user", "pid", "net"].map((name) => `/proc/${init}/ns/${name}`);
    const files = await openAll([...own, ...(twoUsers ? [`/proc/${inner}/ns/user`] : [])]);
    return holderOf(child, init, files, exited);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

function holderOf(
  child: ChildProcess,
  init: number,
  files: readonly FileHandle[],
  exited: Promise<void>,
): NamespaceHolder {
  // Held open here: a process id may come to mean another process, an open file may not.
  const [setup = "", pid = "", net = "", inner] = files.map((file) => `/proc/${process.pid}/fd/${file.fd}`);
  let alive = true;
  void exited.then(() => {
    alive = false;
  });
  child.unref();
  for (const stream of child.stdio) (stream as Readable | null)?.destroy(); // all three are our ends of pipes
  return {
    paths: { setup, pid, net, inner },
    get alive() {
      return alive;
    },
    // One process sleeps here; what lost its parent comes to the first one.
    async isBusy() {
      const children = await readFile(`/proc/${init}/task/${init}/children`, "utf8").catch(() => null);
      if (children !== null) return children.trim().split(" ").length > 1;
      return (await descendantsOf(init)).length > 1; // a kernel without that file
    },
    endAll: () => void child.kill("SIGKILL"),
    async close() {
      child.kill("SIGKILL");
      await settledWithin(exited, READY_MS);
      await Promise.all(files.map((file) => file.close()));
    },
  };
}

/** The process id, on this machine, of the first process inside; when the second user namespace is ready too. */
function readiness(child: ChildProcess): Promise<number> {
  let [errors, info, out] = ["", "", ""];
  const infoPipe = child.stdio[3] as Readable; // "pipe" above
  return new Promise<number>((resolve, reject) => {
    const timer = setTimeout(
      () => fail(new StartFailed(1, `bwrap did not start within ${READY_MS / 1000} seconds`)),
      READY_MS,
    );
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    const look = () => {
      const pid = Number(/"child-pid": *(\d+)\D/.exec(info)?.[1]);
      if (!pid || !out.includes("ready")) return;
      clearTimeout(timer);
      resolve(pid);
    };
    child.on("error", fail);
    child.on("close", (code, signal) => fail(new StartFailed(signal ? -signalNumber(signal) : (code ?? 1), errors)));
    child.stderr?.on("data", (data) => {
      errors += data;
    });
    infoPipe.on("data", (data) => {
      info += data;
      look();
    });
    child.stdout?.on("data", (data) => {
      out += data;
      look();
    });
  });
}

async function openAll(paths: readonly string[]): Promise<FileHandle[]> {
  const files: FileHandle[] = [];
  try {
    for (const path of paths) files.push(await open(path, "r"));
    return files;
  } catch (error) {
    await Promise.all(files.map((file) => file.close()));
    throw error;
  }
}

// Only a process in a network can listen there; it may hand the socket on. So one enters, opens the port, gives it to us and ends.
const LISTEN = `const places = JSON.parse(process.argv[1]);
const next = () => {
  const place = places.shift();
  if (!place) return process.exit(0);
  const server = require("node:net").createServer();
  server.listen(place, () => process.send("open", server, next));
};
next();`;
const LISTEN_MS = 10_000;

/** Ports as seen from inside, served from here; in the order of `places`. */
export function listenInside(
  { paths }: NamespaceHolder,
  { nsenter, places }: { readonly nsenter: string; readonly places: readonly { host: string; port: number }[] },
): Promise<readonly Server[]> {
  const enter = [nsenter, "--user=/proc/self/fd/7", "--net=/proc/self/fd/6", "--preserve-credentials"];
  const args = [
    "-c",
    `exec "$@" 6<${paths.net} 7<${paths.setup}`,
    "sh",
    ...enter,
    process.execPath,
    "-e",
    LISTEN,
    JSON.stringify(places),
  ];
  const child = spawn("/bin/sh", args, {
    cwd: "/",
    env: {},
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    timeout: LISTEN_MS,
  });
  let errors = "";
  child.stderr?.on("data", (data) => {
    errors += data;
  });
  return new Promise((resolve, reject) => {
    const open: Server[] = [];
    child.on("message", (_text, server) => {
      open.push(server as Server); // what LISTEN sends
      if (open.length === places.length) resolve(open);
    });
    child.on("error", reject);
    child.on("exit", (code) => {
      if (open.length === places.length) return;
      for (const server of open) server.close();
      const reason = /^Error: (.*)$/m.exec(errors)?.[1] ?? (errors.trim() || `code ${code}`);
      reject(new Error(`no port could be opened in the sandbox: ${reason}`));
    });
  });
}

// Starting something in a sandbox, and again where it did not come to run.

export const TRIES = 5;
const PAUSE_MS = 20;
const KILL_ROUNDS = 20;
const KILL_MS = 250;

// bwrap reads the table of mounts and then walks it; a container engine that takes one away meanwhile makes it give up. So does a daemon
// that removes its socket just before it is covered.
const MOUNTS_MOVED =
  /Can't bind mount .{0,400}Unable to (?:apply mount flags|remount|find|mount source on destination: No such file)|Can't create file at .{0,400}: Read-only file system/;

/** bwrap ended before anything ran inside. `code` as bwrap reports it, or the negative number of the signal that ended bwrap itself. */
export class StartFailed extends Error {
  readonly passing: boolean;

  constructor(code: number, said: string) {
    const killed = code === 137 || code === -9;
    const reason = killed ? "bwrap was killed (SIGKILL) while it started" : `bwrap ended with code ${code}`;
    super(said.trim() || reason);
    this.name = "StartFailed";
    this.passing = killed || MOUNTS_MOVED.test(said);
  }
}

interface AgainOptions {
  /** This sandbox has run something before: whatever stops it now may pass. */
  readonly proven: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Waits, and resolves to whether the same start may go well now. Nothing has run yet. */
export async function mayStartAgain(error: unknown, attempt: number, options: AgainOptions): Promise<boolean> {
  if (!(error instanceof StartFailed) || attempt + 1 >= TRIES) return false;
  if (!error.passing && !options.proven) return false;
  await systemClock.sleep(PAUSE_MS * 2 ** attempt, options.signal);
  return true;
}

export async function startedAgain<Value>(start: () => Promise<Value>, options: AgainOptions): Promise<Value> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (!(await mayStartAgain(error, attempt, options))) throw error;
    }
  }
}

interface InsideStart {
  readonly io: ShellIo;
  /** What to start here; the mark is the first thing that is printed inside. */
  launch(mark: string): Promise<Launch>;
  pipe(): Promise<OutputPipe | null>;
}

/** Resolves when the shell runs inside; rejects with `StartFailed` when it cannot. */
export async function startInside({ io, launch, pipe }: InsideStart): Promise<ShellProcess> {
  const mark = newMark();
  const start = new StartMark(mark);
  const begun = Promise.withResolvers<void>();
  let said = "";
  const decoder = new TextDecoder();
  const shell = await startShell({
    ...(await launch(mark)),
    stdin: io.stdin,
    pipe: await pipe(),
    onBytes(bytes) {
      if (!start.seen) said += decoder.decode(bytes);
      const rest = start.push(bytes);
      if (start.seen) begun.resolve();
      if (rest.length > 0) io.onBytes(rest);
    },
  });
  const stop = () => begun.resolve();
  io.signal.addEventListener("abort", stop);
  if (io.signal.aborted) stop();
  await Promise.race([begun.promise, shell.finished]);
  io.signal.removeEventListener("abort", stop);
  if (start.seen) return shell;
  if (io.signal.aborted) {
    await killInside(shell.pid, shell.finished);
    shell.release();
    io.signal.throwIfAborted();
  }
  const code = await shell.finished;
  // Without the end of the output nobody knows whether the mark was in it.
  if (!shell.drained) {
    throw new UserError(
      `bwrap ended with code ${code} and its output could not be read. See whether the command has run before you repeat it.`,
    );
  }
  throw new StartFailed(code, said);
}

/**
 * Kills what bwrap started, at any moment of the start and however slow the machine is: what stands still cannot fork. bwrap itself ends
 * when its child does, and until then adopts what the child leaves behind; it is killed only while it has no child.
 */
export async function killInside(pid: number, ended: Promise<unknown>): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const family = await standStill(pid);
    signalEach(family.length === 0 ? [pid] : family.flatMap((member) => [-member, member]), "SIGKILL");
    signalEach([pid], "SIGCONT");
    if (await settledWithin(ended, KILL_MS)) return;
  }
}
