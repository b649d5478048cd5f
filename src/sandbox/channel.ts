// A way to run a script somewhere else through a program on this machine: `docker exec`, `ssh`, `bwrap`.
import { randomBytes } from "node:crypto";

export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The program ended before the script began; nothing has run. */
export interface ChannelFailure {
  readonly code: number;
  readonly errors: string;
}

export interface LaunchOptions {
  /** `sh` is there everywhere. */
  readonly shell: "bash" | "sh";
  readonly stdin: boolean;
  readonly terminal?: boolean;
}

export interface Channel {
  /** What to start here so that the shell runs the script there, its input and output connected. */
  launch(script: string, options: LaunchOptions): Promise<Launch>;
  /** Repairs or waits, and resolves when another try makes sense; rejects with words for the user otherwise. */
  recover(failure: ChannelFailure, attempt: number, signal: AbortSignal): Promise<void>;
  /** Ends what was launched, where killing the program would leave the script running. */
  end?(pid: number, ended: Promise<unknown>): Promise<void>;
  /** Something is about to run in a shell that is open already. */
  used?(): void;
}

export const newMark = () => `__HERMES_START_${randomBytes(8).toString("hex")}__`;

const MAX_ERRORS = 4000;
export const keepEnd = (text: string) => text.slice(-MAX_ERRORS);

const MAX_NOISE = 64 * 1024;

/** Drops what comes before the line with the mark: greetings of login files, which some servers send to everybody. */
export class StartMark {
  readonly #mark: string;
  #before: Buffer = Buffer.alloc(0);
  seen = false;
  /** What stood on the line after the mark. */
  rest = "";

  constructor(mark: string) {
    this.#mark = mark;
  }

  push(bytes: Uint8Array): Uint8Array {
    if (this.seen) return bytes;
    const all = Buffer.concat([this.#before, bytes]);
    const at = all.indexOf(this.#mark);
    const end = at < 0 ? -1 : all.indexOf("\n", at);
    if (end < 0) {
      this.#before = all.subarray(at < 0 ? Math.max(0, all.length - MAX_NOISE) : at);
      return new Uint8Array();
    }
    this.seen = true;
    this.rest = all.toString("utf8", at + this.#mark.length, end).trim();
    this.#before = Buffer.alloc(0);
    return all.subarray(end + 1);
  }
}
