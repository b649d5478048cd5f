// A sub-command of the gateway, typed in this process by somebody at a terminal or by a script: what was shown, and its exit code.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { Command } from "commander";
import type { ScreenQuestion } from "../../src/doors/choice-list.ts";
import { type CliContext, ExitError } from "../../src/doors/cli-context.ts";
import { openHome } from "../../src/home/open.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { createRedactor } from "../../src/safety/redact.ts";
import { openSessionStore } from "../../src/sessions/open.ts";
import { recordedLog } from "./session-store.ts";
import { type TempHome, tempHome } from "./temp-home.ts";

interface Typed {
  readonly args: readonly string[];
  /** What is typed, or in a list the beginning of the row that is taken; null is Ctrl+C. Absent: there is no terminal. */
  readonly answers?: readonly (string | null)[];
  readonly env?: Readonly<Record<string, string>>;
}

interface Shown {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Prompts whose answers are not shown. */
  readonly hidden: readonly string[];
}

export async function gatewayUser(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const home = await tempHome(files);
  t.after(() => home[Symbol.asyncDispose]());
  return {
    home,
    typed: (define: (command: Command, ctx: CliContext) => void, run: Typed) => type(home, define, run),
    store: () => openStore(home),
  };
}

const openStore = (home: TempHome) =>
  openSessionStore({ path: home.at("state.db"), journalMode: "auto", log: recordedLog(), clock: systemClock });

async function type(
  home: TempHome,
  define: (command: Command, ctx: CliContext) => void,
  { args, answers, env = {} }: Typed,
): Promise<Shown> {
  const opened = await openHome({
    ...{ argv: [], osHome: home.osHome, cwd: home.project },
    // Nobody is asked who a bot is, unless a test has somebody who answers.
    env: {
      ...{ HERMES_HOME: home.dir, HOME: home.osHome, PATH: process.env.PATH ?? "" },
      ...{ TELEGRAM_BASE_URL: "http://127.0.0.1:9", ...env },
    },
    redactorFor: (settings) => createRedactor(settings),
  });
  const store = await openStore(home);
  const left = [...(answers ?? [])];
  const [out, err, hidden]: string[][] = [[], [], []];
  const next = async (prompt: string) => {
    err?.push(`${prompt}\n`);
    const answer = left.shift();
    return answer === undefined ? assert.fail(`nothing left to answer at: ${prompt}\n${out?.join("")}`) : answer;
  };
  const isTerminal = answers !== undefined;
  const ctx = {
    ...{ home: opened, clock: systemClock, cwd: home.project, store: async () => store },
    io: {
      ...{ out: (text: string) => void out?.push(text), err: (text: string) => void err?.push(text) },
      ...{ stdinIsTerminal: isTerminal, stdoutIsTerminal: isTerminal, question: next },
      secret(prompt: string) {
        hidden?.push(prompt);
        return next(prompt);
      },
      async choose<T>({ title, choices }: ScreenQuestion<T>): Promise<readonly T[] | null> {
        const rows = choices.map(({ label, hint }) => [label, hint].flat().join("  "));
        const answer = await next(`${title}\n${rows.join("\n")}`);
        if (answer === null) return null;
        const chosen = choices.find(({ label }) => label.startsWith(answer));
        return [(chosen ?? assert.fail(`${answer} is not offered:\n${rows.join("\n")}`)).value];
      },
    },
  } as unknown as CliContext; // what these commands use of it
  const command = new Command("hermes").exitOverride().configureOutput({ writeErr: () => undefined });
  define(command, ctx);
  const listeners = process.listenerCount("SIGINT");
  const shown = (code: number, more = "") => ({
    ...{ code, hidden: hidden ?? [] },
    out: out?.join("") ?? "",
    err: `${err?.join("") ?? ""}${more}`,
  });
  try {
    await command.parseAsync([...args], { from: "user" });
    assert.deepEqual(left, [], "every answer was asked for");
    return shown(0);
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return shown(error.exitCode, `${error.message}\n`);
  } finally {
    assert.equal(process.listenerCount("SIGINT"), listeners);
    await store.close();
    await opened.close();
  }
}
