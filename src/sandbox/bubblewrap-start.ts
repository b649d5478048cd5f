// Starting a shell in a sandbox, and once more where mounts of the machine got in the way.
import { systemClock } from "../kit/clock.ts";
import { type Launch, newMark, StartMark } from "./channel.ts";
import type { OutputPipe } from "./output-pipe.ts";
import type { ShellIo } from "./place.ts";
import { type ShellProcess, settledWithin, startShell } from "./shell-process.ts";

const TRIES = 5;
const PAUSE_MS = 20;
const GIVE_UP_MS = 500;

// bwrap reads the table of mounts and then walks it; a container engine that takes one away meanwhile makes it give up.
const MOUNTS_MOVED = /Can't bind mount .*Unable to (?:apply mount flags|remount|find)/;

/** Waits, and resolves to whether the same start may go well now. Nothing has run yet. */
export async function mayStartAgain(errors: string, attempt: number, signal?: AbortSignal): Promise<boolean> {
  if (!MOUNTS_MOVED.test(errors) || attempt + 1 >= TRIES) return false;
  await systemClock.sleep(PAUSE_MS * 2 ** attempt, signal);
  return true;
}

/** The same with something that rejects with what bwrap said. */
export async function startedAgain<Value>(start: () => Promise<Value>): Promise<Value> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof Error) || !(await mayStartAgain(error.message, attempt))) throw error;
    }
  }
}

export interface InsideStart {
  readonly io: ShellIo;
  /** What to start here; the mark is the first thing that is printed inside. */
  launch(mark: string): Promise<Launch>;
  pipe(): Promise<OutputPipe | null>;
}

/** Resolves when the shell runs inside; rejects with what bwrap said when it cannot. */
export async function startInside({ io, launch, pipe }: InsideStart): Promise<ShellProcess> {
  for (let attempt = 0; ; attempt++) {
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
      shell.signal("SIGKILL");
      await settledWithin(shell.finished, GIVE_UP_MS);
      shell.release();
      io.signal.throwIfAborted();
    }
    const code = await shell.finished;
    if (await mayStartAgain(said, attempt, io.signal)) continue;
    throw new Error(said.trim() || `bwrap ended with code ${code}`);
  }
}
