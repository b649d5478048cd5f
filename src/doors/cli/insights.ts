// `hermes insights`: the same numbers as `/insights`, also for programs.
import { type Command, Option } from "commander";
import { DEFAULT_DAYS, insightsText } from "../../commands/insights.ts";
import type { CliContext } from "../cli-context.ts";
import { positiveNumber, print, printJson } from "./present.ts";

interface InsightFlags {
  readonly days: number;
  readonly source?: string;
  readonly json?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Show usage statistics: conversations, tokens, cost, tools, times.")
    .addOption(new Option("--days <N>", "the last N days").argParser(positiveNumber).default(DEFAULT_DAYS))
    .option("--source <NAME>", "only one source, e.g. cli or telegram")
    .option("--json", "as JSON")
    .action(async ({ days, source, json }: InsightFlags) => {
      const since = ctx.clock.now() / 1000 - days * 86_400;
      const found = await (await ctx.store()).insights({ since, source });
      if (json) return printJson(ctx, snakeCase({ days, source: source ?? null, ...found }));
      print(ctx, insightsText(found, days));
    });
}

/** Names of programs' formats, at any depth. */
function snakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCase);
  if (typeof value !== "object" || value === null) return value;
  const name = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [name(key), snakeCase(inner)]));
}
