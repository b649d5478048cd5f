// The namespaces that all commands of one sandbox share. One sleeping process holds them, so that a later command can see and end what
// an earlier one left running; when it goes, or we go, everything in them goes.
import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open } from "node:fs/promises";
import type { Readable } from "node:stream";
import { StartFailed } from "./bubblewrap-start.ts";
import { descendantsOf } from "./process-tree.ts";
import { settledWithin, signalNumber } from "./processes.ts";

const READY_MS = 5000;

export interface Keeper {
  /** Files that stand for the namespaces: of the user to set up as, of processes, of the user to run as if that is another one. */
  readonly paths: { readonly setup: string; readonly pid: string; readonly inner?: string | undefined };
  readonly alive: boolean;
  close(): Promise<void>;
}

export interface KeeperStart {
  readonly bwrap: string;
  /** The same mounts as commands get: they can look through the keeper's /proc entry. */
  readonly view: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export async function startKeeper({ bwrap, view, env }: KeeperStart): Promise<Keeper> {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const namespaces = "--unshare-user --uid 0 --gid 0 --unshare-pid --unshare-ipc --unshare-uts --die-with-parent";
  // Pseudo-terminals can only be set up as root of a user namespace; users then run in a second one inside it, as themselves. Mapping
  // the first one's root takes one capability, which the keeper has and no command gets.
  const twoUsers = uid !== 0;
  const rights = ["--cap-drop", "ALL", ...(twoUsers ? ["--cap-add", "CAP_SETFCAP"] : [])];
  const sleeper = twoUsers ? ["unshare", "--user", `--map-user=${uid}`, `--map-group=${gid}`, "--"] : [];
  const args = [...namespaces.split(" "), ...rights, "--info-fd", "3", ...view, "--", ...sleeper];
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
    const paths = [`/proc/${init}/ns/user`, `/proc/${init}/ns/pid`, ...(twoUsers ? [`/proc/${inner}/ns/user`] : [])];
    const files = await openAll(paths);
    return keeperOf(child, files, exited);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

function keeperOf(child: ChildProcess, files: readonly FileHandle[], exited: Promise<void>): Keeper {
  // Held open here: a process id may come to mean another process, an open file may not.
  const [setup = "", pid = "", inner] = files.map((file) => `/proc/${process.pid}/fd/${file.fd}`);
  let alive = true;
  void exited.then(() => {
    alive = false;
  });
  child.unref();
  for (const stream of child.stdio) (stream as Readable | null)?.destroy(); // all three are our ends of pipes
  return {
    paths: { setup, pid, inner },
    get alive() {
      return alive;
    },
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
