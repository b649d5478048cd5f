// `hermes memory setup` and what `status` says of the external memory.
import { isSafeMode } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { localMinute, plural } from "../../kit/formats.ts";
import { type ProviderHealth, readHealth } from "../../memory/providers/attached.ts";
import type { MemoryProvider, ProviderContext, ProviderField } from "../../memory/providers/contract.ts";
import { findMemoryProvider, memoryProviderNames } from "../../memory/providers/find.ts";
import { sharedPlugins } from "../../plugins/shared.ts";
import { loadTools } from "../../tools/toolset/discover.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { printJson } from "./present.ts";

interface Flags {
  readonly json?: true;
}

export async function setUpProvider(ctx: CliContext, given: string | undefined, flags: Flags): Promise<void> {
  const takeBack = await offerThoseOfPlugins(ctx, given);
  try {
    await setUp(ctx, given, flags);
  } finally {
    takeBack();
  }
}

async function setUp(ctx: CliContext, given: string | undefined, flags: Flags): Promise<void> {
  const context = providerContext(ctx);
  const names = await memoryProviderNames(context);
  const name = given ?? (await choose(names, ctx, flags));
  if (name === null) return;
  const provider = await load(name, context, names);
  const values = await askFor(provider.getConfigSchema?.() ?? [], ctx, name);
  await provider.saveConfig?.(values, ctx.home.paths.dir);
  const available = await provider.isAvailable();
  await provider.shutdown?.();
  if (!available) throw new ExitError(1, `The memory provider "${name}" is not available. Nothing was enabled.`);
  await ctx.home.setConfigKey("memory.provider", name);
  if (flags.json) return printJson(ctx, { success: true, provider: name });
  ctx.io.out(`Memory provider ${name} enabled for new conversations. To disable it: hermes memory off\n`);
}

async function choose(names: readonly string[], ctx: CliContext, flags: Flags): Promise<string | null> {
  const { provider } = ctx.home.config().memory;
  if (flags.json) {
    printJson(ctx, { providers: names, provider });
    return null;
  }
  names.forEach((name, index) => {
    ctx.io.out(`${String(index + 1).padStart(3)}  ${name}${name === provider ? "  (in use)" : ""}\n`);
  });
  const answer = (await ctx.io.question("Which one? Number or name (Enter to cancel):  "))?.trim();
  if (answer === undefined)
    throw new ExitError(1, "This command is interactive and needs a terminal. Name one: hermes memory setup local");
  if (answer !== "") return names[Number(answer) - 1] ?? answer;
  ctx.io.out("Nothing was changed.\n");
  return null;
}

async function load(name: string, context: ProviderContext, names: readonly string[]): Promise<MemoryProvider> {
  let provider: MemoryProvider | null;
  try {
    provider = await findMemoryProvider(name, context);
  } catch (error) {
    throw new ExitError(1, `The memory provider "${name}" cannot be loaded: ${messageOf(error)}`);
  }
  if (provider) return provider;
  throw new ExitError(1, `There is no memory provider "${name}". There are: ${names.join(", ")}.`);
}

async function askFor(
  fields: readonly ProviderField[],
  ctx: CliContext,
  provider: string,
): Promise<Readonly<Record<string, string>>> {
  const values: Record<string, string> = {};
  for (const field of fields) {
    const value = await askOne(field, ctx);
    if (value === "" && field.required) {
      throw new ExitError(1, `${provider} needs ${field.key} (${field.description}). Nothing was enabled.`);
    }
    if (value === "") continue;
    if (field.secret) await ctx.home.setEnv(field.env_var ?? field.key, value);
    else values[field.key] = value;
  }
  return values;
}

async function askOne(field: ProviderField, { io, home }: CliContext): Promise<string> {
  const kept = field.env_var === undefined ? undefined : home.env(field.env_var);
  const hints = [
    field.choices?.join(" | "),
    field.url,
    field.default && `Enter for ${field.default}`,
    kept && "Enter keeps the current value",
  ];
  const hint = hints.filter((text) => text).join("; ");
  const prompt = `${field.description}${hint === "" ? "" : ` (${hint})`}: `;
  for (;;) {
    const typed = ((await (field.secret ? io.secret(prompt) : io.question(prompt))) ?? "").trim();
    const value = typed || kept || field.default || "";
    if (value === "" || !field.choices || field.choices.includes(value)) return value;
    io.out(`Choose one of ${field.choices.join(", ")}.\n`);
  }
}

interface ProviderReport {
  readonly name: string;
  readonly available: boolean;
  readonly problem: string | null;
  readonly lines: readonly string[];
  readonly health: ProviderHealth | null;
}

/** Null when none is chosen. */
export async function reportProvider(ctx: CliContext): Promise<ProviderReport | null> {
  const name = ctx.home.config().memory.provider.trim();
  if (name === "") return null;
  const context = providerContext(ctx);
  const health = await readHealth(ctx.home.paths);
  const own = health?.provider === name ? health : null;
  const takeBack = await offerThoseOfPlugins(ctx, name);
  try {
    const provider = await load(name, context, await memoryProviderNames(context));
    const available = await provider.isAvailable();
    const lines = available ? ((await provider.status?.()) ?? []) : [];
    await provider.shutdown?.();
    return { name, available, problem: available ? null : "not available", lines, health: own };
  } catch (error) {
    return { name, available: false, problem: messageOf(error), lines: [], health: own };
  } finally {
    takeBack();
  }
}

export function printProvider(ctx: CliContext, report: ProviderReport | null): void {
  if (!report) return ctx.io.out("External provider: none (set one up: hermes memory setup)\n");
  const { name, available, problem, lines, health } = report;
  ctx.io.out(`External provider: ${name}${available ? "" : ` — not used: ${problem}`}\n`);
  const { dir } = ctx.home.paths;
  for (const line of lines) ctx.io.out(`  ${line.replaceAll(dir, ctx.home.display(dir))}\n`);
  if (!health) return;
  const counts = `${plural(health.timeouts, "recall")} too slow, ${plural(health.errors, "failure")}`;
  ctx.io.out(`  ${counts}; the last ${localMinute(health.last_at)}: ${health.last}\n`);
}

/** Loads enabled plugins and the one that provides the named memory, as a conversation does. Returns how to unload them. */
async function offerThoseOfPlugins(
  { home, clock, cwd, io }: CliContext,
  name: string | undefined,
): Promise<() => void> {
  if (isSafeMode(home)) return () => undefined;
  await loadTools(home.log);
  const { host } = sharedPlugins({ home, clock, cwd });
  await host.refresh();
  if (name !== undefined) await host.useSingle("memory", name);
  for (const line of new Set(host.takeLines())) io.err(`⚠ ${line}\n`);
  return () => host.close();
}

function providerContext({ home, clock }: CliContext): ProviderContext {
  return {
    ...{ paths: home.paths, clock, log: home.log.child("memory") },
    config: () => home.config(),
    env: (name) => home.env(name),
  };
}
