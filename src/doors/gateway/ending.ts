// How a running gateway is told to end, and what its exit code tells a service manager then.
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { exists } from "../../kit/files.ts";
import { plannedEnd } from "./instance.ts";

/** Why a gateway ends: the reason of its stop signal. */
export interface Ending {
  readonly type: "stop" | "restart";
  /** For the console: `[Gateway] stopping: WHY, ...`. */
  readonly why: string;
  readonly exitCode: number;
  /** Nobody else starts it again: the process that ends has to. */
  readonly relaunch?: boolean;
  /** The terminal is gone: nothing can be written to it. */
  readonly isHangUp?: boolean;
}

const FAILED = 1;
/** EX_TEMPFAIL: service files start the gateway again then. */
const AGAIN = 75;
/** npm and our own launcher hand on what the terminal has sent to us as well: one press of Ctrl+C may arrive several times. */
const SAME_PRESS_MS = 300;
const LOOK_FOR_NOTE_MS = 500;

interface EndingOptions {
  readonly home: OpenHome;
  readonly clock: Clock;
  /** Somebody watches: closing the terminal ends the gateway. Without one (nohup) a hang-up means nothing. */
  readonly hasTerminal: boolean;
  /** Signals cannot be caught here: the note of a planned stop is looked for. */
  readonly polls?: boolean;
}

interface EndingListener {
  /** Its reason is an `Ending`. */
  readonly stop: AbortSignal;
  /** Asked for in a chat, or by SIGUSR2. */
  restart(why?: string): Promise<void>;
  readonly ending: Ending | null;
  close(): void;
}

/** From here on signals end the gateway gently: the first one counts, a second Ctrl+C ends the process at once. */
export function listenForEnd({
  home,
  clock,
  hasTerminal,
  polls = process.platform === "win32",
}: EndingOptions): EndingListener {
  const controller = new AbortController();
  const closed = new AbortController();
  let ending: Ending | null = null;
  let pressedAt: number | null = null;
  const end = (next: Ending) => {
    if (ending !== null) return;
    ending = next;
    controller.abort(next);
  };
  const restart = async (why = "restart") => {
    const byManager = await isManaged(home);
    end({ type: "restart", why, exitCode: byManager ? AGAIN : 0, relaunch: !byManager });
  };
  const onInterrupt = () => {
    const now = clock.now();
    if (pressedAt !== null && now - pressedAt > SAME_PRESS_MS) process.exit(130);
    pressedAt ??= now;
    end({ type: "stop", why: "Ctrl+C", exitCode: 0 });
  };
  const onTerminate = async () => end((await planned(home, clock)) ?? UNEXPECTED);
  const listeners: Partial<Record<NodeJS.Signals, () => void>> = {
    SIGINT: onInterrupt,
    SIGTERM: () => void onTerminate().catch(() => end(UNEXPECTED)), // a note that cannot be read plans nothing
    SIGUSR2: () => void restart(),
    SIGHUP: () =>
      hasTerminal && end({ type: "stop", why: "the terminal was closed", exitCode: FAILED, isHangUp: true }),
  };
  const names = Object.keys(listeners) as NodeJS.Signals[]; // the keys just written
  for (const name of names) process.on(name, listeners[name] ?? onInterrupt);
  if (polls) void lookForNote(home, clock, closed.signal, end);
  return {
    stop: controller.signal,
    restart,
    get ending() {
      return ending;
    },
    close() {
      closed.abort();
      for (const name of names) process.off(name, listeners[name] ?? onInterrupt);
    },
  };
}

const UNEXPECTED: Ending = { type: "stop", why: "SIGTERM", exitCode: FAILED };

async function planned(home: OpenHome, clock: Clock): Promise<Ending | null> {
  const plan = await plannedEnd(home, clock);
  if (plan === null) return null;
  const why = plan.note === "stop" ? "hermes gateway stop" : `replaced by process ${plan.by}`;
  return { type: "stop", why, exitCode: 0 };
}

async function lookForNote(
  home: OpenHome,
  clock: Clock,
  closed: AbortSignal,
  end: (ending: Ending) => void,
): Promise<void> {
  while (!closed.aborted) {
    const found = await planned(home, clock).catch(() => null); // looked for again in a moment
    if (found !== null) return end(found);
    await clock.sleep(LOOK_FOR_NOTE_MS, closed).catch(() => undefined); // closed
  }
}

/** The variable that a gateway started by `startDetached` has: nobody waits for its exit code. */
export const DETACHED = "HERMES_GATEWAY_DETACHED";

/** Somebody starts this process again when it ends with 75: systemd, launchd, or the engine of a container. */
async function isManaged({ override }: Pick<OpenHome, "override">): Promise<boolean> {
  if (override(DETACHED)) return false;
  if (override("XPC_SERVICE_NAME")?.startsWith("ai.hermes.gateway")) return true;
  if (override("INVOCATION_ID")) {
    // A terminal that systemd has started hands its own variables on to everything that is typed in it.
    const started = override("SYSTEMD_EXEC_PID");
    if (started === undefined || [process.pid, process.ppid].includes(Number(started))) return true;
  }
  if (override("HERMES_CONTAINER")) return true;
  return (await exists("/.dockerenv")) || (await exists("/run/.containerenv"));
}

/**
 * An error that nobody caught, as of a timer in the platform of a plugin, is logged, and the gateway goes on: what it promised is in the
 * store, and a turn that hangs is ended by its own watch. Answers with how to undo it.
 */
export function outliveStrayErrors(log: Logger, say: (line: string) => void): () => void {
  let told = 0;
  const survive = (error: unknown) => {
    log.error("an error that nobody caught", error);
    if (told++ === 0) say(`an error was not caught (${messageOf(error)}); the gateway goes on. See gateway.log`);
  };
  process.on("uncaughtException", survive);
  process.on("unhandledRejection", survive);
  return () => {
    process.off("uncaughtException", survive);
    process.off("unhandledRejection", survive);
  };
}
