// `/model`: choose another model from what the server offers, or name one; a name nobody knows is asked about first.
import { windowText } from "../agent/usage-meter.ts";
import { t } from "../home/language/words.ts";
import { messageOf } from "../kit/errors.ts";
import { contextSize } from "../kit/formats.ts";
import { isLocalEndpoint } from "../llm/providers/hosts.ts";
import type { OfferedModel } from "../llm/providers/model-list.ts";
import { parseModelFlags } from "../llm/providers/model-names.ts";
import { placeOf } from "../llm/wire.ts";
import {
  type CommandContext,
  type CommandDefinition,
  type CommandValues,
  type PickItem,
  typedWords,
} from "./context.ts";

interface Asked {
  readonly model: string;
  readonly provider?: string | undefined;
}

const OPTIONS = ["--global", "--provider", "--refresh", "--anyway"];

const model: CommandDefinition = {
  name: "model",
  aliases: ["provider"],
  description: "choose the model",
  category: "Configuration",
  editor: true,
  argsHint: "[model] [--provider p] [--global] [--refresh]",
  async values(typed, ctx): Promise<CommandValues> {
    const { words, last } = typedWords(typed);
    if (last.startsWith("-")) return { replaces: last, values: OPTIONS.map((value) => ({ value })) };
    if (words.some((word) => !word.startsWith("-"))) return { replaces: last, values: [] };
    const { models } = await ctx.conversation.knownModels();
    const named = models.map((row) => ({ value: row.id, about: factsOf(row).filter(Boolean).join(" · ") }));
    return {
      replaces: last,
      values: [...(await aliases(ctx)).map(({ name, to }) => ({ value: name, about: to })), ...named],
    };
  },
  async run(args, ctx) {
    const anyway = /(?:^|\s)--anyway(?=\s|$)/;
    const [name, provider, global, refresh] = parseModelFlags(args.replace(anyway, " "));
    if (refresh) ctx.say((await ctx.conversation.refreshModels({ force: true })) ?? "Model list updated.");
    // Uses the stored list now; a newer one is fetched for the next time.
    else if (worthRefreshing(ctx)) void ctx.conversation.refreshModels();
    try {
      const asked: Asked | null = name
        ? { model: name, provider: provider || undefined }
        : await pickModel(ctx, refresh);
      if (asked === null) return;
      const sure = name === "" || anyway.test(args) ? asked : await checked(asked, ctx);
      if (sure === null) return stillUsing(ctx, "");
      ctx.say(await ctx.conversation.switchModel({ ...sure, global }));
    } catch (error) {
      stillUsing(ctx, `${messageOf(error)} `);
    }
  },
};

export const MODEL_COMMANDS: readonly CommandDefinition[] = [model];

function stillUsing(ctx: CommandContext, why: string): void {
  const { target } = ctx.conversation;
  ctx.warn(`${why}Still using ${target.model} (${placeOf(target)}).`);
}

/** A server of one's own and the demo are in no published list. */
function worthRefreshing({ conversation: { target, demo } }: CommandContext): boolean {
  return !demo && !isLocalEndpoint(target.baseUrl);
}

/** The request, another one that was taken instead, or null: the old model stays. */
async function checked(asked: Asked, ctx: CommandContext): Promise<Asked | null> {
  const { model: name, provider, baseUrl, check } = await ctx.conversation.checkModel(asked);
  if (check.type === "unknown" && check.trouble !== null)
    ctx.warn(`Could not check whether the model ${name} exists: ${check.trouble}`);
  if (check.type !== "unlisted") return asked;
  ctx.warn(
    `${baseUrl} does not list a model "${name}". /model lists its models; /model ${name} --anyway uses it anyway.`,
  );
  const near = check.near.map((id) => ({ label: id, value: { model: id, provider } }));
  const { target } = ctx.conversation;
  return ctx.pick<Asked | null>(`The server does not list "${name}". Which model?`, [
    ...near,
    { label: `Use ${name} anyway`, value: asked },
    { label: `Keep ${target.model}`, value: null },
  ]);
}

async function pickModel(ctx: CommandContext, fresh: boolean): Promise<Asked | null> {
  const { target } = ctx.conversation;
  ctx.say(`Model: ${target.model} (${placeOf(target)}), ${windowText(target)}`);
  const { models, source, trouble } = await ctx.conversation.knownModels({ fresh });
  if (trouble !== null) ctx.warn(`Could not fetch the model list: ${trouble}`);
  const rows = [
    ...models.map((row) => ({
      label: row.id,
      hint: [...factsOf(row), placeOf(target)],
      current: row.id === target.model,
      value: { model: row.id },
    })),
    ...(await otherRows(ctx)),
  ];
  if (rows.length === 0) {
    ctx.say("/model NAME switches the model; /setup connects a provider.");
    return null;
  }
  const selected = Math.max(
    0,
    rows.findIndex(({ current }) => current),
  );
  const from = source === "server" ? t("offered by {url}", { url: target.baseUrl }) : t("as published");
  return ctx.pick<Asked>(`Switch to (${from}; per million tokens in / out)`, rows, { selected });
}

/** Short names, stand-ins, and models of other providers there is a key for. */
async function otherRows(ctx: CommandContext): Promise<readonly PickItem<Asked>[]> {
  const { target } = ctx.conversation;
  const { readFallbacks } = await import("../agent/fallback.ts");
  const { PROVIDERS } = await import("../llm/providers/table.ts");
  const { modelsOf } = await import("../llm/catalogue/facts.ts");
  const { home } = ctx;
  const short = (await aliases(ctx)).map(({ name, to }) => ({
    label: `${name} → ${to}`,
    hint: ["", "", "alias"],
    value: { model: name },
  }));
  const fallbacks = readFallbacks(home.config().fallback_providers).entries.map(({ model: name = "", provider }) => ({
    label: name,
    hint: ["", "", `${provider}, fallback`],
    value: { model: name, provider },
  }));
  const usable = PROVIDERS.filter(({ id, keyEnv }) => id !== target.provider && keyEnv.some((name) => home.env(name)));
  const others = await Promise.all(
    usable.map(async ({ id }) =>
      (await modelsOf(id)).map((row) => ({
        label: row.id,
        hint: [...factsOf(row), id],
        value: { model: row.id, provider: id },
      })),
    ),
  );
  return [...short, ...fallbacks, ...others.flat()];
}

async function aliases({ home }: Pick<CommandContext, "home">): Promise<readonly { name: string; to: string }[]> {
  const { aliasesIn } = await import("../agent/open-model.ts");
  return Object.entries(aliasesIn(home.config())).map(([name, entry]) => {
    const to = typeof entry === "object" && entry !== null && "model" in entry ? entry.model : entry;
    return { name, to: String(to) };
  });
}

/** Window and price, as far as they are known: nothing is made up. */
function factsOf({ contextLength, price }: Pick<OfferedModel, "contextLength" | "price">): [string, string] {
  return [contextLength === null ? "" : contextSize(contextLength), priceText(price)];
}

export function priceText(price: OfferedModel["price"]): string {
  if (price === null) return "";
  return price.input === 0 && price.output === 0 ? t("included") : `$${price.input} / $${price.output}`;
}
