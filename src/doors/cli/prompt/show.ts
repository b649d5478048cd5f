// `hermes prompt show`: the text as it would be sent, and what it is made of.
import { inspectPrompt } from "../../../agent/inspect-prompt.ts";
import type { Layer } from "../../../prompt/contract.ts";
import { layoutOf } from "../../../prompt/prompt-record.ts";
import { type CliContext, ExitError } from "../context.ts";
import { printJson, resolveSession } from "../session-command.ts";
import { folderOf } from "./folder.ts";
import { measure, withCommas } from "./measure.ts";
import { table } from "./table.ts";
import { blockBars, windowBar } from "./tables.ts";

export interface ShowFlags {
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
  if (!flags.blocks) ctx.io.out(`${narrowed ? chosen.map(({ text }) => text).join("\n\n") : shown.full}\n`);
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

/** A text of which nothing is known is one block. */
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
