// What every sub-command is handed. A sub-command module exports `define(command, ctx)`: it hangs its actions on the commander
// command it is given, writes through `ctx.io`, and throws `ExitError` for every end that is not 0.
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { SessionStore } from "../../sessions/store.ts";

export interface CliIo {
  /** Data. Adds no newline. */
  out(text: string): void;
  /** Diagnostics. Adds no newline. */
  err(text: string): void;
  readonly stdin: NodeJS.ReadStream;
  readonly stdinIsTerminal: boolean;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** stdout may carry colour. */
  readonly color: boolean;
  /** Width of the terminal in cells; 80 when there is none. */
  readonly columns: number;
  /** One line typed by the user; null at end of input or when there is no terminal. */
  question(prompt: string): Promise<string | null>;
  /** The same without showing what is typed. */
  secret(prompt: string): Promise<string | null>;
}

export interface CliContext {
  readonly home: OpenHome;
  readonly io: CliIo;
  readonly clock: Clock;
  readonly cwd: string;
  /** What `hermes` may be followed by. */
  readonly commands: ReadonlySet<string>;
  /** Opens the store of this home once, to look at it and after it; where it cannot be written, for reading. Closed by the program at its end. */
  store(): Promise<SessionStore>;
  /** The store that conversations are held in: the same, or a copy in memory where the home cannot be written. */
  conversationStore(): Promise<SessionStore>;
  /** Runs hermes again with other arguments and this terminal; resolves to its exit code. */
  rerun(args: readonly string[]): Promise<number>;
}

/** Ends the command with a code; the message, if any, goes to stderr as one line. */
export class ExitError extends Error {
  override name = "ExitError";
  readonly code: number;
  constructor(code: number, message = "") {
    super(message);
    this.code = code;
  }
}
