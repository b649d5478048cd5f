// `hermes prompt show`: the text as it would be sent, and what it is made of.

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type InspectedPrompt, inspectPrompt } from "../../../agent/inspect-prompt.ts";
import type { Layer } from "../../../prompt/contract.ts";
import { layoutOf } from "../../../prompt/session-prompts.ts";
import { loadCatalogue, unshadowed } from "../../../skills/catalogue.ts";
import { skillsContext } from "../../../skills/open.ts";
import { registry } from "../../../tools/toolset/registry.ts";
import { type CliContext, ExitError } from "../../cli-context.ts";
import { print, printJson, table } from "../present.ts";
import { resolveSession } from "../session-command.ts";
import { blockBars, folderOf, measure, sizeOf, type TextSize, windowBar, withCommas } from "./tables.ts";

interface ShowFlags {
  readonly json?: true;
  readonly blocks?: true;
  readonly block?: string;
  readonly layer?: Layer;
  readonly session?: string;
  readonly platform: string;
  readonly model?: string;
  readonly provider?: string;
  readonly cwd?: string;
  readonly contextLength?: number;
  readonly tools?: readonly string[];
  readonly systemMessage?: string;
  /** Milliseconds. */
  readonly now?: number;
  readonly ignoreRules?: true;
}

interface Shown {
  readonly full: string;
  readonly blocks: readonly ShownBlock[];
  readonly warnings: readonly string[];
  /** Null where it is not known. */
  readonly contextLength: number | null;
  readonly toolTokens: number;
  readonly json: Readonly<Record<string, unknown>>;
}

interface ShownBlock {
  readonly id: string;
  readonly layer: Layer;
  readonly text: string;
  readonly source?: string;
}

export async function show(flags: ShowFlags, ctx: CliContext): Promise<void> {
  const shown = flags.session === undefined ? await fresh(flags, ctx) : await stored(flags.session, ctx);
  for (const warning of shown.warnings) ctx.io.err(`⚠ ${warning}\n`);
  const chosen = shown.blocks.filter((block) => fits(block, flags));
  if (flags.block !== undefined && chosen.length === 0) throw noBlock(flags.block, shown.blocks);
  if (flags.json) {
    const blocks = chosen.map((block) => ({ ...block, ...measure(block.text) }));
    return printJson(ctx, { ...shown.json, blocks });
  }
  const narrowed = flags.block !== undefined || flags.layer !== undefined;
  if (!flags.blocks)
    ctx.io.out(`${narrowed ? chosen.map(({ text }) => text).join("\n\n") : shown.full}\n`, { asIs: true });
  if (flags.blocks || (ctx.io.stdoutIsTerminal && !narrowed)) ctx.io.out(`${picture(shown, chosen, ctx, flags)}\n`);
}

async function fresh(flags: ShowFlags, ctx: CliContext): Promise<Shown> {
  const { now } = flags;
  const clock = now === undefined ? ctx.clock : { ...ctx.clock, now: () => now };
  const { build, target, notes, definitions } = await inspectPrompt({
    ...{ home: ctx.home, clock, cwd: await folderOf(flags.cwd, ctx), platform: flags.platform },
    ...{ model: flags.model, provider: flags.provider, contextLength: flags.contextLength, toolNames: flags.tools },
    ...{ systemMessage: flags.systemMessage, ignoreRules: flags.ignoreRules },
  });
  const { coding: _, contextHashes: __, blocks, ...rest } = build;
  return {
    full: build.full,
    blocks,
    warnings: [...build.warnings, ...notes],
    contextLength: target.contextLength,
    toolTokens: measure(JSON.stringify(definitions)).tokens,
    json: { platform: flags.platform, ...target, ...measure(build.full), ...rest },
  };
}

async function stored(name: string, ctx: CliContext): Promise<Shown> {
  const store = await ctx.store();
  const id = await resolveSession(store, name);
  const record = await store.getPrompt(id);
  if (!record || record.prompt === "") throw new ExitError(1, `Session ${id} has no stored prompt.`);
  const { prompt, stableChars, fingerprint } = record;
  return {
    full: prompt,
    blocks: blocksOf(prompt, layoutOf(record)),
    warnings: [],
    contextLength: null,
    toolTokens: 0,
    json: { session_id: id, ...measure(prompt), full: prompt, stable_chars: stableChars, fingerprint },
  };
}

const CONTEXT_BLOCKS = ["workspace_snapshot", "cwd", "system_message", "context_files"];

/** A text without a stored layout is one block. */
function blocksOf(prompt: string, layout: ReturnType<typeof layoutOf>): readonly ShownBlock[] {
  if (!layout || layout.blocks.length === 0) return [{ id: "system_prompt", layer: "stable", text: prompt }];
  let at = 0;
  return layout.blocks.map(({ id, length }) => {
    const start = at;
    at += length;
    const layer = start < layout.stable.length ? "stable" : CONTEXT_BLOCKS.includes(id) ? "context" : "volatile";
    return { id, layer, text: prompt.slice(start, at).trimEnd() };
  });
}

function fits(block: ShownBlock, { block: id, layer }: ShowFlags): boolean {
  return (id === undefined || block.id === id) && (layer === undefined || block.layer === layer);
}

function noBlock(id: string, blocks: readonly ShownBlock[]): ExitError {
  return new ExitError(
    1,
    `There is no block "${id}" in this prompt. It has: ${blocks.map((one) => one.id).join(", ")}.`,
  );
}

function picture(shown: Shown, chosen: readonly ShownBlock[], ctx: CliContext, { block, layer }: ShowFlags): string {
  const measured = chosen.map((one) => ({ ...one, ...measure(one.text) }));
  const rows = measured.map(({ id, layer: of, chars, tokens, sha256, source }) => [
    ...[id, of, withCommas(chars), withCommas(tokens), sha256.slice(0, 12)],
    source === undefined ? "" : ctx.home.display(source),
  ]);
  const parts = [table([["block", "layer", "chars", "tokens", "sha256", "source"], ...rows], [2, 3])];
  const whole = block === undefined && layer === undefined;
  const slices = measured.map(({ id, tokens }) => ({ label: id, tokens }));
  if (ctx.io.stdoutIsTerminal) parts.push(blockBars(slices, ctx.io.columns));
  if (ctx.io.stdoutIsTerminal && whole && shown.contextLength !== null) {
    const prompt = { label: "prompt", tokens: measure(shown.full).tokens };
    const tools = { label: "tools", tokens: shown.toolTokens };
    parts.push(windowBar([prompt, tools], shown.contextLength, ctx.io.columns));
  }
  return `\n${parts.join("\n\n")}`;
}

// `hermes prompt size`: what every conversation pays before its first word.

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
  const bySet = Map.groupBy(definitions, ({ function: { name } }) => registry.get(name)?.toolset ?? "other");
  return [...bySet]
    .map(([toolset, tools]) => ({ toolset, tool_count: tools.length, json_bytes: jsonBytes(tools) }))
    .sort((a, b) => b.json_bytes - a.json_bytes || (a.toolset < b.toolset ? -1 : 1));
}

/** What a skill costs in the index, and what loading it would cost. */
async function skillCosts(index: string, { home, clock }: CliContext): Promise<readonly SkillCost[]> {
  if (index === "") return [];
  const lines = index.split("\n");
  const skills = unshadowed(await loadCatalogue(skillsContext({ home, clock })));
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
