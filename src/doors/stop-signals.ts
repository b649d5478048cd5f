// SIGINT, SIGTERM and SIGHUP during a turn that nobody watches on a screen, and a reader who has left.
import type { Clock } from "../kit/clock.ts";

const CODES: Partial<Record<NodeJS.Signals, number>> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
/** What shells report for a program that nobody reads any more. */
const READER_GONE = 141;
const DEFAULT_GRACE_SECONDS = 1.5;
/** npm and our own launcher hand on what the terminal has sent to us as well: one press of Ctrl+C may arrive several times. */
const SAME_PRESS_MS = 300;

const whenReaderLeft = new Set<() => void>();

/** Stops what runs, as a signal would; false when nothing does. SIGPIPE itself is ambiguous: a tool's closed pipe raises it as well. */
export function stopForGoneReader(): boolean {
  for (const stop of whenReaderLeft) stop();
  return whenReaderLeft.size > 0;
}

/** For what runs whether anybody reads it or not; answers with how to stop listening. */
export function onReaderLeft(left: () => void): () => void {
  whenReaderLeft.add(left);
  return () => whenReaderLeft.delete(left);
}

interface StopSignals {
  /** The exit code of the signal that came first; null while there was none. */
  readonly code: number | null;
  stopListening(): void;
}

interface StopOptions {
  /** Called once, with the first signal. */
  stop(): void;
  /** Seconds a turn gets to end after SIGTERM or SIGHUP, or when nobody reads any more; anything but a number counts as 1.5. */
  readonly graceSeconds?: string | undefined;
  readonly clock: Pick<Clock, "now">;
}

/** A second signal ends the process at once, and so does the end of the grace time. */
export function onStopSignal({ stop, graceSeconds, clock }: StopOptions): StopSignals {
  let first: { readonly at: number; readonly code: number } | null = null;
  let grace: NodeJS.Timeout | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    const code = CODES[signal] ?? 1;
    if (first && clock.now() - first.at < SAME_PRESS_MS) return;
    if (first) process.exit(code);
    begin(code, signal !== "SIGINT");
  };
  const begin = (code: number, hurried: boolean) => {
    first = { at: clock.now(), code };
    if (hurried) grace = setTimeout(() => process.exit(code), graceMs(graceSeconds));
    stop();
  };
  const onReaderLeft = () => first ?? begin(READER_GONE, true);
  const names = Object.keys(CODES) as NodeJS.Signals[]; // the keys just written
  for (const name of names) process.on(name, onSignal);
  whenReaderLeft.add(onReaderLeft);
  return {
    get code() {
      return first?.code ?? null;
    },
    stopListening() {
      clearTimeout(grace);
      for (const name of names) process.off(name, onSignal);
      whenReaderLeft.delete(onReaderLeft);
    },
  };
}

function graceMs(seconds: string | undefined): number {
  const asked = Number(seconds);
  return 1000 * (seconds?.trim() && Number.isFinite(asked) && asked >= 0 ? asked : DEFAULT_GRACE_SECONDS);
}
