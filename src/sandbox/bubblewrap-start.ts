// Starting something in a sandbox, and again where it did not come to run.
import { systemClock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { type Launch, newMark, StartMark } from "./channel.ts";
import type { OutputPipe } from "./output-pipe.ts";
import type { ShellIo } from "./place.ts";
import { descendantsOf, signalEach } from "./process-tree.ts";
import { type ShellProcess, settledWithin, startShell } from "./processes.ts";

export const TRIES = 5;
const PAUSE_MS = 20;
const KILL_ROUNDS = 25;

// bwrap reads the table of mounts and then walks it; a container engine that takes one away meanwhile makes it give up.
const MOUNTS_MOVED = /Can't bind mount .*Unable to (?:apply mount flags|remount|find)/;

/** bwrap ended before anything ran inside. `code` as bwrap tells it, or the negative number of the signal that ended bwrap itself. */
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

export interface AgainOptions {
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

export interface InsideStart {
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
 * Kills what bwrap started, at any moment of the start. bwrap itself ends when its child does, and until then adopts what the child
 * leaves behind; killed first, it would leave the child running.
 */
export async function killInside(pid: number, ended: Promise<unknown>): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const family = await descendantsOf(pid);
    // As a group first: that reaches what was forked since we looked.
    signalEach(
      family.flatMap((member) => [-member, member]),
      "SIGKILL",
    );
    if (await settledWithin(ended, PAUSE_MS)) return;
  }
  signalEach([pid], "SIGKILL");
}
