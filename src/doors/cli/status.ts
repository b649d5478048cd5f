// `hermes status`: what is set up here, at a glance.

import type { Command } from "commander";
import { chooseTarget } from "../../agent/open-model.ts";
import { windowText } from "../../agent/usage-meter.ts";
import { knownVariables } from "../../home/known-variables.ts";
import type { OpenHome } from "../../home/open.ts";
import { hermesCommand } from "../../home/paths.ts";
import { keyNames, maskValue } from "../../home/secrets.ts";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { PROVIDERS } from "../../llm/providers/table.ts";
import { placeOf as servedBy } from "../../llm/wire.ts";
import { backendProblem, inspectPlace, RUNS_HERE } from "../../sandbox/open.ts";
import type { CliContext } from "../cli-context.ts";
import { factLines } from "./present.ts";

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Show profile, home, model, keys, scheduled jobs and sessions.")
    .option("--all", "also show version, features and every key")
    .option("--deep", "also contact the provider and check the database")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean; all?: true; deep?: true }) => {
      const facts = await gather(ctx);
      const cron = await cronFacts(ctx);
      const more = await moreRows(options, ctx);
      if (options.json) return ctx.io.out(`${JSON.stringify({ ...facts, cron: cron.json, ...jsonRows(more) })}\n`);
      const rows: [string, string][] = [
        ["Profile", facts.profile],
        ["Home", facts.home],
        ["Model", facts.model],
        ["Terminal", facts.terminal_problem ? `invalid: ${facts.terminal_problem}` : (facts.terminal_place ?? "")],
        ...cron.rows,
        ["Sessions", `${facts.sessions} (${plural(facts.messages, "message")})`],
        ...facts.keys.map(({ name, value, from }): [string, string] => [
          "Key",
          `${[name, from].filter(Boolean).join(" ")}, ${value}`,
        ]),
      ];
      if (facts.keys.length === 0) rows.push(["Key", "none set"]);
      for (const line of factLines(ctx, rows, 10)) ctx.io.out(`${line}\n`);
      const width = Math.max(0, ...more.map(([name]) => name.length)) + 2;
      for (const line of factLines(ctx, more, width)) ctx.io.out(`${line}\n`);
    });
}

/** A file of jobs that cannot be read keeps nobody from seeing the rest. */
async function cronFacts(ctx: CliContext): Promise<{ readonly json: unknown; readonly rows: [string, string][] }> {
  try {
    const { cronRows, cronStatus } = await import("./cron-health.ts");
    const found = await cronStatus(ctx);
    return { json: found, rows: cronRows(found, ctx) };
  } catch (error) {
    return { json: { error: messageOf(error) }, rows: [["Cron", `invalid: ${messageOf(error)}`]] };
  }
}

type Row = readonly [name: string, value: string];

async function moreRows({ all, deep }: { readonly all?: true; readonly deep?: true }, ctx: CliContext): Promise<Row[]> {
  const rows: Row[] = [];
  if (all) {
    const { environmentRows, featureRows } = await import("./dump.ts");
    // Nobody uses most chat platforms: `gateway setup` names what one of them needs.
    const wanted = knownVariables.filter(({ secret, notUsed, group }) => secret && !notUsed && group !== "chat");
    const missing = wanted.filter(({ name }) => !ctx.home.env(name));
    rows.push(...environmentRows(), ...(await featureRows(ctx)));
    rows.push(["Not set", missing.map(({ name }) => name).join(", ") || "nothing"]);
  }
  if (deep) {
    const { checkStore } = await import("./doctor-home.ts");
    const { checkProvider } = await import("./doctor-world.ts");
    const findings = [...(await checkProvider(ctx)), ...(await checkStore(ctx))];
    rows.push(
      ...findings.map(
        ({ level, text }): Row => ["Check", `${level === "ok" ? "✓" : level === "warn" ? "⚠" : "✗"} ${text}`],
      ),
    );
  }
  return rows;
}

/** `Cron jobs` -> `cron_jobs`; several of one name become a list. */
function jsonRows(rows: readonly Row[]): Record<string, unknown> {
  const groups = Map.groupBy(rows, ([name]) => name.toLowerCase().replaceAll(" ", "_"));
  return Object.fromEntries(
    [...groups].map(([name, found]) => [
      name === "check" ? "checks" : name,
      name === "check" ? found.map(([, value]) => value) : found[0]?.[1],
    ]),
  );
}

async function gather(ctx: CliContext) {
  const { home } = ctx;
  const stats = await (await ctx.store()).stats();
  const problem = backendProblem(home);
  return {
    profile: home.paths.profile,
    home: home.paths.dir,
    model: await modelLine(ctx),
    terminal: problem === null ? home.config().terminal.backend : "invalid",
    terminal_place: problem === null ? await placeOf(home) : null,
    terminal_problem: problem,
    sessions: stats.sessions,
    messages: stats.messages,
    keys: keysOf(home),
  };
}

/** Every key a model may be reached with: variables of providers, those that settings name, and the one in config.yaml. */
function keysOf(home: OpenHome): { name: string; from: string; value: string }[] {
  const names = new Set([...PROVIDERS.flatMap((row) => row.keyEnv), ...keyNames(home.config())]);
  const set = [...names].flatMap((name) => {
    const value = home.env(name);
    return value ? [{ name, from: `from ${home.envSource(name)}`, value: maskValue(value) }] : [];
  });
  const written = home.config().model.api_key;
  if (!written) return set;
  const file = home.display(home.paths.configFile);
  return [{ name: "model.api_key", from: `in ${file}`, value: maskValue(written) }, ...set];
}

async function placeOf(home: OpenHome): Promise<string> {
  const { terminal } = home.config();
  if (!RUNS_HERE.has(terminal.backend)) return `${terminal.backend} backend`;
  return (await inspectPlace(terminal, home.environment())).line;
}

async function modelLine(ctx: CliContext): Promise<string> {
  try {
    const { target, demo, loneKey } = await chooseTarget(ctx.home, {});
    if (loneKey !== undefined)
      return `built-in demo (${loneKey} is set but no model is selected: ${hermesCommand("model")})`;
    if (demo) return `built-in demo (no provider is configured: ${hermesCommand("setup")})`;
    return `${target.model} at ${servedBy(target)}, ${windowText(target)}`;
  } catch (error) {
    return `not usable: ${messageOf(error)}`;
  }
}
