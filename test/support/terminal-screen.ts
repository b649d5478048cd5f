// The program on a real terminal: tmux plays the terminal and its user. Tests wait for what is to be seen, never for time.
import { execFile, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { environmentFor, launcher, type RunOptions, seedStarted } from "./run-hermes.ts";

const run = promisify(execFile);
const POLL_MS = 60;
/** What never comes is given up; on a busy machine much comes late. */
const PATIENCE_MS = 60_000;

export interface ScreenOptions extends RunOptions {
  readonly columns?: number;
  readonly rows?: number;
  /** A program to start in place of hermes, for tests of the harness. */
  readonly command?: readonly string[];
}

// tmux does not always notice that a program has ended, so the shell in front of it tells, and how it left the terminal.
const AFTERWARDS =
  "code=$?; stty -a | tr ' ;' '\\n\\n' | grep -x -e -echo -e -icanon; echo \"[exit $code]\"; exec sleep 1000";

/** A reason to skip, or false. With HERMES_REQUIRE_ENGINES=1 a missing tmux is an error instead. */
export function tmuxMissing(): string | false {
  if (spawnSync("tmux", ["-V"]).status === 0) return false;
  const message = "tmux is not installed: the tests of the interactive screen do not run";
  if (process.env.HERMES_REQUIRE_ENGINES === "1") throw new Error(message);
  process.stderr.write(`\n!!! ${message} !!!\n`);
  return message;
}

export class TerminalScreen implements AsyncDisposable {
  readonly #socket: string;
  readonly #folder: string;

  private constructor(socket: string, folder: string) {
    this.#socket = socket;
    this.#folder = folder;
  }

  static async start(args: readonly string[], options: ScreenOptions): Promise<TerminalScreen> {
    const { columns = 100, rows = 30, home } = options;
    seedStarted(home);
    const socket = join(home.osHome, `tmux-${randomBytes(4).toString("hex")}`);
    const screen = new TerminalScreen(socket, home.osHome);
    const command = options.command ?? [process.execPath, launcher, ...args];
    const env = { ...environmentFor(options), TERM: "xterm-256color" };
    const settings = `${socket}.conf`;
    await writeFile(settings, "set -g history-limit 5000\nset -s escape-time 0\n");
    const size = ["-x", `${columns}`, "-y", `${rows}`, "-c", options.cwd ?? home.project];
    const start = ["-f", settings, "-u", "-S", socket, "new-session", "-d", ...size];
    await run("tmux", [...start, `${command.map(quote).join(" ")}; ${AFTERWARDS}`], { env });
    return screen;
  }

  /** Types text as it is. */
  async type(text: string): Promise<void> {
    await this.#tmux("send-keys", "-l", "--", text);
  }

  /** Presses keys by their tmux names: `Enter`, `C-c`, `Escape`, `Up`. */
  async press(...keys: string[]): Promise<void> {
    await this.#tmux("send-keys", ...keys);
  }

  /** Types a line and submits it. */
  async say(text: string): Promise<void> {
    await this.type(text);
    await this.press("Enter");
  }

  /** Pastes as a terminal does, between paste marks when the program asked for them. */
  async paste(text: string): Promise<void> {
    const file = join(this.#folder, `paste-${randomBytes(4).toString("hex")}`);
    await writeFile(file, text);
    await this.#tmux("load-buffer", file);
    await this.#tmux("paste-buffer", "-p", "-r");
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`);
  }

  /** What is visible; with `history` also what has scrolled away. Lines that were wrapped stay wrapped. */
  async text(options: { readonly history?: boolean } = {}): Promise<string> {
    return this.#tmux("capture-pane", "-p", ...(options.history ? ["-S", "-"] : []));
  }

  /** What is visible, with its colours; with `history` also what has scrolled away. */
  async styled(options: { readonly history?: boolean } = {}): Promise<string> {
    return this.#tmux("capture-pane", "-p", "-e", ...(options.history ? ["-S", "-"] : []));
  }

  /** Resolves to the whole text when it matches; fails with the text when it does not in time. */
  async waitFor(pattern: RegExp | string, options: { readonly history?: boolean } = {}): Promise<string> {
    const found = (text: string) => (typeof pattern === "string" ? text.includes(pattern) : pattern.test(text));
    return this.#until(() => this.text({ history: true, ...options }), found, `to see ${pattern}`);
  }

  async waitForGone(pattern: RegExp | string): Promise<string> {
    const gone = (text: string) => !(typeof pattern === "string" ? text.includes(pattern) : pattern.test(text));
    return this.#until(() => this.text(), gone, `${pattern} to be gone`);
  }

  /** The exit code of the program, once it has ended. A terminal that is left without echo or line mode is an error. */
  async exitCode(): Promise<number> {
    const text = await this.waitFor(/^\[exit \d+\]$/m);
    const raw = /^-(?:echo|icanon)$/m.exec(text);
    if (raw) throw new Error(`the terminal was left with ${raw[0]}:\n${text}`);
    return Number(/^\[exit (\d+)\]$/m.exec(text)?.[1]);
  }

  /** The process id of the program, which runs below the pane's shell. */
  async pid(): Promise<number> {
    const shell = (await this.#tmux("display", "-p", "#{pane_pid}")).trim();
    const { stdout } = await run("ps", ["-A", "-o", "pid=,ppid="]);
    const child = stdout.split("\n").find((line) => line.trim().split(/\s+/)[1] === shell);
    if (child === undefined) throw new Error(`the program is not running:\n${await this.text()}`);
    return Number(child.trim().split(/\s+/)[0]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server").catch(() => undefined); // gone already
  }

  async #until(look: () => Promise<string>, enough: (text: string) => boolean, what: string): Promise<string> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const text = await look();
      if (enough(text)) return text;
      if (Date.now() > deadline) throw new Error(`waited in vain for ${what}. The screen:\n${await this.text()}`);
      await pause(POLL_MS);
    }
  }

  async #tmux(...args: string[]): Promise<string> {
    const { stdout } = await run("tmux", ["-u", "-S", this.#socket, ...args]);
    return stdout;
  }
}

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
