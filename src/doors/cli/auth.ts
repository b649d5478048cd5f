// `hermes auth`: several keys of one provider, kept in auth.json. When one is spent, the next one takes over.
import { randomBytes } from "node:crypto";
import { access } from "node:fs/promises";
import type { Command } from "commander";
import {
  type AuthFile,
  editAuth,
  entriesIn,
  openAuth,
  type PoolEntry,
  restsUntil,
  withPool,
} from "../../llm/keys/pool.ts";
import { isUsableKey } from "../../llm/providers/keys.ts";
import { mapping, ProviderError } from "../../llm/providers/settings.ts";
import { providerRow, resolveProviderAlias } from "../../llm/providers/table.ts";
import { type CliContext, ExitError, readAll } from "../cli-context.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description("manage multiple API keys per provider; when one is exhausted, the next one is used");
  command
    .command("list", { isDefault: true })
    .alias("status")
    .argument("[provider]")
    .description("list keys, including paused ones")
    .action((provider?: string) => list(provider, ctx));
  command
    .command("add")
    .argument("<provider>")
    .option("--label <text>", "a label for it")
    .option("--base-url <url>", "URL this key is for, instead of the provider's own")
    .description("add a key; prompts for it or reads stdin")
    .action((provider: string, flags: { label?: string; baseUrl?: string }) => add(provider, flags, ctx));
  command
    .command("remove")
    .argument("<provider>")
    .argument("<key>", "id or label")
    .description("remove one key")
    .action((provider: string, which: string) => remove(provider, which, ctx));
  command
    .command("reset")
    .argument("<provider>")
    .description("re-enable paused keys")
    .action((provider: string) => reset(provider, ctx));
  command
    .command("logout")
    .argument("<provider>")
    .description("remove the logins of a provider; keys are kept")
    .action((provider: string) => logout(provider, ctx));
}

export function defineLogin(command: Command, ctx: CliContext): void {
  command
    .description("Save a provider key (same as hermes auth add).")
    .argument("[provider]", "default: the provider of your model")
    .option("--label <text>", "a label for it")
    .action(async (provider: string | undefined, flags: { label?: string }) => {
      const id = providerNamed(provider ?? (await ownProvider(ctx)));
      if (providerRow(id)?.auth === "oauth")
        throw new ExitError(
          1,
          `${id} needs a browser login, which this version does not support. Existing logins in auth.json are used and renewed.`,
        );
      return add(id, flags, ctx);
    });
}

export function defineLogout(command: Command, ctx: CliContext): void {
  command
    .description("Remove the logins of a provider; keys are kept (same as hermes auth logout).")
    .argument("[provider]", "default: the provider of your model")
    .action(async (provider: string | undefined) => logout(provider ?? (await ownProvider(ctx)), ctx));
}

/** The login in use, else the provider in the settings. */
async function ownProvider(ctx: CliContext): Promise<string> {
  const { active_provider: active } = await openAuth(ctx.home);
  const provider = (typeof active === "string" && active) || ctx.home.config().model.provider;
  if (provider && provider !== "auto") return provider;
  throw new ExitError(1, "Which provider? Name it, for example: openrouter, anthropic, openai-api.");
}

async function list(wanted: string | undefined, ctx: CliContext): Promise<void> {
  const file = await openAuth(ctx.home);
  const only = wanted === undefined ? null : providerNamed(wanted);
  const providers = Object.keys(mapping(file.credential_pool)).filter((id) => only === null || id === only);
  const rows = providers.flatMap((id) => entriesIn(file, id).map((entry) => ({ id, entry })));
  if (rows.length === 0) return ctx.io.out(`No keys saved. Add one: hermes auth add ${only ?? "PROVIDER"}\n`);
  for (const { id, entry } of rows) {
    const { label = "", source = "manual", access_token: token = "" } = entry;
    const shown = source.startsWith("env:") ? source.slice(4) : token === "" ? "(no key)" : `...${token.slice(-4)}`;
    const kind = entry.auth_type === "oauth" ? "login" : "key";
    ctx.io.out(
      `${id.padEnd(14)} ${entry.id}  ${kind.padEnd(5)} ${shown.padEnd(20)} ${state(entry, ctx).padEnd(24)} ${label}\n`,
    );
  }
}

function state(entry: PoolEntry, ctx: CliContext): string {
  const until = restsUntil(entry);
  if (until <= ctx.clock.now() / 1000) return "ready";
  const at = new Date(until * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return `paused until ${at}${entry.last_error_code ? ` (${entry.last_error_code})` : ""}`;
}

async function add(
  wanted: string,
  { label, baseUrl }: { readonly label?: string; readonly baseUrl?: string },
  ctx: CliContext,
): Promise<void> {
  const provider = providerNamed(wanted);
  if (provider === "custom" || provider === "demo")
    throw new ExitError(1, `${provider} does not use saved keys; set \`api_key\` next to its URL in config.yaml.`);
  if (baseUrl !== undefined && !URL.canParse(baseUrl))
    throw new ExitError(1, `"${baseUrl}" is not a URL. Use a URL such as https://host/v1.`);
  const typed = ctx.io.stdinIsTerminal
    ? await ctx.io.secret(`Key of ${provider} (not shown): `)
    : await readAll(ctx.io.stdin);
  const key = typed?.trim() ?? "";
  if (!isUsableKey(key) || !/^[\x21-\x7e]+$/.test(key))
    throw new ExitError(1, "that is not a key; nothing was added. A key is one line of letters, digits and symbols.");
  const id = randomBytes(3).toString("hex");
  await editAuth(ctx.home, (file) => {
    const entries = entriesIn(file, provider);
    if (entries.some((entry) => entry.access_token === key))
      throw new ExitError(1, `this ${provider} key is already saved.`);
    const priority = Math.max(-1, ...entries.map((entry) => entry.priority ?? 0)) + 1;
    const added: PoolEntry = {
      ...{ id, label: label ?? `key ${entries.length + 1}`, auth_type: "api_key", priority, source: "manual" },
      access_token: key,
      base_url: baseUrl,
      request_count: 0,
    };
    return withPool(file, provider, [...entries, added]);
  });
  ctx.io.out(`✓ ${id} saved for ${provider}.\n`);
}

async function remove(wanted: string, which: string, ctx: CliContext): Promise<void> {
  const provider = providerNamed(wanted);
  await change(ctx, (file) => {
    const entries = entriesIn(file, provider);
    const found = entries.filter((entry) => entry.id === which || entry.label === which);
    if (found.length !== 1) {
      const what = found.length === 0 ? "has no key" : "has several keys";
      throw new ExitError(1, `${provider} ${what} "${which}". hermes auth list ${provider} shows their ids.`);
    }
    return withPool(
      file,
      provider,
      entries.filter((entry) => entry !== found[0]),
    );
  });
  ctx.io.out("✓ Removed.\n");
}

async function reset(wanted: string, ctx: CliContext): Promise<void> {
  const provider = providerNamed(wanted);
  let enabled = 0;
  await change(ctx, (file) => {
    const entries = entriesIn(file, provider).map((entry): PoolEntry => {
      if (entry.last_status !== "exhausted") return entry;
      enabled++;
      return { ...entry, last_status: null, last_error_reset_at: null };
    });
    return withPool(file, provider, entries);
  });
  ctx.io.out(enabled === 0 ? "No key is paused.\n" : `✓ ${enabled} re-enabled.\n`);
}

async function logout(wanted: string, ctx: CliContext): Promise<void> {
  const provider = providerNamed(wanted);
  await change(ctx, (file) => {
    const { active_provider: active, ...rest } = file;
    const keys = entriesIn(file, provider).filter((entry) => entry.auth_type !== "oauth");
    return withPool(active === provider ? rest : file, provider, keys);
  });
  ctx.io.out(`✓ No ${provider} login is stored.\n`);
}

/** A missing file is not created. */
async function change(ctx: CliContext, how: (file: AuthFile) => AuthFile): Promise<void> {
  try {
    await access(ctx.home.paths.at("auth.json"));
  } catch {
    throw new ExitError(1, "no keys saved. Add one: hermes auth add PROVIDER");
  }
  await editAuth(ctx.home, how);
}

function providerNamed(name: string): string {
  try {
    return providerRow(resolveProviderAlias(name))?.id ?? name;
  } catch (error) {
    if (error instanceof ProviderError) throw new ExitError(1, `${error.message}`);
    throw error;
  }
}
