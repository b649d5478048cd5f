// A WebSocket of an adapter. Frames are handled one after the other, in the order they came: what is told to the
// platform about one of them is told before the next is looked at.
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { connectWebSocket } from "../../kit/websocket.ts";
import { PlatformError } from "./contract.ts";
import { CallFailedError } from "./web-calls.ts";

interface SocketOptions {
  readonly seconds?: number;
  readonly protocols?: readonly string[];
  readonly log: Logger;
  onFrame(data: string | Uint8Array): Promise<void> | void;
  /** Once, after it was open; not after `close`. */
  onLost(reason: string): void;
}

export interface OpenSocket {
  /** False: it is closed. */
  send(data: string | Uint8Array): boolean;
  close(): void;
}

const SECONDS = 20;

/** Rejects with `CallFailedError`. The address may hold a ticket: only its host is named. */
export async function openSocket(address: string | URL, options: SocketOptions): Promise<OpenSocket> {
  const { seconds = SECONDS, protocols = [], log, onFrame, onLost } = options;
  const { host } = new URL(address);
  let line = Promise.resolve();
  let isOver = false;
  const socket = await connectWebSocket(address, {
    protocols,
    connectMs: seconds * 1000,
    onMessage(data) {
      line = line
        .then(() => (isOver ? undefined : onFrame(data)))
        .catch((error: unknown) => log.error(`a frame from ${host} could not be handled`, error));
    },
    onClose(code, reason) {
      if (isOver) return;
      isOver = true;
      onLost(`${host} closed the connection (${reason === "" ? code : `${code}: ${reason}`})`);
    },
  }).catch((error: unknown) => {
    throw new CallFailedError("unreachable", `${host} cannot be reached: ${messageOf(error)}`);
  });
  return {
    send: (data) => socket.send(data),
    close: () => {
      isOver = true;
      socket.close();
    },
  };
}

interface ReopenOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

const PAUSES = [0.2, 1, 3];

/**
 * Opens again what was lost: servers close their sockets now and then, and mean nothing by it. Resolves to null, or to why it did not work
 * after some tries. Never rejects.
 */
export async function reopened(
  open: () => Promise<void>,
  { clock, signal, log }: ReopenOptions,
): Promise<PlatformError | null> {
  let last: PlatformError | null = null;
  for (const pause of PAUSES) {
    await clock.sleep(pause * 1000, signal).catch(() => undefined);
    if (signal.aborted) return null;
    try {
      await open();
      return null;
    } catch (error) {
      last = asPlatformError(error);
      if (!last.retryable) return last;
      log.warn(`not connected again: ${last.message}`);
    }
  }
  return last;
}

export function asPlatformError(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const code = error instanceof CallFailedError ? "unreachable" : "unforeseen";
  return new PlatformError(code, messageOf(error), { retryable: true, cause: error });
}
