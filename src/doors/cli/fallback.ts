// `hermes fallback`: the models that answer while the conversation's own one cannot (`fallback_providers` in config.yaml).
import type { Command } from "commander";
import { chooseTarget } from "../../agent/open-model.ts";
import { normalise } from "../../home/config/decode.ts";
import { messageOf } from "../../kit/errors.ts";
import { mapping, text } from "../../llm/providers/settings.ts";
import { LOCAL_SERVERS, resolveProviderAlias } from "../../llm/providers/table.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { confirm, print, printJson } from "./present.ts";

interface AddFlags {
  readonly baseUrl?: string;
  readonly keyEnv?: string;
  readonly first?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command.description("Manage fallback models. They are tried in this order when the main model fails.");
  command
    .command("list", { isDefault: true })
    .description("list the fallbacks")
    .option("--json", "as JSON")
    .action((flags: { json?: true }) => list(flags, ctx));
  command
    .command("add")
    .argument("[PROVIDER]", "e.g. openrouter, anthropic, ollama or custom")
    .argument("[MODEL]", "model id at that provider")
    .description("add a fallback")
    .option("--base-url <URL>", "URL of a custom server")
    .option("--key-env <NAME>", "environment variable with its key")
    .option("--first", "add it first in the list")
    .action((provider: string | undefined, model: string | undefined, flags: AddFlags) =>
      add(provider, model, flags, ctx),
    );
  command
    .command("remove")
    .argument("<WHICH>", "number in the list, or model id")
    .description("remove a fallback")
    .action((which: string) => remove(which, ctx));
  command
    .command("clear")
    .description("remove all fallbacks")
    .option("-y, --yes", "do not ask for confirmation")
    .action((flags: { yes?: true }) => clear(flags, ctx));
}

/** As written: values that settings fill in (`${NAME}`) must not be written back in clear. */
function written({ home }: CliContext): readonly unknown[] {
  const tree = home.configTree();
  if (tree === null) throw new ExitError(1, "config.yaml is broken. Fix it with: hermes config edit");
  const { fallback_providers: chain } = normalise(tree);
  return Array.isArray(chain) ? chain : [];
}

function describe(entry: unknown): string {
  const { provider, model, base_url, key_env } = mapping(entry);
  const key = text(key_env) ? `, key in ${text(key_env)}` : "";
  return `${text(provider) ?? "custom"}  ${text(model) ?? "(no model)"}${text(base_url) ? `  at ${text(base_url)}` : ""}${key}`;
}

function list({ json }: { readonly json?: true }, ctx: CliContext): void {
  const entries = written(ctx);
  if (json) {
    const facts = entries.map(mapping).map(({ provider, model, base_url, key_env }) => ({
      provider: provider ?? null,
      model: model ?? null,
      base_url: base_url ?? null,
      key_env: key_env ?? null,
    }));
    return printJson(ctx, facts);
  }
  if (entries.length === 0) return print(ctx, "No fallback configured. Add one: hermes fallback add PROVIDER MODEL");
  for (const [at, entry] of entries.entries()) print(ctx, `${at + 1}. ${describe(entry)}`);
}

async function add(
  provider: string | undefined,
  model: string | undefined,
  { baseUrl, keyEnv, first }: AddFlags,
  ctx: CliContext,
): Promise<void> {
  const chosen = await wanted(provider, model, ctx);
  if (baseUrl !== undefined && !URL.canParse(baseUrl))
    throw new ExitError(1, `"${baseUrl}" is not a URL. Use a URL such as https://host/v1.`);
  const entry = {
    ...chosen,
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    ...(keyEnv === undefined ? {} : { key_env: keyEnv }),
  };
  const entries = written(ctx);
  const isSame = (other: unknown) =>
    describe({ ...mapping(other), key_env: "" }) === describe({ ...entry, key_env: "" });
  if (entries.some(isSame)) throw new ExitError(1, `${chosen.provider} ${chosen.model} is already in the list.`);
  await save(first ? [entry, ...entries] : [...entries, entry], ctx);
  print(ctx, `✓ ${describe(entry)}`);
  // It is kept all the same: a key may be set later.
  if (baseUrl !== undefined || keyEnv !== undefined) return;
  const problem = await chooseTarget(ctx.home, chosen, { offline: true }).then(() => null, messageOf);
  if (problem !== null) ctx.io.err(`⚠ It cannot be used yet: ${problem}\n`);
}

async function wanted(
  provider: string | undefined,
  model: string | undefined,
  { io }: CliContext,
): Promise<{ readonly provider: string; readonly model: string }> {
  // `openrouter:some/model`, as -m takes it.
  const [, before, after] = /^([\w-]+):(.+)$/.exec(provider ?? "") ?? [];
  const given = model === undefined && before && after ? { provider: before, model: after } : { provider, model };
  if ((!given.provider || !given.model) && !io.stdinIsTerminal)
    throw new ExitError(1, "This command is interactive and needs a terminal. Use: hermes fallback add PROVIDER MODEL");
  const name = given.provider ?? (await io.question("Provider: "))?.trim();
  const id = given.model ?? (name ? (await io.question("Model: "))?.trim() : undefined);
  if (!name || !id) throw new ExitError(1, "Nothing was changed.");
  const row = resolveProviderAlias(name); // also of a server on this machine, whose own name says more
  return { provider: name in LOCAL_SERVERS ? name : row, model: id };
}

async function remove(which: string, ctx: CliContext): Promise<void> {
  const entries = written(ctx);
  const number = /^\d+$/.test(which) ? Number(which) - 1 : -1;
  const found = entries.flatMap((entry, at) => (at === number || mapping(entry).model === which ? [at] : []));
  if (found.length !== 1) {
    const what =
      found.length === 0 ? `There is no fallback "${which}".` : `Several fallbacks use ${which}; give a number.`;
    throw new ExitError(1, `${what} "hermes fallback list" shows them.`);
  }
  const [at = 0] = found;
  await save(entries.toSpliced(at, 1), ctx);
  print(ctx, `✓ Removed ${describe(entries[at])}`);
}

async function clear(flags: { readonly yes?: true }, ctx: CliContext): Promise<void> {
  const count = written(ctx).length;
  if (count === 0) return print(ctx, "No fallback configured.");
  await confirm(ctx, `Remove ${count === 1 ? "the fallback" : `all ${count} fallbacks`}?`, flags);
  await save([], ctx);
  print(ctx, "✓ Removed.");
}

/** `fallback_model` is the older name; two lists would only confuse. */
async function save(entries: readonly unknown[], { home }: CliContext): Promise<void> {
  await home.setConfigKeys({
    fallback_providers: entries.length > 0 ? entries : undefined,
    ...(home.configTree()?.fallback_model === undefined ? {} : { fallback_model: undefined }),
  });
}
