// What every sub-command is handed. A sub-command module exports `define(command, ctx)`: it hangs its actions on the commander
// command it is given, writes through `ctx.io`, and throws `ExitError` for every end that is not 0.

import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Command } from "commander";
import { said, t } from "../home/language/words.ts";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { codeOf, messageOf, UserError } from "../kit/errors.ts";
import { withoutControls } from "../kit/strip-ansi.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { ScreenQuestion } from "./choice-list.ts";
import { stopForGoneReader } from "./stop-signals.ts";

/**
 * What sub-commands write with. Models, servers, files and plugins have a part in nearly every line, so nothing written here drives a
 * terminal: see `withoutControls`. Sub-commands print no colours; what must be styled is drawn by a screen.
 */
export interface CliIo {
  /**
   * Data. Adds no newline. Into a pipe or a file it goes byte for byte. A person reads it in the language of `display.language`, unless it
   * is `asIs`: what models and users wrote, and what is for machines.
   */
  out(text: string, options?: { readonly asIs?: boolean }): void;
  /** Diagnostics. Adds no newline. Cleaned for a pipe too: logs of other programs end up on terminals. */
  err(text: string): void;
  readonly stdin: NodeJS.ReadStream;
  readonly stdinIsTerminal: boolean;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** stdout may carry colour. */
  readonly color: boolean;
  /** Width of the terminal in cells; 80 when there is none. */
  readonly columns: number;
  /** One line typed by the user; null at end of input, when there is no terminal, and once `over` aborts. */
  question(prompt: string, over?: AbortSignal): Promise<string | null>;
  /** The same without showing what is typed. */
  secret(prompt: string): Promise<string | null>;
  /** A full-screen list; null when the user leaves it. Needs a terminal on stdin and stdout. */
  choose<T>(question: ScreenQuestion<T>): Promise<readonly T[] | null>;
}

export interface CliContext {
  readonly home: OpenHome;
  readonly io: CliIo;
  readonly clock: Clock;
  readonly cwd: string;
  /** Names of the sub-commands. */
  readonly commands: ReadonlySet<string>;
  /** Every command with its options, as the parser knows them. */
  tree(): Promise<Command>;
  /** The store of this home, opened once; read-only where it cannot be written. The program closes it. */
  store(): Promise<SessionStore>;
  /** The store that conversations are held in: the same, or a copy in memory where the home cannot be written. */
  conversationStore(): Promise<SessionStore>;
  /** Runs hermes again with other arguments and this terminal; resolves to its exit code. */
  rerun(args: readonly string[]): Promise<number>;
}

/** Ends the command with a code; the message, if any, goes to stderr as one line. */
export class ExitError extends UserError {
  override name = "ExitError";
  override readonly exitCode: number;
  constructor(exitCode: number, message = "") {
    super(message);
    this.exitCode = exitCode;
  }
}

// The process's streams as sub-commands see them.

export function processIo(options: { readonly noColor: boolean }): CliIo {
  const { stdin, stdout, stderr } = process;
  let stopping = false;
  let failed = false;
  for (const [name, stream, other] of [["stdout", stdout, stderr] as const, ["stderr", stderr, stdout] as const]) {
    stream.on("error", (error) => {
      // The terminal is gone: the screen takes it for a hang-up and ends its conversation.
      if (codeOf(error) === "EIO") throw error;
      // A reader that has seen enough (`| head`) is not an error; a full disk is.
      if (codeOf(error) !== "EPIPE" && !failed) {
        failed = true;
        other.write(`${t("hermes: {file} cannot be written: {why}.", { file: name, why: messageOf(error) })}\n`);
      }
      // A turn that runs is ended first: its last call is booked, its answer stored.
      stopping ||= stopForGoneReader();
      if (!stopping) process.exit(failed ? 1 : undefined);
    });
  }
  return {
    out: (text, { asIs = false } = {}) =>
      void stdout.write(stdout.isTTY ? withoutControls(asIs ? text : said(text)) : text),
    err: (text) => void stderr.write(withoutControls(said(text))),
    stdin,
    stdinIsTerminal: stdin.isTTY === true,
    stdoutIsTerminal: stdout.isTTY === true,
    stderrIsTerminal: stderr.isTTY === true,
    color: stdout.isTTY === true && !options.noColor,
    columns: stdout.columns ?? 80,
    question: (prompt, over) => ask(withoutControls(said(prompt)), stderr, over),
    // A line editor that draws nowhere. pi-tui has no masked input, and loading it for one line costs more than this.
    async secret(prompt) {
      stderr.write(withoutControls(prompt));
      const typed = await ask("", new Writable({ write: (_chunk, _encoding, done) => done() }));
      stderr.write("\n");
      return typed;
    },
    choose: async (question) => {
      const { chooseOnScreen } = await import("./choice-list.ts");
      return chooseOnScreen(question, { color: stdout.isTTY === true && !options.noColor });
    },
  };
}

async function ask(prompt: string, output: NodeJS.WritableStream, over?: AbortSignal): Promise<string | null> {
  if (!process.stdin.isTTY || over?.aborted) return null;
  const reader = createInterface({ input: process.stdin, output, terminal: true });
  let typed = false;
  const end = () => reader.close();
  over?.addEventListener("abort", end, { once: true });
  try {
    return await new Promise<string | null>((resolve) => {
      reader.once("close", () => {
        if (!typed) output.write("\n"); // Ctrl+D ends the input, not the line
        resolve(null);
      });
      reader.once("SIGINT", () => {
        typed = true;
        // What comes next, most often the shell's own prompt, begins on a line of its own.
        process.stderr.write("\n");
        // The line editor swallowed the key. Whoever listens for the signal stops its work here and now, before there is an answer that the
        // work would go on with; a signal that is sent comes later. With nobody listening it ends the process, as the shell expects.
        if (!process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT");
        resolve(null);
      });
      reader.question(prompt).then(
        (line) => {
          typed = true;
          resolve(line);
        },
        () => resolve(null),
      );
    });
  } finally {
    over?.removeEventListener("abort", end);
    reader.close();
  }
}

export async function readAll(stdin: NodeJS.ReadStream): Promise<string> {
  let text = "";
  stdin.setEncoding("utf8");
  for await (const chunk of stdin) text += chunk;
  return text;
}

export async function readAllBytes(stdin: NodeJS.ReadStream): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

/** From here on whoever writes to the standard output by accident writes to stderr. */
export function protocolOnly(): { readonly output: WritableStream<Uint8Array>; restore(): void } {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  const output = new WritableStream<Uint8Array>({
    write: (bytes) =>
      new Promise((resolve, reject) => {
        write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
  });
  return {
    output,
    restore() {
      stdout.write = write;
    },
  };
}
