// `hermes setup` and `hermes model`: connect a provider and choose a model, step by step.
import type { Command } from "commander";
import { chooseTarget } from "../../agent/open-model.ts";
import type { OpenHome } from "../../home/open.ts";
import { contextSize } from "../../kit/formats.ts";
import { modelsOf } from "../../llm/catalogue/facts.ts";
import { listEndpointModels } from "../../llm/providers/local.ts";
import { LOCAL_SERVERS, PROVIDERS, type ProviderRow } from "../../llm/providers/table.ts";
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
  command.description("Choose provider and model; writes config.yaml.").action(() => setUp(ctx, false, true));
}

async function setUp(ctx: CliContext, printOnly: boolean, needsTerminal = false): Promise<void> {
  if (printOnly || !ctx.io.stdinIsTerminal) {
    if (needsTerminal) throw new ExitError(1, `hermes model needs a terminal. Without one:\n${byHand()}`);
    return ctx.io.out(`${byHand()}\n`);
  }
  const provider = await pickProvider(ctx);
  const { home } = ctx;
  await ensureKey(provider, ctx);
  await home.setConfigKey("model.provider", provider.id);
  if (provider.baseUrl) await home.setConfigKey("model.base_url", provider.baseUrl);
  const model = await pickModel(provider, ctx);
  await home.setConfigKey("model.default", model);
  const { target } = await chooseTarget(home, {});
  ctx.io.out(
    `\n✓ ${target.model} at ${provider.name}, ${contextSize(target.contextLength)} tokens. Talk to it: hermes\n`,
  );
}

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

async function pickProvider(ctx: CliContext): Promise<Choice> {
  const choices: Choice[] = [
    ...PROVIDERS.filter((row) => !HIDDEN.has(row.id) && row.keyEnv.length > 0).map((row) => ({
      id: row.id,
      name: row.id,
      row,
      baseUrl: null,
    })),
    ...Object.keys(LOCAL_SERVERS).map((id) => ({ id, name: `${id} (on this machine)`, row: null, baseUrl: null })),
    { id: "custom", name: "another OpenAI-compatible server", row: null, baseUrl: "" },
  ];
  const chosen = await pick(ctx, "Which provider?", choices, (choice) => `${choice.name}${keyMark(choice, ctx.home)}`);
  if (chosen.id !== "custom") return chosen;
  const url = await required(ctx, "Base URL (e.g. http://127.0.0.1:8000/v1): ");
  if (!URL.canParse(url)) throw new ExitError(1, `hermes: "${url}" is no URL; nothing was saved.`);
  return { ...chosen, baseUrl: url };
}

const keyMark = ({ row }: Choice, home: OpenHome) =>
  row?.keyEnv.some((name) => home.env(name)) ? "  ✓ key is set" : "";

async function ensureKey({ row, name }: Choice, ctx: CliContext): Promise<void> {
  const variable = row?.keyEnv[0];
  if (!row || !variable || row.keyEnv.some((candidate) => ctx.home.env(candidate))) return;
  const key = await ctx.io.secret(`Key of ${name} (${variable}; not shown): `);
  if (key === null) throw new ExitError(1, "hermes: cancelled; nothing was saved.");
  if (key.trim() === "") return;
  await ctx.home.setEnv(variable, key.trim());
  ctx.io.out(`✓ ${variable} is stored in ${ctx.home.paths.envFile}\n`);
}

async function pickModel(provider: Choice, ctx: CliContext): Promise<string> {
  const models = await offered(provider, ctx);
  if (models.length === 0) return required(ctx, "Model: ");
  const filter =
    models.length > SHOWN_MODELS ? ((await ctx.io.question("Part of the model's name (Enter = all): ")) ?? "") : "";
  const matching = models.filter((model) => model.toLowerCase().includes(filter.trim().toLowerCase()));
  return pick(ctx, "Which model?", matching.slice(0, SHOWN_MODELS), (model) => model, "or type its name");
}

/** What the endpoint says it has; else what is published of the provider. */
async function offered(provider: Choice, ctx: CliContext): Promise<readonly string[]> {
  const url = provider.baseUrl ?? LOCAL_SERVERS[provider.id] ?? provider.row?.baseUrl;
  const apiKey = provider.row?.keyEnv.map((name) => ctx.home.env(name)).find((key) => key !== undefined);
  const live = url ? await listEndpointModels(url, { fetch, ...(apiKey ? { apiKey } : {}) }) : null;
  if (live?.ok && live.models.length > 0) return live.models;
  if (live && !live.ok && !provider.row) ctx.io.err(`⚠ ${live.attempt}\n`);
  return (await modelsOf(provider.id)).map((facts) => facts.id);
}

async function pick<T>(
  ctx: CliContext,
  title: string,
  choices: readonly T[],
  label: (choice: T) => string,
  orElse?: string,
): Promise<T> {
  const rows = choices.map((choice, index) => `${String(index + 1).padStart(3)}. ${label(choice)}`);
  ctx.io.out(`\n${title}\n${rows.join("\n")}\n`);
  for (;;) {
    const typed = await required(ctx, `Number${orElse ? `, ${orElse}` : ""}: `);
    const chosen = choices[Number(typed) - 1];
    if (chosen !== undefined) return chosen;
    if (orElse && !/^\d+$/.test(typed)) return typed as T; // only strings are offered with a free choice
    ctx.io.err(`There is no ${typed}.\n`);
  }
}

async function required(ctx: CliContext, prompt: string): Promise<string> {
  const typed = await ctx.io.question(prompt);
  if (typed === null) throw new ExitError(1, "hermes: cancelled.");
  return typed.trim() === "" ? required(ctx, prompt) : typed.trim();
}
