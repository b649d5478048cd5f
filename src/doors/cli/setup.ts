// `hermes setup` and `hermes model`: connect a provider and choose a model, step by step.
import type { Command } from "commander";
import { chooseTarget, saveModel } from "../../agent/open-model.ts";
import { windowText } from "../../agent/usage-meter.ts";
import type { OpenHome } from "../../home/open.ts";
import { systemClock } from "../../kit/clock.ts";
import { modelsOf } from "../../llm/catalogue/facts.ts";
import { refreshFacts, useKeptFacts } from "../../llm/catalogue/published-facts.ts";
import { listEndpointModels } from "../../llm/providers/local.ts";
import { cleanUrl } from "../../llm/providers/resolve.ts";
import { LOCAL_SERVERS, PROVIDERS, type ProviderRow } from "../../llm/providers/table.ts";
import { hasSandboxSetting } from "../../sandbox/open.ts";
import { type CliContext, ExitError } from "./context.ts";

const SHOWN_MODELS = 30;
const HIDDEN: ReadonlySet<string> = new Set(["demo", "custom"]);

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Connect a provider and choose a model.")
    .option("--non-interactive", "only print what to set")
    .action((options: { nonInteractive?: boolean }) => setUp(ctx, options.nonInteractive === true));
}

export function defineModel(command: Command, ctx: CliContext): void {
  command
    .description("Choose provider and model; writes config.yaml.")
    .option("--refresh", "fetch what is published about models anew, first")
    .action(async (options: { refresh?: boolean }) => {
      if (options.refresh) {
        const trouble = await refreshFacts(ctx.home, { fetch, now: () => systemClock.now() }, { force: true });
        if (trouble !== null) throw new ExitError(1, `${trouble}`);
        ctx.io.out("✓ The list of models is up to date.\n");
        if (!ctx.io.stdinIsTerminal) return;
      }
      await setUp(ctx, false, true);
    });
}

async function setUp(ctx: CliContext, printOnly: boolean, needsTerminal = false): Promise<void> {
  if (printOnly || !ctx.io.stdinIsTerminal) {
    if (needsTerminal) throw new ExitError(1, `hermes model needs a terminal. Without one:\n${byHand()}`);
    return ctx.io.out(`${byHand()}\n`);
  }
  const { home } = ctx;
  if (home.configProblem) throw new ExitError(1, `${home.warnings.join("\n")}\nFix it with: hermes config edit`);
  await useKeptFacts(home);
  const provider = await pickProvider(ctx);
  if (provider === null) throw cancelled(null);
  const key = await ensureKey(provider, ctx);
  if (key === null) throw cancelled(null);
  const model = await pickModel(provider, key.apiKey, ctx);
  if (model === null) throw cancelled(key.stored);
  const baseUrl = provider.baseUrl ?? undefined;
  const apiKey = provider.row ? undefined : key.apiKey;
  await saveModel(home, { provider: provider.id, model, baseUrl, apiKey }, { backup: true });
  const { target } = await chooseTarget(home, {});
  ctx.io.out(`\n✓ ${target.model} at ${provider.name}, ${windowText(target)}. Talk to it: hermes\n`);
  if (home.config().terminal.sandbox === "off" && !hasSandboxSetting(home))
    ctx.io.out(
      "Its commands run with all your rights. In a sandbox instead: hermes config set terminal.sandbox auto\n",
    );
}

const cancelled = (stored: string | null) =>
  new ExitError(1, `cancelled; ${stored ? `${stored} is stored, nothing else` : "nothing was saved"}.`);

const byHand = () =>
  [
    "Set the key of a provider and a model:",
    "  hermes config set OPENROUTER_API_KEY sk-or-...",
    "  hermes config set model.default anthropic/claude-sonnet-4.6",
    "or a server on this machine:",
    "  hermes config set model.provider ollama",
    "  hermes config set model.default qwen3:8b",
    "docs/reference/providers.md lists all providers and the names of their keys.",
  ].join("\n");

interface Choice {
  readonly id: string;
  readonly name: string;
  readonly row: ProviderRow | null;
  readonly baseUrl: string | null;
}

async function pickProvider(ctx: CliContext): Promise<Choice | null> {
  const choices: Choice[] = [
    ...PROVIDERS.filter((row) => !HIDDEN.has(row.id) && row.keyEnv.length > 0).map((row) => ({
      id: row.id,
      name: row.name,
      row,
      baseUrl: null,
    })),
    ...Object.keys(LOCAL_SERVERS).map((id) => ({ id, name: `${id} (on this machine)`, row: null, baseUrl: null })),
    { id: "custom", name: "another OpenAI-compatible server", row: null, baseUrl: "" },
  ];
  const chosen = await pick(ctx, "Which provider?", choices, (choice) => `${choice.name}${keyMark(choice, ctx.home)}`);
  if (chosen?.id !== "custom") return chosen;
  const url = await required(ctx, "Base URL (e.g. http://127.0.0.1:8000/v1): ");
  return url === null ? null : { ...chosen, baseUrl: cleanUrl(url) };
}

const keyMark = ({ row }: Choice, home: OpenHome) =>
  row?.keyEnv.some((name) => home.env(name)) ? "  ✓ key is set" : "";

interface KeyGiven {
  readonly apiKey?: string | undefined;
  /** The variable it was just written to. */
  readonly stored: string | null;
}

/** Null: the user cancelled. A server of the user's own may need no key. */
async function ensureKey({ row, name, baseUrl }: Choice, ctx: CliContext): Promise<KeyGiven | null> {
  const { home } = ctx;
  const variable = row?.keyEnv[0];
  if (!row && baseUrl === null) return { stored: null };
  const present = row?.keyEnv.map((candidate) => home.env(candidate)).find(Boolean);
  if (present) return { apiKey: present, stored: null };
  const about = variable ? `${variable}; not shown` : "not shown; Enter = it needs none";
  const typed = await ctx.io.secret(`Key of ${name} (${about}): `);
  if (typed === null) return null;
  const apiKey = typed.trim() || undefined;
  if (!variable || !apiKey) return { apiKey, stored: null };
  await home.setEnv(variable, apiKey);
  ctx.io.out(`✓ ${variable} is stored in ${home.paths.envFile}\n`);
  return { apiKey, stored: variable };
}

async function pickModel(provider: Choice, apiKey: string | undefined, ctx: CliContext): Promise<string | null> {
  const models = await offered(provider, apiKey, ctx);
  if (models.length === 0) return required(ctx, "Model: ");
  const filter = models.length > SHOWN_MODELS ? await ctx.io.question("Part of the model's name (Enter = all): ") : "";
  if (filter === null) return null;
  const matching = models.filter((model) => model.toLowerCase().includes(filter.trim().toLowerCase()));
  return pick(ctx, "Which model?", matching.slice(0, SHOWN_MODELS), (model) => model, "or type its name");
}

/** What the endpoint says it has; else what is published of the provider. */
async function offered(provider: Choice, apiKey: string | undefined, ctx: CliContext): Promise<readonly string[]> {
  const url = provider.baseUrl ?? LOCAL_SERVERS[provider.id] ?? provider.row?.baseUrl;
  const live = url ? await listEndpointModels(url, { fetch, apiKey }) : null;
  if (live?.ok && live.models.length > 0) return live.models;
  // Not every provider lists its models, but a refused key is worth knowing now.
  if (live && !live.ok && (!provider.row || refusesKey(provider.row, live.attempt))) ctx.io.err(`⚠ ${live.attempt}\n`);
  return (await modelsOf(provider.id)).map((facts) => facts.id);
}

/** Anthropic's own protocol takes its key in another header than the one the list is asked with. */
const refusesKey = (row: ProviderRow, attempt: string) =>
  row.mode !== "anthropic_messages" && /HTTP 40[13]$/.test(attempt);

async function pick<T>(
  ctx: CliContext,
  title: string,
  choices: readonly T[],
  label: (choice: T) => string,
  orElse?: string,
): Promise<T | null> {
  const rows = choices.map((choice, index) => `${String(index + 1).padStart(3)}. ${label(choice)}`);
  ctx.io.out(`\n${title}\n${rows.join("\n")}\n`);
  for (;;) {
    const typed = await required(ctx, `Number${orElse ? `, ${orElse}` : ""}: `);
    if (typed === null) return null;
    const chosen = choices[Number(typed) - 1];
    if (chosen !== undefined) return chosen;
    if (orElse && !/^\d+$/.test(typed)) return typed as T; // only strings are offered with a free choice
    ctx.io.err(`There is no ${typed}.\n`);
  }
}

/** Null: the user cancelled (Ctrl+C, Ctrl+D). */
async function required(ctx: CliContext, prompt: string): Promise<string | null> {
  const typed = await ctx.io.question(prompt);
  if (typed === null) return null;
  return typed.trim() === "" ? required(ctx, prompt) : typed.trim();
}
