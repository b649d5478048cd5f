// A server as a child process: JSON lines over its standard input and output, in a process group of its own.
import { type ChildProcess, spawn } from "node:child_process";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { descendantsOf, endWithUs, signalTree } from "../sandbox/processes.ts";
import type { Sdk } from "./link.ts";

interface StdioStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  onStderr(line: string): void;
}

const GRACE_MS = 2000;
const MAX_STDERR_LINE = 4000;

/** The SDK's own stdio transport leaves grandchildren behind (npx starts one); this one ends the whole group. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #sdk: Sdk;
  readonly #start: StdioStart;
  readonly #buffer: InstanceType<Sdk["ReadBuffer"]>;
  #child: ChildProcess | null = null;
  #exited: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #letGo: (() => void) | null = null;
  #lastLine = "";
  #ending: string | null = null;

  constructor(sdk: Sdk, start: StdioStart) {
    this.#sdk = sdk;
    this.#start = start;
    this.#buffer = new sdk.ReadBuffer();
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** How the process ended, with the last thing it said; null while it runs. */
  get ending(): string | null {
    return this.#ending;
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.#start;
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, {
        env,
        cwd,
        stdio: ["pipe", "pipe", "pipe"],
        detached: process.platform !== "win32",
        windowsHide: true,
        // npx and uvx are scripts there, which cannot be started directly.
        shell: process.platform === "win32",
      });
      this.#child = child;
      child.once("error", (error) => {
        reject(error);
        this.onerror?.(error);
      });
      child.once("spawn", () => {
        if (child.pid !== undefined) this.#letGo = endWithUs(child.pid);
        resolve();
      });
      // Not "close": a grandchild may hold the pipes open long after the server is gone.
      this.#exited = new Promise((done) => {
        child.once("exit", (code, signal) => {
          this.#ended(child, code, signal);
          done();
        });
      });
      child.stdin.on("error", (error) => this.onerror?.(error));
      child.stdout.on("error", (error) => this.onerror?.(error));
      child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
      this.#listenToErrors(child);
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable || this.#ending !== null) return Promise.reject(new Error("the server's process has ended"));
    return new Promise((resolve, reject) => {
      stdin.write(this.#sdk.serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Ends the whole group: SIGTERM, two seconds, SIGKILL. Resolves when the server is gone. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const child = this.#child;
    const pid = child?.pid;
    if (!child || pid === undefined || this.#ending !== null) return;
    const family = await descendantsOf(pid);
    child.stdin?.end();
    signalTree(pid, family, "SIGTERM");
    const timer = Promise.withResolvers<void>();
    const grace = setTimeout(timer.resolve, GRACE_MS);
    await Promise.race([this.#exited, timer.promise]);
    clearTimeout(grace);
    signalTree(pid, family, "SIGKILL");
    await this.#exited;
  }

  #read(chunk: Buffer): void {
    this.#buffer.append(chunk);
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // A line that is no message (a banner, a stray print) is the server's bad manners, not the end of it.
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  #ended(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
    // A killed process leaves no last words; what it wrote before explains nothing.
    const said = signal || this.#lastLine === "" ? "" : `: ${this.#lastLine}`;
    this.#ending = `its process ${how}${said}`;
    this.#letGo?.();
    // Helpers it started and left behind.
    if (child.pid !== undefined) signalTree(child.pid, [], "SIGKILL");
    child.stdout?.destroy();
    child.stderr?.destroy();
    this.#buffer.clear();
    this.onclose?.();
  }

  #listenToErrors(child: ChildProcess): void {
    let rest = "";
    child.stderr?.on("error", (error) => this.onerror?.(error));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      const lines = `${rest}${text}`.split("\n");
      rest = (lines.pop() ?? "").slice(-MAX_STDERR_LINE);
      for (const line of lines) {
        if (line.trim() === "") continue;
        this.#lastLine = line.trim();
        this.#start.onStderr(line.slice(0, MAX_STDERR_LINE));
      }
    });
  }
}
