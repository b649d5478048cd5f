// The real gateway in a process of its own, with quick timers, talking to platforms and a model on loopback.
import { setTimeout as sleep } from "node:timers/promises";
import type { RecordedRequest, Reply } from "./model-server/script.ts";
import { ModelServer } from "./model-server/server.ts";
import { type RunResult, runHermes, startHermes } from "./run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./temp-home.ts";

/** Seconds; long waits have no place in a test. */
const TIMERS = {
  ...{ connect: 10, reconnect_first: 0.2, reconnect_every: 0.2, reconnect_backoff: 0.2, reconnect_max: 1 },
  // A rest collects all garbage five times.
  ...{ rest_first: 600, rest_every: 600 },
  ...{ lease: 3, controls: 0.2, send_retry: 0.1, send_retry_max: 1, stream_tick: 0.02, typing: 0.5, batch: 0.2 },
};

/** Nobody is new here: what a first message brings has a test of its own. */
const SEEN = "onboarding:\n  seen: {chat_intro: true, busy_input_prompt: true}\n";

export interface GatewayHomeOptions {
  /** Further lines of config.yaml. */
  readonly config?: string;
  readonly contextLength?: number;
  /** Files of the home besides config.yaml and .env. */
  readonly files?: Readonly<Record<string, string>>;
  /** Lines of .env: the variables that set a platform up. */
  readonly env: Readonly<Record<string, string>>;
  /** More of `gateway:` in config.yaml, two blanks in front of each line. */
  readonly gateway?: string;
}

/** A home with a model and platforms, as `hermes gateway setup` would leave it. */
export function gatewayHome(model: ModelServer, options: GatewayHomeOptions): Promise<TempHome> {
  const timers = Object.entries(TIMERS).map(([name, seconds]) => `    ${name}: ${seconds}\n`);
  const gateway = `gateway:\n  timers:\n${timers.join("")}${options.gateway ?? ""}`;
  const variables = Object.entries(options.env).map(([name, value]) => `${name}=${value}\n`);
  return tempHome({
    // The last of two equal keys counts: a test may write these anew.
    "config.yaml": `${modelConfig(model, "chat_completions", options.contextLength)}${SEEN}${gateway}${options.config ?? ""}`,
    ".env": variables.join(""),
    ...options.files,
  });
}

export interface RunningGateway {
  readonly pid: number;
  /** What it has printed so far. */
  readonly lines: readonly string[];
  /** Resolves to the line; rejects with everything printed when it does not come in time. */
  waitFor(line: RegExp, ms?: number): Promise<string>;
  /** As `hermes gateway stop` does, without its command: SIGINT. Resolves when it has ended. */
  stop(): Promise<RunResult>;
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  readonly result: Promise<RunResult>;
}

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** The line it is ready with; default the last one of a start. Null: it is not waited for. */
  readonly ready?: RegExp | null;
  readonly timeoutMs?: number;
  /** `-p NAME`. */
  readonly profile?: string;
}

export async function startGateway(home: TempHome, options: StartOptions = {}): Promise<RunningGateway> {
  const { args = [], env = {}, ready = /^\[Gateway\] ready: /, timeoutMs = 120_000, profile } = options;
  const chosen = profile === undefined ? [] : ["-p", profile];
  const child = startHermes([...chosen, "gateway", "run", ...args], {
    home,
    env: { ...lockDir(home), ...env },
    timeoutMs,
  });
  const lines: string[] = [];
  let rest = "";
  let errors = "";
  let over = false;
  child.stdout?.on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  child.stderr?.on("data", (text: string) => {
    errors += text;
  });
  void child.result.then(() => {
    over = true;
  });
  const waitFor = async (line: RegExp, ms = 60_000) => {
    const deadline = Date.now() + ms;
    for (;;) {
      const found = lines.find((one) => line.test(one));
      if (found !== undefined) return found;
      if (over || Date.now() > deadline)
        throw new Error(
          `no line ${line} ${over ? "before the end" : "in time"}; printed:\n${lines.join("\n")}\n${errors}`,
        );
      await sleep(20);
    }
  };
  const gateway: RunningGateway = {
    pid: child.pid ?? 0,
    lines,
    waitFor,
    async stop() {
      child.kill("SIGINT");
      return child.result;
    },
    async kill() {
      child.kill("SIGKILL");
      await child.result;
    },
    signal: (name) => void child.kill(name),
    result: child.result,
  };
  if (ready !== null)
    await waitFor(ready).catch(async (error) => {
      await gateway.kill();
      throw error;
    });
  return gateway;
}

/** Locks of bots are the machine's; each test has a machine of its own. */
const lockDir = ({ osHome }: TempHome) => ({ HERMES_GATEWAY_LOCK_DIR: osHome });

/** `hermes gateway status --json` and whatever else is typed beside a gateway. */
export const typed = (home: TempHome, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runHermes(args, { home, env: { ...lockDir(home), ...env } });

/** Until it holds, or the time is over: then it rejects with `what`. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 60_000): Promise<void> {
  const deadline = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`did not happen in time: ${what}`);
    await sleep(20);
  }
}

/** What was last said to the model, by a person or a tool. */
export const lastSaid = ({ body }: RecordedRequest): string => String(body.messages.at(-1)?.content ?? "");

/** Turns get these answers; side calls (titles, summaries), which carry no tools, get a word. */
export function answerTurns(model: ModelServer, answer: (request: RecordedRequest) => Reply | Promise<Reply>): void {
  model.clear().otherwise((request) => (request.body.tools?.length ? answer(request) : { text: "A title" }));
}

export { ModelServer };
