// `hermes prompt size`: what every conversation pays before its first word.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type InspectedPrompt, inspectPrompt } from "../../../agent/inspect-prompt.ts";
import type { CliContext } from "../context.ts";
import { print, printJson } from "../session-command.ts";
import { folderOf } from "./folder.ts";
import { measure, sizeOf, type TextSize, withCommas } from "./measure.ts";
import { table } from "./table.ts";
import { blockBars, windowBar } from "./tables.ts";

interface SkillCost {
  readonly name: string;
  readonly index_line_bytes: number;
  readonly skill_md_bytes: number;
  readonly path: string;
}

interface ToolsetCost {
  readonly toolset: string;
  readonly tool_count: number;
  readonly json_bytes: number;
}

export async function size(flags: { platform: string; json?: true }, ctx: CliContext): Promise<void> {
  const { home, clock } = ctx;
  const cwd = await folderOf(undefined, ctx);
  const inspected = await inspectPrompt({ home, clock, cwd, platform: flags.platform });
  const { build, definitions, target } = inspected;
  const textOf = (id: string) => build.blocks.find((block) => block.id === id)?.text ?? "";
  const layers = (["stable", "context", "volatile"] as const).map((layer) => ({
    label: layer,
    ...sizeOf(build[layer]),
  }));
  const blocks = build.blocks.map(({ id, text }) => ({ label: id, ...sizeOf(text) }));
  const report = {
    platform: flags.platform,
    model: target.model,
    system_prompt: sizeOf(build.full),
    skills_index: sizeOf(textOf("skills_index")),
    memory: sizeOf(textOf("memory")),
    user_profile: sizeOf(textOf("user_profile")),
    tools: { count: definitions.length, json_bytes: jsonBytes(definitions) },
    sections: [...layers, ...blocks].map(({ label, chars, bytes }): [string, number, number] => [label, chars, bytes]),
    skills_breakdown: await skillCosts(textOf("skills_index"), ctx),
    toolsets_breakdown: await toolsetCosts(inspected),
  };
  if (flags.json) return printJson(ctx, report);
  for (const note of inspected.notes) ctx.io.err(`⚠ ${note}\n`);
  print(ctx, totals(report, layers));
  if (report.toolsets_breakdown.length > 0) print(ctx, `\n${toolsetTable(report.toolsets_breakdown)}`);
  if (report.skills_breakdown.length > 0) print(ctx, `\n${skillTable(report.skills_breakdown, ctx)}`);
  if (!ctx.io.stdoutIsTerminal) return;
  const slices = build.blocks.map(({ id, text }) => ({ label: id, tokens: measure(text).tokens }));
  const prompt = { label: "prompt", tokens: measure(build.full).tokens };
  const tools = { label: "tools", tokens: measure(JSON.stringify(definitions)).tokens };
  print(ctx, `\n${blockBars([...slices, tools], ctx.io.columns)}`);
  print(ctx, `\n${windowBar([prompt, tools], target.contextLength, ctx.io.columns)}`);
}

const jsonBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

async function toolsetCosts({ definitions }: InspectedPrompt): Promise<readonly ToolsetCost[]> {
  const { registry } = await import("../../../tools/toolset/registry.ts");
  const bySet = Map.groupBy(definitions, ({ function: { name } }) => registry.get(name)?.toolset ?? "");
  return [...bySet]
    .map(([toolset, tools]) => ({ toolset, tool_count: tools.length, json_bytes: jsonBytes(tools) }))
    .sort((a, b) => b.json_bytes - a.json_bytes || (a.toolset < b.toolset ? -1 : 1));
}

/** What a skill costs in the index, and what loading it would cost. */
async function skillCosts(index: string, { home, clock }: CliContext): Promise<readonly SkillCost[]> {
  if (index === "") return [];
  const { skillsPlace } = await import("../../../skills/open.ts");
  const { loadCatalogue, unshadowed } = await import("../../../skills/catalogue.ts");
  const lines = index.split("\n");
  const skills = unshadowed(await loadCatalogue(skillsPlace({ home, clock })));
  const costs = skills.map(async ({ name, dir }): Promise<SkillCost | null> => {
    const line = lines.find((each) => each === `    - ${name}` || each.startsWith(`    - ${name}: `));
    if (line === undefined) return null;
    const path = join(dir, "SKILL.md");
    const bytes = await stat(path).then(
      (found) => found.size,
      () => 0, // gone since it was listed
    );
    return { name, index_line_bytes: Buffer.byteLength(line), skill_md_bytes: bytes, path };
  });
  return (await Promise.all(costs))
    .filter((cost) => cost !== null)
    .sort((a, b) => b.skill_md_bytes - a.skill_md_bytes || (a.name < b.name ? -1 : 1));
}

interface Totals {
  readonly platform: string;
  readonly model: string;
  readonly system_prompt: TextSize;
  readonly skills_index: TextSize;
  readonly memory: TextSize;
  readonly user_profile: TextSize;
  readonly tools: { readonly count: number; readonly json_bytes: number };
}

function totals(report: Totals, layers: readonly (TextSize & { readonly label: string })[]): string {
  const row = (label: string, { chars, bytes }: TextSize) => [label, withCommas(chars), withCommas(bytes)];
  const { count, json_bytes } = report.tools;
  return [
    `Platform ${report.platform}, model ${report.model || "(none)"}`,
    "",
    table(
      [
        ["", "chars", "bytes"],
        row("system prompt", report.system_prompt),
        ...layers.map((layer) => row(`  ${layer.label}`, layer)),
        row("skills index", report.skills_index),
        row("memory", report.memory),
        row("user profile", report.user_profile),
        [`tools (${count})`, "", withCommas(json_bytes)],
      ],
      [1, 2],
    ),
  ].join("\n");
}

function toolsetTable(costs: readonly ToolsetCost[]): string {
  const rows = costs.map(({ toolset, tool_count, json_bytes }) => [
    toolset,
    String(tool_count),
    withCommas(json_bytes),
  ]);
  return table([["toolset", "tools", "bytes"], ...rows], [1, 2]);
}

function skillTable(costs: readonly SkillCost[], { home }: CliContext): string {
  const rows = costs.map(({ name, index_line_bytes, skill_md_bytes, path }) => [
    ...[name, withCommas(index_line_bytes), withCommas(skill_md_bytes), home.display(path)],
  ]);
  return table([["skill", "in the index", "SKILL.md", "path"], ...rows], [1, 2]);
}
