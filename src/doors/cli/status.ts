// `hermes status`: what is set up here, at a glance.

import type { Command } from "commander";
import { chooseTarget } from "../../agent/open-model.ts";
import { windowText } from "../../agent/usage-meter.ts";
import type { OpenHome } from "../../home/open.ts";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { PROVIDERS } from "../../llm/providers/table.ts";
import { maskSecret } from "../../safety/redact.ts";
import { backendProblem, inspectPlace, RUNS_HERE } from "../../sandbox/open.ts";
import type { CliContext } from "./context.ts";

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Profile, home, model, keys and sessions.")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) => {
      const facts = await gather(ctx);
      if (options.json) return ctx.io.out(`${JSON.stringify(facts)}\n`);
      const rows: [string, string][] = [
        ["Profile", facts.profile],
        ["Home", facts.home],
        ["Model", facts.model],
        ["Terminal", facts.terminal_problem ? `invalid: ${facts.terminal_problem}` : (facts.terminal_place ?? "")],
        ["Sessions", `${facts.sessions} (${plural(facts.messages, "message")})`],
        ...facts.keys.map(({ name, value }): [string, string] => ["Key", `${name} ${value}`]),
      ];
      if (facts.keys.length === 0) rows.push(["Key", "none set"]);
      ctx.io.out(`${rows.map(([name, value]) => `${name.padEnd(10)}${value}`).join("\n")}\n`);
    });
}

async function gather(ctx: CliContext) {
  const { home } = ctx;
  const stats = await (await ctx.store()).stats();
  const problem = backendProblem(home);
  const names = new Set(PROVIDERS.flatMap((row) => row.keyEnv));
  return {
    profile: home.paths.profile,
    home: home.paths.dir,
    model: await modelLine(ctx),
    terminal: problem === null ? home.config().terminal.backend : "invalid",
    terminal_place: problem === null ? await placeOf(home) : null,
    terminal_problem: problem,
    sessions: stats.sessions,
    messages: stats.messages,
    keys: [...names].flatMap((name) => {
      const value = home.env(name);
      return value ? [{ name, value: maskSecret(value) }] : [];
    }),
  };
}

async function placeOf(home: OpenHome): Promise<string> {
  const { terminal } = home.config();
  if (!RUNS_HERE.has(terminal.backend)) return `${terminal.backend} backend`;
  return (await inspectPlace(terminal, home.environment())).line;
}

async function modelLine(ctx: CliContext): Promise<string> {
  try {
    const { target, demo, loneKey } = await chooseTarget(ctx.home, {});
    if (loneKey !== undefined) return `built-in demo (${loneKey} is set, but no model is chosen: hermes model)`;
    if (demo) return "built-in demo (no provider is configured)";
    return `${target.model} at ${target.provider}, ${windowText(target)}`;
  } catch (error) {
    return `not usable: ${messageOf(error)}`;
  }
}
